import type { FileHandle } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { Spool, writeAll } from '../../../src/upstream/module-source/archive/spool.ts'

const TEXT = 'a text that is longer than what the disk takes at one go'

/** A file on a disk that is nearly full: each write takes a part of what it is given. */
class NearlyFullFile {
  bytes = Buffer.alloc(0)
  writes = 0

  async write(bytes: Uint8Array, from: number, length: number, position: number): Promise<{ bytesWritten: number }> {
    this.writes += 1
    const bytesWritten = Math.min(length, 7)
    const end = Math.max(this.bytes.length, position + bytesWritten)
    const grown = Buffer.alloc(end)
    grown.set(this.bytes)
    grown.set(bytes.subarray(from, from + bytesWritten), position)
    this.bytes = grown
    return { bytesWritten }
  }

  get handle(): FileHandle {
    return this as unknown as FileHandle
  }
}

describe('on a disk that takes a part of a write', () => {
  it('writeAll writes the rest behind it, where it belongs', async () => {
    const file = new NearlyFullFile()
    await writeAll(file.handle, Buffer.from(TEXT), 0)
    await writeAll(file.handle, Buffer.from(TEXT), TEXT.length)
    expect([file.bytes.toString(), file.writes]).toEqual([TEXT + TEXT, 2 * Math.ceil(TEXT.length / 7)])
  })

  it('a spool has every file whole, each where it says', async () => {
    const file = new NearlyFullFile()
    const spool = new Spool(file.handle, { limits: { unpackedBytes: 1_000, files: 2 }, packedBytes: 1_000 })
    const content = async function* () {
      yield Buffer.from(TEXT.slice(0, 30))
      yield Buffer.from(TEXT.slice(30))
    }
    for (const offset of [0, TEXT.length]) {
      expect(await spool.add(content())).toEqual({ offset, size: TEXT.length })
      expect(file.bytes.subarray(offset).toString()).toBe(TEXT)
    }
  })
})
