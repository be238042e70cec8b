import { beforeEach, describe, expect, it } from 'vitest'
import { DocumentCache, type Subject } from '../../src/mirror/freshness.ts'
import { formatProviderAddress, type ProviderAddress } from '../../src/protocol/provider-address.ts'
import { MemoryMetadataCache } from '../../src/store/memory/memory-metadata-cache.ts'
import { failureOf, freshness, newCall, recordingLog, StillClock, settle, widget } from './parts-fixture.ts'
import { hang, outage, providerNotFound } from './scripted-upstream.ts'

const KEY = 'things registry.example.test/acme/widget'

let clock: StillClock
let cache: MemoryMetadataCache
let shutdown: AbortController
let fetched: number
let backedOff: [string, number][]
let origin: (signal: AbortSignal) => Promise<string>

beforeEach(() => {
  clock = new StillClock()
  cache = new MemoryMetadataCache()
  shutdown = new AbortController()
  fetched = 0
  backedOff = []
  origin = async () => `copy ${fetched}`
})

function documents(): DocumentCache<string> {
  return new DocumentCache({
    cache,
    prefix: 'things',
    parse: (stored) => (typeof stored === 'string' ? stored : undefined),
    onChange: () => undefined,
    onBackOff: ({ name }, untilMs) => void backedOff.push([name, untilMs]),
    freshness,
    now: clock.now,
    log: recordingLog().log,
    shutdown: shutdown.signal,
  })
}

function fetch(signal: AbortSignal): Promise<string> {
  fetched += 1
  return origin(signal)
}

function subjectOf(address: ProviderAddress): Subject {
  return { name: formatProviderAddress(address), hostname: address.hostname }
}

function get(from: DocumentCache<string>, atLeastFrom?: number, deadlineMs?: number) {
  return from.get(subjectOf(widget), fetch, newCall(deadlineMs), atLeastFrom)
}

function goDown(): void {
  origin = async () => {
    throw outage()
  }
}

function answerAbsent(): void {
  origin = async () => {
    throw providerNotFound(widget)
  }
}

describe('while it is fresh', () => {
  it('a document is used without asking, up to the last millisecond, and by the next process too', async () => {
    const first = documents()
    expect(await get(first)).toEqual({ value: 'copy 1', outcome: 'miss' })
    clock.advance(freshness.freshForMs - 1)
    expect(await get(first)).toMatchObject({ value: 'copy 1', outcome: 'hit' })
    expect(await get(documents())).toMatchObject({ value: 'copy 1', outcome: 'hit' })
    clock.advance(1)
    expect(await get(first)).toEqual({ value: 'copy 2', outcome: 'miss' })
    expect(fetched).toBe(2)
  })

  it('its age counts from when the origin was asked, not from when it answered', async () => {
    origin = async () => {
      clock.advance(freshness.freshForMs)
      return 'slow copy'
    }
    const slow = documents()
    await get(slow)
    origin = async () => 'next copy'
    expect(await get(slow)).toEqual({ value: 'next copy', outcome: 'miss' })
  })

  it('callers that come together cause one fetch', async () => {
    const things = documents()
    const answers = await Promise.all([get(things), get(things), get(things)])
    expect(answers.map(({ outcome }) => outcome)).toEqual(['miss', 'coalesced', 'coalesced'])
    expect(fetched).toBe(1)
  })

  it('one that is younger than asked for is fetched, one that is as young is not', async () => {
    const things = documents()
    await get(things)
    expect(await get(things, clock.now())).toMatchObject({ outcome: 'hit' })
    clock.advance(1)
    expect(await get(things, clock.now())).toEqual({ value: 'copy 2', outcome: 'miss' })
  })

  it('if a younger one cannot be had, the held one comes with the reason', async () => {
    const things = documents()
    await get(things)
    clock.advance(1)
    goDown()
    expect(await get(things, clock.now())).toMatchObject({
      value: 'copy 1',
      outcome: 'stale',
      reason: { code: 'UPSTREAM_UNREACHABLE' },
    })
  })
})

describe('when it is old', () => {
  it('and the origin is down, it is served stale with the reason', async () => {
    const things = documents()
    await get(things)
    clock.advance(freshness.freshForMs)
    goDown()
    const stale = { value: 'copy 1', outcome: 'stale', reason: { code: 'UPSTREAM_UNREACHABLE' } }
    expect(await get(things)).toMatchObject({ ...stale, staleForMs: freshness.freshForMs })
    clock.advance(1)
    expect(await get(things)).toMatchObject({ ...stale, staleForMs: freshness.freshForMs + 1 })
  })

  it('and the origin hangs, it is served stale after the grace; the refresh goes on', async () => {
    const things = documents()
    await get(things)
    clock.advance(freshness.freshForMs)
    const gate = Promise.withResolvers<string>()
    origin = () => gate.promise
    const startedAt = performance.now()
    expect(await get(things)).toMatchObject({
      value: 'copy 1',
      outcome: 'stale',
      reason: { code: 'UPSTREAM_TIMEOUT', fields: { host: 'registry.example.test' } },
      staleForMs: freshness.freshForMs,
    })
    expect(performance.now() - startedAt).toBeGreaterThan(freshness.graceMs - 5)
    gate.resolve('late copy')
    await things.idle()
    expect(await get(things)).toMatchObject({ value: 'late copy', outcome: 'hit' })
    expect(fetched).toBe(2)
  })

  it('after a failure it is served at once, without asking, for the time of the back-off', async () => {
    const things = documents()
    await get(things)
    clock.advance(freshness.freshForMs)
    goDown()
    await get(things)
    expect(backedOff).toEqual([['registry.example.test/acme/widget', clock.nowMs + freshness.backOffMs]])
    clock.advance(freshness.backOffMs - 1)
    expect(await get(things)).toMatchObject({ outcome: 'stale', reason: { code: 'UPSTREAM_UNREACHABLE' } })
    expect(fetched).toBe(2)
    clock.advance(1)
    await get(things)
    expect(fetched).toBe(3)
  })

  it('a success ends the back-off', async () => {
    const things = documents()
    goDown()
    await failureOf(get(things))
    origin = async () => `copy ${fetched}`
    await get(things)
    clock.advance(1)
    expect(await get(things, clock.now())).toEqual({ value: 'copy 3', outcome: 'miss' })
  })

  it('the fetch has a deadline of its own, and ends with the process', async () => {
    const things = documents()
    await get(things)
    clock.advance(freshness.freshForMs)
    let seen: AbortSignal | undefined
    origin = (signal) => {
      seen = signal
      return hang(signal)
    }
    await get(things, undefined, 5)
    expect(seen?.aborted).toBe(false)
    shutdown.abort()
    expect(seen?.aborted).toBe(true)
    await things.idle()
  })
})

describe('with nothing held', () => {
  it('the caller waits no longer than it can, and the fetch goes on for the next one', async () => {
    const things = documents()
    const gate = Promise.withResolvers<string>()
    origin = () => gate.promise
    expect(await failureOf(get(things, undefined, 20))).toMatchObject({ code: 'UPSTREAM_TIMEOUT' })
    const next = get(things)
    gate.resolve('late copy')
    expect(await next).toEqual({ value: 'late copy', outcome: 'coalesced' })
    expect(fetched).toBe(1)
  })

  it('an outage is told, and never remembered', async () => {
    const things = documents()
    goDown()
    expect(await failureOf(get(things))).toMatchObject({ code: 'UPSTREAM_UNREACHABLE' })
    expect(await cache.get(KEY)).toBeUndefined()
    origin = async () => 'back again'
    expect(await get(things)).toEqual({ value: 'back again', outcome: 'miss' })
  })

  it('a bug is not taken for an outage, nor for an absence', async () => {
    const things = documents()
    origin = async () => {
      throw new TypeError('a bug')
    }
    expect(await failureOf(get(things))).toBeInstanceOf(TypeError)
    expect(await cache.get(KEY)).toBeUndefined()
  })
})

describe('an absence', () => {
  it('is believed for its short while, by the next process too, and then asked again', async () => {
    const things = documents()
    answerAbsent()
    expect(await failureOf(get(things))).toMatchObject({ code: 'PROVIDER_NOT_FOUND' })
    clock.advance(freshness.notFoundForMs - 1)
    expect(await failureOf(get(documents()))).toMatchObject({
      code: 'PROVIDER_NOT_FOUND',
      message: 'registry.example.test/acme/widget: 404',
      fields: { address: 'registry.example.test/acme/widget', upstreamStatus: 404 },
    })
    expect(fetched).toBe(1)
    clock.advance(1)
    origin = async () => 'published since'
    expect(await get(things)).toEqual({ value: 'published since', outcome: 'miss' })
  })

  it('is told although a document is held: a 404 never turns into stale', async () => {
    const things = documents()
    await get(things)
    clock.advance(freshness.freshForMs)
    answerAbsent()
    expect(await failureOf(get(things))).toMatchObject({ code: 'PROVIDER_NOT_FOUND' })
    expect(await failureOf(get(things))).toMatchObject({ code: 'PROVIDER_NOT_FOUND' })
    expect(fetched).toBe(2)
  })

  it('is not told for an outage that follows it', async () => {
    const things = documents()
    answerAbsent()
    await failureOf(get(things))
    clock.advance(freshness.notFoundForMs)
    goDown()
    expect(await failureOf(get(things))).toMatchObject({ code: 'UPSTREAM_UNREACHABLE' })
  })
})

describe('a clock that is set back', () => {
  const year = 365 * 86_400_000

  it('keeps no document fresh for ever', async () => {
    const things = documents()
    await get(things)
    clock.advance(-year)
    expect(await get(things)).toEqual({ value: 'copy 2', outcome: 'miss' })
    expect(await get(things)).toMatchObject({ value: 'copy 2', outcome: 'hit' })
  })

  it('keeps no absence for ever', async () => {
    const things = documents()
    answerAbsent()
    await failureOf(get(things))
    clock.advance(-year)
    origin = async () => 'there'
    expect(await get(things)).toMatchObject({ value: 'there' })
  })

  it('keeps no back-off for ever', async () => {
    const things = documents()
    await get(things)
    clock.advance(freshness.freshForMs)
    goDown()
    await get(things)
    clock.advance(-year)
    origin = async () => 'back again'
    expect(await get(things)).toEqual({ value: 'back again', outcome: 'miss' })
  })
})

describe('what another program left in the cache', () => {
  const at = new StillClock().now()
  const foreign: unknown[] = [
    'text',
    null,
    [],
    42,
    {},
    { at },
    { at: 'now', value: 'x' },
    { at, value: 42 },
    { at, value: null },
    { at, absent: null },
    { at, absent: 'gone' },
    { at, absent: { code: 'UPSTREAM_UNREACHABLE', message: 'an outage is no absence', fields: {} } },
    { at, absent: { code: 'PROVIDER_NOT_FOUND' } },
    { at, absent: { code: 7, message: 'x' } },
    { at: null, value: 'x' },
  ]
  it.each(foreign.map((content) => ({ content })))('is as good as nothing: $content', async ({ content }) => {
    await cache.set(KEY, content)
    expect(await get(documents())).toEqual({ value: 'copy 1', outcome: 'miss' })
  })
})

it('documents of different providers and kinds are apart', async () => {
  const things = documents()
  await get(things)
  expect(await cache.get(KEY)).toEqual({ at: clock.now(), value: 'copy 1' })
  const other = { ...widget, type: 'other' }
  expect(await things.get(subjectOf(other), fetch, newCall())).toEqual({ value: 'copy 2', outcome: 'miss' })
  await settle()
})
