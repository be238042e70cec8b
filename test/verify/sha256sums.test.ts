import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isMirrorError } from '../../src/errors.ts'
import { parseSha256Sums } from '../../src/verify/sha256sums.ts'
import { cpuMs } from '../protocol/only-mirror-errors.ts'
import { hasVectors, readVector } from './vectors.ts'

const A = 'a'.repeat(64)
const B = 'b'.repeat(64)
const ZIP = 'terraform-provider-other_v1.2.0_linux_amd64.zip'

function parse(text: string) {
  return parseSha256Sums(Buffer.from(text), 'https://acme.example/SHA256SUMS')
}

describe('parseSha256Sums', () => {
  it.each([
    ['two blanks', `${A}  ${ZIP}\n`],
    ['the binary mark', `${A} *${ZIP}\n`],
    ['one blank', `${A} ${ZIP}\n`],
    ['a tab', `${A}\t${ZIP}\n`],
    ['many blanks and tabs', `${A} \t  ${ZIP} \t\n`],
    ['CRLF', `${A}  ${ZIP}\r\n`],
    ['CR alone', `${B}  x\r${A}  ${ZIP}\r`],
    ['upper-case digits', `${A.toUpperCase()}  ${ZIP}\n`],
    ['./ before the name', `${A}  ./${ZIP}\n`],
    ['the binary mark and ./', `${A} *./${ZIP}\n`],
    ['no final newline', `${B}  x\n${A}  ${ZIP}`],
    ['a byte order mark', `\ufeff${A}  ${ZIP}\n`],
    ['comments, blank lines, foreign lines', `# made by x\n\n \n${A}  ${ZIP}\nhello world\n${B.slice(1)}  short\n`],
    ['the same line twice', `${A}  ${ZIP}\n${A.toUpperCase()} *${ZIP}\n`],
  ])('finds the digest with %s', (_, text) => {
    expect(parse(text).find(ZIP)).toBe(A)
  })

  it('matches a name exactly, and keeps blanks inside it', () => {
    const sums = parse(`${A}  Name One.zip\n${B}  __proto__\n`)
    expect(sums.find('Name One.zip')).toBe(A)
    expect(sums.find('name one.zip')).toBeUndefined()
    expect(sums.find('Name')).toBeUndefined()
    expect(sums.find('__proto__')).toBe(B)
    expect(sums.find('constructor')).toBeUndefined()
    expect([...sums.entries.keys()]).toEqual(['Name One.zip', '__proto__'])
  })

  it('refuses one name with two digests, and names all three and the URL', () => {
    const act = () => parse(`${A}  ${ZIP}\n${B} *./${ZIP}\n`)
    expect(act).toThrow(expect.objectContaining({ code: 'CHECKSUMS_INVALID' }))
    for (const part of [ZIP, A, B, 'https://acme.example/SHA256SUMS']) expect(act).toThrow(part)
  })

  it.each([
    ['an HTML page', '<!doctype html><title>404</title>'],
    ['nothing', ''],
    ['a digest without a name', `${A}\n${A}  \n`],
    ['SHA-512 sums', `${A}${A}  ${ZIP}\n`],
  ])('refuses %s', (_, text) => {
    expect(() => parse(text)).toThrow(expect.objectContaining({ code: 'CHECKSUMS_INVALID' }))
  })

  it('reads back what coreutils would print, in every style', () => {
    const name = fc.stringMatching(/^[A-Za-z0-9_+-][A-Za-z0-9._+ -]{0,40}[A-Za-z0-9]$/)
    const digest = fc.stringMatching(/^[0-9a-f]{64}$/)
    const style = fc.constantFrom(
      (hex: string, file: string) => `${hex}  ${file}\n`,
      (hex: string, file: string) => `${hex} *${file}\r\n`,
      (hex: string, file: string) => `${hex.toUpperCase()}\t./${file}\n# x\n`,
    )
    fc.assert(
      fc.property(fc.dictionary(name, digest, { minKeys: 1 }), style, (files, print) => {
        const text = Object.entries(files)
          .map(([file, hex]) => print(hex, file))
          .join('')
        expect(Object.fromEntries(parse(text).entries)).toEqual({ ...files })
      }),
    )
  })

  it('throws nothing but our own error, whatever the bytes', () => {
    const line = fc.oneof(fc.string(), fc.constantFrom(`${A}  x`, `${B}  x`, `${A} *y`, '\r', A))
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.array(line).map((lines) => new Uint8Array(Buffer.from(lines.join('\n')))),
    )
    fc.assert(
      fc.property(bytes, (input) => {
        try {
          parseSha256Sums(input)
        } catch (error) {
          expect(isMirrorError(error) && error.is('CHECKSUMS_INVALID')).toBe(true)
        }
      }),
    )
  })

  it.each([
    ['honest lines', `${A}  file-%.zip\n`],
    ['blanks', ' '],
    ['digits', 'a'],
    ['./', './'],
    ['a digest and blanks', `${A} \t`],
  ])('takes linear time for 1 MB of %s', (_, unit) => {
    let count = 0
    const text = unit.repeat(Math.ceil(1_000_000 / unit.length)).replace(/%/g, () => String(count++))
    const bytes = Buffer.from(`${A}  first\n${A}  ${text}`)
    expect(cpuMs(() => expect(parseSha256Sums(bytes).find('first')).toBe(A))).toBeLessThan(2000)
  })

  it
    .skipIf(!hasVectors)
    .each([
      'terraform-provider-null_3.1.0/terraform-provider-null_3.1.0_SHA256SUMS',
      'realistic/terraform_0.14.0-alpha20200923_SHA256SUMS',
      'terraform_1.7.5_SHA256SUMS-unsigned/terraform_1.7.5_SHA256SUMS',
      'sample_0.1.0/sample_0.1.0_SHA256SUMS',
      'tofu_1.6.0-cosign/tofu_1.6.0_SHA256SUMS',
    ])('reads every line of the real file %s', (path) => {
    const bytes = readVector(`signatures/${path}`)
    const lines = bytes.toString().split('\n').filter(Boolean)
    const { entries } = parseSha256Sums(bytes)
    expect(entries.size).toBeGreaterThan(0)
    expect([...entries].map(([name, digest]) => `${digest}  ${name}`)).toEqual(lines)
  })
})
