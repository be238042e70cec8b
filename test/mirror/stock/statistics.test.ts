import { expect, it } from 'vitest'
import { Statistics as StatisticsSchema } from '../../../src/admin/schema/stock.ts'
import { Statistics, type Traffic } from '../../../src/mirror/stock/statistics.ts'
import { AT, never, openStock } from './stock-fixture.ts'

const space = { used: 100, reserved: 5, maxSize: 1_000, free: 900, minFree: null, evictions: { items: 2, bytes: 50 } }

function create(traffic: Partial<Traffic> = {}) {
  const stock = openStock()
  const statistics = new Statistics({
    ...{ mode: 'online', startedAt: Date.parse(AT), inventory: stock.inventory },
    usage: { top: (count) => [{ name: 'a', hits: count, lastUsedAt: Date.parse(AT) }] },
    traffic: async () => ({ answers: {}, sentBytes: 0, receivedBytes: 0, ...traffic }),
    space: async () => space,
    quarantine: async () => ({ files: 1, bytes: 7 }),
  })
  return { stock, statistics }
}

it('are what the admin API promises, and nothing besides', async () => {
  const { stock, statistics } = create({
    answers: { hit: 2, coalesced: 1, miss: 3, stale: 1, negative: 1 },
    sentBytes: 10,
    receivedBytes: 4,
  })
  await stock.save('acme/widget 1.0.0 linux_amd64', 'four')
  await stock.saveModule('acme/vpc/aws 1.0.0', 'three')
  await stock.inventory.start(stock.sources, never)
  const figures = await statistics.read()
  expect(figures).toMatchObject({
    ...{
      startedAt: AT,
      packages: { count: 1, bytes: 4 },
      modules: { count: 1, bytes: 5 },
      hitRatio: 3 / 8,
      savedBytes: 6,
    },
    ...{
      disk: { used: 100, reserved: 5, maxSize: 1_000, free: 900, minFree: null },
      evictions: { items: 2, bytes: 50 },
    },
    ...{ quarantine: { files: 1, bytes: 7 }, top: [{ item: 'a', hits: 20, lastUsedAt: AT }] },
  })
  expect(StatisticsSchema.strict().parse(figures)).toEqual(figures)
  expect(Object.keys(figures.disk)).not.toContain('evictions')
})

it('before anything was answered or counted, nothing is made up', async () => {
  const { statistics } = create({ receivedBytes: 9 })
  expect(await statistics.read()).toMatchObject({
    ...{ packages: { count: null, bytes: null }, modules: { count: null, bytes: null }, hitRatio: null, savedBytes: 0 },
  })
})
