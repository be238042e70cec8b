import { existsSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Behaviour } from '../origin/fault.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { createOriginKey, type OriginKey } from '../origin/origin-key.ts'
import {
  askArchive,
  assertListed,
  assertRight,
  blobFile,
  publishArchive,
  sha256,
  startWarmMirror,
} from './held-archive.ts'
import { type Answer, startMirror, type TestMirror } from './mirror-fixture.ts'
import { TestClock } from './test-clock.ts'

/*
 * What other mirrors fell for (code-anchors, sections 4 to 12, and field reports), each as a promise of ours. Most have
 * more tests where they belong; here is the whole list, and each trap varied once from the letter of its report.
 */

const MINUTE = 60_000
const YEAR = 365 * 24 * 60 * MINUTE
/** What waits for nobody is there in a fraction of a deadline, on a busy machine too. */
const PROMPT_MS = 4_000
const SLOW_HOST = 'other.example.test'

let origin: TestOrigin

beforeAll(async () => {
  origin = await startOrigin()
})
beforeEach(() => origin.reset())
afterAll(() => origin[Symbol.asyncDispose]())

function jsonAnswer(document: unknown): Behaviour {
  return { status: 200, contentType: 'application/json', body: JSON.stringify(document) }
}

async function listed(mirror: TestMirror, provider: string): Promise<string[]> {
  const answer = await mirror.index(provider)
  expect(answer.status, answer.body.toString()).toBe(200)
  return Object.keys(answer.json().versions)
}

describe('an archive goes by the name that its origin gives it, never by a derived one (B27)', () => {
  const names: [string, string, (platform: string) => string][] = [
    ['acme/widget', '1.2.0', (platform) => `terraform-provider-other_v1.2.0_${platform}.zip`],
    ['acme/google-beta', '2.0.0-rc.1', (platform) => `2.0.0+rc-1.${platform}.archive`],
  ]
  test.each(names)(
    '%s %s, though the sums have a line for the derived name, and the URL ends in another',
    async (provider, version, filename) => {
      const derived = `${'b'.repeat(64)}  terraform-provider-${provider.split('/')[1]}_${version}_linux_amd64.zip\n`
      const release = await origin.publish({
        provider,
        version,
        filename,
        sums: (text) => `${derived}${text}`,
        document: (each) => ({ ...each, download_url: `${each.download_url}`.replace(/[^/]+$/, 'blob') }),
      })
      await using mirror = await startMirror({ origin })
      const { archives } = (await mirror.version(provider, version)).json()
      for (const { platform, sha256 } of release.packages) expect(archives[platform].hashes[0]).toBe(`zh:${sha256}`)
      assertRight(await mirror.archive(provider, version, 'linux_amd64'), release.package('linux_amd64'))
    },
  )
})

describe('every key is tried with every signature, each with the whole input', () => {
  let keys: Record<'own' | 'second' | 'stranger', OriginKey>
  beforeAll(async () => {
    const [own, second, stranger] = await Promise.all([createOriginKey(), createOriginKey(), createOriginKey()])
    keys = { own, second, stranger }
  })

  type Name = 'own' | 'second' | 'stranger'
  const orders: [signers: Name[], listed: Name[]][] = [
    [['own'], ['own', 'second', 'stranger']],
    [['own'], ['second', 'own', 'stranger']],
    [['own'], ['stranger', 'second', 'own']],
    [['stranger', 'own'], ['own']],
    [
      ['own', 'stranger'],
      ['second', 'own'],
    ],
  ]
  test.each(orders)('signed by %j, listed are %j', async (signers, names) => {
    const provider = `keys/${[...signers, 'of', ...names].join('-')}`
    const [key, listedKeys] = [signers, names].map((some) => some.map((name) => keys[name]))
    const release = await origin.publish({ provider, version: '1.0.0', key: key ?? null, listedKeys: listedKeys ?? [] })
    await using mirror = await startMirror({ origin })
    assertRight(await mirror.archive(provider, '1.0.0', 'linux_amd64'), release.package('linux_amd64'))
  })
})

describe('a file that has its size before its bytes is not taken as complete (B46, B47)', () => {
  const contents: [string, (bytes: Buffer) => Buffer][] = [
    ['all of it is still empty', (bytes) => Buffer.alloc(bytes.length)],
    ['its second half is', (bytes) => Buffer.concat([bytes.subarray(0, bytes.length / 2)], bytes.length)],
  ]
  test.each(contents)('%s: it is found at the first use and fetched again', async (_what, spoil) => {
    const archive = await publishArchive(origin)
    await using mirror = await startWarmMirror({ origin }, archive)
    const file = blobFile(mirror, archive.sha256)
    const spoilt = spoil(await readFile(file))
    expect(spoilt).toHaveLength(archive.body.size)
    await rm(file)
    await writeFile(file, spoilt)
    await mirror.restart()
    assertRight(await askArchive(mirror), archive)
    expect(origin.count('archive')).toBe(1)
  })

  test('while the bytes are on their way there is no file under the served name, and no length is told', async () => {
    const archive = await publishArchive(origin)
    await using mirror = await startMirror({ origin, config: { upstream: { idleTimeout: '2s' } } })
    await mirror.version('acme/widget', '1.0.0')
    const stalled = origin.fault({ kind: 'archive', times: 1 }, { stall: 0.5 })
    const download = askArchive(mirror)
    await origin.until(() => stalled.struck === 1)
    const head = await mirror.archive('acme/widget', '1.0.0', 'linux_amd64', { method: 'HEAD' })
    expect([head.status, head.headers['content-length'], head.headers['accept-ranges']]).toEqual([
      200,
      undefined,
      undefined,
    ])
    expect(existsSync(blobFile(mirror, archive.sha256))).toBe(false)
    assertRight(await download, archive)
    expect(existsSync(blobFile(mirror, archive.sha256))).toBe(true)
  })
})

describe('service discovery is asked again after its lifetime', () => {
  test.each([
    ['in one run', false],
    ['over a restart', true],
  ])('a registry that moves is followed, %s', async (_what, restart) => {
    const clock = new TestClock()
    await using mirror = await startMirror({ origin, now: clock.now })
    await origin.publish({ provider: 'acme/moving', version: '1.0.0' })
    expect(await listed(mirror, 'acme/moving')).toEqual(['1.0.0'])

    origin.fault({ kind: 'versions' }, { status: 404 })
    origin.fault({ kind: 'discovery' }, jsonAnswer({ 'providers.v1': '/moved/' }))
    origin.fault(
      { when: ({ url }) => url === '/moved/acme/moving/versions' },
      jsonAnswer({ versions: [{ version: '2.0.0' }] }),
    )
    clock.advance(61 * MINUTE)
    if (restart) await mirror.restart()
    expect(await listed(mirror, 'acme/moving')).toEqual(['2.0.0'])
    expect(origin.count('discovery')).toBe(2)
  })
})

describe('a media type is read as one, not compared as text', () => {
  test.each(['application/json; charset=utf-8', 'Application/JSON', 'application/json;charset="UTF-8"'])(
    '%s is JSON wherever an origin says so, and ours is plain',
    async (contentType) => {
      const provider = `acme/typed-${contentType.length}`
      const release = await origin.publish({ provider, version: '1.0.0' })
      origin.fault({ kind: ['discovery', 'versions', 'download'] }, { contentType })
      await using mirror = await startMirror({ origin })
      expect(await listed(mirror, provider)).toEqual(['1.0.0'])
      const document = await mirror.version(provider, '1.0.0')
      expect([document.status, document.headers['content-type']]).toEqual([200, 'application/json'])
      assertRight(await mirror.archive(provider, '1.0.0', 'linux_amd64'), release.package('linux_amd64'))
    },
  )
})

describe('a hash is what the origin has signed, never what was computed of the bytes that came', () => {
  const wrong: [string, Behaviour][] = [
    ['another byte', { wrongBytes: true }],
    ['a part, ended cleanly', { shortChunked: 0.9 }],
  ]
  test.each(wrong)('%s in the archive: refused, and the document says what it said', async (_what, behaviour) => {
    const archive = await publishArchive(origin)
    await using mirror = await startMirror({ origin })
    await assertListed(mirror, archive)
    const spoilt = origin.fault({ kind: 'archive' }, behaviour)
    const refused = await askArchive(mirror)
    expect([refused.status, refused.json().code]).toEqual([502, 'CHECKSUM_MISMATCH'])
    await assertListed(mirror, archive)
    spoilt.clear()
    assertRight(await askArchive(mirror), archive)
    await assertListed(mirror, archive)
  })
})

describe('no refresh hangs on a date (B35)', () => {
  test.each([
    ['right', 0],
    ['a year ahead', YEAR],
    ['a year behind', -YEAR],
  ])(
    'with a clock that is %s, a new version is seen though the origin calls every date unchanged',
    async (_what, skew) => {
      const provider = `acme/dated-${skew}`.replace('-', 'm')
      await origin.publish({ provider, version: '1.0.0' })
      const lastModified = { 'last-modified': 'Sun, 06 Nov 1994 08:49:37 GMT' }
      origin.fault({ kind: ['versions', 'discovery', 'download'] }, { headers: lastModified })
      const unchanged = origin.fault(
        { when: ({ headers }) => headers['if-modified-since'] !== undefined },
        { status: 304 },
      )
      const clock = new TestClock()
      clock.advance(skew)
      await using mirror = await startMirror({ origin, now: clock.now })
      expect(await listed(mirror, provider)).toEqual(['1.0.0'])
      await origin.publish({ provider, version: '1.1.0' })
      clock.advance(6 * MINUTE)
      expect(await listed(mirror, provider)).toEqual(['1.0.0', '1.1.0'])
      expect(unchanged.struck).toBe(0)
    },
  )

  test('the rest of a torn archive is asked for by what its origin calls it', async () => {
    const archive = await publishArchive(origin)
    origin.fault({ kind: 'archive', times: 1 }, { torn: 0.5 })
    await using mirror = await startMirror({ origin })
    assertRight(await askArchive(mirror), archive)
    const [, rest] = origin.requests.filter(({ kind }) => kind === 'archive')
    expect(rest?.headers).toMatchObject({
      'if-range': `"${archive.sha256}"`,
      range: expect.stringMatching(/^bytes=\d+-$/),
    })
  })
})

describe('while online the list is that of the origin, whatever is held (B02)', () => {
  test.each([
    ['one of three versions', '1.0.0', ['0.9.0', '1.0.0', '1.1.0']],
    ['a pre-release', '2.0.0-rc.1', ['1.0.0', '2.0.0-rc.1', '2.0.0']],
  ])('%s is held: all are listed, after a restart too', async (_what, held, versions) => {
    const provider = `lists/of-${held.length}`
    for (const version of versions) await origin.publish({ provider, version })
    await using mirror = await startMirror({ origin })
    expect((await mirror.archive(provider, held, 'linux_amd64')).status).toBe(200)
    expect(await listed(mirror, provider)).toEqual(versions)
    await mirror.restart()
    expect(await listed(mirror, provider)).toEqual(versions)
  })
})

describe('platforms do not queue (B44)', () => {
  const PLATFORMS = ['linux', 'freebsd', 'openbsd', 'windows', 'darwin'].flatMap((os) =>
    ['amd64', 'arm64', 'arm'].map((arch) => `${os}_${arch}`),
  )

  test('all download documents of a version are asked for at once', async () => {
    await origin.publish({ provider: 'acme/broad', version: '1.0.0', platforms: PLATFORMS })
    await using mirror = await startMirror({ origin })
    origin.fault({ kind: 'download' }, { delayMs: 500 })
    const { archives } = (await mirror.version('acme/broad', '1.0.0')).json()
    expect(Object.keys(archives)).toHaveLength(PLATFORMS.length)
    expect(origin.maxInFlight).toBeGreaterThanOrEqual(PLATFORMS.length)
  })

  test('the archive of one does not wait for that of another', async () => {
    const release = await origin.publish({ provider: 'acme/side-by-side', version: '1.0.0', archiveBytes: 200_000 })
    await using mirror = await startMirror({ origin, config: { upstream: { idleTimeout: '2s' } } })
    const stalled = origin.fault({ kind: 'archive', platform: 'linux_amd64', times: 1 }, { stall: 0.5 })
    const first = mirror.archive('acme/side-by-side', '1.0.0', 'linux_amd64')
    await origin.until(() => stalled.struck === 1)
    assertRight(await mirror.archive('acme/side-by-side', '1.0.0', 'darwin_arm64'), release.package('darwin_arm64'))
    expect(origin.count('archive acme/side-by-side 1.0.0 linux_amd64')).toBe(1)
    assertRight(await first, release.package('linux_amd64'))
  })
})

describe('a slow origin delays nobody who does not need it', () => {
  const slowness: [string, Behaviour][] = [
    ['it never answers', { hang: true }],
    ['its answers drip', { trickle: 1 }],
  ]
  test.each(slowness)('%s, with more clients waiting than it may have connections', async (_what, behaviour) => {
    const release = await origin.publish({ provider: 'acme/quick', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    origin.fault({ host: SLOW_HOST }, jsonAnswer({ 'providers.v1': '/v1/providers/' }))
    origin.fault({ host: SLOW_HOST, kind: ['versions', 'download'] }, behaviour)
    const leaving = new AbortController()
    const waiting = Array.from({ length: 50 }, (_, index) =>
      mirror.index(`${SLOW_HOST}/acme/slow${index}`, { signal: leaving.signal }).catch(() => 'left' as const),
    )
    await origin.until(() => origin.count('versions') >= 32)

    const startedAt = performance.now()
    expect(await listed(mirror, 'acme/quick')).toEqual(['1.0.0'])
    expect((await mirror.version('acme/quick', '1.0.0')).status).toBe(200)
    assertRight(await mirror.archive('acme/quick', '1.0.0', 'linux_amd64'), release.package('linux_amd64'))
    expect(performance.now() - startedAt).toBeLessThan(PROMPT_MS)
    leaving.abort()
    for (const end of await Promise.all(waiting)) expect(end === 'left' || end.status).toBeOneOf([true, 504])
  })
})

// Nearly all of the time is spent waiting, so the tests wait together, each for an origin of its own.
describe.concurrent('a timeout is never remembered as absence (B33, B34)', () => {
  test.each(['discovery', 'versions', 'download', 'sums'] as const)(
    'when %s hangs it is 504, and 200 as soon as it answers',
    async (kind) => {
      await using own = await startOrigin()
      const release = await own.publish({ provider: 'acme/widget', version: '1.0.0' })
      await using mirror = await startMirror({ origin: own, config: { upstream: { retries: 0 } } })
      const hanging = own.fault({ kind }, { hang: true })
      const ask = (): Promise<Answer> => mirror.version('acme/widget', '1.0.0')
      const answer = await ask()
      expect([answer.status, answer.json().code]).toEqual([504, 'UPSTREAM_TIMEOUT'])
      hanging.clear()
      await vi.waitFor(async () => expect((await ask()).status).toBe(200), { timeout: PROMPT_MS })
      expect(Object.keys((await ask()).json().archives)).toHaveLength(4)
      const archive = await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
      expect(sha256(archive.body)).toBe(release.package('linux_amd64').sha256)
    },
  )
})
