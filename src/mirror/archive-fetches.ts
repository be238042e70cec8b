import { isMirrorError, MirrorError, redactUrl } from '../errors.ts'
import type { Log } from '../log.ts'
import { formatPlatform } from '../protocol/platform.ts'
import { formatProviderAddress } from '../protocol/provider-address.ts'
import type { BlobLeases } from '../store/blob-leases.ts'
import type { ProviderUpstream } from '../upstream/provider-upstream.ts'
import { type DownloadParts, obtainArchive } from './archive-download.ts'
import type { ArchiveTail } from './archive-tail.ts'
import type { Call } from './call.ts'
import type { Catalogue } from './catalogue.ts'
import { createDeadline } from './deadline.ts'
import type { PackageHashes } from './package-hashes.ts'
import type { ArchiveRecord, ReleasePlatform } from './release-record.ts'
import type { Releases } from './releases.ts'
import type { BlobClaims } from './stock/blob-claims.ts'
import { formatPackageName, type PackageId } from './stock/item-name.ts'
import type { UpstreamFor } from './upstreams.ts'

/** How long the documents for an archive may take; the archive itself may take as long as bytes keep coming. */
const DOCUMENTS_MS = 8_000
/** With a fresh document each time: a signed link may have expired, or the origin released anew. */
const MAX_ATTEMPTS = 2

/** What `ArchiveFetches` is made of. */
export interface ArchiveFetchesParts extends DownloadParts {
  readonly catalogue: Catalogue
  readonly claims: BlobClaims
  readonly leases: BlobLeases
  readonly releases: Releases
  readonly hashes: PackageHashes
  readonly upstreamFor: UpstreamFor
  readonly shutdown: AbortSignal
  readonly now: () => number
  readonly log: Log
}

/** What a fetch is begun with. */
export interface ArchiveFetch {
  /** Mirrors that the request has already passed. */
  readonly hops: readonly string[]
  readonly tail: ArchiveTail
  /** Fires when nobody wants it any more. */
  readonly abandoned: AbortSignal
}

/** The pull-through of archives, one straight page. The blob comes first, the record last. */
export class ArchiveFetches {
  readonly #parts: ArchiveFetchesParts

  constructor(parts: ArchiveFetchesParts) {
    this.#parts = parts
  }

  /** Where an archive comes from. @throws MirrorError `NOT_CACHED` if the mirror is sealed */
  upstream(id: PackageId): ProviderUpstream {
    const upstream = this.#parts.upstreamFor(id.address.hostname)
    if (upstream !== undefined) return upstream
    const item = formatPackageName(id)
    throw new MirrorError('NOT_CACHED', `${item} is not cached, and this mirror is sealed: warm it while online`, {
      item,
    })
  }

  /**
   * Fetches one archive: evidence, bytes, digest, blob, safety, record. The tail sees the bytes, and not the end.
   * @throws MirrorError as `Archives.open`
   */
  async fetch(id: PackageId, { hops, tail, abandoned }: ArchiveFetch): Promise<ArchiveRecord> {
    const upstream = this.upstream(id)
    const { releases, hashes, claims, leases, shutdown, log } = this.#parts
    const signal = AbortSignal.any([shutdown, abandoned])
    let evidence = await releases.getPlatform(id.address, id.version, id.platform, documentsCall(hops, abandoned))
    for (let attempt = 1; ; attempt++) {
      try {
        using _claim = await claims.claim([evidence.digest])
        using _lease = lingering(await leases.lease(evidence.digest))
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

/** Whoever waits for a flight opens its blob in the turn in which the flight ends: until then it is not evicted. */
function lingering(lease: Disposable): Disposable {
  return { [Symbol.dispose]: () => void setImmediate(() => lease[Symbol.dispose]()) }
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
