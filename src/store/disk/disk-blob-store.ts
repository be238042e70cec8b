import type { BigIntStats } from 'node:fs'
import { type FileHandle, open, readdir, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { LRUCache } from 'lru-cache'
import { MirrorError } from '../../errors.ts'
import type { BlobStat, BlobStore, IncomingBlob, OpenBlob } from '../blob-store.ts'
import { isDigest, sha256 } from '../digest.ts'
import { moveDurably } from './atomic-write.ts'
import { DiskIncomingBlob } from './disk-incoming-blob.ts'
import { type DurableFolders, syncFolder } from './durable-folders.ts'
import type { GrowingFile } from './growing-file.ts'
import { pruneQuarantine } from './quarantine.ts'
import { errnoOf, storageError, unlessMissing, withStorageErrors } from './storage-error.ts'

/** The unit in which every file system tells `st_blocks`, whatever its own blocks are. */
const STAT_BLOCK_BYTES = 512

/**
 * Blobs as read-only files of a data folder:
 *
 *     blobs/sha256/ab/abcd…   mode 0444, named after their content
 *     tmp/                    what is on its way in
 *     quarantine/abcd…        what was set aside
 *
 * A blob is visible only when it is whole and durable. The store trusts what it finds there: `CheckedBlobStore` does
 * not.
 */
export class DiskBlobStore implements BlobStore {
  readonly #folders: DurableFolders
  readonly #root: string
  /** Blobs whose names this process has made durable: every release puts the same keys again. */
  readonly #durable = new LRUCache<string, true>({ max: 10_000 })

  constructor(folders: DurableFolders) {
    this.#folders = folders
    this.#root = join(folders.root, 'blobs', 'sha256')
  }

  async create(): Promise<IncomingBlob> {
    return withStorageErrors('make a file in', this.#folders.tmp, () =>
      DiskIncomingBlob.create(this.#folders, (file, digest, size) => this.#keep(file, digest, size)),
    )
  }

  async put(bytes: Uint8Array): Promise<BlobStat> {
    const held = await this.#findWhole(sha256(bytes), bytes.length)
    if (held !== undefined) return held
    await using incoming = await this.create()
    await incoming.append(bytes)
    return await incoming.commit()
  }

  async stat(digest: string): Promise<BlobStat | undefined> {
    if (!isDigest(digest)) return undefined
    const path = this.#path(digest)
    const facts = await withStorageErrors('look at', path, () => unlessMissing(stat(path, { bigint: true }), undefined))
    return facts?.isFile() ? blobStat(digest, facts) : undefined
  }

  async open(digest: string): Promise<OpenBlob | undefined> {
    if (!isDigest(digest)) return undefined
    const path = this.#path(digest)
    return withStorageErrors('open', path, async () => {
      const handle = await unlessMissing(open(path, 'r'), undefined)
      if (handle === undefined) return undefined
      try {
        const facts = await handle.stat()
        if (facts.isFile()) return new DiskOpenBlob(digest, facts.size, { path, handle })
      } catch (error) {
        await handle.close()
        throw error
      }
      await handle.close()
      return undefined
    })
  }

  async read(digest: string): Promise<Buffer | undefined> {
    await using blob = await this.open(digest)
    if (blob === undefined) return undefined
    const bytes = Buffer.alloc(blob.size)
    let size = 0
    while (size < bytes.length) {
      const count = await blob.read(bytes.subarray(size), size, bytes.length - size)
      if (count === 0) return undefined
      size += count
    }
    return sha256(bytes) === digest ? bytes : undefined
  }

  async localFile(digest: string): Promise<(AsyncDisposable & { readonly path: string }) | undefined> {
    if ((await this.stat(digest)) === undefined) return undefined
    return { path: this.#path(digest), [Symbol.asyncDispose]: async () => undefined }
  }

  async setAside(digest: string): Promise<void> {
    if (!isDigest(digest)) return
    const path = this.#path(digest)
    await withStorageErrors('set aside', path, () =>
      unlessMissing(moveDurably(this.#folders, path, join(this.#folders.quarantine, digest)), undefined),
    )
    await pruneQuarantine(this.#folders.quarantine)
  }

  /** Not synced: a blob that a power cut brings back is still the blob of its name. */
  async delete(digest: string): Promise<void> {
    if (!isDigest(digest)) return
    const path = this.#path(digest)
    await withStorageErrors('delete', path, () => unlessMissing(rm(path), undefined))
  }

  async *list(prefix = ''): AsyncIterable<BlobStat> {
    const shards = prefix.length < 2 ? await this.#names(this.#root) : [prefix.slice(0, 2)]
    for (const shard of shards) {
      for (const digest of await this.#names(join(this.#root, shard))) {
        // Whatever else lies there (a file of the operator, a copy in progress) is no blob.
        if (!digest.startsWith(shard) || !digest.startsWith(prefix)) continue
        const found = await this.stat(digest)
        if (found !== undefined) yield found
      }
    }
  }

  async #names(folder: string): Promise<string[]> {
    return withStorageErrors('list', folder, () => unlessMissing(readdir(folder), []))
  }

  async #keep(file: GrowingFile, digest: string, size: number): Promise<BlobStat> {
    const held = await this.#findWhole(digest, size)
    if (held !== undefined) return held
    const path = this.#path(digest)
    await file.publish(path, 0o444)
    this.#durable.set(digest, true)
    return blobStat(digest, await stat(path, { bigint: true }))
  }

  /** The held blob if it has the right size. Then its name is durable too: who wrote it may have been killed. */
  async #findWhole(digest: string, size: number): Promise<BlobStat | undefined> {
    const held = await this.stat(digest)
    if (held?.size !== size) return undefined
    if (!this.#durable.has(digest)) {
      const folder = dirname(this.#path(digest))
      await withStorageErrors('sync', folder, () => syncFolder(folder))
      this.#durable.set(digest, true)
    }
    return held
  }

  #path(digest: string): string {
    return join(this.#root, digest.slice(0, 2), digest)
  }
}

function blobStat(digest: string, facts: BigIntStats): BlobStat {
  return {
    digest,
    size: Number(facts.size),
    diskBytes: Number(facts.blocks) * STAT_BLOCK_BYTES,
    modifiedAt: Number(facts.mtimeMs),
    fingerprint: `${facts.size}-${facts.mtimeNs}-${facts.ino}`,
  }
}

class DiskOpenBlob implements OpenBlob {
  readonly digest: string
  readonly size: number
  readonly #path: string
  #handle: FileHandle | undefined

  constructor(digest: string, size: number, file: { path: string; handle: FileHandle }) {
    this.digest = digest
    this.size = size
    this.#path = file.path
    this.#handle = file.handle
  }

  async read(buffer: Uint8Array, position: number, length: number): Promise<number> {
    if (this.#handle === undefined) {
      throw new MirrorError('STORAGE_FAILED', `Cannot read ${this.#path}: it is closed.`, { operation: 'read' })
    }
    try {
      const { bytesRead } = await this.#handle.read(buffer, 0, Math.min(length, buffer.length), position)
      return bytesRead
    } catch (error) {
      throw storageError('read', this.#path, error)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const handle = this.#handle
    this.#handle = undefined
    try {
      await handle?.close()
    } catch (error) {
      if (errnoOf(error) !== 'EBADF') throw storageError('close', this.#path, error)
    }
  }
}
