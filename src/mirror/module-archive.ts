import { createHash } from 'node:crypto'
import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setImmediate } from 'node:timers/promises'
import { Gzip } from 'fflate'
import { pack as createPack, type Pack } from 'tar-stream'
import type { IncomingBlob } from '../store/blob-store.ts'
import type { ModuleFile, ModuleTree } from '../upstream/module-upstream.ts'

/** What came of packing a module. */
export interface PackedModule {
  /** SHA-256 of the tar inside: what the files are, whatever packed them. Lower-case hexadecimal. */
  readonly tarDigest: string
  /** Bytes of all files. */
  readonly unpackedBytes: number
}

/** The packer works on pieces of one size, so that its output does not depend on how the bytes came. */
const PIECE_BYTES = 64 * 1024
const NO_TIME = new Date(0)

/**
 * Packs a module's files as `.tar.gz` into `blob`: equal files give equal bytes, on every machine. The tar is sorted,
 * without times and owners, with modes 644 and 755 alone; the packer is plain JavaScript of one fixed version, because
 * the output of zlib differs by its build and processor (ADR 8).
 * @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED`; what reading the tree throws
 */
export async function packModule(tree: ModuleTree, blob: IncomingBlob, signal: AbortSignal): Promise<PackedModule> {
  const tar = createPack()
  const feeding = feed(tar, tree.files, signal)
  // Whoever reads the tar learns of it.
  feeding.catch((error: unknown) => tar.destroy(error instanceof Error ? error : new Error(String(error))))
  const hash = createHash('sha256')
  const packed: Uint8Array[] = []
  const gzip = new Gzip({ level: 6, mtime: 0 }, (bytes) => packed.push(bytes))
  const flush = async (): Promise<void> => {
    for (const bytes of packed.splice(0)) await blob.append(bytes)
  }
  for await (const piece of inPieces(tar as AsyncIterable<Uint8Array>)) {
    hash.update(piece)
    gzip.push(piece)
    await flush()
    // Whatever reads and writes do: the requests of others come in between.
    await setImmediate()
  }
  gzip.push(new Uint8Array(0), true)
  await flush()
  return { tarDigest: hash.digest('hex'), unpackedBytes: await feeding }
}

async function feed(tar: Pack, files: ModuleTree['files'], signal: AbortSignal): Promise<number> {
  let total = 0
  for (const [name, file] of files) {
    signal.throwIfAborted()
    await addFile(tar, name, file)
    total += file.size
  }
  tar.finalize()
  return total
}

async function addFile(tar: Pack, name: string, file: ModuleFile): Promise<void> {
  const mode = file.executable ? 0o755 : 0o644
  const packed = Promise.withResolvers<void>()
  packed.promise.catch(() => undefined)
  const entry = tar.entry({ name, size: file.size, mode, mtime: NO_TIME, uid: 0, gid: 0 }, (error) =>
    error ? packed.reject(error) : packed.resolve(),
  )
  // streamx is what tar-stream is made of; its types are not those of Node, its behaviour is.
  await pipeline(file.read(), entry as unknown as Writable)
  await packed.promise
}

async function* inPieces(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let piece = new Uint8Array(PIECE_BYTES)
  let filled = 0
  for await (const bytes of source) {
    for (let start = 0; start < bytes.length; ) {
      const taken = bytes.subarray(start, start + PIECE_BYTES - filled)
      piece.set(taken, filled)
      filled += taken.length
      start += taken.length
      if (filled < PIECE_BYTES) continue
      yield piece
      piece = new Uint8Array(PIECE_BYTES)
      filled = 0
    }
  }
  if (filled > 0) yield piece.subarray(0, filled)
}
