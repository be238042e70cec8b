import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MirrorError } from '../../errors.ts'
import type { BlobReader, BlobStat, BlobStore, IncomingBlob, OpenBlob } from '../blob-store.ts'
import { sha256 } from '../digest.ts'

interface Held {
  readonly bytes: Buffer
  readonly storedAt: number
  readonly fingerprint: string
}

/** Blobs in memory, for tests and demonstrations. */
export class MemoryBlobStore implements BlobStore {
  readonly #blobs = new Map<string, Held>()
  readonly #aside = new Map<string, Held>()
  #writes = 0

  async create(): Promise<IncomingBlob> {
    return new MemoryIncomingBlob((bytes) => this.put(bytes))
  }

  async put(bytes: Uint8Array): Promise<BlobStat> {
    const digest = sha256(bytes)
    if (!this.#blobs.has(digest)) {
      this.#writes += 1
      const fingerprint = `${bytes.length}-${this.#writes}`
      this.#blobs.set(digest, { bytes: Buffer.from(bytes), storedAt: Date.now(), fingerprint })
    }
    return statOf(
      digest,
      this.#blobs.get(digest) ?? { bytes: Buffer.from(bytes), storedAt: Date.now(), fingerprint: '' },
    )
  }

  async stat(digest: string): Promise<BlobStat | undefined> {
    const held = this.#blobs.get(digest)
    return held && statOf(digest, held)
  }

  async open(digest: string): Promise<OpenBlob | undefined> {
    const held = this.#blobs.get(digest)
    return held && new MemoryOpenBlob(digest, held.bytes)
  }

  async read(digest: string): Promise<Buffer | undefined> {
    const held = this.#blobs.get(digest)
    return held && Buffer.from(held.bytes)
  }

  async localFile(digest: string): Promise<(AsyncDisposable & { readonly path: string }) | undefined> {
    const held = this.#blobs.get(digest)
    if (held === undefined) return undefined
    const folder = await mkdtemp(join(tmpdir(), 'blob-'))
    const path = join(folder, digest)
    const remove = () => rm(folder, { recursive: true, force: true })
    try {
      await writeFile(path, held.bytes)
    } catch (error) {
      await remove()
      throw new MirrorError('STORAGE_FAILED', `Cannot write ${path}.`, { operation: 'write' }, error)
    }
    return { path, [Symbol.asyncDispose]: remove }
  }

  async setAside(digest: string): Promise<void> {
    const held = this.#blobs.get(digest)
    if (held !== undefined) this.#aside.set(digest, held)
    this.#blobs.delete(digest)
  }

  async delete(digest: string): Promise<void> {
    this.#blobs.delete(digest)
  }

  async *list(prefix = ''): AsyncIterable<BlobStat> {
    for (const [digest, held] of [...this.#blobs]) if (digest.startsWith(prefix)) yield statOf(digest, held)
  }
}

function statOf(digest: string, { bytes, storedAt, fingerprint }: Held): BlobStat {
  return { digest, size: bytes.length, diskBytes: bytes.length, modifiedAt: storedAt, fingerprint }
}

class MemoryOpenBlob implements OpenBlob {
  readonly digest: string
  readonly size: number
  #bytes: Buffer | undefined

  constructor(digest: string, bytes: Buffer) {
    this.digest = digest
    this.size = bytes.length
    this.#bytes = bytes
  }

  async read(buffer: Uint8Array, position: number, length: number): Promise<number> {
    if (this.#bytes === undefined) throw closedError('read')
    const part = this.#bytes.subarray(position, position + Math.min(length, buffer.length))
    buffer.set(part)
    return part.length
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#bytes = undefined
  }
}

class MemoryIncomingBlob implements IncomingBlob {
  readonly #keep: (bytes: Buffer) => Promise<BlobStat>
  #parts: Buffer[] = []
  #size = 0
  #hash = createHash('sha256')
  #digest: string | undefined
  #kept: BlobStat | undefined
  #disposed = false

  constructor(keep: (bytes: Buffer) => Promise<BlobStat>) {
    this.#keep = keep
  }

  get size(): number {
    return this.#size
  }

  /** Memory has no limit here. */
  async expect(): Promise<void> {}

  async append(bytes: Uint8Array): Promise<void> {
    if (this.#digest !== undefined || this.#disposed) throw closedError('write')
    this.#hash.update(bytes)
    this.#parts.push(Buffer.from(bytes))
    this.#size += bytes.length
  }

  async restart(): Promise<void> {
    if (this.#kept !== undefined || this.#disposed) throw closedError('restart')
    this.#hash = createHash('sha256')
    this.#digest = undefined
    this.#parts = []
    this.#size = 0
  }

  follow(): BlobReader {
    if (this.#kept !== undefined || this.#disposed) throw closedError('follow')
    return new MemoryFollower(this.#parts)
  }

  digest(): string {
    this.#digest ??= this.#hash.digest('hex')
    return this.#digest
  }

  async commit(): Promise<BlobStat> {
    if (this.#kept !== undefined) return this.#kept
    if (this.#disposed) throw closedError('commit')
    this.digest()
    this.#kept = await this.#keep(Buffer.concat(this.#parts))
    this.#parts = []
    return this.#kept
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true
    this.#parts = []
  }
}

/** Reads the parts of one start; a restart puts another list in their place. */
class MemoryFollower implements BlobReader {
  #parts: readonly Buffer[] | undefined

  constructor(parts: readonly Buffer[]) {
    this.#parts = parts
  }

  async read(buffer: Uint8Array, position: number, length: number): Promise<number> {
    if (this.#parts === undefined) throw closedError('read')
    let start = 0
    for (const part of this.#parts) {
      if (position < start + part.length) {
        const from = position - start
        const found = part.subarray(from, from + Math.min(length, buffer.length))
        buffer.set(found)
        return found.length
      }
      start += part.length
    }
    return 0
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#parts = undefined
  }
}

function closedError(operation: string): MirrorError {
  return new MirrorError('STORAGE_FAILED', `Cannot ${operation} this blob: it is closed.`, { operation })
}
