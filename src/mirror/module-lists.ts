import { isMirrorError, MirrorError } from '../errors.ts'
import type { Log } from '../log.ts'
import { formatModuleAddress, type ModuleAddress } from '../protocol/module-address.ts'
import type { ListedModuleVersion, ModuleVersions } from '../protocol/module-versions.ts'
import { compareVersions, type Version } from '../protocol/version.ts'
import type { Answer, Call } from './call.ts'
import { ForcedRefreshes } from './forced-refreshes.ts'
import type { DocumentCache } from './freshness.ts'
import type { ModuleCatalogue } from './module-catalogue.ts'
import type { ModuleUpstreamFor } from './upstreams.ts'
import { assertOriginAllowed, type View } from './view.ts'

/** What `ModuleLists` is made of. */
export interface ModuleListsParts {
  readonly catalogue: ModuleCatalogue
  readonly upstreamFor: ModuleUpstreamFor
  readonly lists: DocumentCache<ModuleVersions>
  readonly now: () => number
  readonly log: Log
}

/** Which versions of a module there are: the origin's list, joined with what is held. */
export class ModuleLists {
  readonly #parts: ModuleListsParts
  readonly #forced: ForcedRefreshes

  constructor(parts: ModuleListsParts) {
    this.#parts = parts
    this.#forced = new ForcedRefreshes(parts.now)
  }

  /**
   * All versions that a client may choose, ascending. While the origin is away or has dropped the module: what is held;
   * sealed: only what is held.
   * @throws MirrorError `ORIGIN_NOT_ALLOWED`, `MODULE_NOT_FOUND`, `NO_MODULE_SERVICE`, `NOT_CACHED`, `UPSTREAM_*`
   */
  async list(view: View, address: ModuleAddress, call: Call): Promise<Answer<readonly Version[]>> {
    assertOriginAllowed(view, address.hostname)
    const { catalogue, upstreamFor } = this.#parts
    const held = await catalogue.heldVersions(address)
    if (upstreamFor(address.hostname) === undefined) {
      if (held.length === 0) throw notCached(formatModuleAddress(address))
      return { value: held, outcome: 'hit' }
    }
    try {
      const answer = await this.#originList(address, call)
      const all = new Set([...answer.value.versions.map(({ version }) => version), ...held])
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
  async find(address: ModuleAddress, version: Version, call: Call): Promise<ListedModuleVersion> {
    const name = formatModuleAddress(address)
    const remembered = await this.#originList(address, call)
    const listed = findVersion(remembered.value, version)
    if (listed !== undefined) return listed
    const answer =
      remembered.outcome === 'hit' ? await this.#originList(address, call, this.#forced.newEnough(name)) : remembered
    const found = findVersion(answer.value, version)
    if (found !== undefined) return found
    if (answer.reason !== undefined) throw answer.reason
    const message = `${name} has no version ${version} at its origin`
    throw new MirrorError('VERSION_NOT_FOUND', message, { address: name, version })
  }

  /** Waits until no list is being asked for. */
  idle(): Promise<void> {
    return this.#parts.lists.idle()
  }

  #originList(address: ModuleAddress, call: Call, atLeastFrom?: number): Promise<Answer<ModuleVersions>> {
    const { upstreamFor, lists, log } = this.#parts
    const upstream = upstreamFor(address.hostname)
    const name = formatModuleAddress(address)
    if (upstream === undefined) throw notCached(name)
    const fetch = async (signal: AbortSignal): Promise<ModuleVersions> => {
      const list = await upstream.versions(address, { signal, hops: call.hops })
      const { problems } = list
      if (problems.length > 0) log.warn({ module: name, problems }, 'left entries out of the list of an origin')
      return list
    }
    return lists.get({ name, hostname: address.hostname }, fetch, call, atLeastFrom)
  }
}

/** The mirror is sealed, and does not hold `item`. */
export function notCached(item: string): MirrorError<'NOT_CACHED'> {
  const message = `${item} is not cached, and this mirror is sealed: warm it while online`
  return new MirrorError('NOT_CACHED', message, { item })
}

function findVersion(list: ModuleVersions, version: Version): ListedModuleVersion | undefined {
  return list.versions.find((listed) => listed.version === version)
}
