import { createHash, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import type { BlobReader, BlobStat, BlobStore } from '../../src/store/blob-store.ts'

/** What the suite runs against: a store that is empty at first. */
export interface BlobStoreUnderTest extends AsyncDisposable {
  readonly store: BlobStore
}

const hex = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

async function all(blob: BlobReader): Promise<Buffer> {
  const parts: Buffer[] = []
  for (let position = 0; ; ) {
    const part = Buffer.alloc(70_000)
    const count = await blob.read(part, position, part.length)
    if (count === 0) return Buffer.concat(parts)
    parts.push(part.subarray(0, count))
    position += count
  }
}

async function listed(store: BlobStore, prefix?: string): Promise<BlobStat[]> {
  const found: BlobStat[] = []
  for await (const stat of store.list(prefix)) found.push(stat)
  return found
}

async function contentOf(store: BlobStore, digest: string): Promise<Buffer | undefined> {
  await using blob = await store.open(digest)
  return blob && (await all(blob))
}

/** The promises of `BlobStore`. */
export function blobStoreSuite(name: string, create: () => Promise<BlobStoreUnderTest>): void {
  describe(`${name} keeps the contract of BlobStore`, () => {
    for (const sizes of [
      [0],
      [1],
      [5, 0, 7],
      [1 << 20],
      [(1 << 20) - 1, 2, 1 << 20, 3],
      [3_500_000, 1, 65_536, 65_536],
    ]) {
      test(`bytes appended in pieces of ${sizes.join(', ')} come out as they went in`, async () => {
        await using under = await create()
        const { store } = under
        const bytes = randomBytes(sizes.reduce((sum, size) => sum + size, 0))
        await using incoming = await store.create()
        let start = 0
        for (const size of sizes) {
          // One buffer for all pieces: the store must not hold on to it.
          const piece = Buffer.from(bytes.subarray(start, start + size))
          await incoming.append(piece)
          piece.fill(0)
          start += size
          expect(incoming.size).toBe(start)
        }
        expect(incoming.digest()).toBe(hex(bytes))
        const stat = await incoming.commit()
        expect(stat).toMatchObject({ digest: hex(bytes), size: bytes.length })
        expect(await store.stat(stat.digest)).toEqual(stat)
        expect((await contentOf(store, stat.digest))?.equals(bytes)).toBe(true)
        expect((await store.read(stat.digest))?.equals(bytes)).toBe(true)
      })
    }

    test('nothing is visible before commit, and nothing is left after disposal without it', async () => {
      await using under = await create()
      const bytes = randomBytes(100)
      {
        await using incoming = await under.store.create()
        await incoming.append(bytes)
        expect(incoming.digest()).toBe(hex(bytes))
        expect(await under.store.stat(hex(bytes))).toBeUndefined()
        expect(await listed(under.store)).toEqual([])
      }
      expect(await under.store.open(hex(bytes))).toBeUndefined()
    })

    test('after restart only the new bytes count', async () => {
      await using under = await create()
      await using incoming = await under.store.create()
      await incoming.append(randomBytes(3_000_000))
      incoming.digest()
      await incoming.restart()
      expect(incoming.size).toBe(0)
      await incoming.append(Buffer.from('new'))
      const stat = await incoming.commit()
      expect(stat.digest).toBe(hex(Buffer.from('new')))
      expect(await under.store.read(stat.digest)).toEqual(Buffer.from('new'))
    })

    test('who follows reads every byte as soon as it is appended, from any position, and 0 where there is none yet', async () => {
      await using under = await create()
      const bytes = randomBytes(9_000_000)
      await using incoming = await under.store.create()
      await using early = incoming.follow()
      expect(await early.read(Buffer.alloc(10), 0, 10)).toBe(0)
      const heard: Buffer[] = []
      let position = 0
      // Larger and smaller than what a store may collect before it writes.
      for (let turn = 0, end = 0; end < bytes.length; turn += 1) {
        const start = end
        end = Math.min(bytes.length, start + ([65_536, 1, 3_000_000, 500_000][turn % 4] ?? 0))
        await incoming.append(bytes.subarray(start, end))
        for (;;) {
          const part = Buffer.alloc(256 * 1024)
          const count = await early.read(part, position, part.length)
          if (count === 0) break
          heard.push(part.subarray(0, count))
          position += count
        }
        expect(position).toBe(end)
      }
      expect(Buffer.concat(heard).equals(bytes)).toBe(true)
      await using late = incoming.follow()
      expect((await all(late)).equals(bytes)).toBe(true)
      const middle = Buffer.alloc(5)
      expect(await late.read(middle, 1_048_574, 99)).toBeGreaterThan(0)
      expect(middle.subarray(0, 2).equals(bytes.subarray(1_048_574, 1_048_576))).toBe(true)
    })

    test('who follows while bytes are on their way reads no others', async () => {
      await using under = await create()
      const bytes = randomBytes(6_000_000)
      await using incoming = await under.store.create()
      const readAll = async (): Promise<Buffer> => {
        await using follower = incoming.follow()
        const whole = Buffer.alloc(bytes.length)
        for (let position = 0; position < bytes.length; ) {
          const count = await follower.read(whole.subarray(position), position, 100_000)
          if (count === 0) await new Promise((resolve) => setImmediate(resolve))
          position += count
        }
        return whole
      }
      const followers = Array.from({ length: 4 }, readAll)
      for (let start = 0; start < bytes.length; start += 70_000) {
        await incoming.append(bytes.subarray(start, start + 70_000))
        if (start % 5 === 0) await new Promise((resolve) => setImmediate(resolve))
      }
      for (const read of await Promise.all(followers)) expect(read.equals(bytes)).toBe(true)
    })

    test('who followed before a restart reads only old bytes, who follows after it only new ones', async () => {
      await using under = await create()
      const [old, fresh] = [randomBytes(2_500_000), randomBytes(2_500_000)]
      await using incoming = await under.store.create()
      await incoming.append(old)
      await using before = incoming.follow()
      await incoming.restart()
      await incoming.append(fresh)
      await using after = incoming.follow()
      const seen = await all(before)
      expect(seen.equals(old.subarray(0, seen.length))).toBe(true)
      expect((await all(after)).equals(fresh)).toBe(true)
    })

    test('who follows can read on after commit and after disposal, and must close', async () => {
      await using under = await create()
      const bytes = randomBytes(1_300_000)
      const incoming = await under.store.create()
      await incoming.append(bytes)
      const follower = incoming.follow()
      const { digest } = await incoming.commit()
      expect(() => incoming.follow()).toThrow(expect.objectContaining({ code: 'STORAGE_FAILED' }))
      await incoming[Symbol.asyncDispose]()
      expect((await all(follower)).equals(bytes)).toBe(true)
      await under.store.delete(digest)
      expect((await all(follower)).equals(bytes)).toBe(true)
      await follower[Symbol.asyncDispose]()
      await follower[Symbol.asyncDispose]()
      await expect(follower.read(Buffer.alloc(1), 0, 1)).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
    })

    test('append after digest, commit or disposal is refused', async () => {
      await using under = await create()
      await using incoming = await under.store.create()
      incoming.digest()
      await expect(incoming.append(Buffer.from('x'))).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
      const stat = await incoming.commit()
      expect(await incoming.commit()).toEqual(stat)
      await expect(incoming.restart()).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
      const other = await under.store.create()
      await other[Symbol.asyncDispose]()
      await other[Symbol.asyncDispose]()
      await expect(other.append(Buffer.from('x'))).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
      await expect(other.commit()).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
    })

    test('equal bytes are one blob, also when they come at the same time', async () => {
      await using under = await create()
      const bytes = randomBytes(10_000)
      const stats = await Promise.all(Array.from({ length: 5 }, () => under.store.put(bytes)))
      await using incoming = await under.store.create()
      await incoming.append(bytes)
      await incoming.commit()
      expect(new Set(stats.map((stat) => stat.digest))).toEqual(new Set([hex(bytes)]))
      expect((await listed(under.store)).map(({ digest, size }) => ({ digest, size }))).toEqual([
        { digest: hex(bytes), size: 10_000 },
      ])
    })

    test('a held blob is not touched by a second put', async () => {
      await using under = await create()
      const first = await under.store.put(Buffer.from('same'))
      expect(await under.store.put(Buffer.from('same'))).toEqual(first)
    })

    test('reads any part, 0 at the end, and never beyond the buffer', async () => {
      await using under = await create()
      const { digest } = await under.store.put(Buffer.from('0123456789'))
      await using blob = await under.store.open(digest)
      expect(blob).toMatchObject({ digest, size: 10 })
      const buffer = Buffer.alloc(4, '.')
      expect(await blob?.read(buffer, 8, 4)).toBe(2)
      expect(buffer.toString()).toBe('89..')
      expect(await blob?.read(buffer, 2, 100)).toBe(4)
      expect(buffer.toString()).toBe('2345')
      expect(await blob?.read(buffer, 10, 4)).toBe(0)
      expect(await blob?.read(buffer, 99, 4)).toBe(0)
    })

    test('an open blob is closed once, and a read after that is an error', async () => {
      await using under = await create()
      const { digest } = await under.store.put(Buffer.from('x'))
      const blob = await under.store.open(digest)
      await blob?.[Symbol.asyncDispose]()
      await blob?.[Symbol.asyncDispose]()
      await expect(blob?.read(Buffer.alloc(1), 0, 1)).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
    })

    test('an open blob stays readable when it is deleted', async () => {
      await using under = await create()
      const { digest } = await under.store.put(Buffer.from('going'))
      await using blob = await under.store.open(digest)
      await under.store.delete(digest)
      expect(await under.store.open(digest)).toBeUndefined()
      expect(blob && (await all(blob)).toString()).toBe('going')
    })

    test('what is not held is undefined, and deleting it or setting it aside is fine', async () => {
      await using under = await create()
      for (const digest of ['0'.repeat(64), '../../../etc/passwd', '', 'A'.repeat(64), `${'0'.repeat(63)}/`]) {
        expect(await under.store.stat(digest)).toBeUndefined()
        expect(await under.store.open(digest)).toBeUndefined()
        expect(await under.store.read(digest)).toBeUndefined()
        expect(await under.store.localFile(digest)).toBeUndefined()
        await under.store.delete(digest)
        await under.store.setAside(digest)
      }
    })

    test('a blob that is set aside is not held, can come back, and can be set aside again', async () => {
      await using under = await create()
      const { digest } = await under.store.put(Buffer.from('bad'))
      for (let round = 0; round < 2; round += 1) {
        await under.store.setAside(digest)
        expect(await under.store.stat(digest)).toBeUndefined()
        expect(await listed(under.store)).toEqual([])
        await under.store.put(Buffer.from('bad'))
        expect(await under.store.read(digest)).toEqual(Buffer.from('bad'))
      }
    })

    test('localFile gives a path with the bytes', async () => {
      await using under = await create()
      const bytes = randomBytes(5000)
      const { digest } = await under.store.put(bytes)
      await using file = await under.store.localFile(digest)
      expect(file && (await readFile(file.path)).equals(bytes)).toBe(true)
    })

    test('lists every blob once', async () => {
      await using under = await create()
      const put = await Promise.all(Array.from({ length: 40 }, (_, i) => under.store.put(Buffer.from(`blob ${i}`))))
      const byDigest = (a: BlobStat, b: BlobStat): number => a.digest.localeCompare(b.digest)
      expect((await listed(under.store)).sort(byDigest)).toEqual(put.sort(byDigest))
    })

    test('lists those whose digest begins with a prefix, of any length', async () => {
      await using under = await create()
      const put = await Promise.all(Array.from({ length: 40 }, (_, i) => under.store.put(Buffer.from(`blob ${i}`))))
      const whole = put[0]?.digest ?? ''
      for (const length of [0, 1, 2, 3, 64]) {
        const prefix = whole.slice(0, length)
        const found = (await listed(under.store, prefix)).map(({ digest }) => digest)
        const expected = put.map(({ digest }) => digest).filter((digest) => digest.startsWith(prefix))
        expect(found.sort()).toEqual(expected.sort())
      }
    })

    test('tells what a blob takes of the disk, the same each time', async () => {
      await using under = await create()
      const put = await under.store.put(randomBytes(100_000))
      expect(put.diskBytes).toBeGreaterThanOrEqual(100_000)
      expect((await listed(under.store))[0]).toEqual(put)
    })
  })
}
