import fc from 'fast-check'
import { expect, it } from 'vitest'
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
