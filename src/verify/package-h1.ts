import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import type { TransformOptions } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { crc32, createInflateRaw, type ZlibOptions } from 'node:zlib'
import { type Entry, openPromise, type ZipFile } from 'yauzl'
import { type PackageHash, parsePackageHash } from '../protocol/package-hash.ts'
import { hasHiddenEntries } from './hidden-entries.ts'

/** How much one zip may cost. */
export interface ZipLimits {
  readonly maxEntries: number
  /** Of all names together; they are what is kept in memory. */
  readonly maxNameBytes: number
  /** Of all contents together, unpacked. */
  readonly maxBytes: number
}

/** Far above every known provider. */
export const defaultZipLimits: ZipLimits = { maxEntries: 100_000, maxNameBytes: 16_000_000, maxBytes: 8_000_000_000 }

/** The `h1:` hashes of a zip; none, and a reason for the log, if they could not be had. */
export interface PackageHashes {
  readonly hashes: PackageHash[]
  readonly reason?: string
}

/** A zip, and the same file for its contents. */
interface Package {
  readonly zip: ZipFile
  readonly file: FileHandle
}

/** The digest of each entry's contents, by the raw bytes of its name read as Latin-1. */
type Contents = Map<string, { readonly sha256: string; readonly isDirectory: boolean }>

const READ_BYTES = 1024 * 1024
/** Some pieces are inflated while earlier ones are hashed. */
const INFLATE: ZlibOptions & TransformOptions = { chunkSize: 1024 * 1024, highWaterMark: 4 * 1024 * 1024 }
const STORED = 0
const DEFLATED = 8

/**
 * The `h1:` hashes of the zip at `path`, as Go's `golang.org/x/mod/sumdb/dirhash` computes them. A zip with directory
 * entries has two: over every entry (what a client compares a network mirror's `h1:` with), listed first, and over the
 * files only (what it writes to the lock file).
 *
 * Never throws: a zip that we refuse or cannot read has no `h1:` and stays served by its SHA-256. Stricter than the
 * clients on encrypted, duplicate and uncounted entries and on paths that are not clean; as strict on CRC-32, sizes and
 * newlines in names. Memory does not grow with the archive. The work is heavy: call it through `PackageHasher`.
 */
export async function hashPackageZip(path: string, limits: ZipLimits = defaultZipLimits): Promise<PackageHashes> {
  try {
    const contents = await readContents(path, limits)
    const everyEntry = hash1([...contents.keys()], contents)
    const filesOnly = hash1(
      [...contents].filter(([, { isDirectory }]) => !isDirectory).map(([name]) => name),
      contents,
    )
    return { hashes: [...new Set([everyEntry, filesOnly])] }
  } catch (error) {
    return { hashes: [], reason: `no h1: ${error instanceof Error ? error.message : String(error)}`.slice(0, 300) }
  }
}

async function readContents(path: string, limits: ZipLimits): Promise<Contents> {
  // Undecoded: Go hashes the raw bytes of a name, and decoding would turn `\` into `/` and CP437 into UTF-8.
  const zip = await openPromise(path, { decodeStrings: false })
  try {
    await using file = await open(path)
    if (zip.entryCount > limits.maxEntries) throw new Error(`more than ${limits.maxEntries} entries`)
    const contents: Contents = new Map()
    let nameBytes = 0
    let bytes = 0
    for await (const entry of zip.eachEntry()) {
      nameBytes += entry.fileNameRaw.length
      bytes += entry.uncompressedSize
      if (nameBytes > limits.maxNameBytes) throw new Error(`names of more than ${limits.maxNameBytes} bytes`)
      if (bytes > limits.maxBytes) throw new Error(`it unpacks to more than ${limits.maxBytes} bytes`)
      const name = entry.fileNameRaw.toString('latin1')
      if (contents.has(name)) throw new Error(`duplicate entry ${quote(name)}`)
      contents.set(name, { sha256: await hashEntry({ zip, file }, entry, name), isDirectory: name.endsWith('/') })
    }
    if (await hasHiddenEntries(zip, path)) throw new Error('more entries than it states')
    return contents
  } finally {
    zip.close()
  }
}

async function hashEntry(package_: Package, entry: Entry, name: string): Promise<string> {
  if (name.includes('\n')) throw new Error(`newline in the name ${quote(name)}`)
  // Unpacked it has another name, and the package another h1.
  if (!isClean(name)) throw new Error(`the path ${quote(name)} is not clean`)
  if (entry.isEncrypted()) throw new Error(`encrypted entry ${quote(name)}`)
  if (name.endsWith('/') && entry.uncompressedSize > 0) throw new Error(`directory with contents ${quote(name)}`)
  const hash = createHash('sha256')
  if (name.endsWith('/')) return hash.digest('hex')
  let size = 0
  let crc = 0
  await readEntry(package_, entry, (chunk) => {
    size += chunk.length
    // yauzl checks the size of what it inflates itself, and the CRC-32 of nothing; here we inflate.
    if (size > entry.uncompressedSize) throw new Error(`more contents than stated in ${quote(name)}`)
    crc = crc32(chunk, crc)
    hash.update(chunk)
  })
  if (size !== entry.uncompressedSize) throw new Error(`less contents than stated in ${quote(name)}`)
  if (crc !== entry.crc32) throw new Error(`wrong CRC-32 of ${quote(name)}`)
  return hash.digest('hex')
}

async function readEntry(package_: Package, entry: Entry, onChunk: (chunk: Buffer) => void): Promise<void> {
  const consume = async (source: AsyncIterable<Buffer>) => {
    for await (const chunk of source) onChunk(chunk)
  }
  const raw = readRaw(package_, entry)
  if (entry.compressionMethod === STORED) return pipeline(raw, consume)
  if (entry.compressionMethod === DEFLATED) {
    return pipeline(raw, createInflateRaw(INFLATE), consume)
  }
  throw new Error(`unsupported compression method ${entry.compressionMethod}`)
}

/** Reads large pieces, which makes the whole a third faster than with yauzl's own stream. Ends early where the file does. */
async function* readRaw({ zip, file }: Package, entry: Entry): AsyncGenerator<Buffer> {
  const { fileDataStart } = await zip.readLocalFileHeaderPromise(entry, { minimal: true })
  const end = fileDataStart + entry.compressedSize
  for (let position = fileDataStart; position < end; ) {
    const piece = Buffer.allocUnsafe(Math.min(READ_BYTES, end - position))
    const { bytesRead } = await file.read(piece, 0, piece.length, position)
    if (bytesRead === 0) return
    position += bytesRead
    yield piece.subarray(0, bytesRead)
  }
}

function isClean(name: string): boolean {
  const path = name.endsWith('/') ? name.slice(0, -1) : name
  return path.split('/').every((part) => part !== '' && part !== '.')
}

/** Latin-1 text sorts by code unit as its bytes do, which is Go's order. */
function hash1(names: string[], contents: Contents): PackageHash {
  const hash = createHash('sha256')
  for (const name of names.sort()) {
    hash.update(Buffer.from(`${contents.get(name)?.sha256}  ${name}\n`, 'latin1'))
  }
  const h1 = parsePackageHash(`h1:${hash.digest('base64')}`)
  if (h1 === undefined) throw new Error('a SHA-256 digest in base64 is always an h1 value')
  return h1
}

function quote(name: string): string {
  return JSON.stringify(name.slice(0, 100))
}
