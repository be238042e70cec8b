import { describe, expect, it } from 'vitest'
import { MirrorError } from '../../../src/errors.ts'
import type { JobContext } from '../../../src/mirror/jobs/job-kind.ts'
import type { Journal } from '../../../src/store/journal.ts'
import { MemoryStateStore } from '../../../src/store/memory/memory-state-store.ts'
import { failureOf, settle } from '../parts-fixture.ts'
import { createJobs, done, ended, eventsOf, type Names, names, namesKind } from './jobs-fixture.ts'

/** Work that waits until the job ends, or the gate opens. */
function gated() {
  const gate = Promise.withResolvers<void>()
  const begun: string[] = []
  const work = async (item: string, job: JobContext): Promise<void> => {
    begun.push(item)
    const left = Promise.withResolvers<never>()
    left.promise.catch(() => undefined)
    job.signal.addEventListener('abort', () => left.reject(job.signal.reason))
    await Promise.race([gate.promise, left.promise])
    await done(item, job)
  }
  return { work, begun, open: () => gate.resolve() }
}

describe('a job', () => {
  it('does its items and tells of each, and is kept with them when it has ended', async () => {
    const kind = namesKind(async (item, job) => {
      if (item === 'b') job.settle(item, { outcome: 'failed', reason: 'torn', code: 'UPSTREAM_INVALID' })
      else await done(item, job)
    })
    const { jobs } = createJobs([kind])
    const { id, state } = await jobs.start(kind, { items: ['a', 'b', 'c'] })
    expect(state).toBe('queued')
    const job = await ended(jobs, id)
    expect(job).toMatchObject({
      state: 'done',
      progress: { done: 3, total: 3, bytes: 6, totalBytes: 6 },
      outcomes: { done: 2, held: 0, notPublished: 0, refused: 0, failed: 1 },
    })
    expect(jobs.get(id)).toEqual(job)
    expect((await jobs.items(id, { limit: 10 })).items).toEqual([
      { item: 'a', outcome: 'done', bytes: 3, totalBytes: 3 },
      { item: 'b', outcome: 'failed', reason: 'torn', code: 'UPSTREAM_INVALID', bytes: 0 },
      { item: 'c', outcome: 'done', bytes: 3, totalBytes: 3 },
    ])
    expect(await jobs.itemsOf(id)).toEqual(['a', 'c'])
  })

  it('does at most four items at one time', async () => {
    const { work, begun, open } = gated()
    const kind = namesKind(work)
    const { jobs } = createJobs([kind])
    const { id } = await jobs.start(kind, { items: names(10) })
    await settle()
    expect(begun).toEqual(names(4))
    open()
    expect((await ended(jobs, id)).outcomes.done).toBe(10)
  })

  it('begins nothing while clients wait for origins, and goes on when they do not', async () => {
    const { jobs, clientWork } = createJobs([])
    const kind = namesKind(done)
    jobs.register(kind)
    clientWork.count(1)
    const { id } = await jobs.start(kind, { items: ['a'] })
    await settle()
    expect(jobs.get(id).progress.done).toBe(0)
    clientWork.count(-1)
    expect((await ended(jobs, id)).outcomes.done).toBe(1)
  })

  it('fails as a whole when its kind does, and says why, but nothing of what was not foreseen', async () => {
    const refused = new MirrorError('REQUEST_INVALID', 'no such thing', { problems: ['no such thing'] })
    for (const [error, reason] of [
      [refused, 'no such thing'],
      [new Error('secret'), 'an unexpected error; the log of the mirror has it'],
    ] as const) {
      const kind = namesKind(() => Promise.reject(error))
      const { jobs } = createJobs([kind])
      const { id } = await jobs.start(kind, { items: ['a', 'b'] })
      expect(await ended(jobs, id)).toMatchObject({ state: 'failed', reason })
    }
  })

  it('is not begun when the kind refuses the request', async () => {
    const refused = new MirrorError('REQUEST_INVALID', 'no', { problems: ['no'] })
    const kind = namesKind(done, { check: () => Promise.reject(refused) })
    const { jobs, store } = createJobs([kind])
    await expect(jobs.start(kind, { items: [] })).rejects.toBe(refused)
    expect(await store.journals()).toEqual([])
  })

  it('of more than 100,000 items fails, and says so', async () => {
    const kind = namesKind(done)
    const { jobs } = createJobs([kind])
    const { id } = await jobs.start(kind, { items: names(100_001) })
    expect(await ended(jobs, id)).toMatchObject({ state: 'failed', reason: expect.stringContaining('100000') })
  })

  it('whose outcomes cannot be written down fails, and runs again at the next start', async () => {
    const kind = namesKind(done)
    const store = new FullStore()
    const first = createJobs([kind], { store })
    store.full = false
    const { id } = await first.jobs.start(kind, { items: names(20) })
    store.full = true
    expect(await ended(first.jobs, id)).toMatchObject({ state: 'failed', reason: 'the disk is full' })
    store.full = false
    const second = createJobs([kind], { store })
    await second.jobs.resumeAll()
    expect(await ended(second.jobs, id)).toMatchObject({ state: 'done', progress: { done: 20 } })
  })
})

/** A state store on a disk that is full at times. */
class FullStore extends MemoryStateStore {
  full = false

  override async journal(name: string): Promise<Journal> {
    const journal = await super.journal(name)
    const check = (): void => {
      if (this.full) throw new MirrorError('STORAGE_FULL', 'the disk is full', { operation: 'write' })
    }
    return {
      append: async (entry) => {
        check()
        await journal.append(entry)
      },
      replace: async (entries) => {
        check()
        await journal.replace(entries)
      },
      read: () => journal.read(),
      [Symbol.asyncDispose]: () => journal[Symbol.asyncDispose](),
    }
  }
}

describe('jobs that come together', () => {
  it('run two at a time for warming and one for verifying, the others in turn', async () => {
    const { work, begun, open } = gated()
    const warm = namesKind(work)
    const verify = namesKind(work, { kind: 'verify' })
    const { jobs } = createJobs([warm, verify])
    const started = []
    for (const [n, kind] of [warm, warm, warm, verify, verify].entries()) {
      started.push(await jobs.start(kind, { items: [`${kind.kind} ${n}`] }))
    }
    await settle()
    expect(begun).toEqual(['warm 0', 'warm 1', 'verify 3'])
    expect(jobs.list({ limit: 10 }).items.map(({ state }) => state)).toEqual([
      'queued',
      'running',
      'queued',
      'running',
      'running',
    ])
    open()
    await Promise.all(started.map(({ id }) => ended(jobs, id)))
    expect(begun.slice(3).sort()).toEqual(['verify 4', 'warm 2'])
  })

  it('are listed newest first, in pages', async () => {
    const kind = namesKind(done)
    const { jobs } = createJobs([kind])
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.unshift((await jobs.start(kind, { items: [] })).id)
    await Promise.all(ids.map((id) => ended(jobs, id)))
    const first = jobs.list({ limit: 2 })
    const second = jobs.list({ limit: 3, ...(first.next === undefined ? {} : { after: first.next }) })
    expect([...first.items, ...second.items].map(({ id }) => id)).toEqual(ids)
    expect(second.next).toBeUndefined()
  })

  it('are refused when a hundred wait already', async () => {
    const { work } = gated()
    const kind = namesKind(work)
    const { jobs } = createJobs([kind])
    for (let n = 0; n < 102; n++) await jobs.start(kind, { items: ['a'] })
    expect(await failureOf(jobs.start(kind, { items: ['a'] }))).toMatchObject({ code: 'TOO_MANY_JOBS' })
    await jobs.close()
  })

  it('are refused beyond a hundred that wait also where many are asked for at one time', async () => {
    const { work } = gated()
    const kind = namesKind(work)
    const { jobs } = createJobs([kind])
    const asked = await Promise.allSettled(Array.from({ length: 300 }, () => jobs.start(kind, { items: ['a'] })))
    expect(asked.filter(({ status }) => status === 'fulfilled').length).toBeLessThanOrEqual(102)
    expect(asked.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThanOrEqual(100)
    await jobs.close()
  })

  it('are listed as newer than those of before, though the clock was set back between two starts', async () => {
    const kind = namesKind(done)
    const { jobs, store, clock } = createJobs([kind])
    const { id: first } = await jobs.start(kind, { items: ['a'] })
    await ended(jobs, first)
    await jobs.close()
    const { jobs: after } = createJobs([kind], { store, now: () => clock.now() - 86_400_000 })
    await after.resumeAll()
    const { id: second } = await after.start(kind, { items: ['a'] })
    await ended(after, second)
    expect(after.list({ limit: 10 }).items.map(({ id }) => id)).toEqual([second, first])
  })
})

describe('a cancelled job', () => {
  it('ends what is under way and begins nothing more; what was decided stays', async () => {
    const { work, begun, open } = gated()
    const kind = namesKind(async (item, job) => (item === 'first' ? done(item, job) : work(item, job)))
    const { jobs, store } = createJobs([kind])
    const { id } = await jobs.start(kind, { items: ['first', ...names(10)] })
    await settle()
    const job = await jobs.cancel(id)
    expect(job).toMatchObject({ state: 'cancelled', progress: { done: 1, total: 11 } })
    open()
    await settle()
    expect(begun).toHaveLength(4)
    const again = createJobs([kind], { store })
    await again.jobs.resumeAll()
    expect(again.jobs.get(id)).toEqual(job)
    expect((await again.jobs.items(id, { limit: 2 })).items.map(({ outcome }) => outcome)).toEqual(['done', null])
  })

  it('that waited for its turn never runs', async () => {
    const { work, begun, open } = gated()
    const kind = namesKind(work, { kind: 'verify' })
    const { jobs } = createJobs([kind])
    const first = await jobs.start(kind, { items: ['a'] })
    const second = await jobs.start(kind, { items: ['b'] })
    expect(await jobs.cancel(second.id)).toMatchObject({ state: 'cancelled' })
    open()
    await ended(jobs, first.id)
    expect(begun).toEqual(['a'])
    expect(jobs.get(second.id).state).toBe('cancelled')
  })

  it('is so for ever from the moment at which it is asked for, although its work has not ended yet', async () => {
    const gate = Promise.withResolvers<void>()
    const kind = namesKind(() => gate.promise)
    const { jobs, store } = createJobs([kind])
    const { id } = await jobs.start(kind, { items: ['a'] })
    await settle()
    const cancelling = jobs.cancel(id)
    await settle()
    // As if the process had ended here.
    const again = createJobs([kind], { store })
    await again.jobs.resumeAll()
    expect(again.jobs.get(id).state).toBe('cancelled')
    gate.resolve()
    expect((await cancelling).state).toBe('cancelled')
  })

  it('whose cancelling was written down, but not its end, is cancelled after a restart', async () => {
    const kind = namesKind(done)
    const { jobs, store } = createJobs([kind])
    await using journal = await store.journal('jobs-left')
    const outcomes = { done: 0, held: 0, notPublished: 0, refused: 0, failed: 0 }
    const progress = { done: 0, total: 0, bytes: 0, totalBytes: null }
    const job = { id: 'left', kind: 'warm', state: 'queued', createdAt: '2026-11-30T12:00:00.000Z', progress, outcomes }
    await journal.append({ format: 1, job, request: { items: ['a'] } })
    await journal.append({ cancelledAt: '2026-11-30T12:01:00.000Z' })
    await jobs.resumeAll()
    expect(jobs.get('left')).toMatchObject({ state: 'cancelled', progress: { done: 0 } })
  })

  it('that has ended stays as it is, and one that never was is not found', async () => {
    const kind = namesKind(done)
    const { jobs } = createJobs([kind])
    const { id } = await jobs.start(kind, { items: ['a'] })
    await ended(jobs, id)
    expect(await jobs.cancel(id)).toMatchObject({ state: 'done' })
    expect(await failureOf(jobs.cancel('nothing'))).toMatchObject({ code: 'ITEM_NOT_FOUND' })
  })
})

describe('after a restart', () => {
  it('a job goes on with what was not decided, each item is decided once, and its start is the first one', async () => {
    const { work } = gated()
    const store = new MemoryStateStore()
    const before = namesKind(async (item, job) => (item < 'item 000003' ? done(item, job) : work(item, job)))
    const first = createJobs([before], { store })
    const { id } = await first.jobs.start(before, { items: names(8) })
    await settle()
    await first.jobs.close()
    const { startedAt } = first.jobs.get(id)
    expect(startedAt).toBeDefined()

    const again: string[] = []
    const after = namesKind(async (item, job) => {
      again.push(item)
      await done(item, job)
    })
    const second = createJobs([after], { store })
    second.clock.advance(60_000)
    await second.jobs.resumeAll()
    expect(await ended(second.jobs, id)).toMatchObject({
      state: 'done',
      startedAt,
      progress: { done: 8, total: 8 },
    })
    expect(again).toEqual(names(8).slice(3))
  })

  it('a damaged journal loses its own job alone, and is told', async () => {
    const kind = namesKind(done)
    const { jobs, store } = createJobs([kind])
    const { id } = await jobs.start(kind, { items: ['a'] })
    await ended(jobs, id)
    await using journal = await store.journal('jobs-broken')
    await journal.append({ format: 1, job: { id: 'broken' } })
    const second = createJobs([kind], { store })
    await second.jobs.resumeAll()
    expect(second.jobs.list({ limit: 10 }).items.map((job) => job.id)).toEqual([id])
    expect(second.lines).toContainEqual(expect.objectContaining({ job: 'broken', level: 'error' }))
  })

  it('a damaged entry costs its item alone, which is done again', async () => {
    const store = new MemoryStateStore()
    const { work } = gated()
    const before = namesKind(async (item, job) => (item === 'a' ? done(item, job) : work(item, job)))
    const first = createJobs([before], { store })
    const { id } = await first.jobs.start(before, { items: ['a', 'b'] })
    await settle()
    await first.jobs.close()
    await using journal = await store.journal(`jobs-${id}`)
    const entries = await Array.fromAsync(journal.read())
    await journal.replace(entries.map((entry) => (JSON.stringify(entry).includes('"item":"a"') ? { item: 7 } : entry)))
    const kind = namesKind(done)
    const second = createJobs([kind], { store })
    await second.jobs.resumeAll()
    expect(await ended(second.jobs, id)).toMatchObject({ progress: { done: 2 } })
  })

  it('a request that the kind does not understand any more fails its job', async () => {
    const store = new MemoryStateStore()
    const { work } = gated()
    const before = namesKind(work)
    const first = createJobs([before], { store })
    const { id } = await first.jobs.start(before, { items: 'none' } as unknown as Names)
    expect(await ended(first.jobs, id)).toMatchObject({ state: 'failed' })
  })
})

describe('jobs that have ended', () => {
  it('are kept for 30 days', async () => {
    const kind = namesKind(done)
    const { jobs, store, clock } = createJobs([kind])
    const old = await jobs.start(kind, { items: ['a'] })
    await ended(jobs, old.id)
    clock.advance(31 * 24 * 3_600_000)
    const young = await jobs.start(kind, { items: ['a'] })
    await ended(jobs, young.id)
    await settle()
    expect(jobs.list({ limit: 10 }).items.map(({ id }) => id)).toEqual([young.id])
    expect(await store.journals()).toEqual([`jobs-${young.id}`])
  })

  it('are 200 at most, the newest', async () => {
    const kind = namesKind(done)
    const { jobs, store } = createJobs([kind])
    const ids: string[] = []
    for (let n = 0; n < 203; n++) {
      const { id } = await jobs.start(kind, { items: [] })
      ids.push(id)
      await ended(jobs, id)
    }
    await settle()
    expect(jobs.list({ limit: 500 }).items.map(({ id }) => id)).toEqual(ids.slice(3).reverse())
    expect(await store.journals()).toHaveLength(200)
  })
})

describe('events', () => {
  it('begin with the job, tell of items, and end with the job in its final state', async () => {
    const { work, open } = gated()
    const kind = namesKind(async (item, job) => {
      job.progress(item, 1, 3)
      await work(item, job)
    })
    const { jobs } = createJobs([kind])
    const { id } = await jobs.start(kind, { items: ['a', 'b'] })
    await settle()
    const seen = eventsOf(jobs, id)
    await settle()
    open()
    const events = await seen
    expect(events[0]).toMatchObject({ event: 'job', data: { state: 'running', progress: { bytes: 2, totalBytes: 6 } } })
    expect(events.at(-1)).toMatchObject({ event: 'job', data: { state: 'done', progress: { bytes: 6, done: 2 } } })
    const items = events.filter(({ event }) => event === 'item')
    expect(items).toContainEqual({ event: 'item', data: { item: 'b', outcome: 'done', bytes: 3, totalBytes: 3 } })
    expect(
      events.filter(({ event, data }) => event === 'job' && 'state' in data && data.state === 'done'),
    ).toHaveLength(1)
  })

  it('go on for as long as the job does', async () => {
    const gates = names(3).map(() => Promise.withResolvers<void>())
    const kind = namesKind(async (item, job) => {
      await gates[names(3).indexOf(item)]?.promise
      await done(item, job)
    })
    const { jobs } = createJobs([kind])
    const { id } = await jobs.start(kind, { items: names(3) })
    const seen: string[] = []
    for await (const { event, data } of jobs.events(id, AbortSignal.timeout(20_000))) {
      if (event === 'item') seen.push(data.item)
      // The next item is decided only when the one before was told of.
      gates[seen.length]?.resolve()
    }
    expect(seen).toEqual(names(3))
    expect(jobs.get(id).state).toBe('done')
  })

  it('a slow reader gets each item once, as it is then, and the newest job', async () => {
    const { work, open } = gated()
    const kind = namesKind(async (item, job) => {
      for (let bytes = 0; bytes < 1_000; bytes++) job.progress(item, bytes, 1_000)
      await work(item, job)
    })
    const { jobs } = createJobs([kind])
    const { id } = await jobs.start(kind, { items: names(500) })
    const events = jobs.events(id, AbortSignal.timeout(20_000))[Symbol.asyncIterator]()
    expect((await events.next()).value).toMatchObject({ event: 'job' })
    open()
    while (jobs.get(id).state !== 'done') await settle()
    const rest = await Array.fromAsync({ [Symbol.asyncIterator]: () => events })
    expect(rest.length).toBe(501)
    expect(rest.at(-1)).toMatchObject({ event: 'job', data: { state: 'done', progress: { done: 500 } } })
  })

  it('end when the reader leaves, and when the process stops', async () => {
    const { work } = gated()
    const kind = namesKind(work)
    const { jobs } = createJobs([kind])
    const { id } = await jobs.start(kind, { items: ['a'] })
    const leaving = new AbortController()
    await settle()
    const left = Array.fromAsync(jobs.events(id, leaving.signal))
    const stopped = Array.fromAsync(jobs.events(id, new AbortController().signal))
    await settle()
    leaving.abort()
    expect((await left).at(-1)).toMatchObject({ data: { state: 'running' } })
    await jobs.close()
    expect((await stopped).at(-1)).toMatchObject({ data: { state: 'running' } })
  })

  it('of a job that never was are refused at once', async () => {
    const { jobs } = createJobs([])
    expect(() => jobs.events('nothing', new AbortController().signal)).toThrow('there is no job')
  })
})
