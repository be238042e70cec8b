import { randomBytes } from 'node:crypto'
import { access, chmod, open, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { BlobStore, OpenBlob } from '../../src/store/blob-store.ts'
import { CheckedBlobStore } from '../../src/store/checked-blob-store.ts'
import { DiskBlobStore } from '../../src/store/disk/disk-blob-store.ts'
import { DurableFolders } from '../../src/store/disk/durable-folders.ts'
import { makeTempFolder } from './temp-folder.ts'

const RECHECK_MS = 1000
let folder: Awaited<ReturnType<typeof makeTempFolder>>
let inner: DiskBlobStore
let store: CheckedBlobStore
let nowMs: number
let damaged: string[]

beforeEach(async () => {
  folder = await makeTempFolder()
  inner = new DiskBlobStore(new DurableFolders(folder.path))
  nowMs = 0
  damaged = []
  store = checked(inner)
})
afterEach(() => folder[Symbol.asyncDispose]())

function checked(blobs: BlobStore): CheckedBlobStore {
  return new CheckedBlobStore(blobs, {
    recheckAfterMs: RECHECK_MS,
    now: () => nowMs,
    onDamaged: (digest) => damaged.push(digest),
  })
}

const pathOf = (digest: string): string => join(folder.path, 'blobs', 'sha256', digest.slice(0, 2), digest)
const asideOf = (digest: string): string => join(folder.path, 'quarantine', digest)

/** Flips one bit in the middle; size and time stay. */
async function flipBit(digest: string): Promise<void> {
  const path = pathOf(digest)
  const before = await stat(path)
  await chmod(path, 0o644)
  const bytes = await readFile(path)
  const middle = bytes.length >> 1
  bytes.writeUInt8(bytes.readUInt8(middle) ^ 1, middle)
  await using handle = await open(path, 'r+')
  await handle.write(bytes, 0, bytes.length, 0)
  await utimes(path, before.atimeMs / 1000, before.mtimeMs / 1000)
}

async function isHeld(blobs: BlobStore, digest: string): Promise<boolean> {
  await using blob = await blobs.open(digest)
  return blob !== undefined
}

/** Counts the blobs that are opened and how many are open at a time. */
class CountingStore extends DiskBlobStore {
  opened = 0
  now = 0
  peak = 0

  override async open(digest: string): Promise<OpenBlob | undefined> {
    const blob = await super.open(digest)
    if (blob === undefined) return undefined
    this.opened += 1
    this.now += 1
    this.peak = Math.max(this.peak, this.now)
    const close = async (): Promise<void> => {
      this.now -= 1
      await blob[Symbol.asyncDispose]()
    }
    const read: OpenBlob['read'] = (buffer, position, length) => blob.read(buffer, position, length)
    return { digest, size: blob.size, read, [Symbol.asyncDispose]: close }
  }
}

test('a flipped bit is found at first use after start', async () => {
  const { digest } = await store.put(randomBytes(3_000_000))
  await flipBit(digest)
  expect(await isHeld(checked(inner), digest)).toBe(false)
  expect(damaged).toEqual([digest])
  await access(asideOf(digest))
  expect(await inner.stat(digest)).toBeUndefined()
})

test('a flipped bit with size and time kept is found when the check is too old', async () => {
  const { digest } = await store.put(randomBytes(5000))
  // utimes cannot keep nanoseconds: settle the fingerprint before the damage.
  await utimes(pathOf(digest), 1000, 1000)
  expect(await isHeld(store, digest)).toBe(true)
  await flipBit(digest)
  nowMs = RECHECK_MS - 1
  expect(await isHeld(store, digest)).toBe(true)
  nowMs = RECHECK_MS
  expect(await isHeld(store, digest)).toBe(false)
  expect(damaged).toEqual([digest])
})

test('a blob whose file was touched is checked at once', async () => {
  const bytes = randomBytes(5000)
  const { digest } = await store.put(bytes)
  await chmod(pathOf(digest), 0o644)
  await writeFile(pathOf(digest), randomBytes(5000))
  expect(await isHeld(store, digest)).toBe(false)
  await store.put(bytes)
  expect(await isHeld(store, digest)).toBe(true)
})

test.each([0, 10])('a blob cut to %i bytes is not held, is set aside, and comes back whole', async (size) => {
  const bytes = randomBytes(5000)
  const { digest } = await store.put(bytes)
  await chmod(pathOf(digest), 0o644)
  await truncate(pathOf(digest), size)
  expect(await store.stat(digest)).toBeUndefined()
  expect(await isHeld(store, digest)).toBe(false)
  expect((await stat(asideOf(digest))).size).toBe(size)
  await store.put(bytes)
  expect(await store.read(digest)).toEqual(bytes)
  expect(damaged).toEqual([digest])
})

test('a deleted blob is not held, and that is no damage', async () => {
  const { digest } = await store.put(randomBytes(5000))
  await rm(pathOf(digest))
  expect(await isHeld(store, digest)).toBe(false)
  expect(await store.read(digest)).toBeUndefined()
  expect(await store.localFile(digest)).toBeUndefined()
  expect(damaged).toEqual([])
})

test('the empty blob is a blob', async () => {
  const { digest } = await store.put(Buffer.alloc(0))
  expect(await checked(inner).stat(digest)).toMatchObject({ size: 0 })
  expect(await isHeld(checked(inner), digest)).toBe(true)
})

test('read and localFile give no damaged bytes', async () => {
  const first = await store.put(randomBytes(5000))
  const second = await store.put(randomBytes(5000))
  await flipBit(first.digest)
  await flipBit(second.digest)
  expect(await store.read(first.digest)).toBeUndefined()
  expect(await checked(inner).localFile(second.digest)).toBeUndefined()
  expect(damaged).toEqual([first.digest, second.digest])
})

test('a damaged copy that was held before does not pass as checked because the same bytes were put', async () => {
  const bytes = randomBytes(5000)
  const { digest } = await inner.put(bytes)
  await flipBit(digest)
  const fresh = checked(inner)
  await fresh.put(bytes)
  expect(await isHeld(fresh, digest)).toBe(false)
  await using incoming = await fresh.create()
  await incoming.append(bytes)
  await incoming.commit()
  expect(await fresh.read(digest)).toEqual(bytes)
})

test('what was committed is not hashed again, and one check serves all who open', async () => {
  const counting = new CountingStore(new DurableFolders(folder.path))
  const fresh = checked(counting)
  const { digest } = await fresh.put(randomBytes(3_000_000))
  await isHeld(fresh, digest)
  expect(counting.opened).toBe(1)
  const later = checked(counting)
  await Promise.all(Array.from({ length: 10 }, () => isHeld(later, digest)))
  expect(counting.opened).toBe(1 + 1 + 10)
})

test('at most two checks run at a time', async () => {
  const counting = new CountingStore(new DurableFolders(folder.path))
  const stats = await Promise.all(Array.from({ length: 6 }, () => inner.put(randomBytes(2_000_000))))
  const fresh = checked(counting)
  const files = await Promise.all(stats.map(({ digest }) => fresh.localFile(digest)))
  expect(files.every((file) => file !== undefined)).toBe(true)
  expect(counting.opened).toBe(6)
  expect(counting.peak).toBe(2)
})

test('a good copy that takes the place of a bad one during its check is not set aside', async () => {
  const bytes = randomBytes(2_000_000)
  const { digest } = await inner.put(bytes)
  await chmod(pathOf(digest), 0o644)
  await truncate(pathOf(digest), 1_500_000)
  let replaced = false
  class ReplacingStore extends DiskBlobStore {
    override async open(wanted: string): Promise<OpenBlob | undefined> {
      const blob = await super.open(wanted)
      if (!replaced) {
        replaced = true
        await inner.put(bytes)
      }
      return blob
    }
  }
  const fresh = checked(new ReplacingStore(new DurableFolders(folder.path)))
  expect(await isHeld(fresh, digest)).toBe(true)
  expect(damaged).toEqual([])
})

test('an I/O error is thrown and sets nothing aside', async () => {
  const { digest } = await inner.put(randomBytes(5000))
  class FailingStore extends DiskBlobStore {
    override async open(wanted: string): Promise<OpenBlob | undefined> {
      const blob = await super.open(wanted)
      // Reading a closed descriptor is the nearest thing to a broken disk.
      await blob?.[Symbol.asyncDispose]()
      return blob
    }
  }
  const failing = checked(new FailingStore(new DurableFolders(folder.path)))
  await expect(failing.open(digest)).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
  expect(await isHeld(store, digest)).toBe(true)
  expect(damaged).toEqual([])
})
