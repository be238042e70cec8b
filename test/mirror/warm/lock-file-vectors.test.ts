import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import { readConfiguration, readLockFile } from '../../../src/hcl/hcl-reader.ts'
import { findLockConflict } from '../../../src/mirror/warm/lock-comparison.ts'
import { readWishes } from '../../../src/mirror/warm/wishes.ts'
import { parseHostname } from '../../../src/protocol/hostname.ts'
import { assertSha256, type PackageHash, parsePackageHash, parseSha256 } from '../../../src/protocol/package-hash.ts'
import { formatProviderAddress } from '../../../src/protocol/provider-address.ts'
import { describeVectors, readJsonVector, readVector, VECTORS_ROOT } from '../../protocol/vectors.ts'
import { failureOf } from '../parts-fixture.ts'
import { createWarm, planned, request } from './warm-fixture.ts'

/*
 * Lock files of the real world, with what Terraform 1.11.4 says of each: what it loads is planned as it is, what it
 * refuses is refused with line and reason.
 */

interface Verdict {
  readonly file: string
  readonly rc: number
}

/** The body of a skipped suite runs too. */
function readVerdicts(): Verdict[] {
  if (!existsSync(VECTORS_ROOT)) return []
  return (readJsonVector('lockfiles/REFERENCE-VERDICTS.json') as { results: Verdict[] }).results
}

/** Lock files as Terraform writes them, by lines alone: another way to read them, for good files only. */
function readByLines(text: string): { name: string; version: string; hashes: string[] }[] {
  const providers: { name: string; version: string; hashes: string[] }[] = []
  let inModule = false
  for (const line of text.split(/\r?\n/)) {
    const [, type, label = ''] = /^(\w+) "(.*)" \{/.exec(line) ?? []
    if (type !== undefined) inModule = type === 'module'
    if (type === 'provider') providers.push({ name: label, version: '', hashes: [] })
    const provider = providers.at(-1)
    if (provider === undefined || inModule) continue
    provider.version = /^ +version *= *"(.*)"/.exec(line)?.[1] ?? provider.version
    for (const [, hash = ''] of line.matchAll(/"(\w+:[^"]*)"/g)) provider.hashes.push(hash)
  }
  return providers
}

const readers = { readLockFile, readConfiguration, defaultOrigin: parseHostname('registry.terraform.io') }
const NO_DIGEST = assertSha256('0'.repeat(64))
const everything = { id: 'test', allowsOrigin: () => true }
const verdicts = readVerdicts()

describeVectors('lock files of the real world', () => {
  it.each(verdicts.filter(({ rc }) => rc === 0))('$file plans exactly its providers and versions', async ({ file }) => {
    const text = readVector(`lockfiles/${file}`)
    const { outcomes } = await planned(createWarm({ view: everything }), {
      lockFiles: [text],
      platforms: ['linux_amd64'],
    })
    const names = readByLines(text).map(({ name, version }) => `${name} ${version} linux_amd64`)
    expect(Object.keys(outcomes).sort()).toEqual(names.sort())
  })

  it.each(verdicts.filter(({ rc }) => rc === 0))('$file lets exactly its hashes in', async ({ file }) => {
    const text = readVector(`lockfiles/${file}`)
    const { locked } = await readWishes(request({ lockFiles: [text] }), readers)
    const byLines = readByLines(text)
    expect(locked.map(({ address }) => formatProviderAddress(address))).toEqual(byLines.map(({ name }) => name))
    for (const [n, { hashes }] of locked.entries()) {
      const expected = [...new Set(byLines[n]?.hashes)]
      expect([...hashes].sort()).toEqual(expected.sort())
      for (const hash of expected) {
        if (parsePackageHash(hash) === undefined) continue
        const digest = parseSha256(hash.replace(/^zh:/, '')) ?? NO_DIGEST
        const all = async () => [`zh:${digest}`, hash] as PackageHash[]
        expect(await findLockConflict([hashes], digest, all)).toBeUndefined()
      }
      const known = expected.filter((hash) => /^(zh|h1):/.test(hash))
      const other = await findLockConflict([hashes], NO_DIGEST, async () => [`zh:${NO_DIGEST}` as PackageHash])
      // Clients pass over schemes that they do not know, and take everything where no hash is left.
      if (known.length === 0) expect(other).toBeUndefined()
      else expect(other).toMatchObject({ outcome: 'failed', reason: expect.stringContaining(known[0] ?? '') })
    }
  })

  it.each(verdicts.filter(({ rc }) => rc !== 0))('$file is refused with line and reason', async ({ file }) => {
    const { warm } = createWarm({ view: everything })
    const plan = warm.plan(request({ lockFiles: [readVector(`lockfiles/${file}`)] }), AbortSignal.timeout(20_000))
    expect(await failureOf(plan)).toMatchObject({
      code: 'CONFIGURATION_FILE_INVALID',
      fields: { file: '.terraform.lock.hcl', line: expect.any(Number), reason: expect.stringMatching(/.{10}/) },
    })
  })
})
