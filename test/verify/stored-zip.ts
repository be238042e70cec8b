import { crc32 } from 'node:zlib'

const VERSION = 45
/** 1980-01-01, the first day of the format. */
const DATE = 0x21
const LOCAL = 0x04034b50
const CENTRAL = 0x02014b50

/**
 * Packs any number of small files without compression; yazl takes minutes for tens of thousands. The count is stated in
 * a zip64 record, or, if `statedCount` is given, falsely in the 16 bits of the old one.
 */
export function storedZip(files: Iterable<readonly [name: string, content: string]>, statedCount?: number): Buffer {
  const contents: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const [name, content] of files) {
    const [nameBytes, bytes] = [Buffer.from(name), Buffer.from(content)]
    // The part that both headers have.
    const fields = Buffer.alloc(26)
    fields.writeUInt16LE(VERSION, 0)
    fields.writeUInt16LE(DATE, 8)
    fields.writeUInt32LE(crc32(bytes), 10)
    fields.writeUInt32LE(bytes.length, 14)
    fields.writeUInt32LE(bytes.length, 18)
    fields.writeUInt16LE(nameBytes.length, 22)
    const tail = Buffer.alloc(14)
    tail.writeUInt32LE(offset, 10)
    directory.push(uint32(CENTRAL), Buffer.from([VERSION, 0]), fields, tail, nameBytes)
    const local = Buffer.concat([uint32(LOCAL), fields, nameBytes, bytes])
    contents.push(local)
    offset += local.length
  }
  const central = Buffer.concat(directory)
  const ends = endRecords({ count: directory.length / 5, size: central.length, offset, statedCount })
  return Buffer.concat([...contents, central, ends])
}

interface Directory {
  readonly count: number
  readonly size: number
  readonly offset: number
  readonly statedCount: number | undefined
}

function endRecords({ count, size, offset, statedCount }: Directory): Buffer {
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(statedCount ?? 0xffff, 8)
  end.writeUInt16LE(statedCount ?? 0xffff, 10)
  end.writeUInt32LE(size, 12)
  end.writeUInt32LE(statedCount === undefined ? 0xffffffff : offset, 16)
  if (statedCount !== undefined) return end
  const record = Buffer.alloc(56)
  record.writeUInt32LE(0x06064b50, 0)
  record.writeUInt32LE(44, 4)
  record.writeUInt16LE(VERSION, 12)
  record.writeUInt16LE(VERSION, 14)
  record.writeUInt32LE(count, 24)
  record.writeUInt32LE(count, 32)
  record.writeUInt32LE(size, 40)
  record.writeUInt32LE(offset, 48)
  const locator = Buffer.alloc(20)
  locator.writeUInt32LE(0x07064b50, 0)
  locator.writeUInt32LE(offset + size, 8)
  locator.writeUInt32LE(1, 16)
  return Buffer.concat([record, locator, end])
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
