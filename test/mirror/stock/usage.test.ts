import { beforeEach, expect, it } from 'vitest'
import { createLog } from '../../../src/log.ts'
import { Usage } from '../../../src/mirror/stock/usage.ts'
import type { Journal } from '../../../src/store/journal.ts'
import { MemoryStateStore } from '../../../src/store/memory/memory-state-store.ts'
import { StillClock } from '../parts-fixture.ts'

let journal: Journal
let clock: StillClock
let lines: string[]

beforeEach(async () => {
  journal = await new MemoryStateStore().journal('usage')
  clock = new StillClock()
  lines = []
})

async function openUsage(through: Journal = journal): Promise<Usage> {
  const log = createLog({ level: 'warn', format: 'json' }, { write: (line) => lines.push(line) })
  const usage = new Usage({ journal: through, now: clock.now, log, flushMs: 5 })
  await usage.load()
  return usage
}

it('knows when an item was used last and how often, in the next process too', async () => {
  const first = await openUsage()
  const start = clock.nowMs
  expect(first.of('a')).toEqual({ lastUsedAt: undefined, hits: 0 })
  first.touch('a')
  clock.advance(1_000)
  first.touch('a')
  first.touch('b', 0)
  await first.close()
  const second = await openUsage()
  expect(second.of('a')).toEqual({ lastUsedAt: start + 1_000, hits: 2 })
  expect(second.of('b')).toEqual({ lastUsedAt: start + 1_000, hits: 0 })
})

it('writes by itself some time after a use', async () => {
  const usage = await openUsage()
  usage.touch('a')
  await expect.poll(async () => (await openUsage()).of('a').hits).toBe(1)
  usage.touch('a')
  await expect.poll(async () => (await openUsage()).of('a').hits).toBe(2)
})

it('adds what is used while it loads to what was known before', async () => {
  const before = await openUsage()
  before.touch('a')
  before.touch('b')
  await before.close()
  clock.advance(5_000)
  const usage = new Usage({
    journal,
    now: clock.now,
    log: createLog({ level: 'silent', format: 'json' }, { write: () => undefined }),
  })
  usage.touch('a')
  usage.forget('b')
  await usage.flush()
  await usage.load()
  expect(usage.of('a')).toEqual({ lastUsedAt: clock.nowMs, hits: 2 })
  await usage.close()
  const after = await openUsage()
  expect([after.of('a').hits, after.of('b').hits]).toEqual([2, 0])
})

it('forgets what is not held any more, for good', async () => {
  const usage = await openUsage()
  for (const name of ['a', 'b', 'c']) usage.touch(name)
  await usage.flush()
  usage.forget('a')
  usage.forget('never known')
  usage.retain((name) => name !== 'b')
  expect(usage.of('a').hits).toBe(0)
  await usage.close()
  const next = await openUsage()
  expect(['a', 'b', 'c'].map((name) => next.of(name).hits)).toEqual([0, 0, 1])
  next.touch('a')
  await next.close()
  expect((await openUsage()).of('a').hits).toBe(1)
})

it('a clock that was set back leaves the order of use right, and no use in the future', async () => {
  const usage = await openUsage()
  const now = clock.nowMs
  usage.touch('long ago')
  clock.advance(365 * 24 * 3_600_000)
  usage.touch('by a wrong clock')
  await usage.close()
  clock.nowMs = now + 60_000
  const next = await openUsage()
  expect(next.of('by a wrong clock').lastUsedAt).toBe(now + 60_000)
  clock.advance(1)
  next.touch('later')
  clock.advance(-30_000)
  next.touch('after a second jump')
  const at = (name: string): number => next.of(name).lastUsedAt ?? 0
  expect(at('long ago')).toBe(now)
  expect(at('long ago')).toBeLessThan(at('by a wrong clock'))
  expect(at('by a wrong clock')).toBeLessThanOrEqual(at('later'))
  expect(at('later')).toBeLessThanOrEqual(at('after a second jump'))
  expect(at('after a second jump')).toBeLessThanOrEqual(clock.nowMs)
})

it('names the most used items, the most used first', async () => {
  const usage = await openUsage()
  for (const [index, name] of ['a', 'b', 'c', 'd', 'e'].entries()) usage.touch(name, [3, 9, 0, 5, 9][index])
  expect(usage.top(3).map(({ name, hits }) => [name, hits])).toEqual([
    ['b', 9],
    ['e', 9],
    ['d', 5],
  ])
  expect(usage.top(10).map(({ name }) => name)).toEqual(['b', 'e', 'd', 'a'])
  expect(usage.top(0)).toEqual([])
})

it('the journal does not grow without end', async () => {
  const usage = await openUsage()
  for (let round = 0; round < 300; round += 1) {
    for (let item = 0; item < 100; item += 1) usage.touch(`item ${item}`)
    await usage.flush()
  }
  let entries = 0
  for await (const line of journal.read()) entries += (line as { used: unknown[] }).used.length
  expect(entries).toBeLessThan(10_500)
  expect((await openUsage()).of('item 7').hits).toBe(300)
})

it('what cannot be written is told once, and written when it can be', async () => {
  let broken = true
  const flaky: Journal = {
    ...journal,
    append: (entry) => (broken ? Promise.reject(new Error('read-only')) : journal.append(entry)),
    read: () => journal.read(),
    replace: (entries) => journal.replace(entries),
  }
  const usage = await openUsage(flaky)
  usage.touch('a')
  usage.touch('b')
  await usage.flush()
  usage.touch('a')
  usage.forget('b')
  await usage.flush()
  expect(usage.of('a').hits).toBe(2)
  expect(lines).toHaveLength(1)
  broken = false
  await usage.close()
  expect((await openUsage()).of('a').hits).toBe(2)
})

it('what is no line of ours is passed over', async () => {
  for (const line of [null, 7, { used: 'x' }, { used: [['a', 'b']] }, { other: [] }]) await journal.append(line)
  await journal.append({ used: [['a', 1, 2]] })
  expect((await openUsage()).of('a')).toEqual({ lastUsedAt: 1, hits: 2 })
})
