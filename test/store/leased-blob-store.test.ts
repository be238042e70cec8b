import { randomBytes } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import { BlobLeases } from '../../src/store/blob-leases.ts'
import { sha256 } from '../../src/store/digest.ts'
import { LeasedBlobStore } from '../../src/store/leased-blob-store.ts'
import { MemoryBlobStore } from '../../src/store/memory/memory-blob-store.ts'

let leases: BlobLeases
let store: LeasedBlobStore
let released: number
const bytes = randomBytes(1_000)
const digest = sha256(bytes)

beforeEach(() => {
  leases = new BlobLeases()
  released = 0
  leases.onReleased = () => {
    released += 1
  }
  store = new LeasedBlobStore(new MemoryBlobStore(), leases)
})

test('a blob is leased as long as somebody has it open, and free when the last one closes it', async () => {
  await store.put(bytes)
  expect(leases.isLeased(digest)).toBe(false)
  const first = await store.open(digest)
  const second = await store.open(digest)
  await first?.[Symbol.asyncDispose]()
  await first?.[Symbol.asyncDispose]()
  expect(leases.isLeased(digest)).toBe(true)
  released = 0
  await second?.[Symbol.asyncDispose]()
  expect([leases.isLeased(digest), released]).toEqual([false, 1])
})

test('a local file leases its blob until it is disposed of', async () => {
  await store.put(bytes)
  await using file = await store.localFile(digest)
  expect([file === undefined, leases.isLeased(digest)]).toEqual([false, true])
  await file?.[Symbol.asyncDispose]()
  expect(leases.isLeased(digest)).toBe(false)
})

test('what is not held, and what cannot be opened, is not leased', async () => {
  await store.open(digest)
  await store.localFile(digest)
  await store.read(digest)
  expect(leases.isLeased(digest)).toBe(false)
  const inner = new MemoryBlobStore()
  inner.open = async () => {
    throw new Error('broken')
  }
  await new LeasedBlobStore(inner, leases).open(digest).catch(() => undefined)
  expect(leases.isLeased(digest)).toBe(false)
})

test('what was committed is leased until it is disposed of, and until the last one who follows has left', async () => {
  const incoming = await store.create()
  await incoming.append(bytes)
  const follower = incoming.follow()
  await incoming.commit()
  expect(leases.isLeased(digest)).toBe(true)
  await incoming[Symbol.asyncDispose]()
  await incoming[Symbol.asyncDispose]()
  expect(leases.isLeased(digest)).toBe(true)
  await follower[Symbol.asyncDispose]()
  await follower[Symbol.asyncDispose]()
  expect(leases.isLeased(digest)).toBe(false)
})

test('who has a claim keeps everybody out, and what is found after it is gone', async () => {
  await store.put(bytes)
  const claim = leases.claim(digest)
  expect(claim).toBeDefined()
  expect(leases.claim(digest)).toBeUndefined()
  const opened = store.open(digest)
  const put = store.put(bytes)
  await store.delete(digest)
  expect(leases.isLeased(digest)).toBe(false)
  claim?.[Symbol.dispose]()
  await put
  expect([await opened.then((blob) => blob?.size), (await store.stat(digest))?.size]).toContain(1_000)
})

test('nobody can claim what is leased', async () => {
  const lease = await leases.lease(digest)
  expect(leases.claim(digest)).toBeUndefined()
  lease[Symbol.dispose]()
  lease[Symbol.dispose]()
  expect(leases.claim(digest)).toBeDefined()
})

test('a lease that is asked for counts at once, before anybody waits for it', async () => {
  const lease = leases.lease(digest)
  expect(leases.claim(digest)).toBeUndefined()
  ;(await lease)[Symbol.dispose]()
})
