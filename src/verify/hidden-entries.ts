import { open } from 'node:fs/promises'
import type { ZipFile } from 'yauzl'

const ENTRY_SIGNATURE = 0x02014b50

/**
 * True if `zip`, opened from `path` and read to its last entry, has more entries than it states. Go, and so every
 * client, takes the stated count modulo 65536 and reads on while there are entries; it would see what we did not.
 */
export async function hasHiddenEntries(zip: ZipFile, path: string): Promise<boolean> {
  await using file = await open(path)
  // The declaration says boolean; it is the offset behind the last entry that was read.
  const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, Number(zip.readEntryCursor))
  return bytesRead === 4 && buffer.readUInt32LE() === ENTRY_SIGNATURE
}
