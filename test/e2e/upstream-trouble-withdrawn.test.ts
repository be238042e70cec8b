import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { startMirror } from './mirror-fixture.ts'
import { versionsIn, warm } from './status-answers.ts'
import { TestClock } from './test-clock.ts'

const MINUTE = 60_000

let origin: TestOrigin
let clock: TestClock

beforeEach(async () => {
  clock = new TestClock()
  origin = await startOrigin()
  await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
  await origin.publish({ provider: 'acme/widget', version: '1.1.0' })
})
afterEach(() => origin[Symbol.asyncDispose]())

describe('a version that the origin lists but cannot give (B39)', () => {
  test.each([404, 403, 410])('its checksums are %i: 502 that names them; held earlier: served on', async (status) => {
    await using mirror = await startMirror({ origin, now: clock.now })
    await warm(mirror)
    clock.advance(10 * MINUTE)
    origin.fault({ kind: ['sums', 'signature', 'archive'] }, { status })
    const unheld = await mirror.version('acme/widget', '1.1.0')
    expect(unheld.status).toBe(502)
    expect(unheld.json().error).toContain(`checksums ${status}`)
    expect((await mirror.archive('acme/widget', '1.1.0', 'linux_amd64')).json().error).toContain(`checksums ${status}`)
    expect((await mirror.version('acme/widget', '1.0.0')).json().archives).toHaveProperty('linux_amd64')
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
    expect(await versionsIn(mirror)).toEqual(['1.0.0', '1.1.0'])
  })
})

describe('a version that was withdrawn while lock files name it (B40)', () => {
  test('is listed and served on if it is held, and is gone if it is not', async () => {
    await using mirror = await startMirror({ origin, now: clock.now })
    await warm(mirror)
    await mirror.version('acme/widget', '1.1.0')
    origin.withdraw('acme/widget', '1.0.0')
    origin.withdraw('acme/widget', '1.1.0')
    await origin.publish({ provider: 'acme/widget', version: '1.2.0' })
    clock.advance(10 * MINUTE)
    expect(await versionsIn(mirror)).toEqual(['1.0.0', '1.2.0'])
    await mirror.restart()
    expect(await versionsIn(mirror)).toEqual(['1.0.0', '1.2.0'])
    expect((await mirror.version('acme/widget', '1.0.0')).json().archives).toHaveProperty('linux_amd64')
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
    expect((await mirror.archive('acme/widget', '1.1.0', 'linux_amd64')).status).toBe(404)
  })

  test('the whole provider is gone: what is held stays, marked', async () => {
    await using mirror = await startMirror({ origin, now: clock.now })
    await warm(mirror)
    origin.withdraw('acme/widget')
    clock.advance(10 * MINUTE)
    const index = await mirror.index('acme/widget')
    expect([index.json(), index.headers['terramirror-cache']]).toEqual([{ versions: { '1.0.0': {} } }, 'stale'])
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
    expect((await mirror.version('acme/widget', '1.1.0')).json()).toEqual({ archives: {} })
  })
})
