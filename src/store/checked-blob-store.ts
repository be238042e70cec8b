import { createHash } from 'node:crypto'
import { MirrorError } from '../errors.ts'
import type { BlobStat, BlobStore, IncomingBlob, OpenBlob } from './blob-store.ts'
import { ConcurrencyLimit } from './concurrency-limit.ts'
import { sha256 } from './digest.ts'
import { WrappedIncomingBlob } from './wrapped-incoming-blob.ts'

const EMPTY_DIGEST = sha256(new Uint8Array())
const SLICE_BYTES = 1024 * 1024
/** Hashed in a fraction of a millisecond: nobody notices. */
const SMALL_SLICE_BYTES = 128 * 1024
const MAX_CHECKS = 2
const MAX_TRIES = 3

/** How a `CheckedBlobStore` checks. */
export interface CheckedBlobStoreOptions {
  /** A check counts for this long. */
  readonly recheckAfterMs: number
  /** Milliseconds; any clock that goes forward. */
  readonly now: () => number
  /** Called after a damaged blob was set aside. */
  readonly onDamaged: (digest: string) => void
}

/** What came of hashing a blob anew. */
export type Recheck =
  | { readonly verdict: 'sound'; readonly size: number }
  | { readonly verdict: 'missing' }
  /** `actual` is the digest of what was there. */
  | { readonly verdict: 'damaged'; readonly actual: string; readonly size: number }

interface Check {
  readonly fingerprint: string
  readonly size: number
  readonly atMs: number
}

/**
 * A blob store that hands out no byte of a blob whose content it has not hashed: at first use after start, when the
 * stored file was touched, and when the last check is too old. A blob that does not match its digest is set aside, and
 * then it is not held. What was committed through this store counts as checked: it was hashed on its way in.
 *
 * An I/O error is no proof of damage: it is thrown, and the blob stays.
 */
export class CheckedBlobStore implements BlobStore {
  readonly #inner: BlobStore
  readonly #options: CheckedBlobStoreOptions
  readonly #checks = new Map<string, Check>()
  readonly #running = new Map<string, Promise<BlobStat | undefined>>()
  readonly #limit = new ConcurrencyLimit(MAX_CHECKS)

  constructor(inner: BlobStore, options: CheckedBlobStoreOptions) {
    this.#inner = inner
    this.#options = options
  }

  async create(): Promise<IncomingBlob> {
    const incoming = await this.#inner.create()
    return new CheckedIncomingBlob(incoming, () => this.#commit(incoming.digest(), () => incoming.commit()))
  }

  async put(bytes: Uint8Array): Promise<BlobStat> {
    return this.#commit(sha256(bytes), () => this.#inner.put(bytes))
  }

  /** Undefined also if the size alone shows that the blob is damaged. */
  async stat(digest: string): Promise<BlobStat | undefined> {
    const stat = await this.#inner.stat(digest)
    if (stat === undefined || (stat.size === 0 && digest !== EMPTY_DIGEST)) return undefined
    const check = this.#checks.get(digest)
    return check === undefined || check.size === stat.size ? stat : undefined
  }

  async open(digest: string): Promise<OpenBlob | undefined> {
    const sound = await this.#findSound(digest)
    if (sound === undefined) return undefined
    const blob = await this.#inner.open(digest)
    if (blob === undefined || blob.size === sound.size) return blob
    await blob[Symbol.asyncDispose]()
    return undefined
  }

  async read(digest: string): Promise<Buffer | undefined> {
    const bytes = await this.#inner.read(digest)
    if (bytes !== undefined) return bytes
    // Not held, or damaged: in the second case the check sets it aside.
    this.#checks.delete(digest)
    await this.#findSound(digest)
    return undefined
  }

  async localFile(digest: string): Promise<(AsyncDisposable & { readonly path: string }) | undefined> {
    return (await this.#findSound(digest)) && this.#inner.localFile(digest)
  }

  /** When a blob was last found sound, by the clock of the options; undefined if not since the start. */
  checkedAt(digest: string): number | undefined {
    return this.#checks.get(digest)?.atMs
  }

  /**
   * Hashes a blob anew, whatever was known of it, as slowly as `onBytes` wants: it is awaited after each piece. What is
   * damaged is set aside. Clients that need the blob meanwhile do not wait for this.
   * @throws MirrorError `STORAGE_FAILED`; what `onBytes` throws
   */
  async recheck(digest: string, onBytes: (count: number) => Promise<void>): Promise<Recheck> {
    const found = await this.#judge(digest, onBytes)
    if (found === undefined) return { verdict: 'missing' }
    if ('actual' in found) return { verdict: 'damaged', ...found }
    return { verdict: 'sound', size: found.size }
  }

  async setAside(digest: string): Promise<void> {
    this.#checks.delete(digest)
    await this.#inner.setAside(digest)
  }

  async delete(digest: string): Promise<void> {
    this.#checks.delete(digest)
    await this.#inner.delete(digest)
  }

  list(prefix?: string): AsyncIterable<BlobStat> {
    return this.#inner.list(prefix)
  }

  /** A copy that was held before, and therefore stayed, was not hashed on the way in: it is checked at its next use. */
  async #commit(digest: string, commit: () => Promise<BlobStat>): Promise<BlobStat> {
    const before = await this.#inner.stat(digest)
    const stat = await commit()
    if (before?.fingerprint !== stat.fingerprint) this.#remember(stat)
    return stat
  }

  async #findSound(digest: string): Promise<BlobStat | undefined> {
    const stat = await this.#inner.stat(digest)
    if (stat === undefined) {
      this.#checks.delete(digest)
      return undefined
    }
    if (this.#isChecked(stat)) return stat
    const running = this.#running.get(digest)
    if (running !== undefined) return running
    const check = this.#limit.run(() => this.#check(digest)).finally(() => this.#running.delete(digest))
    this.#running.set(digest, check)
    return check
  }

  #isChecked(stat: BlobStat): boolean {
    const check = this.#checks.get(stat.digest)
    if (check === undefined || check.fingerprint !== stat.fingerprint) return false
    return this.#options.now() - check.atMs < this.#options.recheckAfterMs
  }

  #remember(stat: BlobStat): void {
    this.#checks.set(stat.digest, { fingerprint: stat.fingerprint, size: stat.size, atMs: this.#options.now() })
  }

  async #check(digest: string): Promise<BlobStat | undefined> {
    const found = await this.#judge(digest)
    return found !== undefined && 'actual' in found ? undefined : found
  }

  /** What is there if it is sound; if not, what it was, which is set aside by then. Undefined if there is none. */
  async #judge(
    digest: string,
    onBytes?: (count: number) => Promise<void>,
  ): Promise<BlobStat | { actual: string; size: number } | undefined> {
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const before = await this.#inner.stat(digest)
      const actual = await this.#hash(digest, onBytes)
      const after = await this.#inner.stat(digest)
      if (before === undefined || after === undefined) return undefined
      // Replaced or touched while it was read: the result says nothing about what is there now.
      if (actual === undefined || before.fingerprint !== after.fingerprint) continue
      if (actual === digest) {
        this.#remember(after)
        return after
      }
      await this.setAside(digest)
      this.#options.onDamaged(digest)
      return { actual, size: after.size }
    }
    throw new MirrorError('STORAGE_FAILED', `Cannot check blob ${digest}: it changes while it is read.`, {
      operation: 'check',
    })
  }

  async #hash(digest: string, onBytes?: (count: number) => Promise<void>): Promise<string | undefined> {
    await using blob = await this.#inner.open(digest)
    if (blob === undefined) return undefined
    const hash = createHash('sha256')
    const slice = Buffer.allocUnsafeSlow(onBytes === undefined ? SLICE_BYTES : SMALL_SLICE_BYTES)
    for (let position = 0; ; ) {
      const count = await blob.read(slice, position, slice.length)
      if (count === 0) return hash.digest('hex')
      hash.update(slice.subarray(0, count))
      position += count
      await onBytes?.(count)
    }
  }
}

class CheckedIncomingBlob extends WrappedIncomingBlob {
  readonly #commit: () => Promise<BlobStat>

  constructor(inner: IncomingBlob, commit: () => Promise<BlobStat>) {
    super(inner)
    this.#commit = commit
  }

  override commit(): Promise<BlobStat> {
    return this.#commit()
  }
}
