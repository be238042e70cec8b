import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isMirrorError } from '../../src/errors.ts'
import {
  formatProviderAddress,
  parseProviderAddress,
  parseProviderAddressText,
} from '../../src/protocol/provider-address.ts'
import { cpuMs, outcome, thrownBy } from './only-mirror-errors.ts'

const HOST = 'registry.terraform.io'

function parseType(type: string): string {
  return parseProviderAddress({ hostname: HOST, namespace: 'acme', type }).type
}

describe('parseProviderAddress', () => {
  it.each([
    ['google-beta', 'google-beta'],
    ['null', 'null'],
    ['a1', 'a1'],
    ['foo-rc1', 'foo-rc1'],
    ['x_y', 'x_y'],
    ['FOO', 'foo'],
    ['abc-123', 'abc-123'],
    ['Испытание', 'испытание'],
    ['münchen', 'münchen'],
    ['mu\u0308nchen', 'münchen'],
    ['1password', '1password'],
    ['__proto', undefined],
    ['a'.repeat(128), 'a'.repeat(128)],
    ['日'.repeat(128), '日'.repeat(128)],
  ])('takes types and namespaces as the clients do (B05): %s', (text, expected) => {
    if (expected === undefined) return expect(thrownBy(() => parseType(text)).code).toBe('INVALID_ADDRESS')
    expect(parseType(text)).toBe(expected)
    expect(parseProviderAddress({ hostname: HOST, namespace: text, type: 'x' }).namespace).toBe(expected)
  })

  it('gives every letter case one address (B15)', () => {
    const address = parseProviderAddress({ hostname: 'Reg.Example.Test', namespace: 'Acme', type: 'Widget' })
    expect(formatProviderAddress(address)).toBe('reg.example.test/acme/widget')
  })

  it('gives punycode and Unicode hosts one address (B16)', () => {
    const parse = (hostname: string) => parseProviderAddress({ hostname, namespace: 'acme', type: 'widget' })
    expect(parse('bücher.example')).toEqual(parse('xn--bcher-kva.example'))
  })

  it.each([
    '',
    '-a',
    'a-',
    'a--b',
    'xn--80akhbyknj4f',
    'a.b',
    'a b',
    'a+b',
    '%2e%2e',
    'ﬀ',
    'a１',
    'a\u00adb',
    'a\u200db',
    '☃',
    '?',
    '~',
    '\u0301a',
    '-',
  ])('calls a type outside the grammar an invalid address: %j', (text) => {
    expect(thrownBy(() => parseType(text)).code).toBe('INVALID_ADDRESS')
  })

  it.each([
    '.',
    '..',
    '../x',
    'a/b',
    'a\\b',
    'a\u0000',
    'a\nb',
    'a\u007f',
    'a\u0085',
    'a'.repeat(129),
    '日'.repeat(129),
    'a'.repeat(5000),
  ])('calls traversal, control bytes and overlong text hostile: %j', (text) => {
    expect(thrownBy(() => parseType(text)).code).toBe('HOSTILE_INPUT')
    const namespaced = () => parseProviderAddress({ hostname: HOST, namespace: text, type: 'x' })
    expect(thrownBy(namespaced).code).toBe('HOSTILE_INPUT')
  })

  it('calls a bad host hostile', () => {
    const parse = () => parseProviderAddress({ hostname: '127.0.0.1', namespace: 'acme', type: 'widget' })
    expect(thrownBy(parse).code).toBe('HOSTILE_INPUT')
  })

  it('tells users of a legacy address to run state replace-provider (B13)', () => {
    const error = thrownBy(() => parseProviderAddress({ hostname: HOST, namespace: '-', type: 'aws' }))
    expect(error.code).toBe('INVALID_ADDRESS')
    expect(error.fields).toMatchObject({ input: 'registry.terraform.io/-/aws' })
    expect(error.is('INVALID_ADDRESS') && error.fields.hint).toContain(
      'terraform state replace-provider registry.terraform.io/-/aws registry.terraform.io/',
    )
    expect(error.message).toContain('registry.terraform.io/-/aws')
  })
})

describe('parseProviderAddressText', () => {
  it.each(['', 'aws', 'hashicorp/aws', 'registry.terraform.io/hashicorp/aws/5.0.0', 'a/b/c/'])(
    'demands host, namespace and type: %j',
    (text) => {
      expect(thrownBy(() => parseProviderAddressText(text)).code).toBe('INVALID_ADDRESS')
    },
  )

  it('is the inverse of formatProviderAddress, and throws errors of ours only', () => {
    const character = fc.oneof(
      fc.constantFrom(...'aZ09-_./'),
      fc.constantFrom('ü', 'u\u0308', 'İ', 'ẞ', 'Σ', '日', '\u0308', 'ŉ', '\u1fb3', '\u1f88'),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    )
    const part = fc.oneof(
      fc.stringMatching(/^[a-zA-Z0-9]([_-]?[a-zA-Z0-9]){0,31}$/),
      fc.string({ unit: character, maxLength: 8 }),
    )
    const host = fc.oneof(fc.domain(), fc.constant('localhost:8443'))
    fc.assert(
      fc.property(host, part, part, (hostname, namespace, type) => {
        const address = outcome(() => parseProviderAddress({ hostname, namespace, type }))
        if (isMirrorError(address)) return address.is('HOSTILE_INPUT', 'INVALID_ADDRESS')
        expect(parseProviderAddressText(formatProviderAddress(address))).toEqual(address)
        return true
      }),
      { numRuns: 2000 },
    )
  })

  it('takes no longer for a megabyte', () => {
    for (const text of [
      '/'.repeat(1e6),
      `a/${'b'.repeat(1e6)}/c`,
      `a/b/${'-'.repeat(1e6)}`,
      `${'a'.repeat(1e6)}/b/c`,
    ]) {
      expect(cpuMs(() => thrownBy(() => parseProviderAddressText(text)))).toBeLessThan(2000)
    }
  })
})
