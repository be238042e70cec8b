import { expect, it } from 'vitest'
import { createLog } from '../../../src/log.ts'
import type { HeldItem } from '../../../src/mirror/stock/held-item.ts'
import { Inventory } from '../../../src/mirror/stock/inventory.ts'
import type { ItemSource, Recorded } from '../../../src/mirror/stock/item-source.ts'
import type { Journal } from '../../../src/store/journal.ts'
import { MemoryRecordStore } from '../../../src/store/memory/memory-record-store.ts'
import { MemoryStateStore } from '../../../src/store/memory/memory-state-store.ts'
import { digestOf, itemOf, never, openStock, packageId, recordedItems, releaseRecord } from './stock-fixture.ts'

const A = 'acme/a 1.0.0 linux_amd64'
const B = 'acme/b 1.0.0 linux_amd64'
const C = 'acme/c 1.0.0 linux_amd64'
const full = (text: string): string => `registry.example.test/${text}`
const namesOf = (inventory: Inventory): string[] => inventory.all().map(({ name }) => name)

/** Records that can be held back: then only the snapshot can tell. */
class HeldBackSource implements ItemSource {
  readonly kind
  readonly #inner: ItemSource
  readonly go = Promise.withResolvers<void>()

  constructor(inner: ItemSource) {
    this.#inner = inner
    this.kind = inner.kind
  }

  async *recorded(): AsyncIterable<Recorded> {
    await this.go.promise
    yield* this.#inner.recorded()
  }

  readItem(name: string): Promise<HeldItem | undefined> {
    return this.#inner.readItem(name)
  }
}

it('without a snapshot it is made from the records, and the next start needs none of them', async () => {
  const state = new MemoryStateStore()
  const journal = await state.journal('inventory')
  const before = openStock({ journal })
  await before.save(A)
  await before.saveModule('acme/vpc/aws 1.0.0', 'new', ['old'])
  await before.catalogue.saveRelease(packageId(C).address, releaseRecord(C, 'sums of c'))
  const fresh = openStock({ records: before.records, journal: await new MemoryStateStore().journal('other') })
  expect(fresh.inventory.isComplete).toBe(false)
  await fresh.inventory.start(fresh.sources, never)
  expect(fresh.inventory.isComplete).toBe(true)
  expect(namesOf(fresh.inventory)).toEqual([full(A), full('acme/vpc/aws 1.0.0')])
  expect(fresh.inventory.get(full('acme/vpc/aws 1.0.0'))?.earlier).toEqual([digestOf('old')])
  await before.inventory.start(before.sources, never)

  const after = openStock({ records: before.records, journal })
  const heldBack = after.sources.map((source) => new HeldBackSource(source))
  const started = after.inventory.start(heldBack, never)
  await after.inventory.whenComplete(never)
  expect(after.inventory.all()).toEqual(before.inventory.all())
  expect(after.inventory.needs(digestOf('sums of c'))).toBe(true)
  expect(after.inventory.needs(digestOf('sums of nobody'))).toBe(false)
  for (const { go } of heldBack) go.resolve()
  await started
  await after.inventory.whenReconciled(never)
})

it('what changes is held at once, and by the next process too', async () => {
  const journal = await new MemoryStateStore().journal('inventory')
  const before = openStock({ journal })
  await before.inventory.start(before.sources, never)
  await before.save(A)
  await before.save(B)
  await before.save(A, 'other bytes')
  await before.remove(B)
  await before.save(C)
  expect(namesOf(before.inventory)).toEqual([full(A), full(C)])
  expect(before.inventory.get(full(A))).toEqual(itemOf(full(A), 'other bytes'))
  expect(before.removed).toEqual([full(B)])

  const after = openStock({ records: new MemoryRecordStore(), journal })
  void after.inventory.start(
    after.sources.map((source) => new HeldBackSource(source)),
    never,
  )
  await after.inventory.whenComplete(never)
  expect(after.inventory.all()).toEqual(before.inventory.all())
})

it('the records win: what was changed behind its back is put right, and told', async () => {
  const journal = await new MemoryStateStore().journal('inventory')
  const before = openStock({ journal })
  for (const text of [A, B]) await before.save(text)
  await before.saveModule('acme/vpc/aws 1.0.0')
  await before.inventory.start(before.sources, never)
  // Another inventory: this one learns nothing of it.
  const behind = openStock({ records: before.records })
  await behind.remove(A)
  await behind.save(B, 'other bytes')
  await behind.save(C)
  const after = openStock({ records: before.records, journal })
  await after.inventory.start(after.sources, never)
  expect(after.inventory.all().map(({ name, digest }) => [name, digest])).toEqual([
    [full(B), digestOf('other bytes')],
    [full(C), digestOf(C)],
    [full('acme/vpc/aws 1.0.0'), digestOf('acme/vpc/aws 1.0.0')],
  ])
  expect(after.removed).toEqual([full(A)])
  const last = openStock({ records: new MemoryRecordStore(), journal })
  void last.inventory.start(
    last.sources.map((source) => new HeldBackSource(source)),
    never,
  )
  await last.inventory.whenComplete(never)
  expect(last.inventory.all()).toEqual(after.inventory.all())
})

it('what changes while everything is read counts as changed, whether the reader comes by before or after', async () => {
  const stock = openStock()
  for (const text of [A, B]) await stock.save(text)
  const fresh = openStock({ records: stock.records })
  const [packages] = fresh.sources
  if (packages === undefined) throw new Error('no source')
  const during: ItemSource = {
    kind: 'package',
    readItem: (name) => packages.readItem(name),
    async *recorded() {
      const parts = await Array.fromAsync(packages.recorded())
      await fresh.remove(A)
      await fresh.save(B, 'other bytes')
      await fresh.save(C)
      yield* parts
    },
  }
  await fresh.inventory.start([during], never)
  expect(fresh.inventory.all()).toEqual(await recordedItems(fresh.sources))
  expect(namesOf(fresh.inventory)).toEqual([full(B), full(C)])
})

it('a change that was begun before the comparison and ends in it is not undone by what was read', async () => {
  const stock = openStock()
  await stock.save(A)
  await stock.inventory.start(stock.sources, never)
  const [packages] = stock.sources
  if (packages === undefined) throw new Error('no source')
  const write = Promise.withResolvers<HeldItem | undefined>()
  const changing = stock.inventory.change(full(A), () => write.promise)
  const during: ItemSource = {
    kind: 'package',
    readItem: async () => undefined,
    async *recorded() {
      const parts = await Array.fromAsync(packages.recorded())
      write.resolve(undefined)
      await changing
      yield* parts
    },
  }
  await stock.inventory.start([during], never)
  expect(namesOf(stock.inventory)).toEqual([])
})

it('a journal that is no snapshot of ours is not believed', async () => {
  for (const entries of [[], [{ format: 2 }, { item: full(A) }], ['?'], [{ gone: full(A) }]]) {
    const journal = await new MemoryStateStore().journal('inventory')
    await journal.replace(entries)
    const stock = openStock({ journal })
    const heldBack = stock.sources.map((source) => new HeldBackSource(source))
    const started = stock.inventory.start(heldBack, never)
    await expect(stock.inventory.whenComplete(AbortSignal.timeout(20))).rejects.toThrow()
    for (const { go } of heldBack) go.resolve()
    await started
    expect(stock.inventory.isComplete).toBe(true)
  }
})

it('lines that make no sense are passed over', async () => {
  const journal = await new MemoryStateStore().journal('inventory')
  const before = openStock({ journal })
  await before.save(A)
  await before.inventory.start(before.sources, never)
  for (const line of [7, null, { item: full(B), digest: 'no digest', size: 1, cachedAt: 1 }, { evidence: ['x'] }]) {
    await journal.append(line)
  }
  await before.save(C)
  const after = openStock({ records: before.records, journal })
  void after.inventory.start(
    after.sources.map((source) => new HeldBackSource(source)),
    never,
  )
  await after.inventory.whenComplete(never)
  expect(namesOf(after.inventory)).toEqual([full(A), full(C)])
})

it('a record that could not be written leaves what is on the disk', async () => {
  const records = new MemoryRecordStore()
  const stock = openStock({ records })
  await stock.save(A)
  await stock.inventory.start(stock.sources, never)
  const put = records.put.bind(records)
  records.put = async () => {
    throw new Error('full')
  }
  await expect(stock.save(A, 'other bytes')).rejects.toThrow('full')
  await expect(stock.save(B)).rejects.toThrow('full')
  // Written, but its folder could not be synced.
  records.put = async (key, document) => {
    await put(key, document)
    throw new Error('sync')
  }
  await expect(stock.save(C)).rejects.toThrow('sync')
  expect(stock.inventory.all()).toEqual([itemOf(full(A), A), itemOf(full(C), C)])
  expect((await stock.catalogue.version(packageId(C).address, packageId(C).version)).archives.size).toBe(1)
})

it('a journal that cannot be written hinders nothing, and is told once', async () => {
  const lines: string[] = []
  const log = createLog({ level: 'warn', format: 'json' }, { write: (line) => lines.push(line) })
  const failure = async (): Promise<never> => {
    throw new Error('full')
  }
  const journal: Journal = {
    append: failure,
    replace: failure,
    async *read() {},
    [Symbol.asyncDispose]: async () => undefined,
  }
  const inventory = new Inventory({ log, journal })
  for (const text of [A, B, C]) await inventory.change(full(text), async () => itemOf(full(text)))
  await inventory.start([], never)
  expect(lines).toHaveLength(1)
})

it('a failure of the records is told, and no half inventory passes for a whole one', async () => {
  const stop = new AbortController()
  const inventory = new Inventory({ log: createLog({ level: 'silent', format: 'json' }, { write: () => undefined }) })
  const source: ItemSource = {
    kind: 'package',
    readItem: async () => undefined,
    // biome-ignore lint/correctness/useYield: it fails before
    async *recorded() {
      throw new Error('the disk')
    },
  }
  const started = inventory.start([source], stop.signal)
  await expect(inventory.whenComplete(AbortSignal.timeout(20))).rejects.toThrow()
  expect(inventory.isComplete).toBe(false)
  stop.abort()
  await started
  await inventory.close()
})

it('a snapshot is made anew before its changes outgrow it, also while records are being written', async () => {
  const state = new MemoryStateStore()
  const journal = await state.journal('inventory')
  let replaced = 0
  const counting: Journal = {
    append: (entry, durability) => journal.append(entry, durability),
    read: () => journal.read(),
    replace: async (entries) => {
      replaced += 1
      await journal.replace(entries)
    },
    [Symbol.asyncDispose]: () => journal[Symbol.asyncDispose](),
  }
  const inventory = new Inventory({
    log: createLog({ level: 'silent', format: 'json' }, { write: () => undefined }),
    journal: counting,
  })
  await inventory.start([], never)
  const pending = Promise.withResolvers<HeldItem | undefined>()
  const changing = inventory.change(full(B), () => pending.promise)
  replaced = 0
  for (let n = 0; replaced === 0 && n < 20_000; n += 1)
    await inventory.change(full(A), async () => itemOf(full(A), `${n}`))
  await inventory.close()
  const lines = await Array.fromAsync(journal.read())
  expect(lines.length).toBeLessThan(20)
  expect(lines).toContainEqual({ changing: full(B) })
  pending.resolve(undefined)
  await changing
}, 120_000)
