import { LRUCache } from 'lru-cache'
import type { z } from 'zod'
import type { Log } from '../log.ts'
import { formatPlatform, type Platform, parsePlatformName } from '../protocol/platform.ts'
import { findProviderAddress, formatProviderAddress, type ProviderAddress } from '../protocol/provider-address.ts'
import { compareVersions, parseVersion, type Version } from '../protocol/version.ts'
import type { RecordKey, RecordStore } from '../store/record-store.ts'
import { SerialByKey } from '../store/serial-by-key.ts'
import { Editions } from './editions.ts'
import { ArchiveRecord, evidenceOf, PinRecord, Release, TrustRecord } from './release-record.ts'
import { packageItem } from './stock/held-item.ts'
import type { Inventory } from './stock/inventory.ts'
import { formatPackageName } from './stock/item-name.ts'
import { readStoredRecord } from './stored-record.ts'

/** All that is held of one version. */
export interface HeldVersion {
  readonly release: Release | undefined
  readonly pin: PinRecord | undefined
  /** By `OS_ARCH`. None of a generation that was replaced. */
  readonly archives: ReadonlyMap<string, ArchiveRecord>
}

const NOTHING: HeldVersion = { release: undefined, pin: undefined, archives: new Map() }

/**
 * What is held, by provider and version: a typed view of the records with a bounded copy in memory. This process is
 * the only writer of its data folder, so the copy is never older than the disk.
 *
 * On disk: `providers/HOST/NAMESPACE/TYPE/{trust, versions/VERSION/{release, pin, archives/OS_ARCH}}`.
 */
export class Catalogue {
  /** Ended by every change of a record here; who else knows something of a provider that changes ends them too. */
  readonly editions = new Editions()
  readonly #records: RecordStore
  readonly #inventory: Inventory
  readonly #log: Log
  /** Records of one version change one after another, each with the copies in memory. */
  readonly #changes = new SerialByKey()
  readonly #versions = new LRUCache<string, Promise<HeldVersion>>({ max: 500 })
  readonly #installable = new LRUCache<string, Promise<Set<Version>>>({ max: 5_000 })
  readonly #trust = new LRUCache<string, Promise<TrustRecord | undefined>>({ max: 5_000 })

  /** Tells `inventory` what changes. */
  constructor(records: RecordStore, inventory: Inventory, log: Log) {
    this.#records = records
    this.#inventory = inventory
    this.#log = log
  }

  /** What is held of a version; nothing at all is a legal answer. @throws MirrorError `STORAGE_FAILED` */
  version(address: ProviderAddress, version: Version): Promise<HeldVersion> {
    return load(this.#versions, versionName(address, version), () => this.#readVersion(versionKey(address, version)))
  }

  /** The same, for looks at many versions: keeps no copy that those in use would have to make room for. */
  look(address: ProviderAddress, version: Version): Promise<HeldVersion> {
    return this.#versions.peek(versionName(address, version)) ?? this.#readVersion(versionKey(address, version))
  }

  /** The versions of which at least one archive is held, ascending. @throws MirrorError `STORAGE_FAILED` */
  async installableVersions(address: ProviderAddress): Promise<Version[]> {
    return [...(await this.#installableSet(address))].sort(compareVersions)
  }

  /** Set once a release of this provider was signed. @throws MirrorError `STORAGE_FAILED` */
  trust(address: ProviderAddress): Promise<TrustRecord | undefined> {
    return load(this.#trust, formatProviderAddress(address), async () => {
      const record = await this.#read([...providerKey(address), 'trust'], TrustRecord)
      return record ?? this.#findSignedRelease(address)
    })
  }

  /** @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED` */
  async saveTrust(address: ProviderAddress, record: TrustRecord): Promise<void> {
    await this.#records.put([...providerKey(address), 'trust'], record)
    this.#trust.set(formatProviderAddress(address), Promise.resolve(record))
  }

  /** Forgets that a provider was signed: an unsigned release may be let in again. @throws MirrorError `STORAGE_FAILED` */
  async deleteTrust(address: ProviderAddress): Promise<void> {
    await this.#records.delete([...providerKey(address), 'trust'])
    this.#trust.delete(formatProviderAddress(address))
  }

  /**
   * From then on archives of a generation before it, with other bytes, are not held any more.
   * @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED`
   */
  saveRelease(address: ProviderAddress, release: Release): Promise<void> {
    return this.#changing(address, release.version, async () => {
      this.#inventory.addEvidence(evidenceOf(release))
      await this.#records.put([...versionKey(address, release.version), 'release'], release)
      await this.#update(address, release.version, (held) => ({
        ...held,
        release,
        archives: split(held.archives, release).inService,
      }))
    })
  }

  /** Archives of a generation that was replaced, by `OS_ARCH`: recorded still, and not held. @throws MirrorError `STORAGE_FAILED` */
  async retiredArchives(address: ProviderAddress, version: Version): Promise<ReadonlyMap<string, ArchiveRecord>> {
    const key = versionKey(address, version)
    return split(await this.#readArchives(key), await this.#read([...key, 'release'], Release)).retired
  }

  /** @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED` */
  savePin(address: ProviderAddress, version: Version, pin: PinRecord): Promise<void> {
    return this.#changing(address, version, async () => {
      await this.#records.put([...versionKey(address, version), 'pin'], pin)
      await this.#update(address, version, (held) => ({ ...held, pin }))
    })
  }

  /** @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED` */
  saveArchive(address: ProviderAddress, platform: Platform, archive: ArchiveRecord): Promise<void> {
    const { version } = archive
    const name = formatPackageName({ address, version, platform })
    return this.#changing(address, version, async () => {
      await this.#inventory.change(name, async () => {
        await this.#records.put(archiveKey(address, version, platform), archive)
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
      for (const name of await this.#records.children([...versionKey(address, version), 'archives'])) {
        const platform = parsePlatformName(name)
        if (platform !== undefined) await this.#deleteArchive(address, version, platform)
      }
      if (!forget) return
      await this.#records.delete([...versionKey(address, version), 'release'])
      await this.#records.delete([...versionKey(address, version), 'pin'])
      await this.#update(address, version, () => NOTHING)
    })
  }

  /** Every provider of which there is a record. @throws MirrorError `STORAGE_FAILED` */
  async *providers(): AsyncIterable<ProviderAddress> {
    for (const hostname of await this.#records.children(['providers'])) {
      for (const namespace of await this.#records.children(['providers', hostname])) {
        for (const type of await this.#records.children(['providers', hostname, namespace])) {
          const address = findProviderAddress({ hostname, namespace, type })
          if (address !== undefined) yield address
        }
      }
    }
  }

  /** The versions of which there is a record, held or not, in no order. @throws MirrorError `STORAGE_FAILED` */
  async recordedVersions(address: ProviderAddress): Promise<Version[]> {
    const names = await this.#records.children([...providerKey(address), 'versions'])
    return names.map(parseVersion).filter((version) => version !== undefined)
  }

  /** The evidence of a version as it is on the disk. @throws MirrorError `STORAGE_FAILED` */
  readRelease(address: ProviderAddress, version: Version): Promise<Release | undefined> {
    return this.#read([...versionKey(address, version), 'release'], Release)
  }

  /** The record of an archive as it is on the disk. @throws MirrorError `STORAGE_FAILED` */
  readArchive(address: ProviderAddress, version: Version, platform: Platform): Promise<ArchiveRecord | undefined> {
    return this.#read(archiveKey(address, version, platform), ArchiveRecord)
  }

  async #deleteArchive(address: ProviderAddress, version: Version, platform: Platform): Promise<void> {
    const key = archiveKey(address, version, platform)
    const { pin } = await this.version(address, version)
    const pinKey = [...versionKey(address, version), 'pin']
    // An archive may have stood for a pin that was lost.
    if (pin !== undefined && (await this.#read(pinKey, PinRecord)) === undefined) await this.#records.put(pinKey, pin)
    await this.#inventory.change(formatPackageName({ address, version, platform }), async () => {
      await this.#records.delete(key)
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

  /** A signed release stands for the trust record, which was written before it and may have been damaged since. */
  async #findSignedRelease(address: ProviderAddress): Promise<TrustRecord | undefined> {
    for (const version of await this.recordedVersions(address)) {
      const release = await this.readRelease(address, version)
      for (const { authentication } of Object.values(release?.platforms ?? {})) {
        if (release === undefined || authentication.rule !== 'signed-checksums') continue
        const { keyId, fingerprint } = authentication.signer
        return { format: 1, signedSince: release.firstSeenAt, version: release.version, keyId, fingerprint }
      }
    }
    return undefined
  }

  #installableSet(address: ProviderAddress): Promise<Set<Version>> {
    return load(this.#installable, formatProviderAddress(address), async () => {
      const found = new Set<Version>()
      for (const version of await this.recordedVersions(address)) {
        const archives = await this.#records.children([...versionKey(address, version), 'archives'])
        if (archives.length > 0) found.add(version)
      }
      return found
    })
  }

  async #readVersion(key: RecordKey): Promise<HeldVersion> {
    const names = await this.#records.children(key)
    if (names.length === 0) return NOTHING
    const archives = await this.#readArchives(key)
    const release = await this.#read([...key, 'release'], Release)
    return {
      release,
      pin: (await this.#read([...key, 'pin'], PinRecord)) ?? pinOf(archives),
      archives: split(archives, release).inService,
    }
  }

  async #readArchives(key: RecordKey): Promise<Map<string, ArchiveRecord>> {
    const archives = new Map<string, ArchiveRecord>()
    for (const platform of await this.#records.children([...key, 'archives'])) {
      const archive = await this.#read([...key, 'archives', platform], ArchiveRecord)
      if (archive !== undefined) archives.set(platform, archive)
    }
    return archives
  }

  #read<T>(key: RecordKey, schema: z.ZodType<T>): Promise<T | undefined> {
    return readStoredRecord({ records: this.#records, log: this.#log }, key, schema)
  }
}

/**
 * One record makes a new generation the one in service: its release. So archives of the one before, whose records are
 * removed after that, count for nothing from that moment on, whatever interrupts.
 */
function split(
  archives: ReadonlyMap<string, ArchiveRecord>,
  release: Release | undefined,
): { inService: Map<string, ArchiveRecord>; retired: Map<string, ArchiveRecord> } {
  const isRetired = (platform: string, { generation, digest }: ArchiveRecord): boolean =>
    release !== undefined && generation < release.generation && release.platforms[platform]?.digest !== digest
  const entries = [...archives]
  return {
    inService: new Map(entries.filter(([platform, archive]) => !isRetired(platform, archive))),
    retired: new Map(entries.filter(([platform, archive]) => isRetired(platform, archive))),
  }
}

/** A held archive stands for its pin, which was written before it and may have been damaged since. */
function pinOf(archives: ReadonlyMap<string, ArchiveRecord>): PinRecord | undefined {
  for (const { generation, cachedAt } of archives.values()) return { format: 1, generation, pinnedAt: cachedAt }
  return undefined
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

function providerKey(address: ProviderAddress): RecordKey {
  return ['providers', address.hostname, address.namespace, address.type]
}

function versionKey(address: ProviderAddress, version: Version): RecordKey {
  return [...providerKey(address), 'versions', version]
}

function archiveKey(address: ProviderAddress, version: Version, platform: Platform): RecordKey {
  return [...versionKey(address, version), 'archives', formatPlatform(platform)]
}

function versionName(address: ProviderAddress, version: Version): string {
  return `${formatProviderAddress(address)} ${version}`
}
