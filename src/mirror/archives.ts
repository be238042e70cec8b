import { LRUCache } from 'lru-cache'
import { isMirrorError, MirrorError, redactUrl } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Sha256 } from '../protocol/package-hash.ts'
import { formatPlatform, type Platform } from '../protocol/platform.ts'
import { formatProviderAddress, type ProviderAddress } from '../protocol/provider-address.ts'
import type { Version } from '../protocol/version.ts'
import type { BlobStore, OpenBlob } from '../store/blob-store.ts'
import type { ProviderUpstream } from '../upstream/provider-upstream.ts'
import { type FindUnsafety, vanished } from './archive-check.ts'
import { type Delivery, obtainArchive } from './archive-download.ts'
import { ArchiveTail, type Arrived, type ArrivingArchive } from './archive-tail.ts'
import type { Answer, CacheOutcome, Call } from './call.ts'
import type { Catalogue } from './catalogue.ts'
import type { ClientWork } from './client-work.ts'
import { createDeadline, untilAborted } from './deadline.ts'
import type { MirrorObserver } from './observer.ts'
import type { PackageHashes } from './package-hashes.ts'
import type { ArchiveRecord, ReleasePlatform } from './release-record.ts'
import type { Releases } from './releases.ts'
import { type Flight, SingleFlight } from './single-flight.ts'
import type { BlobClaims } from './stock/blob-claims.ts'
import { formatPackageName } from './stock/item-name.ts'
import type { UpstreamFor } from './upstreams.ts'
import { assertOriginAllowed, type View } from './view.ts'

/** How long the documents for an archive may take; the archive itself may take as long as bytes keep coming. */
const DOCUMENTS_MS = 8_000
/** Between two reports of how far a download is. */
const PROGRESS_MS = 250
/** With a fresh document each time: a signed link may have expired, or the origin released anew. */
const MAX_ATTEMPTS = 2

/** One archive of a provider. */
export interface PackageId {
  readonly address: ProviderAddress
  readonly version: Version
  readonly platform: Platform
}

/** An archive as it can be told without opening it. */
export interface ArchiveFacts {
  readonly digest: string
  /** In bytes; undefined while it is not held. */
  readonly size: number | undefined
}

/** What `Archives` is made of. */
export interface ArchivesParts {
  readonly catalogue: Catalogue
  readonly claims: BlobClaims
  readonly blobs: BlobStore
  readonly releases: Releases
  readonly hashes: PackageHashes
  readonly findUnsafety: FindUnsafety
  readonly upstreamFor: UpstreamFor
  readonly delivery: Delivery
  readonly shutdown: AbortSignal
  /** Is told of the downloads that clients wait for. */
  readonly clientWork?: ClientWork
  readonly observer: MirrorObserver
  readonly now: () => number
  readonly log: Log
}

/** The archives themselves: from what is held, else pulled through once for all who ask, and verified before use. */
export class Archives {
  readonly #parts: ArchivesParts
  readonly #flights: SingleFlight<ArchiveRecord, ArchiveTail>

  readonly #failures = new LRUCache<string, { readonly at: number; readonly error: MirrorError }>({ max: 1_000 })

  constructor(parts: ArchivesParts) {
    this.#parts = parts
    const { clientWork } = parts
    this.#flights = new SingleFlight({ createTail: () => new ArchiveTail(), clientWork })
  }

  /**
   * Opens a verified archive; the caller disposes of it. A missing one is downloaded first, however long that takes;
   * the download goes on when the caller leaves.
   * @throws MirrorError `ORIGIN_NOT_ALLOWED`, `*_NOT_FOUND`, `NOT_CACHED`, `UPSTREAM_*`, `STORAGE_*`, verification codes
   */
  async open(view: View, id: PackageId, call: Call): Promise<Answer<OpenBlob>> {
    const held = await this.#openHeld(view, id)
    return held ?? this.#openFetched(id, this.#fetchOnce(id, call))
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
    const held = await this.#openHeld(view, id)
    if (held !== undefined) return held
    const flight = this.#fetchOnce(id, call)
    const arriving = await flight.tail().follow(options)
    return arriving === undefined ? this.#openFetched(id, flight) : { value: arriving, outcome: outcomeOf(flight) }
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
    this.#assertOnline(id)
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
    this.#assertOnline(id)
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

  #assertOnline(id: PackageId): ProviderUpstream {
    const upstream = this.#parts.upstreamFor(id.address.hostname)
    if (upstream !== undefined) return upstream
    const item = formatPackageName(id)
    throw new MirrorError('NOT_CACHED', `${item} is not cached, and this mirror is sealed: warm it while online`, {
      item,
    })
  }

  #fetchOnce(id: PackageId, call: Call): Flight<ArchiveRecord, ArchiveTail> {
    const work = async (tail: ArchiveTail, abandoned: AbortSignal): Promise<ArchiveRecord> => {
      try {
        const record = await this.#fetch(id, call.hops, { tail, abandoned })
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

  async #openFetched(id: PackageId, flight: Flight<ArchiveRecord, ArchiveTail>): Promise<Answer<OpenBlob>> {
    const { digest } = await flight.done
    const blob = await this.#parts.blobs.open(digest)
    if (blob !== undefined) return { value: blob, outcome: outcomeOf(flight) }
    throw vanished(formatPackageName(id))
  }

  /** The pull-through of one archive: evidence, bytes, digest, blob, safety, record. */
  async #fetch(
    id: PackageId,
    hops: readonly string[],
    { tail, abandoned }: { tail: ArchiveTail; abandoned: AbortSignal },
  ): Promise<ArchiveRecord> {
    const upstream = this.#assertOnline(id)
    const { releases, hashes, claims, shutdown, log } = this.#parts
    const signal = AbortSignal.any([shutdown, abandoned])
    let evidence = await releases.getPlatform(id.address, id.version, id.platform, documentsCall(hops, abandoned))
    for (let attempt = 1; ; attempt++) {
      try {
        using _claim = await claims.claim([evidence.digest])
        const job = { name: formatPackageName(id), evidence, upstream, hops, tail, signal }
        const size = await obtainArchive(job, this.#parts)
        const record = await this.#record(id, evidence, size)
        if (record !== undefined) {
          hashes.ensure(evidence.digest, evidence.statedHashes, formatPackageName(id))
          return record
        }
      } catch (error) {
        tail.abandon(error)
        if (attempt === MAX_ATTEMPTS || signal.aborted || !mayBeOutdated(error)) throw error
        log.warn(
          { archive: formatPackageName(id), err: error },
          'an archive is not what its document says; asking for both again',
        )
      }
      if (attempt === MAX_ATTEMPTS) throw releaseKeepsChanging(id)
      await releases.refresh(id.address, id.version, documentsCall(hops, abandoned))
      evidence = await releases.getPlatform(id.address, id.version, id.platform, documentsCall(hops, abandoned))
    }
  }

  /** Pin first, record last. Undefined if meanwhile the release names another digest. */
  #record(id: PackageId, evidence: ReleasePlatform, size: number): Promise<ArchiveRecord | undefined> {
    const { releases, catalogue, now } = this.#parts
    const { address, version } = id
    const platform = formatPlatform(id.platform)
    return releases.whileCurrent(address, version, {
      platform,
      digest: evidence.digest,
      work: async ({ generation }) => {
        const at = new Date(now()).toISOString()
        const record: ArchiveRecord = {
          format: 1,
          address: formatProviderAddress(address),
          version,
          platform,
          filename: evidence.filename,
          digest: evidence.digest,
          size,
          generation,
          authentication: evidence.authentication,
          archiveUrl: redactUrl(evidence.archiveUrl),
          cachedAt: at,
        }
        const { pin } = await catalogue.version(address, version)
        if (pin === undefined) await catalogue.savePin(address, version, { format: 1, generation, pinnedAt: at })
        await catalogue.saveArchive(address, id.platform, record)
        return record
      },
    })
  }
}

function outcomeOf({ joined }: Flight<unknown, unknown>): CacheOutcome {
  return joined ? 'coalesced' : 'miss'
}

/** Wrong bytes or a dead link: a newer document may name better ones. */
function mayBeOutdated(error: unknown): boolean {
  if (!isMirrorError(error)) return false
  return error.is('CHECKSUM_MISMATCH') || (error.is('UPSTREAM_STATUS') && error.fields.upstreamStatus < 500)
}

function releaseKeepsChanging(id: PackageId): MirrorError {
  const { address, version } = id
  return new MirrorError(
    'UPSTREAM_INVALID',
    `${formatPackageName(id)}: the origin keeps changing this release; try again later`,
    {
      host: address.hostname,
      upstreamUrl: '',
      reason: `release ${version} changed during the download`,
    },
  )
}

function documentsCall(hops: readonly string[], leaving: AbortSignal): Call {
  return { deadline: createDeadline(DOCUMENTS_MS), hops, leaving }
}
