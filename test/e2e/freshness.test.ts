import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Behaviour } from '../origin/fault.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'
import { TestClock } from './test-clock.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

let origin: TestOrigin
let clock: TestClock
let mirror: TestMirror

beforeEach(async () => {
  clock = new TestClock()
  origin = await startOrigin()
  mirror = await startMirror({ origin, now: clock.now })
})
afterEach(async () => {
  await mirror[Symbol.asyncDispose]()
  await origin[Symbol.asyncDispose]()
})

async function platformsIn(version: string): Promise<string[]> {
  const answer = await mirror.version('acme/widget', version)
  expect(answer.status).toBe(200)
  return Object.keys(answer.json().archives)
}

describe('absence is believed for at most a minute (B34)', () => {
  const lifetimes = [undefined, 'public, max-age=604800, immutable']
  test.each(lifetimes)('a provider that appears, though its 404 said Cache-Control: %s', async (lifetime) => {
    const headers: Record<string, string> = lifetime === undefined ? {} : { 'cache-control': lifetime }
    const missing = origin.fault({ kind: 'versions' }, { status: 404, headers })
    expect((await mirror.index('acme/widget')).status).toBe(404)
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    missing.clear()
    const remembered = await mirror.index('acme/widget')
    expect([remembered.status, remembered.headers['terramirror-cache']]).toEqual([404, 'negative'])
    expect(missing.struck).toBe(1)
    clock.advance(60 * SECOND)
    expect((await mirror.index('acme/widget')).json()).toEqual({ versions: { '1.0.0': {} } })
    expect(await platformsIn('1.0.0')).toHaveLength(4)
  })

  test('a negative lifetime over a minute is a wrong configuration', async () => {
    const start = startMirror({ origin, config: { freshness: { notFound: '2m' } } })
    await expect(start).rejects.toMatchObject({ code: 'CONFIGURATION' })
  })

  test('the 404 outlives a restart no longer than its lifetime', async () => {
    expect((await mirror.index('acme/widget')).status).toBe(404)
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await mirror.restart()
    clock.advance(60 * SECOND)
    expect((await mirror.index('acme/widget')).status).toBe(200)
  })

  const outages: [string, Behaviour][] = [
    ['401', { status: 401 }],
    ['403', { status: 403 }],
    ['500', { status: 500 }],
    ['a broken connection', { drop: true }],
    ['a web page', { contentType: 'text/html', body: '<html/>' }],
  ]
  test.each(outages)('%s is never remembered as absence, nor at all', async (_what, behaviour) => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    const outage = origin.fault({ kind: 'versions' }, behaviour)
    expect((await mirror.index('acme/widget')).status).toBe(502)
    outage.clear()
    expect((await mirror.index('acme/widget')).status).toBe(200)
  })

  test('429 is over when its pause is', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    const limit = origin.fault({ kind: 'versions' }, { status: 429, headers: { 'retry-after': '20' } })
    expect((await mirror.index('acme/widget')).status).toBe(503)
    limit.clear()
    clock.advance(21 * SECOND)
    expect((await mirror.index('acme/widget')).status).toBe(200)
  })
})

describe('a new version is seen without a restart (B35)', () => {
  /** A server that knows when nothing of it ever changed, as far as a date can tell. */
  function answerDatesWith304(): void {
    const headers = { 'last-modified': 'Mon, 01 Jan 2024 00:00:00 GMT' }
    origin.fault({ kind: 'versions' }, { headers })
    const conditional = ({ headers: sent }: { headers: object }): boolean => 'if-modified-since' in sent
    origin.fault({ kind: 'versions', when: conditional }, { status: 304, headers })
  }

  test('in the list, after its lifetime', async () => {
    answerDatesWith304()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    expect((await mirror.index('acme/widget')).json()).toEqual({ versions: { '1.0.0': {} } })
    await origin.publish({ provider: 'acme/widget', version: '1.1.0' })
    expect((await mirror.index('acme/widget')).json()).toEqual({ versions: { '1.0.0': {} } })
    clock.advance(6 * MINUTE)
    expect((await mirror.index('acme/widget')).json()).toEqual({ versions: { '1.0.0': {}, '1.1.0': {} } })
  })

  test('by its name at once: asking for it refreshes the list one time', async () => {
    answerDatesWith304()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await mirror.index('acme/widget')
    await origin.publish({ provider: 'acme/widget', version: '1.1.0' })
    expect(await platformsIn('1.1.0')).toHaveLength(4)
    expect(origin.count('versions')).toBe(2)
    expect((await mirror.archive('acme/widget', '1.1.0', 'linux_amd64')).status).toBe(200)
    expect((await mirror.index('acme/widget')).json()).toEqual({ versions: { '1.0.0': {}, '1.1.0': {} } })
    expect(origin.count('versions')).toBe(2)
  })

  test('whoever asks for a hundred versions that do not exist refreshes no list a hundred times', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await mirror.index('acme/widget')
    const invented = Array.from({ length: 100 }, (_, each) => `9.0.${each}`)
    const answers = await Promise.all(invented.map((version) => mirror.version('acme/widget', version)))
    expect(answers.filter(({ body }) => body.toString() !== '{"archives":{}}')).toEqual([])
    expect(origin.count('versions')).toBeLessThanOrEqual(3)
  })

  test('a clock that was set back keeps no list fresh for ever', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await mirror.index('acme/widget')
    await origin.publish({ provider: 'acme/widget', version: '1.1.0' })
    clock.advance(-24 * 60 * MINUTE)
    expect((await mirror.index('acme/widget')).json()).toEqual({ versions: { '1.0.0': {}, '1.1.0': {} } })
  })
})

describe('a release that is published piece by piece (B11)', () => {
  test.each(['linux_amd64', 'windows_amd64'])('%s comes later: it appears without a restart', async (late) => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    const missing = origin.fault({ kind: 'download', platform: late }, { status: 404 })
    expect(await platformsIn('1.0.0')).not.toContain(late)
    expect((await mirror.archive('acme/widget', '1.0.0', late)).json().code).toBe('PLATFORM_NOT_FOUND')
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_arm64')).status).toBe(200)
    missing.clear()
    clock.advance(60 * SECOND)
    expect(await platformsIn('1.0.0')).toContain(late)
    expect((await mirror.archive('acme/widget', '1.0.0', late)).status).toBe(200)
  })

  test('the list names it before any of its files is there', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    const missing = origin.fault({ kind: ['download', 'sums', 'signature', 'archive'] }, { status: 404 })
    expect(await platformsIn('1.0.0')).toEqual([])
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(404)
    missing.clear()
    clock.advance(60 * SECOND)
    expect(await platformsIn('1.0.0')).toHaveLength(4)
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
  })

  test('a platform is added to a version that is held: it is listed after the lifetime of the list', async () => {
    const files = { LICENSE: Buffer.from('the same for every platform and generation') }
    const publication = { provider: 'acme/widget', version: '1.0.0', files, platforms: ['linux_amd64'] }
    await origin.publish(publication)
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
    await origin.publish({ ...publication, platforms: ['linux_amd64', 'darwin_arm64'] })
    clock.advance(6 * MINUTE)
    await mirror.index('acme/widget')
    await expect.poll(() => platformsIn('1.0.0'), { timeout: 10_000 }).toEqual(['darwin_arm64', 'linux_amd64'])
    expect((await mirror.archive('acme/widget', '1.0.0', 'darwin_arm64')).status).toBe(200)
  })
})

describe('a platform that was never built (B12)', () => {
  test.each(['darwin_arm64', 'plan9_386'])('%s is left out of the document, its archive is 404', async (platform) => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0', platforms: ['linux_amd64', 'darwin_amd64'] })
    expect(await platformsIn('1.0.0')).toEqual(['darwin_amd64', 'linux_amd64'])
    const archive = await mirror.archive('acme/widget', '1.0.0', platform)
    expect([archive.status, archive.json().code]).toEqual([404, 'PLATFORM_NOT_FOUND'])
    expect(archive.json().error).toContain(platform)
  })
})

describe('lifetimes are separate (B36)', () => {
  test('a list is asked for again after its own, an archive never', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    const installAll = async (): Promise<void> => {
      await mirror.index('acme/widget')
      await platformsIn('1.0.0')
      expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
    }
    await installAll()
    for (const day of [1, 2, 3]) {
      clock.advance(24 * 60 * MINUTE)
      await installAll()
      expect(origin.count('versions')).toBe(1 + day)
    }
    expect(origin.count('archive')).toBe(1)
  })

  test('within their lifetime nothing at all is asked', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await mirror.index('acme/widget')
    await platformsIn('1.0.0')
    await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    origin.reset()
    clock.advance(4 * MINUTE)
    await mirror.index('acme/widget')
    await platformsIn('1.0.0')
    await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    expect(origin.requests).toEqual([])
  })
})
