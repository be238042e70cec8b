import { expect, it } from 'vitest'
import { ClientWork } from '../../src/mirror/client-work.ts'

const signal = new AbortController().signal

it('nobody waits while clients want nothing', async () => {
  await new ClientWork().giveWay({ maxMs: 60_000, signal })
})

it('a job waits until the last piece of work of clients has ended', async () => {
  const work = new ClientWork()
  work.count(1)
  work.count(1)
  let passed = false
  const waiting = work.giveWay({ maxMs: 60_000, signal }).then(() => {
    passed = true
  })
  work.count(-1)
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(passed).toBe(false)
  work.count(-1)
  await waiting
})

it('a job waits no longer than it must, and not at all once it has ended', async () => {
  const work = new ClientWork()
  work.count(1)
  await work.giveWay({ maxMs: 5, signal })
  const ending = new AbortController()
  const waiting = work.giveWay({ maxMs: 60_000, signal: ending.signal })
  ending.abort(new Error('cancelled'))
  await expect(waiting).rejects.toThrow('cancelled')
  await expect(work.giveWay({ maxMs: 60_000, signal: ending.signal })).rejects.toThrow('cancelled')
})
