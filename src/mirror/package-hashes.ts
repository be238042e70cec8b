import { LRUCache } from 'lru-cache'
import type { Log } from '../log.ts'
import type { PackageHash, Sha256 } from '../protocol/package-hash.ts'
import type { BlobStore } from '../store/blob-store.ts'
import type { RecordStore } from '../store/record-store.ts'
import { HashRecord } from './release-record.ts'

/** Computes the `h1:` hashes of a zip; `verify/h1-worker.ts` does it in a worker, one at a time. */
export interface Hasher extends AsyncDisposable {
  hash(path: string): Promise<{ hashes: readonly PackageHash[]; reason?: string }>
}

/**
 * The `h1:` hashes of held archives, computed once per content, off every request's path. Losing one costs nothing but
 * the time to compute it again.
 */
export class PackageHashes {
  readonly #records: RecordStore
  readonly #blobs: BlobStore
  readonly #hasher: Hasher
  readonly #log: Log
  readonly #known = new LRUCache<string, Promise<HashRecord | undefined>>({ max: 20_000 })
  readonly #running = new Map<string, Promise<void>>()
  #closed = false

  constructor(parts: { records: RecordStore; blobs: BlobStore; hasher: Hasher; log: Log }) {
    this.#records = parts.records
    this.#blobs = parts.blobs
    this.#hasher = parts.hasher
    this.#log = parts.log
  }

  /** What has been computed for the archive; undefined means not yet. */
  async find(digest: Sha256): Promise<readonly PackageHash[] | undefined> {
    return (await this.#find(digest))?.h1
  }

  /**
   * Sees to it that the hashes are there some time later; returns at once. `stated` are the origin's unsigned claims,
   * which are compared with the truth.
   */
  ensure(digest: Sha256, stated: readonly PackageHash[], name: string): void {
    if (this.#closed || this.#running.has(digest)) return
    const work = this.#compute(digest, stated, name)
      .catch((error: unknown) =>
        this.#log.warn({ archive: name, err: error }, 'could not compute the h1 of an archive'),
      )
      .finally(() => this.#running.delete(digest))
    this.#running.set(digest, work)
  }

  /** Forgets what was computed; fine if nothing was. @throws MirrorError `STORAGE_FAILED` */
  async forget(digest: Sha256): Promise<void> {
    this.#known.delete(digest)
    await this.#records.delete(['hashes', digest])
  }

  /** The same, computed first if need be; empty if it cannot be. Waits long for a large archive. @throws MirrorError `STORAGE_FAILED` */
  async get(digest: Sha256, name: string): Promise<readonly PackageHash[]> {
    const known = await this.find(digest)
    if (known !== undefined) return known
    this.ensure(digest, [], name)
    await this.#running.get(digest)
    return (await this.find(digest)) ?? []
  }

  /** Gives up what is running, and the hasher with it; it is computed at the next start. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#hasher[Symbol.asyncDispose]()
    await Promise.allSettled(this.#running.values())
  }

  async #compute(digest: Sha256, stated: readonly PackageHash[], name: string): Promise<void> {
    if ((await this.#find(digest)) !== undefined) return
    await using file = await this.#blobs.localFile(digest)
    if (file === undefined) return
    const { hashes, reason } = await this.#hasher.hash(file.path)
    if (this.#closed) return
    const record: HashRecord = { format: 1, h1: [...hashes], ...(reason === undefined ? {} : { reason }) }
    this.#known.set(digest, Promise.resolve(record))
    await this.#records.put(['hashes', digest], record)
    if (reason !== undefined) this.#log.warn({ archive: name, reason }, 'an archive has no h1')
    const claimed = stated.filter((hash) => hash.startsWith('h1:'))
    const contradicted = hashes.length > 0 && claimed.some((hash) => !hashes.includes(hash))
    if (contradicted) {
      this.#log.error({ archive: name, claimed, computed: hashes }, 'an origin states a wrong h1; the claim is dropped')
    }
  }

  #find(digest: Sha256): Promise<HashRecord | undefined> {
    const known = this.#known.get(digest)
    if (known !== undefined) return known
    const reading = this.#records.get(['hashes', digest]).then((stored) => HashRecord.safeParse(stored).data)
    this.#known.set(digest, reading)
    reading.then(
      (record) => record === undefined && this.#known.delete(digest),
      () => this.#known.delete(digest),
    )
    return reading
  }
}
