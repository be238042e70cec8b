import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { sha256 } from '../../src/store/digest.ts'
import { DiskBlobStore } from '../../src/store/disk/disk-blob-store.ts'
import { DurableFolders } from '../../src/store/disk/durable-folders.ts'
import { makeTempFolder } from './temp-folder.ts'

let folder: Awaited<ReturnType<typeof makeTempFolder>>
let store: DiskBlobStore

beforeEach(async () => {
  folder = await makeTempFolder()
  store = new DiskBlobStore(new DurableFolders(folder.path))
})
afterEach(() => folder[Symbol.asyncDispose]())

const pathOf = (digest: string): string => join(folder.path, 'blobs', 'sha256', digest.slice(0, 2), digest)

test('a blob is a read-only file named after its content', async () => {
  const { digest } = await store.put(Buffer.from('hello'))
  expect(await readFile(pathOf(digest), 'utf8')).toBe('hello')
  expect((await stat(pathOf(digest))).mode & 0o777).toBe(0o444)
  expect(await readdir(join(folder.path, 'tmp'))).toEqual([])
})

test('a held copy of the wrong size is replaced, one of the right size stays', async () => {
  const bytes = randomBytes(1000)
  const { digest } = await store.put(bytes)
  await chmod(pathOf(digest), 0o644)
  await truncate(pathOf(digest), 10)
  await store.put(bytes)
  expect((await readFile(pathOf(digest))).equals(bytes)).toBe(true)
  const before = await stat(pathOf(digest))
  await using incoming = await store.create()
  await incoming.append(bytes)
  await incoming.commit()
  expect((await stat(pathOf(digest))).ino).toBe(before.ino)
  expect(await readdir(join(folder.path, 'tmp'))).toEqual([])
})

test('read gives no damaged bytes', async () => {
  const { digest } = await store.put(Buffer.from('hello'))
  await chmod(pathOf(digest), 0o644)
  await writeFile(pathOf(digest), 'hellx')
  expect(await store.read(digest)).toBeUndefined()
  await truncate(pathOf(digest), 0)
  expect(await store.read(digest)).toBeUndefined()
})

test('the fingerprint changes when the file is touched', async () => {
  const { digest, fingerprint } = await store.put(Buffer.from('hello'))
  await chmod(pathOf(digest), 0o644)
  expect((await store.stat(digest))?.fingerprint).toBe(fingerprint)
  await writeFile(pathOf(digest), 'hellx')
  expect((await store.stat(digest))?.fingerprint).not.toBe(fingerprint)
})

test('setting aside keeps the bytes in quarantine, over an older one', async () => {
  const { digest } = await store.put(Buffer.from('bad'))
  await store.setAside(digest)
  await store.put(Buffer.from('bad'))
  await store.setAside(digest)
  expect(await readFile(join(folder.path, 'quarantine', digest), 'utf8')).toBe('bad')
})

test('what is no blob is not listed', async () => {
  const { digest } = await store.put(Buffer.from('blob'))
  const other = sha256(Buffer.from('elsewhere'))
  await mkdir(join(folder.path, 'blobs', 'sha256', 'zz'), { recursive: true })
  await writeFile(join(folder.path, 'blobs', 'sha256', 'zz', other), 'elsewhere')
  await writeFile(join(folder.path, 'blobs', 'sha256', 'README'), '')
  await writeFile(`${pathOf(digest)}.rsync`, '')
  await mkdir(pathOf(digest).replace(/.$/, digest.endsWith('0') ? '1' : '0'))
  const found: string[] = []
  for await (const blob of store.list()) found.push(blob.digest)
  expect(found).toEqual([digest])
})

test('folders that are removed behind our back are made again', async () => {
  const { digest } = await store.put(Buffer.from('one'))
  await rm(join(folder.path, 'blobs'), { recursive: true })
  await rm(join(folder.path, 'tmp'), { recursive: true })
  await store.put(Buffer.from('one'))
  expect(await store.read(digest)).toEqual(Buffer.from('one'))
})

test('a store that cannot be read says which operation and path failed', async () => {
  await mkdir(join(folder.path, 'blobs'))
  await writeFile(join(folder.path, 'blobs', 'sha256'), 'a file in the way')
  await expect(store.put(Buffer.from('x'))).rejects.toMatchObject({
    code: 'STORAGE_FAILED',
    message: expect.stringContaining(folder.path),
  })
  expect(await readdir(join(folder.path, 'tmp'))).toEqual([])
})

test('200 rounds leave no file descriptor open', async () => {
  const held = await store.put(Buffer.from('held'))
  const open = (): number => readdirSync('/proc/self/fd').length
  const before = open()
  for (let round = 0; round < 200; round += 1) {
    await using incoming = await store.create()
    await incoming.append(Buffer.from(`round ${round % 10}`))
    await using follower = incoming.follow()
    await follower.read(Buffer.alloc(4), 0, 4)
    if (round % 7 === 0) await incoming.restart()
    if (round % 2 === 0) await incoming.commit()
    await using blob = await store.open(held.digest)
    await blob?.read(Buffer.alloc(4), 0, 4)
    await store.read(held.digest)
    await store.open('0'.repeat(64))
  }
  expect(open()).toBeLessThanOrEqual(before + 2)
  expect(await readdir(join(folder.path, 'tmp'))).toEqual([])
})

test('memory stays flat while 300 MB come in', async () => {
  const piece = randomBytes(64 * 1024)
  await using incoming = await store.create()
  for (let i = 0; i < 160; i += 1) await incoming.append(piece)
  const before = process.memoryUsage().rss
  let peak = before
  for (let i = 0; i < 4800; i += 1) {
    await incoming.append(piece)
    if (i % 100 === 0) peak = Math.max(peak, process.memoryUsage().rss)
  }
  expect(incoming.size).toBe(4960 * piece.length)
  expect((peak - before) / 1e6).toBeLessThan(30)
})
