import { isMirrorError } from '../errors.ts'
import type { Log } from '../log.ts'
import { formatModuleAddress, type ModuleAddress } from '../protocol/module-address.ts'
import type { ListedModuleVersion, ModuleVersions } from '../protocol/module-versions.ts'
import { compareVersions, type Version } from '../protocol/version.ts'
import type { Answer, Call } from './call.ts'
import type { DocumentCache, Fetch, Remembered } from './freshness.ts'
import type { ModuleCatalogue } from './module-catalogue.ts'
import { notCached, OriginLists } from './origin-lists.ts'
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
  readonly #catalogue: ModuleCatalogue
  readonly #upstreamFor: ModuleUpstreamFor
  readonly #lists: OriginLists<ListedModuleVersion, ModuleVersions>

  constructor(parts: ModuleListsParts) {
    this.#catalogue = parts.catalogue
    this.#upstreamFor = parts.upstreamFor
    this.#lists = new OriginLists('module', { cache: parts.lists, now: parts.now, log: parts.log })
  }

  /**
   * All versions that a client may choose, ascending. While the origin is away or has dropped the module: what is held;
   * sealed: only what is held.
   * @throws MirrorError `ORIGIN_NOT_ALLOWED`, `MODULE_NOT_FOUND`, `NO_MODULE_SERVICE`, `NOT_CACHED`, `UPSTREAM_*`
   */
  async list(view: View, address: ModuleAddress, call: Call): Promise<Answer<readonly Version[]>> {
    assertOriginAllowed(view, address.hostname)
    const held = await this.#catalogue.heldVersions(address)
    if (this.#upstreamFor(address.hostname) === undefined) {
      if (held.length === 0) throw notCached(formatModuleAddress(address))
      return { value: held, outcome: 'hit' }
    }
    try {
      const answer = await this.#lists.get(subjectOf(address), this.#ask(address, call), call)
      const all = new Set([...answer.value.versions.map(({ version }) => version), ...held])
      return { ...answer, value: [...all].sort(compareVersions) }
    } catch (error) {
      if (held.length === 0 || !isMirrorError(error)) throw error
      return { value: held, outcome: 'stale', reason: error }
    }
  }

  /**
   * The origin's entry for one version. An unknown one causes one refresh of a remembered list.
   * @throws MirrorError as `OriginLists.find`
   */
  async find(address: ModuleAddress, version: Version, call: Call): Promise<ListedModuleVersion> {
    return await this.#lists.find(subjectOf(address), version, this.#ask(address, call), call)
  }

  /** The list as the origin gives it now. @throws MirrorError `NOT_CACHED` if sealed; what the origin's answer means */
  async renew(address: ModuleAddress, call: Call): Promise<ModuleVersions> {
    return await this.#lists.renew(subjectOf(address), this.#ask(address, call), call)
  }

  /** What is remembered of the origin's list; asks nobody. */
  remembered(address: ModuleAddress): Promise<Remembered<ModuleVersions>> {
    return this.#lists.remembered(subjectOf(address))
  }

  /** Waits until no list is being asked for. */
  idle(): Promise<void> {
    return this.#lists.idle()
  }

  #ask(address: ModuleAddress, { hops }: Call): Fetch<ModuleVersions> {
    const upstream = this.#upstreamFor(address.hostname)
    if (upstream === undefined) throw notCached(formatModuleAddress(address))
    return (signal) => upstream.versions(address, { signal, hops })
  }
}

function subjectOf(address: ModuleAddress): { name: string; hostname: ModuleAddress['hostname'] } {
  return { name: formatModuleAddress(address), hostname: address.hostname }
}
