import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { createOriginKey, type OriginKey } from '../origin/origin-key.ts'
import type { JsonDocument, Publication } from '../origin/release.ts'
import { forge, makeKey } from '../verify/key-fixture.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'
import { TestClock } from './test-clock.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const WHEN_LISTED = { verification: { signatures: 'whenListed' } }

let origin: TestOrigin

beforeAll(async () => {
  origin = await startOrigin()
})
beforeEach(() => origin.reset())
afterAll(() => origin[Symbol.asyncDispose]())

async function expectServed(mirror: TestMirror, version = '1.0.0'): Promise<void> {
  const document = await mirror.version('acme/widget', version)
  expect(document.status).toBe(200)
  expect(Object.keys(document.json().archives)).toHaveLength(4)
  expect((await mirror.archive('acme/widget', version, 'linux_amd64')).status).toBe(200)
}

/** Refused as a whole: listed, but neither described nor served, nor even downloaded. */
async function expectRefused(mirror: TestMirror, code: string, version = '1.0.0'): Promise<void> {
  expect((await mirror.index('acme/widget')).status).toBe(200)
  for (const answer of [
    await mirror.version('acme/widget', version),
    await mirror.archive('acme/widget', version, 'linux_amd64'),
  ]) {
    expect([answer.status, answer.json().code]).toEqual([502, code])
  }
  expect(origin.count(`archive acme/widget ${version}`)).toBe(0)
}

/** A key that signs at times at which no honest signer would. */
async function createForgingKey(times: {
  readonly madeDaysAgo: number
  readonly livesDays?: number
  readonly signsDaysAgo: number
}): Promise<OriginKey> {
  const { madeDaysAgo, livesDays, signsDaysAgo } = times
  const daysAgo = (days: number): Date => new Date(Date.now() - days * DAY)
  const { publicKey, privateKey } = await makeKey({
    date: daysAgo(madeDaysAgo),
    ...(livesDays === undefined ? {} : { keyExpirationTime: (livesDays * DAY) / 1_000 }),
  })
  return {
    keyId: publicKey.getKeyID().toHex().toUpperCase(),
    fingerprint: publicKey.getFingerprint(),
    asciiArmor: publicKey.armor(),
    sign: async (data) => Buffer.from(await forge(data, privateKey, { date: daysAgo(signsDaysAgo) })),
  }
}

/** Replaces what the documents list as keys. */
function listing(keys: unknown): Partial<Publication> {
  return { document: (document: JsonDocument) => ({ ...document, signing_keys: keys }) }
}

describe('keys that have expired or are revoked are judged at the time of signing (B29)', () => {
  test('a key that has expired since: accepted with a warning, refused if the operator says so', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0', key: await createOriginKey({ expired: true }) })
    await using mirror = await startMirror({ origin })
    await expectServed(mirror)
    expect(mirror.logLines.filter(({ level, msg }) => level === 'warn' && /expired/.test(String(msg)))).toHaveLength(1)
    origin.reset()
    await using strict = await startMirror({ origin, config: { verification: { expiredKeys: 'refuse' } } })
    await expectRefused(strict, 'SIGNATURE_INVALID')
  })

  test('the strictness can be that of one origin', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0', key: await createOriginKey({ expired: true }) })
    const origins = { 'registry.example.test': { verification: { expiredKeys: 'refuse' } } }
    await using mirror = await startMirror({ origin, config: { origins } })
    await expectRefused(mirror, 'SIGNATURE_INVALID')
  })

  const rows: [string, () => Promise<OriginKey>][] = [
    ['revoked', () => createOriginKey({ revoked: true })],
    ['made after its signature', () => createForgingKey({ madeDaysAgo: 10, signsDaysAgo: 20 })],
    ['expired when it signed', () => createForgingKey({ madeDaysAgo: 100, livesDays: 50, signsDaysAgo: 20 })],
  ]
  test.each(rows)('a key that was %s: refused always', async (_what, createKey) => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0', key: await createKey() })
    for (const config of [{}, WHEN_LISTED]) {
      await using mirror = await startMirror({ origin, config })
      await expectRefused(mirror, 'SIGNATURE_INVALID')
    }
  })

  test('a key that signed while it was valid, by the same forger: accepted', async () => {
    const key = await createForgingKey({ madeDaysAgo: 100, livesDays: 50, signsDaysAgo: 60 })
    await origin.publish({ provider: 'acme/widget', version: '1.0.0', key })
    await using mirror = await startMirror({ origin })
    await expectServed(mirror)
  })
})

describe('an origin that lists no key (B30)', () => {
  const absences: [string, Partial<Publication>][] = [
    ['an empty list', {}],
    ['gpg_public_keys: null', listing({ gpg_public_keys: null })],
    ['signing_keys: null', listing(null)],
    ['signing_keys: {}', listing({})],
    ['no signing_keys', { document: ({ signing_keys: _, ...rest }) => rest }],
  ]
  test.each(absences)('%s: refused by default, checksums are enough where the operator says so', async (_what, how) => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0', key: null, ...how })
    await using strict = await startMirror({ origin })
    await expectRefused(strict, 'SIGNATURE_REQUIRED')
    await using mirror = await startMirror({ origin, config: WHEN_LISTED })
    await expectServed(mirror)
    const verdict = 'terramirror_verification_verdicts_total{verdict="unsigned-checksums"} 4'
    expect(await mirror.metrics()).toContain(verdict)
    expect(origin.count('signature')).toBe(0)
  })

  test('the permission can be that of one origin', async () => {
    for (const host of ['registry.example.test', 'other.example.test']) {
      await origin.publish({ provider: `${host}/acme/widget`, version: '1.0.0', key: null })
    }
    const origins = { 'other.example.test': { verification: { signatures: 'whenListed' } } }
    await using mirror = await startMirror({ origin, config: { origins } })
    expect((await mirror.version('registry.example.test/acme/widget', '1.0.0')).status).toBe(502)
    expect((await mirror.version('other.example.test/acme/widget', '1.0.0')).status).toBe(200)
  })

  test('a provider that was once signed is never accepted unsigned again, not after a restart either', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await origin.publish({ provider: 'acme/widget', version: '2.0.0', key: null })
    const clock = new TestClock()
    await using mirror = await startMirror({ origin, now: clock.now, config: WHEN_LISTED })
    await expectServed(mirror)
    await expectRefused(mirror, 'SIGNATURE_REQUIRED', '2.0.0')
    await mirror.restart()
    clock.advance(DAY)
    await expectRefused(mirror, 'SIGNATURE_REQUIRED', '2.0.0')
    origin.withdraw('acme/widget', '2.0.0')
  })

  test('one platform without keys beside signed ones is left out', async () => {
    const document = (each: JsonDocument, platform: string): JsonDocument =>
      platform === 'linux_amd64' ? { ...each, signing_keys: null } : each
    await origin.publish({ provider: 'acme/widget', version: '1.0.0', document })
    await using mirror = await startMirror({ origin, config: WHEN_LISTED })
    const { archives } = (await mirror.version('acme/widget', '1.0.0')).json()
    expect(Object.keys(archives)).toEqual(['darwin_arm64', 'linux_arm64', 'windows_amd64'])
    const refused = await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    expect([refused.status, refused.json().code]).toEqual([502, 'SIGNATURE_REQUIRED'])
  })
})

describe('an origin that lists keys (B30)', () => {
  test.each([1, 2])('of which none signed (%i): refused always', async (count) => {
    const listedKeys = await Promise.all(Array.from({ length: count }, () => createOriginKey()))
    await origin.publish({ provider: 'acme/widget', version: '1.0.0', listedKeys })
    for (const config of [{}, WHEN_LISTED]) {
      await using mirror = await startMirror({ origin, config })
      await expectRefused(mirror, 'SIGNATURE_INVALID')
    }
  })

  test('of which the second one signed: accepted', async () => {
    const listedKeys = [await createOriginKey(), origin.key, await createOriginKey()]
    await origin.publish({ provider: 'acme/widget', version: '1.0.0', listedKeys })
    await using mirror = await startMirror({ origin })
    await expectServed(mirror)
  })

  const unreadable: [string, unknown][] = [
    ['a damaged armor', { ascii_armor: '-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nnot a key\n-----END-----' }],
    ['an empty armor', { ascii_armor: '' }],
    ['no armor', { key_id: 'ABCD' }],
    ['an armor that is a number', { ascii_armor: 7 }],
  ]
  test.each(unreadable)('of which one has %s: the good one counts', async (_what, bad) => {
    const good = { key_id: origin.key.keyId, ascii_armor: origin.key.asciiArmor }
    for (const keys of [
      [bad, good],
      [good, bad],
    ]) {
      await origin.publish({ provider: 'acme/widget', version: '1.0.0', ...listing({ gpg_public_keys: keys }) })
      await using mirror = await startMirror({ origin })
      await expectServed(mirror)
    }
  })

  test.each(unreadable)('of which the only one has %s: refused always', async (_what, bad) => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0', ...listing({ gpg_public_keys: [bad] }) })
    for (const config of [{}, WHEN_LISTED]) {
      await using mirror = await startMirror({ origin, config })
      await expectRefused(mirror, 'KEY_UNREADABLE')
    }
  })

  test.each(['a text', 7, { gpg_public_keys: 'a text' }, { gpg_public_keys: ['a text'] }])(
    'in a form that is none (%j): refused, not taken for a list without keys',
    async (keys) => {
      await origin.publish({ provider: 'acme/widget', version: '1.0.0', ...listing(keys) })
      await using mirror = await startMirror({ origin, config: WHEN_LISTED })
      const answer = await mirror.version('acme/widget', '1.0.0')
      expect(answer.status).toBe(502)
      expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(502)
    },
  )
})
