import { beforeEach, describe, expect, it } from 'vitest'
import type { SpaceObserver } from '../../../src/mirror/observer.ts'
import { PinnedSets } from '../../../src/mirror/pins/pinned-sets.ts'
import { Evictor } from '../../../src/mirror/space/evictor.ts'
import { OrphanSweep } from '../../../src/mirror/space/orphan-sweep.ts'
import { ItemRemoval } from '../../../src/mirror/stock/item-removal.ts'
import { BlobLeases } from '../../../src/store/blob-leases.ts'
import { LeasedBlobStore } from '../../../src/store/leased-blob-store.ts'
import { MemoryBlobStore } from '../../../src/store/memory/memory-blob-store.ts'
import { MemoryRecordStore } from '../../../src/store/memory/memory-record-store.ts'
import { recordingLog, settle } from '../parts-fixture.ts'
import { digestOf, moduleId, never, openStock, packageId, releaseRecord } from '../stock/stock-fixture.ts'

const A = 'acme/a 1.0.0 linux_amd64'
const B = 'acme/b 1.0.0 linux_amd64'
const C = 'acme/c 1.0.0 linux_amd64'
const M = 'acme/vpc/aws 1.0.0'
const full = (text: string): string => `registry.example.test/${text}`

let stock: ReturnType<typeof openStock>
let leases: BlobLeases
let blobs: LeasedBlobStore
let pins: PinnedSets
let removal: ItemRemoval
let times: Map<string, number>
let usageLoaded: boolean
type Eviction = Parameters<SpaceObserver['evicted']>[0]

let evicted: string[]
let evictor: Evictor
let lines: Record<string, unknown>[]

beforeEach(async () => {
  stock = openStock()
  leases = new BlobLeases()
  blobs = new LeasedBlobStore(new MemoryBlobStore(), leases)
  const { log, lines: logged } = recordingLog()
  lines = logged
  pins = await PinnedSets.open({ records: new MemoryRecordStore(), now: Date.now, log })
  removal = new ItemRemoval({ ...stock, blobs })
  times = new Map()
  usageLoaded = true
  evicted = []
  const observer = { evicted: ({ reason, bytes }: Eviction) => void evicted.push(`${reason} ${bytes}`) }
  const { inventory } = stock
  const orphans = new OrphanSweep({ inventory, blobs, leases, observer, log })
  evictor = new Evictor({
    ...{ inventory, pins, orphans, leases, observer, log, shutdown: never },
    removal: { remove: (item) => removal.remove(item) },
    usage: {
      get isLoaded() {
        return usageLoaded
      },
      of: (name) => ({ lastUsedAt: times.get(name) }),
    },
  })
})

async function start(): Promise<void> {
  await stock.inventory.start(stock.sources, never)
  await settle()
}

async function hold(text: string, { content = text, usedAt }: { content?: string; usedAt?: number } = {}) {
  await blobs.put(Buffer.from(content))
  await stock.save(text, content)
  if (usedAt !== undefined) times.set(full(text), usedAt)
}

async function held(): Promise<string[]> {
  const found: string[] = []
  for (const text of [A, B, C, M]) if ((await blobs.stat(digestOf(text))) !== undefined) found.push(text)
  return found
}

const urgently = () => evictor.evict({ urgent: true })

describe('what goes', () => {
  it('is what was not used for the longest time; what was never used counts from when it came', async () => {
    await start()
    // All came at one moment, long before the uses of A and B.
    await hold(A, { usedAt: Date.now() })
    await hold(B, { usedAt: Date.now() - 1_000 })
    await hold(C)
    expect(await urgently()).toMatchObject({ freed: C.length })
    expect(await urgently()).toMatchObject({ freed: B.length })
    expect(await held()).toEqual([A])
    expect(evicted).toEqual([`unused ${C.length}`, `unused ${B.length}`])
  })

  it('is not what was used after it was chosen', async () => {
    await start()
    for (const text of [A, B, C]) await hold(text)
    times.set(full(B), Date.now())
    await urgently()
    times.set(full(C), Date.now() + 1)
    await urgently()
    expect(await held()).toEqual([C])
  })

  it('is never what a set of pins holds, and the answer says how much that is', async () => {
    await start()
    for (const text of [A, B]) await hold(text)
    await pins.put('ci', [full('acme/a 1.0.0')])
    expect(await urgently()).toMatchObject({ freed: B.length })
    expect(await urgently()).toEqual({ freed: 0, mayFreeMore: false, pinned: A.length })
    expect(await held()).toEqual([A])
  })

  it('is not what was pinned after it was chosen', async () => {
    await start()
    for (const text of [A, B]) await hold(text)
    await urgently()
    const [left] = await held()
    await pins.put('late', [full(left ?? '')])
    expect(await urgently()).toMatchObject({ freed: 0 })
  })

  it('is never what somebody reads, and it goes when the last one has read it', async () => {
    await start()
    await hold(A)
    const open = await blobs.open(digestOf(A))
    expect(await urgently()).toMatchObject({ freed: 0, mayFreeMore: true })
    await open?.[Symbol.asyncDispose]()
    await expect.poll(() => urgently()).toMatchObject({ freed: A.length })
  })

  it('is never what is on its way to its record', async () => {
    await start()
    await hold(A)
    const claim = await stock.inventory.claims.claim([digestOf(A)])
    expect(await urgently()).toMatchObject({ freed: 0, mayFreeMore: true })
    claim[Symbol.dispose]()
    await expect.poll(() => urgently()).toMatchObject({ freed: A.length })
  })

  it('whoever opens a blob that is just going waits, and finds nothing', async () => {
    await start()
    await hold(A)
    const gate = Promise.withResolvers<void>()
    const remove = removal.remove.bind(removal)
    removal.remove = async (item) => {
      await gate.promise
      return remove(item)
    }
    const going = urgently()
    await settle()
    let opened: unknown = 'waits'
    const opening = blobs.open(digestOf(A)).then((blob) => {
      opened = blob
    })
    await settle()
    expect(opened).toBe('waits')
    gate.resolve()
    expect(await going).toMatchObject({ freed: A.length })
    await opening
    expect(opened).toBeUndefined()
  })

  it('a blob of several items goes once, with all of them, as old as the youngest; one pin holds it', async () => {
    await start()
    await hold(A, { content: 'same', usedAt: 1 })
    await hold(B, { content: 'same', usedAt: 100 })
    await hold(C, { usedAt: 50 })
    expect(await urgently()).toMatchObject({ freed: C.length })
    await pins.put('one', [full(A)])
    expect(await urgently()).toMatchObject({ freed: 0, pinned: 4 })
    await pins.delete('one')
    await expect.poll(() => urgently()).toMatchObject({ freed: 4 })
    expect(stock.inventory.count('package')).toBe(0)
    expect(evicted).toEqual([`unused ${C.length}`, 'unused 4'])
  })

  it('is an archive, not its evidence: release and pin stay', async () => {
    await start()
    const { address, version } = packageId(A)
    await blobs.put(Buffer.from('sums'))
    await stock.catalogue.saveRelease(address, releaseRecord(A, 'sums'))
    await stock.catalogue.savePin(address, version, { format: 1, generation: 1, pinnedAt: 'then' })
    await hold(A)
    await urgently()
    await evictor.evict({ urgent: false })
    expect(await blobs.read(digestOf('sums'))).toEqual(Buffer.from('sums'))
    const left = await stock.catalogue.version(address, version)
    expect([left.archives.size, left.release?.generation, left.pin?.pinnedAt]).toEqual([0, 1, 'then'])
  })

  it('a module goes with its earlier states, and what it was is remembered', async () => {
    await start()
    for (const content of [M, 'before']) await blobs.put(Buffer.from(content))
    await stock.saveModule(M, M, ['before'])
    expect(await urgently()).toMatchObject({ freed: M.length + 'before'.length })
    const { address, version } = moduleId(M)
    expect(await stock.modules.find(address, version)).toBeUndefined()
    expect((await stock.modules.recall(address, version))?.state.tarDigest).toBe(digestOf(`tar ${M}`))
  })

  it('what cannot be removed is told, and the next one goes', async () => {
    await start()
    await hold(A, { usedAt: 1 })
    await hold(B, { usedAt: 2 })
    const remove = removal.remove.bind(removal)
    removal.remove = async (item) => {
      if (item.name === full(A)) throw new Error('no right to do so')
      return remove(item)
    }
    expect(await urgently()).toMatchObject({ freed: B.length })
    expect(lines).toContainEqual(expect.objectContaining({ level: 'warn', items: [full(A)] }))
  })

  it('is nothing while it is not known what is held, and when it was used', async () => {
    await hold(A)
    expect(await urgently()).toEqual({ freed: 0, mayFreeMore: true, pinned: 0 })
    await start()
    usageLoaded = false
    expect(await urgently()).toEqual({ freed: 0, mayFreeMore: true, pinned: 0 })
    usageLoaded = true
    expect(await urgently()).toMatchObject({ freed: A.length })
  })
})

describe('orphans', () => {
  it('go before everything else in the background, and not at the cost of whoever waits', async () => {
    await start()
    await hold(A)
    await blobs.put(Buffer.from('nobody names me'))
    expect(await urgently()).toMatchObject({ freed: A.length })
    await hold(A)
    expect(await evictor.evict({ urgent: false })).toMatchObject({ freed: 'nobody names me'.length })
    expect(await held()).toEqual([A])
    expect(evicted).toContain('orphan 15')
  })

  it('are not what is on its way to its record, what is read, and what became evidence meanwhile', async () => {
    await start()
    for (const content of ['coming', 'read', 'sums']) await blobs.put(Buffer.from(content))
    using _claim = await stock.inventory.claims.claim([digestOf('coming')])
    await using open = await blobs.open(digestOf('read'))
    await stock.catalogue.saveRelease(packageId(A).address, releaseRecord(A, 'sums'))
    expect(await evictor.evict({ urgent: false })).toMatchObject({ freed: 0 })
    for (const content of ['coming', 'read', 'sums']) expect(await blobs.stat(digestOf(content))).toBeDefined()
    expect(open?.size).toBe(4)
  })

  it('are not looked for before all records are known', async () => {
    await blobs.put(Buffer.from('perhaps evidence'))
    await evictor.evict({ urgent: false })
    expect(await blobs.stat(digestOf('perhaps evidence'))).toBeDefined()
    await start()
    await evictor.evict({ urgent: false })
    expect(await blobs.stat(digestOf('perhaps evidence'))).toBeUndefined()
  })
})
