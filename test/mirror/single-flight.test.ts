import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ClientWork } from '../../src/mirror/client-work.ts'
import { SingleFlight } from '../../src/mirror/single-flight.ts'
import { settle } from './parts-fixture.ts'

it('however many callers come while the work runs, it runs once and all get its result', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 40 }), async (keys) => {
      const flights = new SingleFlight<string>()
      const begun: string[] = []
      const gate = Promise.withResolvers<void>()
      const started = keys.map((key) =>
        flights.run(key, async () => {
          begun.push(key)
          await gate.promise
          return `${key}!`
        }),
      )
      gate.resolve()
      const distinct = [...new Set(keys)]
      expect(await Promise.all(started.map(({ done }) => done))).toEqual(keys.map((key) => `${key}!`))
      expect(begun).toEqual(distinct)
      expect(started.filter(({ joined }) => !joined).length).toBe(distinct.length)
    }),
  )
})

it('a failure is shared by all who wait, and the next caller begins anew', async () => {
  const flights = new SingleFlight<number>()
  let runs = 0
  const work = async (): Promise<number> => {
    runs += 1
    if (runs === 1) throw new Error('down')
    return runs
  }
  const [first, second] = [flights.run('key', work), flights.run('key', work)]
  expect(await Promise.allSettled([first.done, second.done])).toMatchObject([
    { status: 'rejected', reason: { message: 'down' } },
    { status: 'rejected', reason: { message: 'down' } },
  ])
  // Whoever was told of the end can rely on it that the next call is a new one.
  const third = flights.run('key', work)
  expect(third.joined).toBe(false)
  expect(await third.done).toBe(2)
})

it('work that throws before it waits is a failure like any other', async () => {
  const flights = new SingleFlight<number>()
  const { done } = flights.run('key', () => {
    throw new Error('at once')
  })
  await expect(done).rejects.toThrow('at once')
  expect(await flights.run('key', async () => 1).done).toBe(1)
})

it('a failure that nobody waits for is no unhandled rejection', async () => {
  const unhandled: unknown[] = []
  const note = (reason: unknown): void => void unhandled.push(reason)
  process.on('unhandledRejection', note)
  try {
    new SingleFlight<never>().run('key', async () => {
      throw new Error('nobody waits')
    })
    await settle()
    expect(unhandled).toEqual([])
  } finally {
    process.off('unhandledRejection', note)
  }
})

it('idle waits for everything, also for what begins meanwhile, and for failures', async () => {
  const flights = new SingleFlight<void>()
  const gate = Promise.withResolvers<void>()
  const ended: string[] = []
  flights.run('first', async () => {
    await gate.promise
    ended.push('first')
    flights.run('second', async () => {
      await settle()
      ended.push('second')
      throw new Error('down')
    })
  })
  const idle = flights.idle().then(() => ended.push('idle'))
  gate.resolve()
  await idle
  expect(ended).toEqual(['first', 'second', 'idle'])
  await new SingleFlight<void>().idle()
})

describe('work whose callers may leave', () => {
  /** Work that ends when it is given up, and tells with which reason. */
  function abortable(): { work: (tail: undefined, signal: AbortSignal) => Promise<never>; signals: AbortSignal[] } {
    const signals: AbortSignal[] = []
    return {
      signals,
      work: (_, signal) =>
        new Promise((_, reject) => {
          signals.push(signal)
          signal.addEventListener('abort', () => reject(signal.reason), { once: true })
        }),
    }
  }

  it('is given up when the last of them has left, with the reason, and who comes then begins anew', async () => {
    const flights = new SingleFlight<void>()
    const { work, signals } = abortable()
    const [a, b] = [new AbortController(), new AbortController()]
    const first = flights.run('key', work, a.signal)
    const second = flights.run('key', work, b.signal)
    await settle()
    a.abort(new Error('a left'))
    await settle()
    expect(signals.map(({ aborted }) => aborted)).toEqual([false])
    b.abort(new Error('b left'))
    const third = flights.run('key', async () => undefined)
    expect(third.joined).toBe(false)
    await expect(first.done).rejects.toThrow('b left')
    await expect(second.done).rejects.toThrow('b left')
    await third.done
  })

  it('goes on when one joined who does not leave', async () => {
    const flights = new SingleFlight<void>()
    const { work, signals } = abortable()
    const leaving = new AbortController()
    flights.run('key', work, leaving.signal)
    flights.run('key', work)
    await settle()
    leaving.abort()
    expect(signals.map(({ aborted }) => aborted)).toEqual([false])
  })

  it('one signal counts once, however often it joins, and one that fired before gives up at once', async () => {
    const flights = new SingleFlight<void>()
    const { work } = abortable()
    const leaving = new AbortController()
    const { done } = flights.run('key', work, leaving.signal)
    flights.run('key', work, leaving.signal)
    await settle()
    leaving.abort(new Error('left'))
    await expect(done).rejects.toThrow('left')
    const late = flights.run('late', async (_, signal) => signal.throwIfAborted(), leaving.signal)
    await expect(late.done).rejects.toThrow('left')
  })

  it('what was given up is waited for too', async () => {
    const flights = new SingleFlight<void>()
    const leaving = new AbortController()
    const gate = Promise.withResolvers<void>()
    flights.run('key', () => gate.promise, leaving.signal)
    leaving.abort()
    let idle = false
    const waiting = flights.idle().then(() => {
      idle = true
    })
    await settle()
    expect(idle).toBe(false)
    gate.resolve()
    await waiting
  })

  it('is no work of clients until one of them joins, and counts once', async () => {
    const clientWork = new ClientWork()
    const changes: number[] = []
    clientWork.count = (change) => void changes.push(change)
    const flights = new SingleFlight<void>({ clientWork })
    const gate = Promise.withResolvers<void>()
    const { done } = flights.run('key', () => gate.promise, new AbortController().signal)
    expect(changes).toEqual([])
    flights.run('key', () => gate.promise)
    flights.run('key', () => gate.promise)
    expect(changes).toEqual([1])
    gate.resolve()
    await done
    expect(changes).toEqual([1, -1])
  })
})
