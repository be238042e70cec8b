import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { Release } from '../origin/release.ts'
import { type Answer, startMirror, type TestMirror } from './mirror-fixture.ts'
import { TestClock } from './test-clock.ts'

const HELD = 'acme/widget'
const PLATFORM = 'linux_amd64'
const YEAR = 365 * 24 * 3_600_000

let origin: TestOrigin
let folder: string
let release: Release
let clock: TestClock
let mirror: TestMirror

/** Warms a folder online: one archive of one version, and evidence, but no archive, of another. Then seals it. */
beforeAll(async () => {
  origin = await startOrigin()
  folder = await mkdtemp(join(tmpdir(), 'test-sealed-'))
  release = await origin.publish({ provider: HELD, version: '1.0.0' })
  await origin.publish({ provider: HELD, version: '1.1.0' })
  await origin.publish({ provider: HELD, version: '1.2.0' })
  await origin.publish({ provider: 'acme/listed', version: '1.0.0' })
  {
    await using online = await startMirror({ origin, folder })
    for (const answer of [
      await online.index(HELD),
      await online.index('acme/listed'),
      await online.index('acme/nothing'),
      await online.version(HELD, '1.0.0'),
      await online.version(HELD, '1.1.0'),
      await online.archive(HELD, '1.0.0', PLATFORM),
    ]) {
      expect([200, 404]).toContain(answer.status)
    }
  }
  clock = new TestClock()
  mirror = await startMirror({ origin, folder, now: clock.now, config: { mode: 'sealed' } })
})
beforeEach(() => origin.reset())
afterAll(async () => {
  await mirror[Symbol.asyncDispose]()
  await origin[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

/** Nobody was called, not even to hang up at once. */
async function expectSilence(asked: () => Promise<void>): Promise<void> {
  await asked()
  clock.advance(YEAR)
  await asked()
  expect(origin.connections).toBe(0)
}

function expectNotCached(answer: Answer): void {
  expect([answer.status, answer.json().code]).toEqual([404, 'NOT_CACHED'])
  expect(answer.json().error).toMatch(/sealed.*warm/)
}

describe('sealed, over a warmed folder: nothing goes out (B72)', () => {
  test('the list has what can be installed, and nothing else', () =>
    expectSilence(async () => {
      const index = await mirror.index(HELD)
      expect([index.status, index.json()]).toEqual([200, { versions: { '1.0.0': {} } }])
      expect(index.headers['terramirror-cache']).toBe('hit')
    }))

  test('the document has the held platforms, and nothing else', () =>
    expectSilence(async () => {
      const document = await mirror.version(HELD, '1.0.0')
      expect(document.status).toBe(200)
      expect(Object.keys(document.json().archives)).toEqual([PLATFORM])
      expect(document.json().archives[PLATFORM].hashes[0]).toBe(`zh:${release.package(PLATFORM).sha256}`)
    }))

  test('a held archive is served, by GET, HEAD and range', () =>
    expectSilence(async () => {
      const bytes = await release.package(PLATFORM).bytes()
      expect((await mirror.archive(HELD, '1.0.0', PLATFORM)).body.equals(bytes)).toBe(true)
      const head = await mirror.archive(HELD, '1.0.0', PLATFORM, { method: 'HEAD' })
      expect(head.headers['content-length']).toBe(String(bytes.length))
      const range = await mirror.archive(HELD, '1.0.0', PLATFORM, { headers: { range: 'bytes=0-9' } })
      expect([range.status, range.body.length]).toEqual([206, 10])
    }))

  test('what is not held is 404, an empty document, 404 with what to do', () =>
    expectSilence(async () => {
      for (const provider of ['acme/listed', 'acme/nothing', 'acme/unknown', 'other.example.test/acme/widget']) {
        expectNotCached(await mirror.index(provider))
        expect((await mirror.version(provider, '1.0.0')).body.toString()).toBe('{"archives":{}}')
        expectNotCached(await mirror.archive(provider, '1.0.0', PLATFORM))
      }
      // A version of which only the evidence is held, one that was only listed, and one nobody has heard of.
      for (const version of ['1.1.0', '1.2.0', '9.9.9']) {
        expect((await mirror.version(HELD, version)).body.toString()).toBe('{"archives":{}}')
        expectNotCached(await mirror.archive(HELD, version, PLATFORM))
      }
      expectNotCached(await mirror.archive(HELD, '1.0.0', 'darwin_arm64'))
      expect((await mirror.archive(HELD, '1.0.0', 'darwin_arm64', { method: 'HEAD' })).status).toBe(404)
    }))

  test('what is not served at all is refused as ever', () =>
    expectSilence(async () => {
      expect((await mirror.index('elsewhere.example/acme/widget')).json().code).toBe('ORIGIN_NOT_ALLOWED')
      expect((await mirror.index('127.0.0.1/acme/widget')).status).toBe(400)
      expect((await mirror.ask('/v1/providers/acme/widget/versions')).json().code).toBe('ROUTE_NOT_FOUND')
      expect((await mirror.ask('/healthz', { method: 'POST' })).status).toBe(405)
    }))

  test('health and metrics are those of any mirror', () =>
    expectSilence(async () => {
      expect((await mirror.ask('/healthz')).status).toBe(200)
      expect((await mirror.ask('/readyz')).json()).toEqual({ status: 'ready' })
      expect(await mirror.metrics()).not.toContain('terramirror_upstream_requests_total{')
    }))

  test('two hundred clients at once', () =>
    expectSilence(async () => {
      const held = Array.from({ length: 100 }, () => mirror.archive(HELD, '1.0.0', PLATFORM))
      const missing = Array.from({ length: 100 }, (_, each) => mirror.index(`acme/unknown${each}`))
      expect(new Set((await Promise.all(held)).map(({ status }) => status))).toEqual(new Set([200]))
      expect(new Set((await Promise.all(missing)).map(({ status }) => status))).toEqual(new Set([404]))
    }))

  test('a restart', () =>
    expectSilence(async () => {
      await mirror.restart()
      expect((await mirror.index(HELD)).json()).toEqual({ versions: { '1.0.0': {} } })
      expect((await mirror.archive(HELD, '1.0.0', PLATFORM)).status).toBe(200)
    }))
})

test('an origin that is no name at all is never looked up: sealed mode needs no DNS', async () => {
  await using own = await startMirror({
    origin,
    config: { mode: 'sealed', origins: { 'no-such-name.invalid': {}, '*.invalid': {} } },
  })
  for (const host of ['no-such-name.invalid', 'any.invalid']) {
    const startedAt = performance.now()
    expectNotCached(await own.index(`${host}/acme/widget`))
    expect(performance.now() - startedAt).toBeLessThan(4_000)
  }
})

test('a folder that was sealed can be opened again, and catches up', async () => {
  const copy = await mkdtemp(join(tmpdir(), 'test-reopened-'))
  try {
    {
      await using first = await startMirror({ origin, folder: copy })
      await first.archive(HELD, '1.0.0', PLATFORM)
    }
    {
      await using sealed = await startMirror({ origin, folder: copy, config: { mode: 'sealed' } })
      expect(Object.keys((await sealed.index(HELD)).json().versions)).toEqual(['1.0.0'])
    }
    await using again = await startMirror({ origin, folder: copy, now: () => Date.now() + 3_600_000 })
    expect(Object.keys((await again.index(HELD)).json().versions)).toEqual(['1.0.0', '1.1.0', '1.2.0'])
    expect((await again.archive(HELD, '1.1.0', PLATFORM)).status).toBe(200)
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
})
