import { LRUCache } from 'lru-cache'
import { MirrorError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Version } from '../protocol/version.ts'
import type { Answer, Call } from './call.ts'
import type { DocumentCache, Fetch, Remembered, Subject } from './freshness.ts'

/** A list of versions as an origin gives it. */
export interface OriginList<Listed extends { readonly version: Version }> {
  readonly versions: readonly Listed[]
  /** What was left out, and why. */
  readonly problems: readonly string[]
}

/** Between two refreshes that unknown versions cause, per list: a scanner must not become the origin's problem. */
const FORCED_INTERVAL_MS = 5_000

/** The lists of versions that origins give, remembered for a while; one request for each at a time. */
export class OriginLists<Listed extends { readonly version: Version }, List extends OriginList<Listed>> {
  readonly #kind: 'provider' | 'module'
  readonly #cache: DocumentCache<List>
  readonly #now: () => number
  readonly #log: Log
  /** When each list was last asked for because it lacked a version. */
  readonly #forcedAt = new LRUCache<string, number>({ max: 5_000 })

  /** `kind` is what the lists are of. */
  constructor(kind: 'provider' | 'module', parts: { cache: DocumentCache<List>; now: () => number; log: Log }) {
    this.#kind = kind
    this.#cache = parts.cache
    this.#now = parts.now
    this.#log = parts.log
  }

  /** The list of a subject. @throws MirrorError what `ask` throws if nothing is remembered; `UPSTREAM_TIMEOUT` */
  get(subject: Subject, ask: Fetch<List>, call: Call): Promise<Answer<List>> {
    return this.#get(subject, ask, call)
  }

  /**
   * The entry for one version. An unknown one causes one refresh of a remembered list.
   * @throws MirrorError `VERSION_NOT_FOUND` if a fresh list does not have it; what `get` throws; the reason of the
   *   outage if only a stale list could be asked
   */
  async find(subject: Subject, version: Version, ask: Fetch<List>, call: Call): Promise<Listed> {
    const remembered = await this.#get(subject, ask, call)
    const listed = findVersion(remembered.value, version)
    if (listed !== undefined) return listed
    const answer =
      remembered.outcome === 'hit' ? await this.#get(subject, ask, call, this.#newEnough(subject.name)) : remembered
    const found = findVersion(answer.value, version)
    if (found !== undefined) return found
    if (answer.reason !== undefined) throw answer.reason
    const { name: address } = subject
    const message = `${address} has no version ${version} at its origin`
    throw new MirrorError('VERSION_NOT_FOUND', message, { address, version })
  }

  /** The list as the origin gives it now. @throws MirrorError what `ask` throws; `UPSTREAM_TIMEOUT` */
  renew(subject: Subject, ask: Fetch<List>, call: Call): Promise<List> {
    return this.#cache.renew(subject, this.#reporting(subject, ask), call)
  }

  /** What is remembered of a list; asks nobody. */
  remembered(subject: Subject): Promise<Remembered<List>> {
    return this.#cache.remembered(subject)
  }

  /** Waits until no list is being asked for. */
  idle(): Promise<void> {
    return this.#cache.idle()
  }

  #get(subject: Subject, ask: Fetch<List>, call: Call, atLeastFrom?: number): Promise<Answer<List>> {
    return this.#cache.get(subject, this.#reporting(subject, ask), call, atLeastFrom)
  }

  #reporting(subject: Subject, ask: Fetch<List>): Fetch<List> {
    return async (signal) => {
      const list = await ask(signal)
      const { problems } = list
      if (problems.length > 0)
        this.#log.warn({ [this.#kind]: subject.name, problems }, 'left entries out of the list of an origin')
      return list
    }
  }

  /** From when a list must be to be believed that it lacks a version: now, or the refresh that was forced just before. */
  #newEnough(name: string): number {
    const now = this.#now()
    const last = this.#forcedAt.get(name)
    if (last !== undefined && now - last < FORCED_INTERVAL_MS && now >= last) return last
    this.#forcedAt.set(name, now)
    return now
  }
}

/** The mirror is sealed, and does not hold `item`. */
export function notCached(item: string): MirrorError<'NOT_CACHED'> {
  const message = `${item} is not cached, and this mirror is sealed: warm it while online`
  return new MirrorError('NOT_CACHED', message, { item })
}

function findVersion<Listed extends { readonly version: Version }>(
  list: OriginList<Listed>,
  version: Version,
): Listed | undefined {
  return list.versions.find((listed) => listed.version === version)
}
