import type { Authentication } from '../../protocol/authentication.ts'
import type { Hostname } from '../../protocol/hostname.ts'
import type { ModuleAddress } from '../../protocol/module-address.ts'
import { type PackageHash, type Sha256, zipHash } from '../../protocol/package-hash.ts'
import { formatPlatform } from '../../protocol/platform.ts'
import { formatProviderAddress } from '../../protocol/provider-address.ts'
import type { Version } from '../../protocol/version.ts'
import { ConcurrencyLimit } from '../../store/concurrency-limit.ts'
import type { Catalogue } from '../catalogue.ts'
import type { ModuleCatalogue } from '../module-catalogue.ts'
import type { ModuleRecord } from '../module-record.ts'
import type { PackageHashes } from '../package-hashes.ts'
import type { Release } from '../release-record.ts'
import type { HeldItem } from './held-item.ts'
import type { Inventory } from './inventory.ts'
import type { ItemPage, ItemQuery } from './item-index.ts'
import { type ItemId, parseItemName } from './item-name.ts'
import type { Usage } from './usage.ts'

/** Records of one page that are read side by side. */
const READ_AT_ONCE = 16

/** One page of a list; `next` is the `after` of the following one, if there is one. */
export interface Page<Row> {
  readonly items: readonly Row[]
  readonly next?: string | undefined
}

/** Which rows are wanted; see `ItemQuery`. */
export type StockQuery = Omit<ItemQuery, 'kind'>

interface Row {
  readonly item: string
  readonly origin: Hostname
  readonly namespace: string
  readonly version: Version
  /** In bytes. */
  readonly size: number
  readonly digest: Sha256
  /** Times are RFC 3339 text. */
  readonly firstSeenAt: string
  readonly cachedAt: string
  readonly lastUsedAt: string | null
  readonly hits: number
  readonly pins: readonly string[]
}

/** How an archive was authenticated, without the blobs that show it. */
export type ShownAuthentication =
  | { readonly rule: 'signed-checksums'; readonly signer: (Authentication & { rule: 'signed-checksums' })['signer'] }
  | { readonly rule: 'unsigned-checksums' | 'stated-checksum' }

/** One archive of a provider that is held. */
export interface HeldPackage extends Row {
  readonly type: string
  readonly platform: string
  readonly filename: string
  /** `zh:` first, then `h1:` where it is computed. */
  readonly hashes: readonly PackageHash[]
  readonly authentication: ShownAuthentication
  /** Without query. */
  readonly archiveUrl: string
}

/** What a module's files call. */
export interface ModuleCalls {
  readonly modules: readonly { readonly source: string; readonly version: string | null }[]
  readonly otherSources: readonly string[]
  readonly providers: readonly { readonly source: string; readonly version: string | null }[]
}

/** One version of a module that is held. */
export interface HeldModule extends Row {
  readonly name: string
  readonly targetSystem: string
  /** Where its files came from, without query and credentials. */
  readonly source: string
  /** The commit, or the digest of the origin's archive. */
  readonly revision: string
  /** Null if its files could not be read. */
  readonly calls: ModuleCalls | null
}

/** What `Stock` is made of. */
export interface StockParts {
  readonly inventory: Inventory
  readonly catalogue: Catalogue
  readonly modules: ModuleCatalogue
  readonly hashes: Pick<PackageHashes, 'find'>
  readonly usage: Pick<Usage, 'of'>
  /** The names of the sets of pins that hold an item. */
  readonly pinsOf: (name: string) => readonly string[]
  readonly callsOf: (record: ModuleRecord) => Promise<ModuleCalls | null>
}

/**
 * Everything that is held, as lists with all that is known of each row. Which rows a page has comes from the inventory,
 * the rest from the records of that page alone. Nothing that stays is lost or told twice from page to page.
 */
export class Stock {
  readonly #parts: StockParts

  constructor(parts: StockParts) {
    this.#parts = parts
  }

  /**
   * Packages by name. Waits until it is known what is held, which takes long once: when the inventory was lost.
   * @throws MirrorError `STORAGE_FAILED`; the reason of `signal`
   */
  async listPackages(query: StockQuery, signal: AbortSignal): Promise<Page<HeldPackage>> {
    const { items, next } = await this.#page('package', query, signal)
    const releases = new Map<string, Promise<Release | undefined>>()
    const rows = await inParallel(items, async (item) => {
      const id = parseItemName(item.name)
      if (id?.kind !== 'package') return undefined
      const name = `${formatProviderAddress(id.address)} ${id.version}`
      const release = releases.get(name) ?? this.#parts.catalogue.records.readRelease(id.address, id.version)
      releases.set(name, release)
      return await this.#packageRow(item, id, release)
    })
    return { items: rows, next }
  }

  /** Versions of modules by name. @throws MirrorError as `listPackages` */
  async listModules(query: StockQuery, signal: AbortSignal): Promise<Page<HeldModule>> {
    const { items, next } = await this.#page('module', query, signal)
    const rows = await inParallel(items, async (item) => {
      const id = parseItemName(item.name)
      if (id?.kind !== 'module') return undefined
      const record = await this.#parts.modules.read(id.address, id.version)
      return record && (await this.#moduleRow(item.name, id, record))
    })
    return { items: rows, next }
  }

  async #page(kind: ItemQuery['kind'], query: StockQuery, signal: AbortSignal): Promise<ItemPage> {
    await this.#parts.inventory.whenComplete(signal)
    return this.#parts.inventory.page({ ...query, kind })
  }

  /** Undefined if it was removed since the page was made. */
  async #packageRow(
    { name }: HeldItem,
    { address, version, platform }: ItemId & { kind: 'package' },
    release: Promise<Release | undefined>,
  ): Promise<HeldPackage | undefined> {
    const [record, evidence] = await Promise.all([
      this.#parts.catalogue.records.readArchive(address, version, platform),
      release,
    ])
    if (record === undefined) return undefined
    const { digest, size, filename, archiveUrl, cachedAt } = record
    return {
      ...{ item: name, origin: address.hostname, namespace: address.namespace, type: address.type, version },
      ...{ platform: formatPlatform(platform), filename, size, digest },
      hashes: [zipHash(digest), ...((await this.#parts.hashes.find(digest)) ?? [])],
      authentication: shown(record.authentication),
      archiveUrl,
      firstSeenAt: evidence?.firstSeenAt ?? cachedAt,
      cachedAt,
      ...this.#useOf(name),
    }
  }

  async #moduleRow(
    name: string,
    { address, version }: { address: ModuleAddress; version: Version },
    record: ModuleRecord,
  ): Promise<HeldModule> {
    const { digest, size, source, revision, cachedAt } = record.state
    return {
      ...{ item: name, origin: address.hostname, namespace: address.namespace, name: address.name },
      ...{ targetSystem: address.targetSystem, version, size, digest, source },
      revision: revision.kind === 'commit' ? revision.commit : revision.digest,
      calls: await this.#parts.callsOf(record),
      firstSeenAt: record.earlier.at(-1)?.cachedAt ?? cachedAt,
      cachedAt,
      ...this.#useOf(name),
    }
  }

  #useOf(name: string): Pick<Row, 'lastUsedAt' | 'hits' | 'pins'> {
    const { lastUsedAt, hits } = this.#parts.usage.of(name)
    const time = lastUsedAt === undefined ? null : new Date(lastUsedAt).toISOString()
    return { lastUsedAt: time, hits, pins: this.#parts.pinsOf(name) }
  }
}

function shown(authentication: Authentication): ShownAuthentication {
  const { rule } = authentication
  return rule === 'signed-checksums' ? { rule, signer: authentication.signer } : { rule }
}

/** In the order of the items, without those of which nothing came. */
async function inParallel<T, R>(items: readonly T[], work: (item: T) => Promise<R | undefined>): Promise<R[]> {
  const limit = new ConcurrencyLimit(READ_AT_ONCE)
  const rows = await Promise.all(items.map((item) => limit.run(() => work(item))))
  return rows.filter((row) => row !== undefined)
}
