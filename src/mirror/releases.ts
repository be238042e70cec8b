import { LRUCache } from 'lru-cache'
import { isMirrorError, isNotFound, MirrorError } from '../errors.ts'
import type { Sha256 } from '../protocol/package-hash.ts'
import { formatPlatform, type Platform } from '../protocol/platform.ts'
import { formatProviderAddress, type ProviderAddress } from '../protocol/provider-address.ts'
import type { Version } from '../protocol/version.ts'
import type { Answer, Call } from './call.ts'
import { settledWithin, slowOrigin, waitFor } from './deadline.ts'
import { whileYoung } from './freshness.ts'
import { isEmpty, type KnownRelease, knownRelease } from './known-release.ts'
import { notCached } from './origin-lists.ts'
import { namesEvidence, type Release, type ReleasePlatform } from './release-record.ts'
import { type Question, type Refreshed, ReleaseRefresh, type ReleasesParts } from './release-refresh.ts'
import { type Flight, SingleFlight } from './single-flight.ts'

/** What is known of a release since a moment. */
export interface Check extends Refreshed {
  /** Why the origin could not confirm; `known` is then what was known before. */
  readonly failure?: MirrorError
  /** When the origin last confirmed what is known, in ms since 1970. */
  readonly confirmedAt: number
}

/** What the last check with the origin left in memory. Times in milliseconds since 1970. */
export interface RememberedCheck {
  /** Undefined if none succeeded since the start. */
  readonly check: Check | undefined
  /** Why nothing came of the last one, if nothing was known before. */
  readonly failure: { readonly at: number; readonly error: MirrorError } | undefined
}

/** The evidence for one platform, and the release that all of it belongs to. */
export interface PlatformEvidence {
  readonly release: Release
  readonly platform: ReleasePlatform
}

/** The evidence of single versions: asked for, authenticated, recorded, and kept although the origin changes its mind. */
export class Releases {
  readonly #parts: ReleasesParts
  readonly #checks = new LRUCache<string, Check>({ max: 1_000 })
  readonly #running: SingleFlight<Check>
  readonly #failures = new LRUCache<string, { at: number; error: MirrorError }>({ max: 1_000 })
  readonly #refresh: ReleaseRefresh

  constructor(parts: ReleasesParts) {
    this.#parts = parts
    this.#running = new SingleFlight({ clientWork: parts.clientWork })
    this.#refresh = new ReleaseRefresh(parts)
  }

  /**
   * The release of one version. What is held is used while it is fresh, and stale if the origin is slow or down.
   * @throws MirrorError `VERSION_NOT_FOUND`, `PROVIDER_NOT_FOUND`, `NO_PROVIDER_SERVICE`, `NOT_CACHED`, `UPSTREAM_*`;
   *   a verification code if no platform could be authenticated
   */
  async get(address: ProviderAddress, version: Version, call: Call): Promise<Answer<KnownRelease>> {
    const name = nameOf(address, version)
    const { hostname } = address
    const held = await this.#parts.catalogue.version(address, version)
    const check = this.#checks.get(name)
    const known = held.release === undefined ? check?.known : knownRelease(held.release, check?.known)

    if (this.#parts.upstreamFor(hostname) === undefined) {
      if (known !== undefined) return { value: known, outcome: 'hit', isCurrent: always }
      throw notCached(name)
    }
    if (known !== undefined && check !== undefined && this.#isFresh(check)) {
      const answer = this.#answerOf({ ...check, known }, 'hit')
      const isCurrent = whileYoung(check.at, this.#freshForMs(check), this.#parts.now)
      return answer.outcome === 'hit' ? { ...answer, isCurrent } : answer
    }

    const flight = this.#begin(address, version, { call, whole: false })
    if (known === undefined || isEmpty(known)) {
      return this.#answerOf(
        await waitFor(flight.done, call.deadline.signal, { name, hostname }),
        flight.joined ? 'coalesced' : 'miss',
      )
    }
    // A pinned and complete release can only grow: nobody waits for that.
    if (held.pin !== undefined && known.release.complete) {
      return check === undefined ? { value: known, outcome: 'hit' } : this.#answerOf({ ...check, known }, 'hit')
    }
    // Without the platforms that are unanswered there is no answer that could be given early.
    const patienceMs = known.unanswered === undefined ? this.#parts.freshness.graceMs : call.deadline.remainingMs()
    if (await settledWithin(flight.done, patienceMs)) {
      return this.#answerOf(await flight.done, flight.joined ? 'coalesced' : 'miss')
    }
    const confirmedAt = check?.confirmedAt ?? Date.parse(known.release.recordedAt)
    return this.#stale(known, slowOrigin({ name, hostname }), confirmedAt)
  }

  /**
   * The evidence for one platform, asking again for one that is only inferred.
   * @throws MirrorError `PLATFORM_NOT_FOUND`; why the platform was refused; what `get` throws
   */
  async getPlatform(
    address: ProviderAddress,
    version: Version,
    platform: Platform,
    call: Call,
  ): Promise<ReleasePlatform> {
    return (await this.getEvidence(address, version, platform, call)).value.platform
  }

  /** As `getPlatform`, with the release, and how the answer came about. @throws MirrorError as `getPlatform` */
  async getEvidence(
    address: ProviderAddress,
    version: Version,
    platform: Platform,
    call: Call,
  ): Promise<Answer<PlatformEvidence>> {
    const name = formatPlatform(platform)
    const answer = await this.get(address, version, call)
    const { reason } = answer
    const known = answer.value.inferred.has(name)
      ? (await this.#askAgain(address, version, call, false)).value
      : answer.value
    const found = known.release.platforms[name]
    if (found !== undefined) return { ...answer, value: { release: known.release, platform: found } }
    const remembered = known.problems.get(name)
    const outage = isNotFound(reason) ? undefined : reason
    // That it was a 404 some time ago says nothing while the origin cannot be asked (design, rule 3).
    const problem = isNotFound(remembered) ? (outage ?? remembered) : (remembered ?? outage)
    if (problem !== undefined) throw problem
    if (this.#parts.upstreamFor(address.hostname) === undefined) throw notCached(`${nameOf(address, version)} ${name}`)
    throw new MirrorError('PLATFORM_NOT_FOUND', `${nameOf(address, version)} is not published for ${name}`, {
      address: formatProviderAddress(address),
      version,
      platform: name,
    })
  }

  /** Asks the origin for every document anew, or joins who is doing so. @throws MirrorError as `get` */
  refresh(address: ProviderAddress, version: Version, call: Call): Promise<Answer<KnownRelease>> {
    return this.#askAgain(address, version, call, true)
  }

  /**
   * Asks the origin for every document anew, for an operator: nothing stale counts, and a failure is one. With `replace`,
   * files of a pinned version may change: what is held of it is then replaced by the new generation.
   * @throws MirrorError as `get`; `RELEASE_CHANGED` if files changed of which no release is recorded, without `replace`;
   *   `STORAGE_*` if a new generation cannot be recorded: then the old one stays
   */
  async renew(
    address: ProviderAddress,
    version: Version,
    { hops, replace }: { hops: readonly string[]; replace: boolean },
  ): Promise<Refreshed> {
    const name = nameOf(address, version)
    const { done } = this.#running.run(`${name} (${replace ? 'replace' : 'renew'})`, async (_, abandoned) => {
      const held = await this.#parts.catalogue.version(address, version)
      const refreshed = await this.#refresh.run(address, version, {
        ...{ held, hops, whole: true, replace, abandoned },
      })
      const check: Check = { ...refreshed, confirmedAt: refreshed.at }
      this.#keep(address, version, check)
      return check
    })
    return await done
  }

  /**
   * A blob that the release names, or named before its last change: `unknown` if it is none of these, `lost` if it is
   * not held any more. Asks nobody. @throws MirrorError `STORAGE_FAILED`
   */
  async readEvidence(
    address: ProviderAddress,
    version: Version,
    digest: Sha256,
  ): Promise<Uint8Array | 'unknown' | 'lost'> {
    const { catalogue, blobs } = this.#parts
    const { release } = await catalogue.version(address, version)
    const unsaved = this.#checks.get(nameOf(address, version))?.unsaved?.evidence.get(digest)
    if (unsaved !== undefined) return unsaved
    if (release === undefined || !namesEvidence(release, digest)) return 'unknown'
    return (await blobs.read(digest)) ?? 'lost'
  }

  async #askAgain(
    address: ProviderAddress,
    version: Version,
    call: Call,
    whole: boolean,
  ): Promise<Answer<KnownRelease>> {
    const { done, joined } = this.#begin(address, version, { call, whole })
    const check = await waitFor(done, call.deadline.signal, {
      name: nameOf(address, version),
      hostname: address.hostname,
    })
    return this.#answerOf(check, joined ? 'coalesced' : 'miss')
  }

  /**
   * Runs `work` while no other generation of this version can be adopted, if the recorded release still names `digest`
   * for the platform. Undefined, without running it, if it does not.
   * @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED` if the release could not be recorded; what `work` throws
   */
  whileCurrent<T>(
    address: ProviderAddress,
    version: Version,
    { platform, digest, work }: { platform: string; digest: string; work: (release: Release) => Promise<T> },
  ): Promise<T | undefined> {
    const name = nameOf(address, version)
    return this.#refresh.exclusively(address, version, async () => {
      const { release } = await this.#parts.catalogue.version(address, version)
      if (release?.platforms[platform]?.digest === digest) return work(release)
      const unsaved = this.#checks.get(name)?.unsaved
      if (unsaved !== undefined) throw unsaved.error
      return undefined
    })
  }

  /**
   * Runs `work`, which removes the records of a version, while nothing of it can be adopted; then what is known of it in
   * memory is forgotten too. @throws what `work` throws
   */
  forget(address: ProviderAddress, version: Version, work: () => Promise<void>): Promise<void> {
    return this.#refresh.exclusively(address, version, async () => {
      await work()
      this.#checks.delete(nameOf(address, version))
      this.#failures.delete(nameOf(address, version))
      this.#parts.catalogue.editions.end(formatProviderAddress(address))
    })
  }

  /** What is remembered of a version beside its records; asks nobody. */
  remembered(address: ProviderAddress, version: Version): RememberedCheck {
    const name = nameOf(address, version)
    return { check: this.#checks.peek(name), failure: this.#failures.peek(name) }
  }

  /** Waits until no check is running. */
  idle(): Promise<void> {
    return this.#running.idle()
  }

  #answerOf({ known, failure, confirmedAt }: Check, outcome: 'hit' | 'miss' | 'coalesced'): Answer<KnownRelease> {
    return failure === undefined ? { value: known, outcome } : this.#stale(known, failure, confirmedAt)
  }

  #stale(known: KnownRelease, reason: MirrorError, confirmedAt: number): Answer<KnownRelease> {
    return { value: known, outcome: 'stale', reason, staleForMs: Math.max(0, this.#parts.now() - confirmedAt) }
  }

  #isFresh(check: Check): boolean {
    const age = this.#parts.now() - check.at
    return age >= 0 && age < this.#freshForMs(check)
  }

  /** For how long a check counts. */
  #freshForMs({ failure, unsaved, known }: Check): number {
    const { freshness } = this.#parts
    if (unsaved !== undefined || known.unanswered !== undefined) return 0
    if (failure !== undefined) return freshness.backOffMs
    return known.release.complete ? freshness.freshForMs : freshness.notFoundForMs
  }

  /** Who wants all documents anew is not served by a probe under way: that is a flight of its own. */
  #begin(address: ProviderAddress, version: Version, { call, whole }: { call: Call; whole: boolean }): Flight<Check> {
    const name = nameOf(address, version)
    return this.#running.run(
      whole ? `${name} (whole)` : name,
      (_, abandoned) => this.#check(address, version, { hops: call.hops, whole, abandoned }),
      call.leaving,
    )
  }

  /** One check with the origin. With a release held it does not fail, but says why it could not be confirmed. */
  async #check(address: ProviderAddress, version: Version, question: Question): Promise<Check> {
    const name = nameOf(address, version)
    const held = await this.#parts.catalogue.version(address, version)
    const before = this.#checks.get(name)
    const known = held.release === undefined ? before?.known : knownRelease(held.release, before?.known)
    let check: Check
    try {
      const refreshed = await this.#refresh.run(address, version, { held, ...question })
      check = { ...refreshed, confirmedAt: refreshed.at }
    } catch (error) {
      if (isMirrorError(error) && !question.abandoned.aborted) {
        this.#failures.set(name, { at: this.#parts.now(), error })
      }
      if (known === undefined || isEmpty(known) || !isMirrorError(error) || question.abandoned.aborted) throw error
      // Withdrawn before anybody installed it: its evidence alone keeps nothing alive.
      if (isNotFound(error) && held.pin === undefined) throw error
      const confirmedAt = before?.confirmedAt ?? Date.parse(known.release.recordedAt)
      check = { known, at: this.#parts.now(), failure: error, confirmedAt }
      this.#parts.log.warn(
        { release: name, err: error },
        'an origin could not confirm a release; what is held is served',
      )
    }
    this.#keep(address, version, check)
    return check
  }

  #keep(address: ProviderAddress, version: Version, check: Check): void {
    this.#checks.set(nameOf(address, version), check)
    if (check.failure === undefined) this.#failures.delete(nameOf(address, version))
    this.#parts.catalogue.editions.end(formatProviderAddress(address))
  }
}

/** Nobody is ever asked; top-level, so that it keeps nothing in memory. */
function always(): true {
  return true
}

function nameOf(address: ProviderAddress, version: Version): string {
  return `${formatProviderAddress(address)} ${version}`
}
