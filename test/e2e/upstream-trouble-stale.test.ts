import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { type Answer, startMirror, type TestMirror } from './mirror-fixture.ts'
import { TestClock } from './test-clock.ts'

const MINUTE = 60_000
/** What must not wait for a deadline comes in a fraction of it, on a busy machine too. */
const PROMPT_MS = 4_000

let origin: TestOrigin

beforeAll(async () => {
  origin = await startOrigin()
  await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
})
beforeEach(() => origin.reset())
afterAll(() => origin[Symbol.asyncDispose]())

async function timed(work: Promise<Answer>): Promise<{ answer: Answer; ms: number }> {
  const startedAt = performance.now()
  const answer = await work
  return { answer, ms: performance.now() - startedAt }
}

async function expectPrompt(work: Promise<Answer>): Promise<Answer> {
  const { answer, ms } = await timed(work)
  expect(ms).toBeLessThan(PROMPT_MS)
  return answer
}

async function warm(mirror: TestMirror, { archive }: { archive: boolean }): Promise<void> {
  expect((await mirror.index('acme/widget')).status).toBe(200)
  expect((await mirror.version('acme/widget', '1.0.0')).status).toBe(200)
  if (archive) expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
}

describe('while an origin hangs, what is held is served stale and at once (B33)', () => {
  test('documents without a held archive', async () => {
    const clock = new TestClock()
    await using mirror = await startMirror({ origin, now: clock.now })
    await warm(mirror, { archive: false })
    clock.advance(10 * MINUTE)
    origin.fault({}, { hang: true })
    const index = await expectPrompt(mirror.index('acme/widget'))
    expect([index.status, index.headers['terramirror-cache']]).toEqual([200, 'stale'])
    expect(index.json()).toEqual({ versions: { '1.0.0': {} } })
    const version = await expectPrompt(mirror.version('acme/widget', '1.0.0'))
    expect([version.status, version.headers['terramirror-cache']]).toEqual([200, 'stale'])
    expect(Object.keys(version.json().archives)).toHaveLength(4)
    expect(origin.inFlight).toBeGreaterThan(0)
  })

  test('everything about a held archive; once the origin is known to be away, the document is marked too', async () => {
    const clock = new TestClock()
    await using mirror = await startMirror({ origin, now: clock.now })
    await warm(mirror, { archive: true })
    clock.advance(10 * MINUTE)
    origin.fault({}, { hang: true })
    const index = await expectPrompt(mirror.index('acme/widget'))
    expect([index.status, index.headers['terramirror-cache']]).toEqual([200, 'stale'])
    const archive = await expectPrompt(mirror.archive('acme/widget', '1.0.0', 'linux_amd64'))
    expect([archive.status, archive.headers['terramirror-cache']]).toEqual([200, 'hit'])
    expect((await expectPrompt(mirror.version('acme/widget', '1.0.0'))).status).toBe(200)
    await untilStale(mirror)
    // The mark stays when the time has passed in which the origin is left alone.
    clock.advance(MINUTE)
    expect((await mirror.version('acme/widget', '1.0.0')).headers['terramirror-cache']).toBe('stale')
  })

  /** Until the check in the background has failed; asking does not begin a second one. */
  async function untilStale(mirror: TestMirror): Promise<void> {
    await expect
      .poll(async () => (await mirror.version('acme/widget', '1.0.0')).headers['terramirror-cache'], {
        timeout: 15_000,
        interval: 100,
      })
      .toBe('stale')
  }

  test('many clients at once, none of which waits for the deadline', async () => {
    const clock = new TestClock()
    await using mirror = await startMirror({ origin, now: clock.now })
    await warm(mirror, { archive: false })
    clock.advance(10 * MINUTE)
    const hanging = origin.fault({}, { hang: true })
    const answers = await Promise.all(Array.from({ length: 30 }, () => timed(mirror.index('acme/widget'))))
    for (const { answer, ms } of answers) {
      expect(answer.headers['terramirror-cache']).toBe('stale')
      expect(ms).toBeLessThan(PROMPT_MS)
    }
    expect(hanging.struck).toBe(1)
  })

  test('a slow origin that answers within the grace is waited for', async () => {
    const clock = new TestClock()
    await using mirror = await startMirror({ origin, now: clock.now })
    await warm(mirror, { archive: false })
    clock.advance(10 * MINUTE)
    origin.fault({ kind: 'versions' }, { delayMs: 300 })
    expect((await mirror.index('acme/widget')).headers['terramirror-cache']).toBe('miss')
  })

  test('a refresh that outlives its answer is not lost', async () => {
    const clock = new TestClock()
    await using mirror = await startMirror({ origin, now: clock.now })
    await origin.publish({ provider: 'acme/late', version: '1.0.0' })
    expect((await mirror.index('acme/late')).status).toBe(200)
    await origin.publish({ provider: 'acme/late', version: '1.1.0' })
    clock.advance(10 * MINUTE)
    const slow = origin.fault({ kind: 'versions' }, { delayMs: 2_500 })
    const stale = await expectPrompt(mirror.index('acme/late'))
    expect([stale.headers['terramirror-cache'], stale.json()]).toEqual(['stale', { versions: { '1.0.0': {} } }])
    await origin.until(() => origin.inFlight === 0)
    await expect
      .poll(async () => (await mirror.index('acme/late')).headers['terramirror-cache'], { timeout: 15_000 })
      .toBe('hit')
    expect((await mirror.index('acme/late')).json()).toEqual({ versions: { '1.0.0': {}, '1.1.0': {} } })
    expect(slow.struck).toBe(1)
  })
})
