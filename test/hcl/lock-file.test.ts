import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type ErrorFields, isMirrorError } from '../../src/errors.ts'
import { type LockedProvider, readLockFile } from '../../src/hcl/hcl-reader.ts'
import { formatProviderAddress } from '../../src/protocol/provider-address.ts'
import { describeVectors, readJsonVector, readVector, VECTORS_ROOT } from '../protocol/vectors.ts'

type Refusal = ErrorFields['CONFIGURATION_FILE_INVALID']

/** What `readLockFile` gives, or its refusal. */
async function read(text: string, file?: string): Promise<LockedProvider[] | Refusal> {
  try {
    return await readLockFile(text, file)
  } catch (error) {
    if (isMirrorError(error) && error.is('CONFIGURATION_FILE_INVALID')) return error.fields
    throw error
  }
}

interface Verdict {
  readonly file: string
  readonly rc: number
  readonly diagnostics: readonly { readonly summary: string; readonly line: number }[]
}

/**
 * Where our first fault is another one than Terraform's first: it lists a brace on the next line after the argument that
 * it then misses, which is the same fault at the same line.
 */
const OTHER_FIRST: Readonly<Record<string, number>> = { 'odd/brace-on-next-line-excerpt.lock.hcl': 1 }

/** Lock files as Terraform writes them, by lines alone: another way to read them, for good files only. */
function readByLines(text: string) {
  const providers: {
    address: string
    version: string
    constraints: string | undefined
    hashes: string[]
    line: number
  }[] = []
  let inModule = false
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const [, type, label = ''] = /^(\w+) "(.*)" \{/.exec(line) ?? []
    if (type !== undefined) inModule = type === 'module'
    if (type === 'provider')
      providers.push({ address: label, version: '', constraints: undefined, hashes: [], line: index + 1 })
    const provider = providers.at(-1)
    if (provider === undefined || inModule) continue
    const [, name, value = ''] = /^ +(version|constraints) *= *"(.*)"/.exec(line) ?? []
    if (name === 'version') provider.version = value
    if (name === 'constraints') provider.constraints = value
    for (const [, hash = ''] of line.matchAll(/"(\w+:[^"]*)"/g)) provider.hashes.push(hash)
  }
  return providers
}

/** The body of a skipped suite runs too. */
function readVerdicts(): Verdict[] {
  if (!existsSync(VECTORS_ROOT)) return []
  return (readJsonVector('lockfiles/REFERENCE-VERDICTS.json') as { results: Verdict[] }).results
}

describeVectors('the lock files of the vectors', () => {
  const results = readVerdicts()

  it('are all there', () => {
    expect(results.length).toBeGreaterThanOrEqual(44)
    expect(results.filter(({ rc }) => rc !== 0).length).toBeGreaterThanOrEqual(8)
  })

  it.each(results.filter(({ rc }) => rc === 0).map(({ file }) => file))(
    '%s loads, with all that is in it',
    async (file) => {
      const text = readVector(`lockfiles/${file}`)
      const providers = await readLockFile(text, file)
      const plain = providers.map(({ address, ...rest }) => ({ address: formatProviderAddress(address), ...rest }))
      expect(plain).toEqual(readByLines(text).map((each) => ({ ...each, hashes: [...new Set(each.hashes)] })))
    },
  )

  it.each(results.filter(({ rc }) => rc !== 0))(
    '$file is refused with summary and line',
    async ({ file, diagnostics }) => {
      const refusal = (await read(readVector(`lockfiles/${file}`), file)) as Refusal
      const expected = diagnostics[OTHER_FIRST[file] ?? 0]
      expect(refusal).toEqual({ file, line: expected?.line, reason: expect.stringContaining(`${expected?.summary}: `) })
    },
  )
})

const block = (lines: string, label = 'registry.terraform.io/hashicorp/aws') => `provider "${label}" {\n${lines}\n}\n`

describe('readLockFile', () => {
  it('reads a file of nothing, of comments, with a BOM, with CRLF and with every kind of comment', async () => {
    for (const text of ['', '\n\n', '# c\n// d\n/* e\n */\n']) expect(await read(text)).toEqual([])
    const crlf = `\ufeff# c\r\n${block('  version = "1.0.0" # x\r\n  /* y */ hashes = [\r\n    "zh:00",\r\n  ]\r')}`
    expect(await read(crlf)).toMatchObject([{ version: '1.0.0', hashes: ['zh:00'], line: 2 }])
  })

  it('reads escapes, keeps unknown kinds of hashes, and leaves out what comes twice', async () => {
    const text = block('version = "1.0.0-\\u0072c.1"\nconstraints = ""\nhashes = ["zh:1", "h9:\\"$${x}", "zh:1"]')
    const hashes = ['zh:1', `h9:"$${'{x}'}`]
    expect(await read(text)).toMatchObject([{ version: '1.0.0-rc.1', constraints: undefined, hashes }])
  })

  it.each([
    [2, 'Invalid provider version number: it must be written "1.0.0"', block('version = "1.0"')],
    [2, 'Invalid provider version number: "v1.0.0"', block('version = "v1.0.0"')],
    [2, 'Missing required argument', block('version = null')],
    [1, 'Missing required argument', block('')],
    [2, 'Variables not allowed', block('version = var.x')],
    [2, 'Unsuitable value type', block('version = ["1.0.0"]')],
    [3, 'Invalid provider version constraints: they must be', block('version = "1.0.0"\nconstraints = ">= 1"')],
    [3, 'Invalid provider version constraints: not a', block('version = "1.0.0"\nconstraints = "new"')],
    [3, 'Invalid provider hash set', block('version = "1.0.0"\nhashes = []')],
    [5, 'Invalid provider hash string', block('version = "1.0.0"\nhashes = [\n"zh:0",\n"0",\n]')],
    [3, 'Invalid expression: a list', block('version = "1.0.0"\nhashes = "zh:0"')],
    [3, 'Unsupported argument', block('version = "1.0.0"\nsize = 3')],
    [3, 'Attribute redefined', block('version = "1.0.0"\nversion = "1.0.0"')],
    [3, 'Unsupported block type', block('version = "1.0.0"\nplatform {}')],
    [2, 'Unsupported argument', '# c\nx = 1\n'],
    [4, 'Duplicate provider lock', block('version = "1.0.0"').repeat(2)],
    [1, 'Missing name for provider', 'provider {\n}\n'],
    [1, 'Extraneous label for provider', 'provider "a" "b" {\n}\n'],
    [1, 'Invalid provider source address', block('', 'terraform.io/builtin/terraform')],
    [1, 'Invalid provider source address', block('', 'registry.terraform.io/-/aws')],
    [1, 'Invalid provider source address', block('', 'registry.terraform.io/hashicorp/terraform-provider-aws')],
    [1, 'Non-normalized provider source address', block('', 'hashicorp/aws')],
    [1, 'Non-normalized provider source address', block('', 'Registry.terraform.io/hashicorp/aws')],
    [2, 'Missing newline after argument', block('version = "1.0.0" constraints = "1.0.0"')],
    [2, 'Invalid multi-line string', block('version = "1.0.0')],
    [2, 'Invalid multi-line string', block('version = "1.\n0"')],
    [1, 'Unclosed configuration block', block('version = "1.0.0"').replace('}', '')],
    [3, 'Invalid expression', block('version = "1.0.0"\nhashes = [ "zh:0"\n"zh:1" ]')],
    [1, 'Argument or block definition required', '<<<<<<< HEAD\n'],
  ])('refuses, at line %s: %s', async (line, reason, text) => {
    expect(await read(text, 'x.hcl')).toEqual({ file: 'x.hcl', line, reason: expect.stringContaining(reason) })
  })

  it('names file and line in its message, and works on after a refusal', async () => {
    await expect(readLockFile(block('version = "1"'), 'a/b.hcl')).rejects.toThrow('a/b.hcl:2: Invalid provider version')
    await expect(readLockFile(block('version = "1"'))).rejects.toThrow('.terraform.lock.hcl:2:')
    expect(await readLockFile(block('version = "1.0.0"'))).toHaveLength(1)
  })

  it('reads many at a time', async () => {
    const files = Array.from({ length: 20 }, (_, n) => block(`version = "1.0.${n}"`))
    const found = await Promise.all(files.map((text) => readLockFile(text)))
    expect(found.map(([provider]) => provider?.version)).toEqual(files.map((_, n) => `1.0.${n}`))
  })
})
