import { afterEach, beforeEach, describe, expect, test } from 'vitest'
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

describe('an origin that is down stops nobody who needs what is held (B33)', () => {
  const troubles: [string, Behaviour | 'stopped', number][] = [
    ['refuses connections', 'stopped', 502],
    ['answers 500', { status: 500 }, 502],
    ['breaks connections', { drop: true }, 502],
    ['is in maintenance with a page', { status: 503, contentType: 'text/html', body: '<h1>Soon</h1>' }, 502],
  ]
  test.each(troubles)('it %s, for days and over a restart', async (_situation, trouble, unheld) => {
    await using mirror = await startMirror({ origin, now: clock.now, config: { upstream: { retries: 1 } } })
    await warm(mirror)
    clock.advance(3 * DAY)
    if (trouble === 'stopped') await origin.stop()
    else origin.fault({}, trouble)
    const expectServed = async (): Promise<void> => {
      const startedAt = performance.now()
      const index = await mirror.index('acme/widget')
      expect(Object.keys(index.json().versions)).toContain('1.0.0')
      expect(index.headers['terramirror-cache']).toBe('stale')
      expect((await mirror.version('acme/widget', '1.0.0')).json().archives).toHaveProperty('linux_amd64')
      expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
      expect(performance.now() - startedAt).toBeLessThan(8_000)
    }
    await expectServed()
    for (const answer of [
      await mirror.version('acme/widget', '1.1.0'),
      await mirror.archive('acme/widget', '1.1.0', 'linux_amd64'),
      await mirror.archive('acme/widget', '1.0.0', 'darwin_arm64'),
      await mirror.index('acme/unheld'),
    ]) {
      expect(answer.status).toBe(unheld)
      expect(answer.json().code).toMatch(/^UPSTREAM_/)
    }
    await mirror.restart()
    await expectServed()
  })

  test('it comes back, and so does the whole list', async () => {
    await using mirror = await startMirror({ origin, now: clock.now })
    await warm(mirror)
    clock.advance(10 * MINUTE)
    await origin.stop()
    expect((await mirror.index('acme/widget')).headers['terramirror-cache']).toBe('stale')
    await origin.publish({ provider: 'acme/widget', version: '1.2.0' })
    await origin.start()
    clock.advance(MINUTE)
    expect(await versionsIn(mirror)).toEqual(['1.0.0', '1.1.0', '1.2.0'])
    expect((await mirror.version('acme/widget', '1.2.0')).status).toBe(200)
  })

  test('only the object store is down: lists and documents are current, unheld archives are 502', async () => {
    await using mirror = await startMirror({ origin, now: clock.now })
    await warm(mirror)
    clock.advance(10 * MINUTE)
    origin.fault({ kind: 'archive' }, { status: 503 })
    expect((await mirror.index('acme/widget')).headers['terramirror-cache']).toBe('miss')
    expect((await mirror.version('acme/widget', '1.1.0')).status).toBe(200)
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
    expect((await mirror.archive('acme/widget', '1.1.0', 'linux_amd64')).status).toBe(502)
  })
})

describe('a web page in the place of an answer (B04)', () => {
  test.each([
    ['versions', { contentType: 'text/html', body: '<!doctype html><title>Welcome</title>' }],
    ['versions', { contentType: 'text/html; charset=utf-8', body: '{"versions":[]}' }],
    ['discovery', { contentType: 'text/html', body: '<html>Sign in</html>' }],
    ['discovery', { contentType: 'text/plain', body: '{"providers.v1":"/v1/providers/"}' }],
  ] as ['versions' | 'discovery', Behaviour][])(
    'for the %s is 502, names URL and type, and is not remembered',
    async (kind, behaviour) => {
      await using mirror = await startMirror({ origin, config: INFO })
      const page = origin.fault({ kind }, behaviour)
      const answer = await mirror.index('acme/widget')
      expect([answer.status, answer.json().code]).toEqual([502, 'UPSTREAM_INVALID'])
      const mediaType = behaviour.contentType?.split(';')[0] ?? ''
      const url =
        kind === 'versions' ? `${HOST}/v1/providers/acme/widget/versions` : `${HOST}/.well-known/terraform.json`
      expect(answer.json().upstream_url).toBe(`https://${url}`)
      const warning = mirror.logLines.find(({ level, msg }) => level === 'warn' && msg !== 'request')
      expect(JSON.stringify(warning)).toContain(url)
      expect(JSON.stringify(warning)).toContain(mediaType)
      page.clear()
      expect(await versionsIn(mirror)).toEqual(['1.0.0', '1.1.0'])
    },
  )

  test('never takes the place of what is held', async () => {
    await using mirror = await startMirror({ origin, now: clock.now })
    await warm(mirror)
    clock.advance(10 * MINUTE)
    origin.fault({ kind: ['versions', 'download'] }, { contentType: 'text/html', body: '<html/>' })
    expect(await versionsIn(mirror)).toEqual(['1.0.0', '1.1.0'])
    expect((await mirror.version('acme/widget', '1.0.0')).json().archives).toHaveProperty('linux_amd64')
  })
})
