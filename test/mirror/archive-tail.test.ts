import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { MirrorError } from '../../src/errors.ts'
import { ArchiveTail, type ArrivingArchive } from '../../src/mirror/archive-tail.ts'
import type { BlobReader, IncomingBlob } from '../../src/store/blob-store.ts'
import { MemoryBlobStore } from '../../src/store/memory/memory-blob-store.ts'
import { failureOf, settle } from './parts-fixture.ts'

const HELD_BACK = 65_536
const MB = 1_000_000
const bytes = randomBytes(MB)
const digest = 'd'.repeat(64)
const archiveUrl = 'https://files.example.test/widget.zip?signature=secret'

let tail: ArchiveTail
let incoming: IncomingBlob
let openReaders: number

beforeEach(async () => {
  tail = new ArchiveTail()
  incoming = await new MemoryBlobStore().create()
  openReaders = 0
})

function begin(size: number | undefined): void {
  const counted: IncomingBlob = {
    expect: (bytes) => incoming.expect(bytes),
    ...{ append: (part) => incoming.append(part), restart: () => incoming.restart(), digest: () => incoming.digest() },
    ...{ commit: () => incoming.commit(), [Symbol.asyncDispose]: () => incoming[Symbol.asyncDispose]() },
    get size() {
      return incoming.size
    },
    follow: () => counting(incoming.follow()),
  }
  tail.begin({ incoming: counted, name: 'widget', archiveUrl, digest, size })
}

function counting(reader: BlobReader): BlobReader {
  openReaders += 1
  let open = true
  return {
    read: (buffer, position, length) => reader.read(buffer, position, length),
    async [Symbol.asyncDispose]() {
      if (open) openReaders -= 1
      open = false
      await reader[Symbol.asyncDispose]()
    },
  }
}

async function append(part: Buffer): Promise<void> {
  await incoming.append(part)
  tail.grow()
}

async function follow(options = { sized: false }): Promise<ArrivingArchive> {
  const archive = await tail.follow(options)
  if (archive === undefined) throw new Error('nothing to follow')
  return archive
}

async function readOnce(archive: ArrivingArchive, position = 0): Promise<Buffer> {
  const buffer = Buffer.alloc(2 * MB)
  return buffer.subarray(0, await archive.read(buffer, position, buffer.length))
}

async function readAll(archive: ArrivingArchive): Promise<Buffer> {
  const parts: Buffer[] = []
  for (let position = 0; ; ) {
    const part = await readOnce(archive, position)
    if (part.length === 0) return Buffer.concat(parts)
    parts.push(part)
    position += part.length
  }
}

/** What `work` has come to when everything that can run has run. */
async function stateOf(work: Promise<unknown>): Promise<'waits' | 'settled'> {
  let state: 'waits' | 'settled' = 'waits'
  const note = (): void => {
    state = 'settled'
  }
  work.then(note, note)
  await settle()
  return state
}

describe('a reader of a download', () => {
  it('gets nothing of the first 64 KB, then all but the last 64 KB, and the rest only on release', async () => {
    begin(MB)
    const following = follow()
    await append(bytes.subarray(0, HELD_BACK))
    expect(await stateOf(following)).toBe('waits')
    await append(bytes.subarray(HELD_BACK))
    const archive = await following
    const most = Buffer.concat([await readOnce(archive), await readOnce(archive, HELD_BACK)])
    expect(most.equals(bytes.subarray(0, MB - HELD_BACK))).toBe(true)
    const rest = readOnce(archive, most.length)
    expect(await stateOf(rest)).toBe('waits')
    tail.release(digest)
    expect((await rest).equals(bytes.subarray(MB - HELD_BACK))).toBe(true)
    expect(await readOnce(archive, MB)).toHaveLength(0)
  })

  it('may come late, or be slow, and gets everything from the first byte; the last to leave closes the file', async () => {
    begin(MB)
    await append(bytes.subarray(0, 300_000))
    const early = await follow()
    const reading = readAll(early)
    await append(bytes.subarray(300_000))
    const [late, slow] = [await follow(), await follow()]
    tail.release(digest)
    await incoming.commit()
    for (const read of [await reading, await readAll(late), await readAll(slow)]) expect(read.equals(bytes)).toBe(true)
    for (const archive of [early, late]) await archive[Symbol.asyncDispose]()
    expect(openReaders).toBe(1)
    await slow[Symbol.asyncDispose]()
    expect(openReaders).toBe(0)
  })

  it('is told of little growth after a moment', async () => {
    begin(MB)
    await append(bytes.subarray(0, 100_000))
    const archive = await follow()
    const next = readOnce(archive, 100_000 - HELD_BACK)
    await append(bytes.subarray(100_000, 100_001))
    expect(await next).toHaveLength(1)
  })

  it('that leaves while it waits is let go at once, and the others are not', async () => {
    begin(MB)
    await append(bytes.subarray(0, 300_000))
    const [leaving, staying] = [await follow(), await follow()]
    const waits = failureOf(readOnce(leaving, 300_000))
    const stays = readOnce(staying, 300_000 - HELD_BACK)
    await leaving[Symbol.asyncDispose]()
    await leaving[Symbol.asyncDispose]()
    expect(await waits).toMatchObject({ code: 'STORAGE_FAILED' })
    await append(bytes.subarray(300_000))
    expect((await stays).equals(bytes.subarray(300_000 - HELD_BACK, 300_000))).toBe(true)
    await staying[Symbol.asyncDispose]()
    tail.fail(new Error('over'))
    expect(openReaders).toBe(0)
  })

  it('that can take no archive without a length gets none', async () => {
    begin(undefined)
    await append(bytes)
    expect((await follow()).size).toBeUndefined()
    const sized = tail.follow({ sized: true })
    expect(await stateOf(sized)).toBe('waits')
    tail.release(digest)
    expect(await sized).toBeUndefined()
  })
})

describe('what was handed out and is void', () => {
  it.each<[string, (error: Error) => void]>([
    ['an attempt that came to nothing', (error) => tail.abandon(error)],
    ['a download that failed', (error) => tail.fail(error)],
  ])('tears off everybody who has read of %s, and closes the file, however slow they are', async (_, end) => {
    begin(MB)
    await append(bytes)
    const archive = await follow()
    const most = await readOnce(archive)
    const waits = failureOf(readOnce(archive, most.length))
    const error = new MirrorError('STORAGE_FULL', 'no space left', { operation: 'write' })
    end(error)
    expect(await waits).toBe(error)
    expect(await failureOf(readOnce(archive, 0))).toBe(error)
    expect(openReaders).toBe(0)
    await archive[Symbol.asyncDispose]()
  })

  it('is not mixed with the next attempt, which whoever comes after it gets whole', async () => {
    begin(MB)
    await append(Buffer.alloc(MB))
    const torn = await follow()
    await readOnce(torn)
    await incoming.restart()
    begin(MB)
    const waiting = follow()
    expect(await stateOf(waiting)).toBe('waits')
    await append(bytes)
    const error = await failureOf(readOnce(torn, 5))
    expect(error).toMatchObject({ code: 'UPSTREAM_INVALID', message: expect.stringContaining('anew') })
    expect(error.message).not.toContain('secret')
    tail.release(digest)
    expect((await readAll(await waiting)).equals(bytes)).toBe(true)
  })

  it.each([
    ['another digest was verified', MB, 'e'.repeat(64)],
    ['fewer bytes came than were announced', MB + 1, digest],
    ['more bytes came than were announced', MB - 1, digest],
  ])('if %s: the rest is never let go', async (_, size, verified) => {
    begin(size)
    await append(bytes)
    const archive = await follow()
    const most = await readOnce(archive)
    expect(most.length).toBe(Math.min(MB, size) - HELD_BACK)
    tail.release(verified)
    expect(await failureOf(readOnce(archive, most.length))).toMatchObject({ code: 'UPSTREAM_INVALID' })
    expect(await tail.follow({ sized: false })).toBeUndefined()
  })
})

it('whoever waits for the first bytes of a download that ends without any is told to look at its outcome', async () => {
  const waiting = tail.follow({ sized: false })
  expect(await stateOf(waiting)).toBe('waits')
  tail.fail(new Error('down'))
  expect(await waiting).toBeUndefined()
})
