import { expect, it } from 'vitest'
import { silentLog } from '../../../src/log.ts'
import { VerifySchedule } from '../../../src/mirror/care/verify-schedule.ts'
import { MemoryRecordStore } from '../../../src/store/memory/memory-record-store.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

/** One process after the other over the same records; `turn` asks a process that starts now whether it is time. */
function scheduled(records = new MemoryRecordStore()) {
  const begun: number[] = []
  const run = async (nowMs: readonly number[]): Promise<void> => {
    const stop = new AbortController()
    const times = [...nowMs]
    let last = times[0] ?? 0
    const now = (): number => last
    const begin = async (): Promise<void> => void begun.push(last)
    const schedule = new VerifySchedule({
      records,
      every: 7 * DAY,
      begin,
      shutdown: stop.signal,
      now,
      log: silentLog(),
    })
    const running = schedule.run()
    await new Promise((resolve) => setTimeout(resolve, 30))
    last = times.at(-1) ?? last
    stop.abort()
    await running
  }
  return { begun, run, records }
}

it('begins nothing at the first start, nor at one of many', async () => {
  const { begun, run } = scheduled()
  for (const day of [0, 1, 2, 3]) await run([day * DAY])
  expect(begun).toEqual([])
})

it('does not begin at once at a start that comes too late, and remembers since when it counts', async () => {
  const { begun, run, records } = scheduled()
  await run([0])
  expect(await records.get(['verify-schedule'])).toEqual({ format: 1, lastAt: '1970-01-01T00:00:00.000Z' })
  await run([8 * DAY])
  expect(begun).toEqual([])
  expect(await records.get(['verify-schedule'])).toEqual({ format: 1, lastAt: '1970-01-01T00:00:00.000Z' })
})

it('begins when it is time, once', async () => {
  const { begun, records } = scheduled()
  await records.put(['verify-schedule'], { format: 1, lastAt: new Date(0).toISOString() })
  const stop = new AbortController()
  let calls = 0
  // The first look is the start; ten minutes and a week are over at every one after it.
  const now = (): number => (calls++ === 0 ? 7 * DAY : 7 * DAY + HOUR)
  const begin = async (): Promise<void> => void begun.push(now())
  const schedule = new VerifySchedule({ records, every: 7 * DAY, begin, shutdown: stop.signal, now, log: silentLog() })
  const running = schedule.run()
  await expect.poll(() => begun.length).toBe(1)
  await new Promise((resolve) => setTimeout(resolve, 30))
  stop.abort()
  await running
  expect(begun).toEqual([7 * DAY + HOUR])
  expect(await records.get(['verify-schedule'])).toEqual({ format: 1, lastAt: new Date(7 * DAY + HOUR).toISOString() })
})

it('counts anew when the clock was set back since the last one: else it would wait for that time to come again', async () => {
  const { begun, run, records } = scheduled()
  await records.put(['verify-schedule'], { format: 1, lastAt: new Date(900 * DAY).toISOString() })
  await run([DAY])
  expect(begun).toEqual([])
  expect(await records.get(['verify-schedule'])).toEqual({ format: 1, lastAt: '1970-01-02T00:00:00.000Z' })
})

it('is not put off when the clock is set back while it runs', async () => {
  const { begun, records } = scheduled()
  await records.put(['verify-schedule'], { format: 1, lastAt: new Date(0).toISOString() })
  const stop = new AbortController()
  // Set back by years after the start; then a day goes by.
  const times = [800 * DAY, 20 * DAY]
  const now = (): number => times.shift() ?? 21 * DAY
  const begin = async (): Promise<void> => void begun.push(now())
  const schedule = new VerifySchedule({ records, every: 7 * DAY, begin, shutdown: stop.signal, now, log: silentLog() })
  const running = schedule.run()
  await expect.poll(() => begun).toEqual([21 * DAY])
  stop.abort()
  await running
})
