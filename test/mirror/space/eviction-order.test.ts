import fc from 'fast-check'
import { expect, it } from 'vitest'
import { survey } from '../../../src/mirror/space/eviction-order.ts'
import type { HeldItem } from '../../../src/mirror/stock/held-item.ts'
import { itemOf } from '../stock/stock-fixture.ts'

const entry = fc.record({
  content: fc.integer({ min: 0, max: 400 }),
  usedAt: fc.nat(5_000),
  pinned: fc.boolean().map((pinned) => pinned),
  busy: fc.boolean(),
})

it('finds the oldest blobs, each once, of any number of items, and what is pinned', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(entry, { maxLength: 3_000, size: 'max' }), async (entries) => {
      const items = entries.map((_, index) => itemOf(`registry.example.test/acme/a 1.0.${index} linux_amd64`))
      const contents = entries.map(({ content }, index) => ({
        ...(items[index] as HeldItem),
        ...itemOf('x a b c', `${content}`),
      }))
      const all = contents.map((item, index) => ({ ...item, name: (items[index] as HeldItem).name }))
      const facts = new Map(all.map((item, index) => [item.name, entries[index]]))
      const byDigest = Map.groupBy(all, ({ digest }) => digest)
      const found = await survey(all, {
        ownersOf: ({ digest }) => byDigest.get(digest) ?? [],
        lastUsed: ({ name }) => facts.get(name)?.usedAt ?? 0,
        isPinned: ({ name }) => facts.get(name)?.pinned ?? false,
        isBusy: ({ name }) => facts.get(name)?.busy ?? false,
      })
      const expected = [...byDigest.values()]
        .filter((owners) => owners.every(({ name }) => !facts.get(name)?.pinned && !facts.get(name)?.busy))
        .map((owners) => Math.max(...owners.map(({ name }) => facts.get(name)?.usedAt ?? 0)))
        .sort((a, b) => a - b)
        .slice(0, 512)
      expect(found.candidates.map(({ usedAt }) => usedAt)).toEqual(expected)
      const pinned = [...byDigest.values()].filter((owners) => owners.some(({ name }) => facts.get(name)?.pinned))
      expect(found.pinned).toBe(pinned.reduce((sum, [item]) => sum + (item?.size ?? 0), 0))
    }),
    { numRuns: 30 },
  )
})
