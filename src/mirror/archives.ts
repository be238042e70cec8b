import { LRUCache } from 'lru-cache'
import { isMirrorError, type MirrorError } from '../errors.ts'
import type { Sha256 } from '../protocol/package-hash.ts'
import { formatPlatform } from '../protocol/platform.ts'
import type { OpenBlob } from '../store/blob-store.ts'
import { vanished } from './archive-check.ts'
import { ArchiveFetches, type ArchiveFetchesParts } from './archive-fetches.ts'
import { ArchiveTail, type Arrived, type ArrivingArchive } from './archive-tail.ts'
import type { Answer, CacheOutcome, Call } from './call.ts'
import type { ClientWork } from './client-work.ts'
import { untilAborted } from './deadline.ts'
import type { ArchiveRecord } from './release-record.ts'
import { type Flight, SingleFlight } from './single-flight.ts'
import { formatPackageName, type PackageId } from './stock/item-name.ts'
import { assertOriginAllowed, type View } from './view.ts'

/** Between two reports of how far a download is. */
const PROGRESS_MS = 250
/** What is gone before it could be opened is fetched again. */
const MAX_OPENINGS = 3

/** An archive as it can be told without opening it. */
export interface ArchiveFacts {
  readonly digest: string
  /** In bytes; undefined while it is not held. */
  readonly size: number | undefined
}

/** What `Archives` is made of. */
export interface ArchivesParts extends ArchiveFetchesParts {
  /** Is told of the downloads that clients wait for. */
  readonly clientWork?: ClientWork
}

/** The archives themselves: from what is held, else pulled through once for all who ask, and verified before use. */
export class Archives {
  readonly #parts: ArchivesParts
  readonly #fetches: ArchiveFetches
  readonly #flights: SingleFlight<ArchiveRecord, ArchiveTail>
  readonly #failures = new LRUCache<string, { readonly at: number; readonly error: MirrorError }>({ max: 1_000 })

  constructor(parts: ArchivesParts) {
    this.#parts = parts
    this.#fetches = new ArchiveFetches(parts)
    const { clientWork } = parts
    this.#flights = new SingleFlight({ createTail: () => new ArchiveTail(), clientWork })
  }

  /**
   * Opens a verified archive; the caller disposes of it. A missing one is downloaded first, however long that takes;
   * the download goes on when the caller leaves.
   * @throws MirrorError `ORIGIN_NOT_ALLOWED`, `*_NOT_FOUND`, `NOT_CACHED`, `UPSTREAM_*`, `STORAGE_*`, verification codes
   */
  async open(view: View, id: PackageId, call: Call): Promise<Answer<OpenBlob>> {
    return await this.#insist(id, async () => {
      return (await this.#openHeld(view, id)) ?? (await this.#openFetched(this.#fetchOnce(id, call)))
    })
  }

  /**
   * As `open`, but does not wait for the end of a download that may be handed on while it comes in. `sized`: only if
   * its length is known from the start.
   * @throws MirrorError as `open`
   */
  async follow(
    view: View,
    id: PackageId,
    call: Call,
    options: { sized: boolean },
  ): Promise<Answer<OpenBlob | ArrivingArchive>> {
    return await this.#insist<OpenBlob | ArrivingArchive>(id, async () => {
      const held = await this.#openHeld(view, id)
      if (held !== undefined) return held
      const flight = this.#fetchOnce(id, call)
      const arriving = await flight.tail().follow(options)
      return arriving === undefined ? this.#openFetched(flight) : { value: arriving, outcome: outcomeOf(flight) }
    })
  }

  /**
   * What `open` would give, without opening anything. A missing archive begins its download, which is not waited for.
   * @throws MirrorError as `open`
   */
  async describe(view: View, id: PackageId, call: Call): Promise<Answer<ArchiveFacts>> {
    assertOriginAllowed(view, id.address.hostname)
    const held = await this.#findHeld(id)
    const stat = held && (await this.#parts.blobs.stat(held.digest))
    if (stat !== undefined && stat.size === held?.size) return { value: stat, outcome: 'hit' }
    this.#fetches.upstream(id)
    const evidence = await this.#parts.releases.getPlatform(id.address, id.version, id.platform, call)
    const flight = this.#fetchOnce(id, call)
    return { value: { digest: evidence.digest, size: undefined }, outcome: outcomeOf(flight) }
  }

  /**
   * Sees to it that an archive is held, without opening it; gives its record. Ends when `call.leaving` fires.
   * `onProgress` is told some times a second how far the download is.
   * @throws MirrorError as `open`; the reason of `call.leaving`
   */
  async obtain(
    view: View,
    id: PackageId,
    { call, onProgress }: { call: Call; onProgress?: (arrived: Arrived) => void },
  ): Promise<Answer<ArchiveRecord>> {
    const held = await this.find(view, id)
    if (held !== undefined) return { value: held, outcome: 'hit' }
    const flight = this.#fetchOnce(id, call)
    const timer = setInterval(() => onProgress?.(flight.tail().arrived), PROGRESS_MS)
    try {
      return { value: await untilAborted(flight.done, call.leaving), outcome: outcomeOf(flight) }
    } finally {
      clearInterval(timer)
    }
  }

  /** The record of an archive that is held; asks nobody. @throws MirrorError `ORIGIN_NOT_ALLOWED`, `STORAGE_FAILED` */
  async find(view: View, id: PackageId): Promise<ArchiveRecord | undefined> {
    assertOriginAllowed(view, id.address.hostname)
    const held = await this.#findHeld(id)
    const stat = held && (await this.#parts.blobs.stat(held.digest))
    return stat !== undefined && stat.size === held?.size ? held : undefined
  }

  /**
   * The digest that an archive must have, by its evidence alone: no archive is begun.
   * @throws MirrorError `ORIGIN_NOT_ALLOWED`, `NOT_CACHED` if sealed; as `Releases.getPlatform`
   */
  async expect(view: View, id: PackageId, call: Call): Promise<Sha256> {
    assertOriginAllowed(view, id.address.hostname)
    this.#fetches.upstream(id)
    const { digest } = await this.#parts.releases.getPlatform(id.address, id.version, id.platform, call)
    return digest
  }

  /** Why the last download of an archive failed, if none succeeded since; asks nobody. */
  failureOf(id: PackageId): { readonly at: number; readonly error: MirrorError } | undefined {
    return this.#failures.peek(formatPackageName(id))
  }

  /** Waits until no download is running. */
  idle(): Promise<void> {
    return this.#flights.idle()
  }

  async #openHeld(view: View, id: PackageId): Promise<Answer<OpenBlob> | undefined> {
    assertOriginAllowed(view, id.address.hostname)
    const held = await this.#findHeld(id)
    const blob = held && (await this.#parts.blobs.open(held.digest))
    return blob && { value: blob, outcome: 'hit' }
  }

  async #findHeld({ address, version, platform }: PackageId): Promise<ArchiveRecord | undefined> {
    const { archives } = await this.#parts.catalogue.version(address, version)
    return archives.get(formatPlatform(platform))
  }

  #fetchOnce(id: PackageId, call: Call): Flight<ArchiveRecord, ArchiveTail> {
    const work = async (tail: ArchiveTail, abandoned: AbortSignal): Promise<ArchiveRecord> => {
      try {
        const record = await this.#fetches.fetch(id, { hops: call.hops, tail, abandoned })
        this.#failures.delete(formatPackageName(id))
        tail.release(record.digest)
        return record
      } catch (error) {
        if (isMirrorError(error) && !abandoned.aborted) {
          this.#failures.set(formatPackageName(id), { at: this.#parts.now(), error })
        }
        tail.fail(error)
        throw error
      }
    }
    return this.#flights.run(formatPackageName(id), work, call.leaving)
  }

  /** Undefined if it was evicted, or removed, as soon as it was there. */
  async #openFetched(flight: Flight<ArchiveRecord, ArchiveTail>): Promise<Answer<OpenBlob> | undefined> {
    const { digest } = await flight.done
    const blob = await this.#parts.blobs.open(digest)
    return blob && { value: blob, outcome: outcomeOf(flight) }
  }

  /** No request fails because space was made at the wrong moment. */
  async #insist<T>(id: PackageId, open: () => Promise<Answer<T> | undefined>): Promise<Answer<T>> {
    for (let tries = 0; tries < MAX_OPENINGS; tries++) {
      const answer = await open()
      if (answer !== undefined) return answer
    }
    throw vanished(formatPackageName(id))
  }
}

function outcomeOf({ joined }: Flight<unknown, unknown>): CacheOutcome {
  return joined ? 'coalesced' : 'miss'
}
