import { type Entry, openPromise, type ZipFile } from 'yauzl'
import { hasHiddenEntries } from './hidden-entries.ts'

/** Far above every known provider. */
const MAX_ENTRIES = 100_000
const MAX_NAME_BYTES = 16_000_000
const MAX_UNPACKED_BYTES = 16_000_000_000
/** Programs shrink to a fifth. Up to a billion bytes fill no disk, however small they were packed. */
const MAX_RATIO = 100
const HARMLESS_BYTES = 1_000_000_000

const MADE_ON_UNIX = [3, 19]
const FILE_TYPE = 0o170000
const REGULAR = 0o100000
const DIRECTORY = 0o040000

/**
 * Why the zip at `path` must not reach a client on the word of a checksum alone: it is no zip, or unpacking it could
 * write outside its folder, make links, overwrite itself or fill a disk. Undefined if nothing speaks against it. Reads
 * the central directory only, as the clients do, whatever the size of the archive. Throws the system errors of a disk that
 * cannot be read, and nothing for a bad zip.
 *
 * Signed archives are not asked: their publisher vouches for them, and clients check them again.
 */
export async function findUnsafety(path: string): Promise<string | undefined> {
  try {
    // Undecoded: clients unpack to the raw bytes of a name.
    const zip = await openPromise(path, { decodeStrings: false })
    try {
      const reason = await findUnsafeContents(zip)
      if (reason !== undefined) return reason
      return (await hasHiddenEntries(zip, path)) ? 'it has more entries than it states' : undefined
    } finally {
      zip.close()
    }
  } catch (error) {
    // The disk failed, which says nothing about the zip.
    if (error instanceof Error && 'code' in error && /^E[A-Z0-9]+$/.test(String(error.code))) throw error
    return `it is not a readable zip: ${error instanceof Error ? error.message : String(error)}`.slice(0, 300)
  }
}

async function findUnsafeContents(zip: ZipFile): Promise<string | undefined> {
  if (zip.entryCount === 0) return 'it is empty'
  if (zip.entryCount > MAX_ENTRIES) return `it has more than ${MAX_ENTRIES} entries`
  const names = new Set<string>()
  let nameBytes = 0
  let packedBytes = 0
  let unpackedBytes = 0
  for await (const entry of zip.eachEntry()) {
    const name = entry.fileNameRaw.toString('latin1')
    const reason = names.has(name) ? 'two entries have one name' : findUnsafeEntry(entry, name)
    if (reason !== undefined) return `${reason}: ${JSON.stringify(name.slice(0, 100))}`
    names.add(name)
    nameBytes += name.length
    packedBytes += entry.compressedSize
    unpackedBytes += entry.uncompressedSize
    if (nameBytes > MAX_NAME_BYTES) return `it has names of more than ${MAX_NAME_BYTES} bytes`
    // Entries that share their bytes unpack to far more than a file of this size can hold.
    if (packedBytes > zip.fileSize) return 'its entries overlap'
  }
  if (unpackedBytes > MAX_UNPACKED_BYTES) return `it unpacks to more than ${MAX_UNPACKED_BYTES} bytes`
  if (unpackedBytes > Math.max(HARMLESS_BYTES, MAX_RATIO * zip.fileSize)) {
    return `it unpacks to more than ${MAX_RATIO} times its size`
  }
  return undefined
}

function findUnsafeEntry(entry: Entry, name: string): string | undefined {
  if (/^\/|^[A-Za-z]:/.test(name)) return 'an entry has an absolute path'
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\\\x00-\x1f\x7f]/.test(name)) return 'the name of an entry has backslashes or control characters'
  if (name === '' || name.split('/').includes('..')) return 'an entry leaves the folder'
  if (entry.isEncrypted()) return 'an entry is encrypted'
  if (isSpecialFile(entry)) return 'an entry is a link or a special file'
  return undefined
}

/** The upper half of the external attributes is the Unix mode, where Unix or macOS made the entry. */
function isSpecialFile({ versionMadeBy, externalFileAttributes }: Entry): boolean {
  const type = (externalFileAttributes >>> 16) & FILE_TYPE
  return MADE_ON_UNIX.includes(versionMadeBy >> 8) && ![0, REGULAR, DIRECTORY].includes(type)
}
