import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Behaviour } from '../origin/fault.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { startMirror } from './mirror-fixture.ts'
import { versionsIn, warm } from './status-answers.ts'
import { TestClock } from './test-clock.ts'

const HOST = 'registry.example.test'
const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const INFO = { log: { format: 'json', level: 'info' } }

let origin: TestOrigin
let clock: TestClock

beforeEach(async () => {
  clock = new TestClock()
  origin = await startOrigin()
  await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
  await origin.publish({ provider: 'acme/widget', version: '1.1.0' })
})
afterEach(() => origin[Symbol.asyncDispose]())

describe('a limit of the origin is not passed on as absence, nor broken (B37)', () => {
  test('429 with Retry-After: what is held is served, the rest is 503, and nobody asks before the time', async () => {
    await using mirror = await startMirror({ origin, now: clock.now, config: INFO })
    await warm(mirror)
    clock.advance(10 * MINUTE)
    const limit = origin.fault({}, { status: 429, headers: { 'retry-after': '30' } })
    expect((await mirror.index('acme/widget')).headers['terramirror-cache']).toBe('stale')
    expect(limit.struck).toBe(1)

    const askUnheld = async (): Promise<void> => {
      for (const answer of [
        await mirror.index('acme/unheld'),
        await mirror.version('acme/widget', '7.7.7'),
        await mirror.archive('acme/widget', '1.1.0', 'linux_amd64'),
      ]) {
        expect([answer.status, answer.json().code]).toEqual([503, 'UPSTREAM_RATE_LIMITED'])
        expect(answer.json().error).toContain('upstream 429')
        expect(answer.json().upstream_status).toBe(429)
        expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
        expect(Number(answer.headers['retry-after'])).toBeLessThanOrEqual(3)
      }
      expect(await versionsIn(mirror)).toContain('1.0.0')
      expect((await mirror.version('acme/widget', '1.0.0')).status).toBe(200)
      expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
    }
    await askUnheld()
    clock.advance(25_000)
    await askUnheld()
    expect(limit.struck).toBe(1)
    expect(mirror.logText).toContain('upstream 429')

    limit.clear()
    clock.advance(10_000)
    expect((await mirror.index('acme/widget')).headers['terramirror-cache']).toBe('miss')
    expect((await mirror.archive('acme/widget', '1.1.0', 'linux_amd64')).status).toBe(200)
  })

  test('429 for an archive: 503, and the archive is left alone until the time is over', async () => {
    await using mirror = await startMirror({ origin, now: clock.now })
    const limit = origin.fault({ kind: 'archive' }, { status: 429, headers: { 'retry-after': '60' } })
    for (let round = 0; round < 3; round++) {
      const archive = await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
      expect([archive.status, archive.json().code]).toEqual([503, 'UPSTREAM_RATE_LIMITED'])
      expect(Number(archive.headers['retry-after'])).toBeLessThanOrEqual(3)
    }
    expect(limit.struck).toBe(1)
    limit.clear()
    clock.advance(61_000)
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
  })

  test.each([
    ['429 on service discovery', 'discovery', { status: 429, headers: { 'retry-after': '30' } }],
    ['429 with a date', 'versions', { status: 429, headers: { 'retry-after': 'Fri, 31 Dec 2100 23:59:59 GMT' } }],
    ['403 of an exhausted limit', 'versions', { status: 403, headers: { 'x-ratelimit-remaining': '0' } }],
  ] as [string, 'discovery' | 'versions', Behaviour][])('%s', async (_situation, kind, behaviour) => {
    await using mirror = await startMirror({ origin, now: clock.now })
    const limit = origin.fault({ kind }, behaviour)
    for (let round = 0; round < 3; round++) {
      const answer = await mirror.index('acme/widget')
      expect([answer.status, answer.json().upstream_status]).toEqual([503, behaviour.status])
      expect(Number(answer.headers['retry-after'])).toBeLessThanOrEqual(3)
    }
    expect(limit.struck).toBe(1)
  })

  test('a limit of one host is not that of another', async () => {
    await origin.publish({ provider: 'other.example.test/acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    origin.fault({ host: HOST }, { status: 429, headers: { 'retry-after': '30' } })
    expect((await mirror.index('acme/widget')).status).toBe(503)
    expect((await mirror.index('other.example.test/acme/widget')).status).toBe(200)
  })

  test('200 parallel requests are all answered by one request to the origin, none is refused by us', async () => {
    await using mirror = await startMirror({ origin })
    origin.fault({ kind: 'versions' }, { delayMs: 200 })
    const answers = await Promise.all(Array.from({ length: 200 }, () => mirror.index('acme/widget')))
    expect(new Set(answers.map(({ status, body }) => `${status} ${body}`)).size).toBe(1)
    expect(answers[0]?.status).toBe(200)
    expect(origin.count('versions')).toBe(1)
    const warm = await Promise.all(Array.from({ length: 200 }, () => mirror.index('acme/widget')))
    expect(warm.filter(({ headers }) => headers['terramirror-cache'] !== 'hit')).toEqual([])
  })
})

describe('a block is not an absence (B38)', () => {
  test.each([403, 451])(
    'service discovery of a new host gives %i: 502 with the status, and a warning',
    async (status) => {
      await using mirror = await startMirror({ origin, config: INFO })
      origin.fault({ kind: 'discovery' }, { status })
      const answer = await mirror.index('acme/widget')
      expect([answer.status, answer.json().upstream_status]).toEqual([502, status])
      await vi.waitFor(() => {
        const warnings = mirror.logLines.filter(({ level, msg }) => level === 'warn' && msg !== 'request')
        expect(JSON.stringify(warnings)).toContain(`"upstreamStatus":${status}`)
      }, 15_000)
    },
  )

  test.each([403, 404, 500])('it gives %i on a host that served before: served on, never 404', async (status) => {
    await using mirror = await startMirror({ origin, now: clock.now, config: INFO })
    await warm(mirror)
    clock.advance(2 * DAY)
    origin.fault({ kind: 'discovery' }, { status })
    expect(await versionsIn(mirror)).toEqual(['1.0.0', '1.1.0'])
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
    // The services are where they were, so that what is new is served too.
    expect((await mirror.version('acme/widget', '1.1.0')).status).toBe(200)
    await vi.waitFor(() => {
      const warnings = mirror.logLines.filter(({ level, msg }) => level === 'warn' && msg !== 'request')
      expect(JSON.stringify(warnings)).toContain(`"upstreamStatus":${status}`)
    }, 15_000)
    // Over a restart too.
    await mirror.restart()
    clock.advance(2 * DAY)
    expect(await versionsIn(mirror)).toEqual(['1.0.0', '1.1.0'])
  })

  test('the whole host becomes 404: what is held is served, what is not is no absence', async () => {
    await using mirror = await startMirror({ origin, now: clock.now })
    await warm(mirror)
    clock.advance(2 * DAY)
    origin.fault({}, { status: 404 })
    expect(await versionsIn(mirror)).toContain('1.0.0')
    expect((await mirror.version('acme/widget', '1.0.0')).json().archives).toHaveProperty('linux_amd64')
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
  })
})
