import { parsePlatformName } from '../../protocol/platform.ts'
import type { ProviderAddress } from '../../protocol/provider-address.ts'
import type { Version } from '../../protocol/version.ts'
import type { Catalogue } from '../catalogue.ts'
import type { ModuleCatalogue } from '../module-catalogue.ts'
import { checksumsOf, evidenceOf } from '../release-record.ts'
import { type HeldItem, moduleItem, packageItem } from './held-item.ts'
import { formatModuleName, formatPackageName, parseItemName } from './item-name.ts'
import type { ItemSource, Recorded } from './item-source.ts'

/** Versions that are read side by side. */
const READ_AT_ONCE = 8

/** Packages and their evidence, as recorded. */
export class RecordedPackages implements ItemSource {
  readonly kind = 'package'
  readonly #catalogue: Catalogue

  constructor(catalogue: Catalogue) {
    this.#catalogue = catalogue
  }

  async *recorded(): AsyncIterable<Recorded> {
    for await (const address of this.#catalogue.records.providers()) {
      const versions = await this.#catalogue.records.versions(address)
      yield* inBatches(versions, (version) => this.#recordedOf(address, version))
    }
  }

  async readItem(name: string): Promise<HeldItem | undefined> {
    const id = parseItemName(name)
    if (id?.kind !== 'package') return undefined
    const record = await this.#catalogue.records.readArchive(id.address, id.version, id.platform)
    return record && packageItem(name, record)
  }

  async #recordedOf(address: ProviderAddress, version: Version): Promise<Recorded> {
    const { archives, release } = await this.#catalogue.look(address, version)
    const items: HeldItem[] = []
    const evidence = new Set(release === undefined ? [] : evidenceOf(release))
    for (const [platformName, archive] of archives) {
      const platform = parsePlatformName(platformName)
      if (platform !== undefined) items.push(packageItem(formatPackageName({ address, version, platform }), archive))
      for (const digest of Object.values(checksumsOf(archive))) evidence.add(digest)
    }
    return { items, evidence }
  }
}

/** Modules as recorded. */
export class RecordedModules implements ItemSource {
  readonly kind = 'module'
  readonly #catalogue: ModuleCatalogue

  constructor(catalogue: ModuleCatalogue) {
    this.#catalogue = catalogue
  }

  async *recorded(): AsyncIterable<Recorded> {
    for await (const address of this.#catalogue.modules()) {
      const versions = await this.#catalogue.heldVersions(address)
      yield* inBatches(versions, async (version) => {
        const record = await this.#catalogue.read(address, version)
        const items = record === undefined ? [] : [moduleItem(formatModuleName({ address, version }), record)]
        return { items, evidence: [] }
      })
    }
  }

  async readItem(name: string): Promise<HeldItem | undefined> {
    const id = parseItemName(name)
    if (id?.kind !== 'module') return undefined
    const record = await this.#catalogue.read(id.address, id.version)
    return record && moduleItem(name, record)
  }
}

async function* inBatches<T, R>(items: readonly T[], work: (item: T) => Promise<R>): AsyncIterable<R> {
  for (let index = 0; index < items.length; index += READ_AT_ONCE) {
    yield* await Promise.all(items.slice(index, index + READ_AT_ONCE).map(work))
  }
}
