import { LRUCache } from 'lru-cache'
import { isMirrorError, MirrorError } from '../errors.ts'
import type { Log } from '../log.ts'
import { formatProviderAddress, type ProviderAddress } from '../protocol/provider-address.ts'
import type { ListedVersion, ProviderVersions } from '../protocol/provider-versions.ts'
import { compareVersions, type Version } from '../protocol/version.ts'
import type { Answer, Call } from './call.ts'
import type { Catalogue } from './catalogue.ts'
import type { DocumentCache } from './freshness.ts'
import type { UpstreamFor } from './upstreams.ts'
import { assertOriginAllowed, type View } from './view.ts'

/** Between two refreshes that unknown versions cause, per provider: a scanner must not become the origin's problem. */
const FORCED_REFRESH_INTERVAL_MS = 5_000

/** Which versions of a provider there are: the origin's list, joined with what is held. */
export class Versions {
  readonly #catalogue: Catalogue
  readonly #upstreamFor: UpstreamFor
  readonly #lists: DocumentCache<ProviderVersions>
  readonly #now: () => number
  readonly #log: Log
  readonly #forcedAt = new LRUCache<string, number>({ max: 5_000 })

  constructor(parts: {
    catalogue: Catalogue
    upstreamFor: UpstreamFor
    lists: DocumentCache<ProviderVersions>
    now: () => number
    log: Log
  }) {
    this.#catalogue = parts.catalogue
    this.#upstreamFor = parts.upstreamFor
    this.#lists = parts.lists
    this.#now = parts.now
    this.#log = parts.log
  }

  /**
   * All versions that a client may choose, ascending. While the origin is away or has dropped the provider: what is
   * held; sealed: only what is held.
   * @throws MirrorError `ORIGIN_NOT_ALLOWED`, `PROVIDER_NOT_FOUND`, `NO_PROVIDER_SERVICE`, `NOT_CACHED`, `UPSTREAM_*`
   */
  async list(view: View, address: ProviderAddress, call: Call): Promise<Answer<readonly Version[]>> {
    assertOriginAllowed(view, address.hostname)
    const held = await this.#catalogue.installableVersions(address)
    if (this.#upstreamFor(address.hostname) === undefined) {
      if (held.length > 0) return { value: held, outcome: 'hit', isCurrent: whileSealed }
      const item = formatProviderAddress(address)
      throw new MirrorError('NOT_CACHED', `${item} is not cached, and this mirror is sealed: warm it while online`, {
        item,
      })
    }
    try {
      const answer = await this.#originList(address, call)
      const all = new Set([...answer.value.versions.map((listed) => listed.version), ...held])
      return { ...answer, value: [...all].sort(compareVersions) }
    } catch (error) {
      if (held.length === 0 || !isMirrorError(error)) throw error
      return { value: held, outcome: 'stale', reason: error }
    }
  }

  /**
   * The origin's entry for one version. An unknown one causes one refresh of a remembered list.
   * @throws MirrorError `VERSION_NOT_FOUND` if a fresh list does not have it; what `list` throws; the reason of the
   *   outage if only a stale list could be asked
   */
  async find(address: ProviderAddress, version: Version, call: Call): Promise<ListedVersion> {
    const remembered = await this.#originList(address, call)
    const listed = findVersion(remembered.value, version)
    if (listed !== undefined) return listed
    const answer =
      remembered.outcome === 'hit' ? await this.#originList(address, call, this.#newEnough(address)) : remembered
    const found = findVersion(answer.value, version)
    if (found !== undefined) return found
    if (answer.reason !== undefined) throw answer.reason
    const name = formatProviderAddress(address)
    throw new MirrorError('VERSION_NOT_FOUND', `${name} has no version ${version} at its origin`, {
      address: name,
      version,
    })
  }

  /** Waits until no list is being asked for. */
  idle(): Promise<void> {
    return this.#lists.idle()
  }

  #originList(address: ProviderAddress, call: Call, atLeastFrom?: number): Promise<Answer<ProviderVersions>> {
    const upstream = this.#upstreamFor(address.hostname)
    if (upstream === undefined) throw new MirrorError('NOT_CACHED', 'this mirror is sealed', { item: 'version list' })
    const fetch = async (signal: AbortSignal): Promise<ProviderVersions> => {
      const list = await upstream.versions(address, { signal, hops: call.hops })
      if (list.problems.length > 0) {
        this.#log.warn(
          { provider: formatProviderAddress(address), problems: list.problems },
          'left entries out of the list of an origin',
        )
      }
      return list
    }
    return this.#lists.get(address, fetch, call, atLeastFrom)
  }

  /** From when a list must be to be believed that it lacks a version: now, or the refresh that was forced just before. */
  #newEnough(address: ProviderAddress): number {
    const name = formatProviderAddress(address)
    const now = this.#now()
    const last = this.#forcedAt.get(name)
    if (last !== undefined && now - last < FORCED_REFRESH_INTERVAL_MS && now >= last) return last
    this.#forcedAt.set(name, now)
    return now
  }
}

/** Nobody is ever asked: only a change of what is held gives another answer. */
function whileSealed(): true {
  return true
}

function findVersion(list: ProviderVersions, version: Version): ListedVersion | undefined {
  return list.versions.find((listed) => listed.version === version)
}
