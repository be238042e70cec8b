import { isMirrorError } from '../errors.ts'
import type { Log } from '../log.ts'
import { parsePlatform } from '../protocol/platform.ts'
import { formatProviderAddress, type ProviderAddress } from '../protocol/provider-address.ts'
import type { VersionEntry } from '../protocol/provider-registry.ts'
import type { ListedVersion, ProviderVersions } from '../protocol/provider-versions.ts'
import { compareVersions, type Version } from '../protocol/version.ts'
import type { Answer, Call } from './call.ts'
import type { Catalogue } from './catalogue.ts'
import type { DocumentCache, Fetch, Remembered } from './freshness.ts'
import { notCached, OriginLists } from './origin-lists.ts'
import type { UpstreamFor } from './upstreams.ts'
import { assertOriginAllowed, type View } from './view.ts'

/** What the provider registry protocol tells of versions. */
export interface DescribedVersions {
  readonly versions: readonly VersionEntry[]
  /** Texts that the origin wants shown to users. */
  readonly warnings: readonly string[]
}

interface JoinedVersions {
  /** Ascending. */
  readonly versions: readonly Version[]
  /** Undefined while there is no list of the origin. */
  readonly origin: ProviderVersions | undefined
}

/** Which versions of a provider there are: the origin's list, joined with what is held. */
export class Versions {
  readonly #catalogue: Catalogue
  readonly #upstreamFor: UpstreamFor
  readonly #lists: OriginLists<ListedVersion, ProviderVersions>

  constructor(parts: {
    catalogue: Catalogue
    upstreamFor: UpstreamFor
    lists: DocumentCache<ProviderVersions>
    now: () => number
    log: Log
  }) {
    this.#catalogue = parts.catalogue
    this.#upstreamFor = parts.upstreamFor
    this.#lists = new OriginLists('provider', { cache: parts.lists, now: parts.now, log: parts.log })
  }

  /**
   * All versions that a client may choose, ascending. While the origin is away or has dropped the provider: what is
   * held; sealed: only what is held.
   * @throws MirrorError `ORIGIN_NOT_ALLOWED`, `PROVIDER_NOT_FOUND`, `NO_PROVIDER_SERVICE`, `NOT_CACHED`, `UPSTREAM_*`
   */
  async list(view: View, address: ProviderAddress, call: Call): Promise<Answer<readonly Version[]>> {
    const answer = await this.#join(view, address, call)
    return { ...answer, value: answer.value.versions }
  }

  /**
   * The same versions with protocols, platforms and warnings as the origin gives them. Of versions that it does not
   * list, or while there is no list, the record tells; without one they are left out. Sealed: the platforms held.
   * @throws MirrorError as `list`
   */
  async describe(view: View, address: ProviderAddress, call: Call): Promise<Answer<DescribedVersions>> {
    const answer = await this.#join(view, address, call)
    const { versions, origin } = answer.value
    const listed = new Map(origin?.versions.map((entry) => [entry.version, entry]))
    const entries: VersionEntry[] = []
    for (const version of versions) {
      const entry = listed.get(version) ?? (await this.#describeHeld(address, version))
      if (entry !== undefined) entries.push(entry)
    }
    if (entries.length === 0 && origin === undefined) throw answer.reason ?? notCached(formatProviderAddress(address))
    return { ...answer, value: { versions: entries, warnings: origin?.warnings ?? [] } }
  }

  async #describeHeld(address: ProviderAddress, version: Version): Promise<VersionEntry | undefined> {
    const { release, archives } = await this.#catalogue.version(address, version)
    if (release === undefined) return undefined
    const sealed = this.#upstreamFor(address.hostname) === undefined
    const names = Object.keys(release.platforms).filter((name) => !sealed || archives.has(name))
    const protocols = Object.values(release.platforms)[0]?.protocols ?? []
    return { version, protocols, platforms: names.map(parsePlatform) }
  }

  async #join(view: View, address: ProviderAddress, call: Call): Promise<Answer<JoinedVersions>> {
    assertOriginAllowed(view, address.hostname)
    const held = await this.#catalogue.installableVersions(address)
    if (this.#upstreamFor(address.hostname) === undefined) {
      if (held.length > 0)
        return { value: { versions: held, origin: undefined }, outcome: 'hit', isCurrent: whileSealed }
      throw notCached(formatProviderAddress(address))
    }
    try {
      const answer = await this.#lists.get(subjectOf(address), this.#ask(address, call), call)
      const all = new Set([...answer.value.versions.map((listed) => listed.version), ...held])
      return { ...answer, value: { versions: [...all].sort(compareVersions), origin: answer.value } }
    } catch (error) {
      if (held.length === 0 || !isMirrorError(error)) throw error
      return { value: { versions: held, origin: undefined }, outcome: 'stale', reason: error }
    }
  }

  /**
   * The origin's entry for one version. An unknown one causes one refresh of a remembered list.
   * @throws MirrorError as `OriginLists.find`
   */
  async find(address: ProviderAddress, version: Version, call: Call): Promise<ListedVersion> {
    return await this.#lists.find(subjectOf(address), version, this.#ask(address, call), call)
  }

  /** The list as the origin gives it now. @throws MirrorError `NOT_CACHED` if sealed; what the origin's answer means */
  async renew(address: ProviderAddress, call: Call): Promise<ProviderVersions> {
    return await this.#lists.renew(subjectOf(address), this.#ask(address, call), call)
  }

  /** What is remembered of the origin's list; asks nobody. */
  remembered(address: ProviderAddress): Promise<Remembered<ProviderVersions>> {
    return this.#lists.remembered(subjectOf(address))
  }

  /** Waits until no list is being asked for. */
  idle(): Promise<void> {
    return this.#lists.idle()
  }

  #ask(address: ProviderAddress, { hops }: Call): Fetch<ProviderVersions> {
    const upstream = this.#upstreamFor(address.hostname)
    if (upstream === undefined) throw notCached(formatProviderAddress(address))
    return (signal) => upstream.versions(address, { signal, hops })
  }
}

function subjectOf(address: ProviderAddress): { name: string; hostname: ProviderAddress['hostname'] } {
  return { name: formatProviderAddress(address), hostname: address.hostname }
}

/** Nobody is ever asked: only a change of what is held gives another answer. */
function whileSealed(): true {
  return true
}
