import { type Entry, openPromise } from 'yauzl'

/** Far above every known provider. */
const MAX_ENTRIES = 100_000
const MAX_UNPACKED_BYTES = 16_000_000_000
/** Deflate cannot do better than about 1030 to 1; a zip that claims more lies about its sizes. */
const MAX_RATIO = 1_100
const ENCRYPTED_FLAG = 1

/**
 * Why the zip at `path` must not reach a client on the word of a checksum alone: it is no zip, or unpacking it could
 * write outside its folder or fill a disk. Undefined if nothing speaks against it. Reads the central directory only,
 * whatever the size of the archive; never throws for a bad zip.
 *
 * Signed archives are not asked: their publisher vouches for them, and clients check them again.
 */
export async function findUnsafety(path: string): Promise<string | undefined> {
  try {
    const zip = await openPromise(path, { decodeStrings: false, strictFileNames: true })
    try {
      if (zip.entryCount > MAX_ENTRIES) return `it has more than ${MAX_ENTRIES} entries`
      const names = new Set<string>()
      let unpackedBytes = 0
      for await (const entry of zip.eachEntry()) {
        const name = entry.fileNameRaw.toString('latin1')
        if (names.has(name)) return `two entries have the name ${quote(name)}`
        names.add(name)
        unpackedBytes += entry.uncompressedSize
        if (unpackedBytes > MAX_UNPACKED_BYTES) return `it unpacks to more than ${MAX_UNPACKED_BYTES} bytes`
        const reason = findUnsafeEntry(entry, name)
        if (reason !== undefined) return `${reason}: ${quote(name)}`
      }
      return names.size === 0 ? 'it is empty' : undefined
    } finally {
      zip.close()
    }
  } catch (error) {
    return `it is not a readable zip: ${error instanceof Error ? error.message : String(error)}`.slice(0, 300)
  }
}

function findUnsafeEntry(entry: Entry, name: string): string | undefined {
  if (/^[/\\]|^[A-Za-z]:/.test(name)) return 'an entry has an absolute path'
  if (/[\\\0-\x1f]/.test(name)) return 'the name of an entry has backslashes or control characters'
  if (name.split('/').includes('..')) return 'an entry leaves the folder'
  if ((entry.generalPurposeBitFlag & ENCRYPTED_FLAG) !== 0) return 'an entry is encrypted'
  if (isSymbolicLink(entry)) return 'an entry is a symbolic link'
  if (entry.uncompressedSize > MAX_RATIO * Math.max(1_000, entry.compressedSize)) return 'an entry unpacks to far too much'
  return undefined
}

/** The upper half of the external attributes is the Unix mode, where a Unix system made the entry. */
function isSymbolicLink({ versionMadeBy, externalFileAttributes }: Entry): boolean {
  const madeOnUnix = versionMadeBy >> 8 === 3
  return madeOnUnix && ((externalFileAttributes >>> 16) & 0o170000) === 0o120000
}

function quote(name: string): string {
  return JSON.stringify(name.slice(0, 100))
}
