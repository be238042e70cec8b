import { expect, it } from 'vitest'
import { CacheSize } from '../../src/mirror/cache-size.ts'
import { MemoryBlobStore } from '../../src/store/memory/memory-blob-store.ts'

it('is unknown until everything is added up, and follows every change from then on', async () => {
  const blobs = new MemoryBlobStore()
  await blobs.put(Buffer.alloc(10, 'a'))
  await blobs.put(Buffer.alloc(5, 'b'))
  let told = 0
  const size = new CacheSize((bytes) => {
    told += bytes
  })
  size.add(100)
  expect(size.bytes).toBeUndefined()
  await size.measure(blobs, new AbortController().signal)
  expect(size.bytes).toBe(115)
  size.add(-15)
  expect([size.bytes, told]).toEqual([100, 100])
})

it('stays unknown when it is aborted', async () => {
  const blobs = new MemoryBlobStore()
  await blobs.put(Buffer.alloc(10))
  const size = new CacheSize(() => undefined)
  await size.measure(blobs, AbortSignal.abort())
  expect(size.bytes).toBeUndefined()
})
