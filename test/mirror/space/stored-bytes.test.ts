import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { CountedBlobStore } from '../../../src/mirror/space/counted-blob-store.ts'
import { SpaceLedger } from '../../../src/mirror/space/space-ledger.ts'
import { DiskBlobStore } from '../../../src/store/disk/disk-blob-store.ts'
import { DurableFolders } from '../../../src/store/disk/durable-folders.ts'
import { makeTempFolder } from '../../store/temp-folder.ts'

let folder: Awaited<ReturnType<typeof makeTempFolder>>
let disk: DiskBlobStore
const signal = new AbortController().signal

beforeEach(async () => {
  folder = await makeTempFolder()
  disk = new DiskBlobStore(new DurableFolders(folder.path))
})
afterEach(() => folder[Symbol.asyncDispose]())

function count(blobs = disk): CountedBlobStore {
  const limits = { maxSize: undefined, minFree: undefined }
  const ledger = new SpaceLedger({
    limits,
    diskFree: async () => 1e12,
    shutdown: signal,
    onFailure: (error) => expect.fail(String(error)),
  })
  return new CountedBlobStore(blobs, ledger)
}

/** What the disk says, asked from outside. */
function measured(): number {
  const text = execFileSync('find', [join(folder.path, 'blobs'), '-type', 'f', '-printf', '%b\n']).toString()
  return text.split('\n').reduce((sum, blocks) => sum + Number(blocks) * 512, 0)
}

async function keep(store: CountedBlobStore, bytes: Buffer): Promise<string> {
  await using incoming = await store.create()
  await incoming.append(bytes)
  return (await incoming.commit()).digest
}

it('is what the disk says, to the byte, after blobs came, came again, were set aside and went', async () => {
  const before = await disk.put(randomBytes(5_000))
  const store = count()
  await store.stored.measure(signal)
  expect(store.stored.sum).toEqual({ blobs: 1, size: 5_000, diskBytes: measured() })
  const bytes = [1, 4_095, 4_097, 300_000, 2_000_000].map((size) => randomBytes(size))
  const digests = await Promise.all(bytes.map((each) => keep(store, each)))
  await Promise.all(bytes.map((each) => store.put(each)))
  expect(store.stored.sum).toMatchObject({ blobs: 6, size: 5_000 + 2_308_193, diskBytes: measured() })
  await Promise.all([store.delete(digests[3] ?? ''), store.delete(digests[3] ?? ''), store.setAside(before.digest)])
  await store.delete('0'.repeat(64))
  expect(store.stored.sum).toMatchObject({ blobs: 4, diskBytes: measured() })
})

it('counts what comes while it is added up once, whether it is met or not', async () => {
  for (let index = 0; index < 30; index++) await disk.put(randomBytes(10_000 + index))
  const store = count()
  const digests: string[] = []
  const measuring = store.stored.measure(signal)
  while (!store.stored.isMeasured) {
    digests.push(await keep(store, randomBytes(20_000)))
    if (digests.length % 3 === 0) await store.delete(digests.shift() ?? '')
  }
  await measuring
  expect(store.stored.sum.diskBytes).toBe(measured())
})

it('a commit that fails changes nothing, and its reservation is over with it', async () => {
  class Failing extends DiskBlobStore {
    override async create() {
      const incoming = await super.create()
      incoming.commit = async () => {
        throw new Error('disk error')
      }
      return incoming
    }
  }
  const store = count(new Failing(new DurableFolders(folder.path)))
  await store.stored.measure(signal)
  await expect(keep(store, randomBytes(500_000))).rejects.toThrow('disk error')
  expect(store.stored.sum).toEqual({ blobs: 0, size: 0, diskBytes: 0 })
})

it('what others did to the files is found at the next count of their part', async () => {
  const store = count()
  await store.stored.measure(signal)
  const digest = await keep(store, randomBytes(100_000))
  await keep(store, randomBytes(50_000))
  await rm(join(folder.path, 'blobs', 'sha256', digest.slice(0, 2), digest))
  for (let part = 0; part < 256; part++) await store.stored.remeasure()
  expect(store.stored.sum).toMatchObject({ blobs: 1, size: 50_000, diskBytes: measured() })
})

it('is not whole until everything is added up, and an abort ends it', async () => {
  const store = count()
  await store.stored.measure(AbortSignal.abort())
  expect(store.stored.isMeasured).toBe(false)
  await store.stored.measure(signal)
  expect(store.stored.isMeasured).toBe(true)
})
