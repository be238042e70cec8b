import type { Platform } from '../protocol/platform.ts'
import type { ProviderAddress } from '../protocol/provider-address.ts'
import type { ProviderVersions } from '../protocol/provider-versions.ts'
import type { PublishedPlatform, ReleaseClaim } from '../protocol/release-claim.ts'

/** What every request to an upstream carries. */
export interface UpstreamRequest {
  /** Ends the work: deadline of the use case, or shutdown. Never the signal of one client. */
  readonly signal: AbortSignal
  /** Instances of Terramirror that this request has already passed, nearest last (the hop header). */
  readonly hops: readonly string[]
}

/** Which part of a release to ask for. */
export interface ReleaseQuery {
  readonly address: ProviderAddress
  /** The version in the spelling that the origin lists. */
  readonly spelling: string
  /** All are asked at once. None: the upstream asks the usual ones. */
  readonly platforms: readonly Platform[]
  /** Also ask, in a second round, for the platforms that SHA256SUMS names beyond `platforms`. */
  readonly extend: boolean
  /**
   * When this fires, platforms that have not answered are reported as `failed` (`UPSTREAM_TIMEOUT`) and the rest is
   * returned. Fires before `UpstreamRequest.signal` does.
   */
  readonly patience: AbortSignal
}

/**
 * A part of an archive on its way in. `restart` says that the upstream could not resume: all bytes so far are void and
 * the archive begins again.
 */
export type ArchivePiece = { readonly kind: 'bytes'; readonly bytes: Buffer } | { readonly kind: 'restart' }

/** An archive on its way in. Leaving the loop early closes the connection. Consumable once. */
export interface ArchiveStream extends AsyncIterable<ArchivePiece> {
  /** Length of the decoded archive in bytes, where the upstream told it. */
  readonly size: number | undefined
}

/**
 * Where providers come from: an origin registry, another mirror, a folder. Answers are claims; nothing is verified
 * here. Absence is an error that `isNotFound` recognises, and only on the upstream's own word (design, rule 3).
 */
export interface ProviderUpstream {
  /**
   * All versions that the upstream lists, unparsable ones left out and reported.
   * @throws MirrorError `PROVIDER_NOT_FOUND`, `NO_PROVIDER_SERVICE`, `UPSTREAM_*`
   */
  versions(address: ProviderAddress, request: UpstreamRequest): Promise<ProviderVersions>

  /**
   * What the upstream says about the asked platforms of one version, with SHA256SUMS and signature. Failures of single
   * platforms or of the checksums are part of the claim; only a failure of everything (discovery) is thrown.
   * @throws MirrorError `NO_PROVIDER_SERVICE`, `UPSTREAM_*`
   */
  release(query: ReleaseQuery, request: UpstreamRequest): Promise<ReleaseClaim>

  /**
   * Opens the archive that `published` names. Retries and resumes inside; the caller checks the digest.
   * @throws MirrorError `UPSTREAM_*`, also while iterating
   */
  openArchive(published: Pick<PublishedPlatform, 'archiveUrl'>, request: UpstreamRequest): Promise<ArchiveStream>
}
