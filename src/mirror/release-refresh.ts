import { MirrorError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Hostname } from '../protocol/hostname.ts'
import { formatProviderAddress, type ProviderAddress } from '../protocol/provider-address.ts'
import type { ListedVersion } from '../protocol/provider-versions.ts'
import type { Version } from '../protocol/version.ts'
import type { BlobStore } from '../store/blob-store.ts'
import { SerialByKey } from '../store/serial-by-key.ts'
import type { AuthenticatedRelease, VerificationRules } from '../verify/authenticate-release.ts'
import type { Catalogue, HeldVersion } from './catalogue.ts'
import { createDeadline } from './deadline.ts'
import type { Freshness } from './freshness.ts'
import { type KnownRelease, knownRelease, problemsOf, releaseWithGaps, unchangedRelease } from './known-release.ts'
import type { MirrorObserver } from './observer.ts'
import { type Candidate, createRelease, findChangedFile, isSameRelease } from './release-adoption.ts'
import { checkRelease } from './release-check.ts'
import { ReleaseRecorder, type Unsaved } from './release-recorder.ts'
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
  readonly observer: MirrorObserver
  readonly now: () => number
  readonly log: Log
}

/** How to ask the origin. */
export interface Question {
  readonly hops: readonly string[]
  /** For every document, not for a probe of a complete release. */
  readonly whole: boolean
}

/** What came of asking the origin about a release. */
export interface Refreshed {
  readonly known: KnownRelease
  /** When the origin had answered. */
  readonly at: number
  /** What could not be written; the next request tries again. */
  readonly unsaved?: Unsaved | undefined
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
    { held, hops, whole }: Question & { held: HeldVersion },
  ): Promise<Refreshed> {
    const { catalogue, versions, freshness, shutdown, rulesFor, upstreamFor, now } = this.#parts
    const upstream = upstreamFor(address.hostname)
    if (upstream === undefined) throw new MirrorError('NOT_CACHED', 'this mirror is sealed', { item: 'release' })
    const deadline = createDeadline(freshness.refreshForMs)
    const signal = AbortSignal.any([deadline.signal, shutdown])
    const listed = await versions.find(address, version, { deadline, hops })
    const rules = { ...rulesFor(address.hostname), everSigned: (await catalogue.trust(address)) !== undefined }
    const checked = await checkRelease({ upstream, address, listed, held, whole, rules, deadline, signal, hops, now })
    if (checked === 'unchanged' && held.release !== undefined) return { known: knownRelease(held.release), at: now() }
    if (checked === 'unchanged') throw new Error('a release that is not held cannot be unchanged')
    reportRelease(nameOf(address, version), checked, this.#parts)
    return this.exclusively(address, version, () => this.#adopt(address, listed, checked))
  }

  async #adopt(
    address: ProviderAddress,
    listed: ListedVersion,
    authenticated: AuthenticatedRelease,
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
    const changed = findChangedFile(candidate)
    if (changed !== undefined) {
      log.warn({ release: name, err: changed, adopted: held.pin === undefined }, 'an origin changed a release')
      observer.releaseChanged()
      if (held.pin !== undefined) {
        if (held.release === undefined) throw changed
        return { known: unchangedRelease(held.release, authenticated, { changed, problems }), at: now() }
      }
    }
    const reason = [...authenticated.refused, ...authenticated.unanswered][0]?.error
    if (authenticated.packages.length === 0 && reason !== undefined) throw reason
    const { release, evidence } = createRelease(candidate)
    const known = releaseWithGaps(release, authenticated, problems)
    const same = isSameRelease(held.release, release) && (await this.#recorder.holds(evidence))
    if (same || authenticated.packages.length === 0) return { known, at: now() }
    return { known, at: now(), unsaved: await this.#recorder.save(candidate, { release, evidence }) }
  }
}

function nameOf(address: ProviderAddress, version: Version): string {
  return `${formatProviderAddress(address)} ${version}`
}
