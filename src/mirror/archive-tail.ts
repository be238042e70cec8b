import { MirrorError, redactUrl } from '../errors.ts'
import type { BlobReader, IncomingBlob } from '../store/blob-store.ts'

/** What stays back until the archive is verified and recorded: who lacks it has no whole archive, and knows it. */
const HELD_BACK_BYTES = 64 * 1024
/** Those who wait are woken for so much, or after a moment for less: not for each packet of the origin. */
const WAKE_BYTES = 256 * 1024
const WAKE_MS = 20

/** What an attempt brings in. */
export interface ArrivingBytes {
  readonly incoming: IncomingBlob
  /** For messages. */
  readonly name: string
  readonly archiveUrl: string
  /** Of the whole archive, as published. */
  readonly digest: string
  /** In bytes; undefined if the origin does not say. */
  readonly size: number | undefined
}

/** How far a download is. In bytes; `size` is undefined if the origin does not say. */
export interface Arrived {
  bytes: number
  readonly size: number | undefined
}

/**
 * What one download shows of itself while it runs: the bytes so far but the last 64 KB, to any number of readers, each
 * at its own pace and from the first byte. The download calls `begin`, `grow` and `abandon` as it goes, and `release`
 * or `fail` when it ends; readers call `follow`.
 */
export class ArchiveTail {
  /** Set by the download, also where no byte may be handed on yet. */
  arrived: Arrived = { bytes: 0, size: undefined }
  readonly #changes = new Changes()
  #attempt: Attempt | undefined
  #ended = false
  #woken = 0
  #timer: NodeJS.Timeout | undefined

  /** From now on these bytes may be read. Who has read others is torn off. */
  begin(bytes: ArrivingBytes): void {
    this.#attempt?.abandon('the origin began the archive anew')
    this.#attempt = new Attempt(bytes, this.#changes)
    this.#wake()
  }

  /** Bytes were appended. */
  grow(): void {
    const ready = this.#attempt?.grow() ?? 0
    if (ready === 0) return
    if (this.#woken === 0 || ready - this.#woken >= WAKE_BYTES) this.#wake()
    else this.#timer ??= setTimeout(() => this.#wake(), WAKE_MS)
  }

  /** The attempt came to nothing. Who has read of it is torn off with `error`; who has not may get the next one. */
  abandon(error: unknown): void {
    this.#attempt?.abandon(error)
    this.#attempt = undefined
    this.#wake()
  }

  /** The archive of this digest is verified and recorded: what was held back is let go. */
  release(digest: string): void {
    this.#ended = true
    this.#attempt?.complete(digest)
    this.#wake()
  }

  /** The download has failed for good. */
  fail(error: unknown): void {
    this.#ended = true
    this.abandon(error)
  }

  /**
   * Waits for bytes that may be handed out; the caller disposes of what it gets. Undefined when the download has ended
   * without any: then its outcome tells. `sized`: only if the length is known from the start.
   */
  async follow({ sized }: { sized: boolean }): Promise<ArrivingArchive | undefined> {
    while (!this.#ended) {
      const attempt = this.#attempt
      if (attempt !== undefined && attempt.ready > 0 && !(sized && attempt.size === undefined)) {
        return new ArrivingArchive(attempt)
      }
      await this.#changes.next
    }
    return undefined
  }

  #wake(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#woken = this.#attempt?.ready ?? 0
    this.#changes.happened()
  }
}

/** An archive that is read while it comes in. Its end is reached only when its bytes are verified. */
export class ArrivingArchive implements BlobReader {
  /** In bytes; undefined if the origin did not say. */
  readonly size: number | undefined
  readonly #attempt: Attempt
  #closed = false

  /** Made by `ArchiveTail.follow` alone. */
  constructor(attempt: Attempt) {
    this.#attempt = attempt
    this.size = attempt.size
    attempt.join()
  }

  /**
   * Waits until there is something at `position`; 0 only at the end of the verified archive.
   * @throws what the download failed with: what was read is void then; MirrorError `STORAGE_FAILED`
   */
  async read(buffer: Uint8Array, position: number, length: number): Promise<number> {
    const attempt = this.#attempt
    for (;;) {
      attempt.assertSound()
      if (this.#closed) throw new MirrorError('STORAGE_FAILED', 'this archive is closed', { operation: 'read' })
      if (position < attempt.ready) break
      if (attempt.whole) return 0
      await attempt.changes.next
    }
    const count = await attempt.reader.read(buffer, position, Math.min(length, attempt.ready - position))
    attempt.assertSound()
    return count
  }

  /** Ends a read that waits. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#attempt.changes.happened()
    await this.#attempt.leave()
  }
}

/** One try to download an archive, from its first byte. */
class Attempt {
  readonly size: number | undefined
  readonly changes: Changes
  readonly reader: BlobReader
  /** Bytes from the start that may be handed out. */
  ready = 0
  whole = false
  readonly #bytes: ArrivingBytes
  #failure: { readonly error: unknown } | undefined
  /** The download itself, until it ends, and all who read. */
  #users = 1

  constructor(bytes: ArrivingBytes, changes: Changes) {
    this.#bytes = bytes
    this.size = bytes.size
    this.changes = changes
    this.reader = bytes.incoming.follow()
  }

  grow(): number {
    const { incoming, size = Number.POSITIVE_INFINITY } = this.#bytes
    this.ready = Math.max(0, Math.min(incoming.size, size) - HELD_BACK_BYTES)
    return this.ready
  }

  /** Lets the rest go if it is what was verified. */
  complete(digest: string): void {
    const { incoming, size = incoming.size } = this.#bytes
    if (digest !== this.#bytes.digest) this.abandon('the origin released it anew meanwhile')
    else if (size !== incoming.size) this.abandon('it has another length than the origin announced')
    else {
      this.ready = size
      this.whole = true
      void this.leave()
    }
  }

  /** Those who read let go of the bytes at once, however slow their clients are: a full disk needs the space. */
  abandon(cause: unknown): void {
    this.#failure = { error: typeof cause === 'string' ? this.#voided(cause) : cause }
    void this.reader[Symbol.asyncDispose]()
  }

  assertSound(): void {
    if (this.#failure !== undefined) throw this.#failure.error
  }

  join(): void {
    this.#users += 1
  }

  async leave(): Promise<void> {
    this.#users -= 1
    if (this.#users === 0) await this.reader[Symbol.asyncDispose]()
  }

  #voided(reason: string): MirrorError {
    const upstreamUrl = redactUrl(this.#bytes.archiveUrl)
    const message = `${this.#bytes.name}: what was handed on is void, for ${reason} (${upstreamUrl}); ask again`
    return new MirrorError('UPSTREAM_INVALID', message, { host: new URL(upstreamUrl).host, upstreamUrl, reason })
  }
}

/** Something for which many wait, again and again. */
class Changes {
  #next = Promise.withResolvers<void>()

  get next(): Promise<void> {
    return this.#next.promise
  }

  happened(): void {
    const { resolve } = this.#next
    this.#next = Promise.withResolvers<void>()
    resolve()
  }
}
