import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { extract as createExtract } from 'tar-stream'
import type { BlobReader } from '../../store/blob-store.ts'

/** A larger file is no configuration that anybody wrote. Bytes. */
const MAX_FILE_BYTES = 1_000_000
/** Of all configuration files together. */
const MAX_TOTAL_BYTES = 32_000_000
const MAX_FILES = 5_000
/** Of everything in the archive, which has to be unpacked to be read. */
const MAX_UNPACKED_BYTES = 1_000_000_000
const HEADER_BYTES = 512
const READ_BYTES = 256 * 1024

const CONFIGURATION = /\.(?:tf|tofu)(?:\.json)?$/

/** Why the files of an archive are not read. */
export class UnreadableArchive extends Error {}

/**
 * The configuration files of a module's `.tar.gz`, by path, as text. Files that are too large to be configuration are left
 * out.
 * @throws UnreadableArchive if it is damaged, or holds more than a module does; MirrorError `STORAGE_FAILED`
 */
export async function readConfigurationFiles(blob: BlobReader, signal: AbortSignal): Promise<Map<string, string>> {
  const files = new Map<string, string>()
  const extract = createExtract()
  const feeding = pipeline(Readable.from(bytesOf(blob)), createGunzip(), extract, { signal })
  feeding.catch(() => undefined)
  let unpacked = 0
  let total = 0
  try {
    for await (const entry of extract) {
      const { name, type, size = 0 } = entry.header
      unpacked += size + HEADER_BYTES
      if (unpacked > MAX_UNPACKED_BYTES) throw new UnreadableArchive('it is too large when it is unpacked')
      if (type !== 'file' || !CONFIGURATION.test(name) || size > MAX_FILE_BYTES) {
        entry.resume()
        continue
      }
      total += size
      if (files.size === MAX_FILES || total > MAX_TOTAL_BYTES) throw new UnreadableArchive('it has too many files')
      files.set(name, await textOf(entry as unknown as AsyncIterable<Uint8Array>))
    }
    await feeding
    return files
  } catch (error) {
    extract.destroy()
    signal.throwIfAborted()
    // What the decoders say of damage is all the same to us; a failing disk is not.
    if (error instanceof UnreadableArchive || isStorageError(error)) throw error
    throw new UnreadableArchive('its archive is damaged', { cause: error })
  }
}

async function* bytesOf(blob: BlobReader): AsyncGenerator<Uint8Array> {
  for (let position = 0; ; ) {
    const piece = Buffer.allocUnsafe(READ_BYTES)
    const count = await blob.read(piece, position, piece.length)
    if (count === 0) return
    yield piece.subarray(0, count)
    position += count
  }
}

async function textOf(entry: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = []
  for await (const piece of entry) pieces.push(piece)
  return Buffer.concat(pieces).toString('utf8')
}

function isStorageError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'STORAGE_FAILED'
}
