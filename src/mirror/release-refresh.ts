import { MirrorError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Hostname } from '../protocol/hostname.ts'
import { formatProviderAddress, type ProviderAddress } from '../protocol/provider-address.ts'
import type { ListedVersion } from '../protocol/provider-versions.ts'
import type { Version } from '../protocol/version.ts'
import type { BlobStore } from '../store/blob-store.ts'
import { SerialByKey } from '../store/serial-by-key.ts'
import type { AuthenticatedRelease, VerificationRules } from '../verify/authenticate-release.ts'
import type { Catalogue } from './catalogue.ts'
import type { ClientWork } from './client-work.ts'
import { createDeadline } from './deadline.ts'
import type { Freshness } from './freshness.ts'
import { type KnownRelease, knownRelease, problemsOf, releaseWithGaps, unchangedRelease } from './known-release.ts'
import type { MirrorObserver } from './observer.ts'
import type { HeldVersion } from './provider-records.ts'
import {
  type Candidate,
  type ChangedFile,
  createRelease,
  findChangedFile,
  findChangedFiles,
  isSameRelease,
} from './release-adoption.ts'
import { checkRelease } from './release-check.ts'
import { ReleaseRecorder, type Unsaved } from './release-recorder.ts'
import type { ReleaseReplacement } from './release-replacement.ts'
import { reportRelease } from './release-report.ts'
import type { BlobClaims } from './stock/blob-claims.ts'
import type { UpstreamFor } from './upstreams.ts'
import type { Versions } from './versions.ts'

/** What `Releases` is made of. */
export interface ReleasesParts {
  readonly catalogue: Catalogue
  readonly claims: BlobClaims
  readonly blobs: BlobStore
  readonly versions: Versions
  readonly upstreamFor: UpstreamFor
  readonly rulesFor: (hostname: Hostname) => Omit<VerificationRules, 'everSigned'>
  readonly freshness: Freshness
  readonly shutdown: AbortSignal
  /** Is told of the checks that clients cause. */
  readonly clientWork?: ClientWork
  readonly observer: MirrorObserver
  /** Takes archives of replaced generations out. */
  readonly replacement: ReleaseReplacement
  readonly now: () => number
  readonly log: Log
}

/** How to ask the origin. */
export interface Question {
  readonly hops: readonly string[]
  /** For every document, not for a probe of a complete release. */
  readonly whole: boolean
  /** Fires when nobody wants to know any more. */
  readonly abandoned: AbortSignal
  /** An operator has accepted that files of a pinned version may change: the new generation replaces what is held. */
  readonly replace?: boolean
}

/** What came of asking the origin about a release. */
export interface Refreshed {
  readonly known: KnownRelease
  /** When the origin had answered. */
  readonly at: number
  /** What could not be written; the next request tries again. */
  readonly unsaved?: Unsaved | undefined
  /** Files that the origin released anew with other bytes, and whether they were taken over. */
  readonly changed?: { readonly files: readonly ChangedFile[]; readonly adopted: boolean }
}

/** Asks an origin about a version, authenticates what it says, and adopts and records it if nothing known changes. */
export class ReleaseRefresh {
  readonly #parts: ReleasesParts
  readonly #adopting = new SerialByKey()
  readonly #recorder: ReleaseRecorder

  constructor(parts: ReleasesParts) {
    this.#parts = parts
    this.#recorder = new ReleaseRecorder(parts)
  }

  /** Runs `work` while no other generation of this version can be adopted. @throws what `work` throws */
  exclusively<T>(address: ProviderAddress, version: Version, work: () => Promise<T>): Promise<T> {
    return this.#adopting.run(nameOf(address, version), work)
  }

  /** `held` is what is held of the version. @throws MirrorError as `Releases.get` */
  async run(
    address: ProviderAddress,
    version: Version,
    { held, hops, whole, abandoned, replace = false }: Question & { held: HeldVersion },
  ): Promise<Refreshed> {
    const { catalogue, versions, freshness, shutdown, rulesFor, upstreamFor, now } = this.#parts
    const upstream = upstreamFor(address.hostname)
    if (upstream === undefined) throw new MirrorError('NOT_CACHED', 'this mirror is sealed', { item: 'release' })
    const deadline = createDeadline(freshness.refreshForMs)
    const signal = AbortSignal.any([deadline.signal, shutdown, abandoned])
    const listed = await versions.find(address, version, { deadline, hops, leaving: abandoned })
    const rules = { ...rulesFor(address.hostname), everSigned: (await catalogue.trust(address)) !== undefined }
    const checked = await checkRelease({ upstream, address, listed, held, whole, rules, deadline, signal, hops, now })
    // What it lacks then is not the origin's doing.
    abandoned.throwIfAborted()
    if (checked === 'unchanged' && held.release !== undefined) return { known: knownRelease(held.release), at: now() }
    if (checked === 'unchanged') throw new Error('a release that is not held cannot be unchanged')
    reportRelease(nameOf(address, version), checked, this.#parts)
    return this.exclusively(address, version, () => this.#adopt(address, listed, checked, replace))
  }

  async #adopt(
    address: ProviderAddress,
    listed: ListedVersion,
    authenticated: AuthenticatedRelease,
    replace: boolean,
  ): Promise<Refreshed> {
    const { catalogue, observer, log, now } = this.#parts
    const name = nameOf(address, listed.version)
    const held = await catalogue.version(address, listed.version)
    const problems = problemsOf(authenticated, address, listed.version)
    const candidate: Candidate = {
      address,
      listed,
      authenticated,
      held,
      missing: [...problems.keys()],
      at: new Date(now()).toISOString(),
    }
    const files = findChangedFiles(candidate)
    const error = findChangedFile(candidate)
    if (error !== undefined && !replace) {
      log.warn({ release: name, err: error, adopted: held.pin === undefined }, 'an origin changed a release')
      observer.releaseChanged()
      if (held.pin !== undefined) {
        if (held.release === undefined) throw error
        const known = unchangedRelease(held.release, authenticated, { changed: error, problems })
        return { known, at: now(), changed: { files, adopted: false } }
      }
    }
    const reason = [...authenticated.refused, ...authenticated.unanswered][0]?.error
    if (authenticated.packages.length === 0 && reason !== undefined) throw reason
    const next = createRelease(candidate)
    const known = releaseWithGaps(next.release, authenticated, problems)
    const refreshed = { known, at: now(), ...(files.length > 0 ? { changed: { files, adopted: true } } : {}) }
    if (replace && files.length > 0) {
      // A platform that has not answered would be gone, though it may be there.
      if (authenticated.unanswered[0] !== undefined) throw authenticated.unanswered[0].error
      await this.#parts.replacement.carryOut(candidate, next)
      return refreshed
    }
    const same = isSameRelease(held.release, next.release) && (await this.#recorder.holds(next.evidence))
    if (same || authenticated.packages.length === 0) return refreshed
    return { ...refreshed, unsaved: await this.#recorder.save(candidate, next) }
  }
}

function nameOf(address: ProviderAddress, version: Version): string {
  return `${formatProviderAddress(address)} ${version}`
}
