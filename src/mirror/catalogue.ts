import { LRUCache } from 'lru-cache'
import type { Log } from '../log.ts'
import { formatPlatform, type Platform } from '../protocol/platform.ts'
import { formatProviderAddress, type ProviderAddress } from '../protocol/provider-address.ts'
import { compareVersions, type Version } from '../protocol/version.ts'
import type { RecordStore } from '../store/record-store.ts'
import { SerialByKey } from '../store/serial-by-key.ts'
import { Editions } from './editions.ts'
import { type HeldVersion, inService, NOTHING_HELD, ProviderRecords } from './provider-records.ts'
import { type ArchiveRecord, evidenceOf, type PinRecord, type Release, type TrustRecord } from './release-record.ts'
import { packageItem } from './stock/held-item.ts'
import type { Inventory } from './stock/inventory.ts'
import { formatPackageName } from './stock/item-name.ts'

/**
 * What is held, by provider and version: a typed view of the records with a bounded copy in memory. This process is
 * the only writer of its data folder, so the copy is never older than the disk.
 */
export class Catalogue {
  /** Ended by every change of a record here; who else knows something of a provider that changes ends them too. */
  readonly editions = new Editions()
  /** The same as they are on the disk, for whoever looks at many: no copy of one in use has to make room. */
  readonly records: ProviderRecords
  readonly #inventory: Inventory
  /** Records of one version change one after another, each with the copies in memory. */
  readonly #changes = new SerialByKey()
  readonly #versions = new LRUCache<string, Promise<HeldVersion>>({ max: 500 })
  readonly #installable = new LRUCache<string, Promise<Set<Version>>>({ max: 5_000 })
  readonly #trust = new LRUCache<string, Promise<TrustRecord | undefined>>({ max: 5_000 })

  /** Tells `inventory` what changes. */
  constructor(records: RecordStore, inventory: Inventory, log: Log) {
    this.records = new ProviderRecords(records, log)
    this.#inventory = inventory
  }

  /** What is held of a version; nothing at all is a legal answer. @throws MirrorError `STORAGE_FAILED` */
  version(address: ProviderAddress, version: Version): Promise<HeldVersion> {
    return load(this.#versions, versionName(address, version), () => this.records.readVersion(address, version))
  }

  /** The same, for looks at many versions: keeps no copy that those in use would have to make room for. */
  look(address: ProviderAddress, version: Version): Promise<HeldVersion> {
    return this.#versions.peek(versionName(address, version)) ?? this.records.readVersion(address, version)
  }

  /** The versions of which at least one archive is held, ascending. @throws MirrorError `STORAGE_FAILED` */
  async installableVersions(address: ProviderAddress): Promise<Version[]> {
    return [...(await this.#installableSet(address))].sort(compareVersions)
  }

  /** Set once a release of this provider was signed. @throws MirrorError `STORAGE_FAILED` */
  trust(address: ProviderAddress): Promise<TrustRecord | undefined> {
    return load(this.#trust, formatProviderAddress(address), () => this.records.readTrust(address))
  }

  /** @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED` */
  async saveTrust(address: ProviderAddress, record: TrustRecord): Promise<void> {
    await this.records.saveTrust(address, record)
    this.#trust.set(formatProviderAddress(address), Promise.resolve(record))
  }

  /** Forgets that a provider was signed: an unsigned release may be let in again. @throws MirrorError `STORAGE_FAILED` */
  async deleteTrust(address: ProviderAddress): Promise<void> {
    await this.records.deleteTrust(address)
    this.#trust.delete(formatProviderAddress(address))
  }

  /**
   * From then on archives of a generation before it, with other bytes, are not held any more.
   * @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED`
   */
  saveRelease(address: ProviderAddress, release: Release): Promise<void> {
    return this.#changing(address, release.version, async () => {
      this.#inventory.addEvidence(evidenceOf(release))
      await this.records.saveRelease(address, release)
      await this.#update(address, release.version, (held) => ({
        ...held,
        release,
        archives: inService(held.archives, release),
      }))
    })
  }

  /** @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED` */
  savePin(address: ProviderAddress, version: Version, pin: PinRecord): Promise<void> {
    return this.#changing(address, version, async () => {
      await this.records.savePin(address, version, pin)
      await this.#update(address, version, (held) => ({ ...held, pin }))
    })
  }

  /** @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED` */
  saveArchive(address: ProviderAddress, platform: Platform, archive: ArchiveRecord): Promise<void> {
    const { version } = archive
    const name = formatPackageName({ address, version, platform })
    return this.#changing(address, version, async () => {
      await this.#inventory.change(name, async () => {
        await this.records.saveArchive(address, platform, archive)
        return packageItem(name, archive)
      })
      await this.#update(address, version, (held) => ({
        ...held,
        archives: new Map(held.archives).set(formatPlatform(platform), archive),
      }))
      const installable = await this.#installableSet(address)
      installable.add(version)
      this.editions.end(formatProviderAddress(address))
    })
  }

  /**
   * Forgets one archive; fine if it is not held. Evidence and pin stay: if it is fetched again, it must be the same. Its
   * blob stays too: see `ItemRemoval`.
   * @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED`
   */
  deleteArchive(address: ProviderAddress, version: Version, platform: Platform): Promise<void> {
    return this.#changing(address, version, () => this.#deleteArchive(address, version, platform))
  }

  /**
   * Forgets all archives of a version; with `forget` its evidence and pin too, and so that it must never change.
   * @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED`
   */
  deleteVersion(address: ProviderAddress, version: Version, { forget }: { forget: boolean }): Promise<void> {
    return this.#changing(address, version, async () => {
      // Those too that cannot be read.
      for (const platform of await this.records.platforms(address, version)) {
        await this.#deleteArchive(address, version, platform)
      }
      if (!forget) return
      await this.records.deleteEvidence(address, version)
      await this.#update(address, version, () => NOTHING_HELD)
    })
  }

  async #deleteArchive(address: ProviderAddress, version: Version, platform: Platform): Promise<void> {
    const { pin } = await this.version(address, version)
    // An archive may have stood for a pin that was lost.
    if (pin !== undefined && (await this.records.readPin(address, version)) === undefined) {
      await this.records.savePin(address, version, pin)
    }
    await this.#inventory.change(formatPackageName({ address, version, platform }), async () => {
      await this.records.deleteArchive(address, version, platform)
      return undefined
    })
    const archives = new Map((await this.version(address, version)).archives)
    archives.delete(formatPlatform(platform))
    await this.#update(address, version, (held) => ({ ...held, archives }))
    if (archives.size === 0) (await this.#installableSet(address)).delete(version)
    this.editions.end(formatProviderAddress(address))
  }

  #changing(address: ProviderAddress, version: Version, change: () => Promise<void>): Promise<void> {
    const name = versionName(address, version)
    return this.#changes.run(name, async () => {
      try {
        await change()
      } catch (error) {
        // It may be on the disk all the same.
        this.#versions.delete(name)
        throw error
      }
    })
  }

  async #update(address: ProviderAddress, version: Version, change: (held: HeldVersion) => HeldVersion): Promise<void> {
    // In one step: of two changes at a time, the second builds on the first.
    await keep(this.#versions, versionName(address, version), this.version(address, version).then(change))
    this.editions.end(formatProviderAddress(address))
  }

  #installableSet(address: ProviderAddress): Promise<Set<Version>> {
    return load(this.#installable, formatProviderAddress(address), async () => {
      const found = new Set<Version>()
      for (const version of await this.records.versions(address)) {
        if ((await this.records.platforms(address, version)).length > 0) found.add(version)
      }
      return found
    })
  }
}

/** Loads once however many ask; a failure is not kept. */
function load<T>(cache: LRUCache<string, Promise<T>>, name: string, read: () => Promise<T>): Promise<T> {
  return cache.get(name) ?? keep(cache, name, read())
}

function keep<T>(cache: LRUCache<string, Promise<T>>, name: string, loading: Promise<T>): Promise<T> {
  cache.set(name, loading)
  loading.catch(() => {
    if (cache.peek(name) === loading) cache.delete(name)
  })
  return loading
}

function versionName(address: ProviderAddress, version: Version): string {
  return `${formatProviderAddress(address)} ${version}`
}
