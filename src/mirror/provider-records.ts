import type { z } from 'zod'
import type { Log } from '../log.ts'
import { formatPlatform, type Platform, parsePlatformName } from '../protocol/platform.ts'
import { findProviderAddress, type ProviderAddress } from '../protocol/provider-address.ts'
import { parseVersion, type Version } from '../protocol/version.ts'
import type { RecordKey, RecordStore } from '../store/record-store.ts'
import { ArchiveRecord, PinRecord, Release, TrustRecord } from './release-record.ts'
import { readStoredRecord } from './stored-record.ts'

/** All that is held of one version. */
export interface HeldVersion {
  readonly release: Release | undefined
  readonly pin: PinRecord | undefined
  /** By `OS_ARCH`. None of a generation that was replaced. */
  readonly archives: ReadonlyMap<string, ArchiveRecord>
}

/** A version of which nothing is held. */
export const NOTHING_HELD: HeldVersion = { release: undefined, pin: undefined, archives: new Map() }

/**
 * The records of providers as they are on the disk, typed; without a copy in memory and without order between changes:
 * whoever changes something goes through `Catalogue`. Every method throws MirrorError `STORAGE_FAILED`, and those that
 * write `STORAGE_FULL` too.
 *
 * On disk: `providers/HOST/NAMESPACE/TYPE/{trust, versions/VERSION/{release, pin, archives/OS_ARCH}}`.
 */
export class ProviderRecords {
  readonly #records: RecordStore
  readonly #log: Log

  constructor(records: RecordStore, log: Log) {
    this.#records = records
    this.#log = log
  }

  /** Every provider of which there is a record. */
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

  /** The versions of which there is a record, held or not, in no order. */
  async versions(address: ProviderAddress): Promise<Version[]> {
    const names = await this.#records.children([...providerKey(address), 'versions'])
    return names.map(parseVersion).filter((version) => version !== undefined)
  }

  /** The platforms of whose archives there is a record, readable or not. */
  async platforms(address: ProviderAddress, version: Version): Promise<Platform[]> {
    const names = await this.#records.children([...versionKey(address, version), 'archives'])
    return names.map(parsePlatformName).filter((platform) => platform !== undefined)
  }

  /** All that is held of a version. */
  async readVersion(address: ProviderAddress, version: Version): Promise<HeldVersion> {
    const names = await this.#records.children(versionKey(address, version))
    if (names.length === 0) return NOTHING_HELD
    const archives = await this.#readArchives(address, version)
    const release = await this.readRelease(address, version)
    return {
      release,
      pin: (await this.readPin(address, version)) ?? pinOf(archives),
      archives: inService(archives, release),
    }
  }

  /** Archives of a generation that was replaced, by `OS_ARCH`: recorded still, and not held. */
  async readRetired(address: ProviderAddress, version: Version): Promise<ReadonlyMap<string, ArchiveRecord>> {
    const archives = await this.#readArchives(address, version)
    const serving = inService(archives, await this.readRelease(address, version))
    return new Map([...archives].filter(([platform]) => !serving.has(platform)))
  }

  /** The evidence of a version. */
  readRelease(address: ProviderAddress, version: Version): Promise<Release | undefined> {
    return this.#read(releaseKey(address, version), Release)
  }

  saveRelease(address: ProviderAddress, release: Release): Promise<void> {
    return this.#records.put(releaseKey(address, release.version), release)
  }

  readPin(address: ProviderAddress, version: Version): Promise<PinRecord | undefined> {
    return this.#read(pinKey(address, version), PinRecord)
  }

  savePin(address: ProviderAddress, version: Version, pin: PinRecord): Promise<void> {
    return this.#records.put(pinKey(address, version), pin)
  }

  readArchive(address: ProviderAddress, version: Version, platform: Platform): Promise<ArchiveRecord | undefined> {
    return this.#read(archiveKey(address, version, formatPlatform(platform)), ArchiveRecord)
  }

  saveArchive(address: ProviderAddress, platform: Platform, archive: ArchiveRecord): Promise<void> {
    return this.#records.put(archiveKey(address, archive.version, formatPlatform(platform)), archive)
  }

  deleteArchive(address: ProviderAddress, version: Version, platform: Platform): Promise<void> {
    return this.#records.delete(archiveKey(address, version, formatPlatform(platform)))
  }

  /** Forgets evidence and pin of a version. */
  async deleteEvidence(address: ProviderAddress, version: Version): Promise<void> {
    await this.#records.delete(releaseKey(address, version))
    await this.#records.delete(pinKey(address, version))
  }

  /** Set once a release of this provider was signed. */
  async readTrust(address: ProviderAddress): Promise<TrustRecord | undefined> {
    return (await this.#read(trustKey(address), TrustRecord)) ?? (await this.#findSignedRelease(address))
  }

  saveTrust(address: ProviderAddress, record: TrustRecord): Promise<void> {
    return this.#records.put(trustKey(address), record)
  }

  deleteTrust(address: ProviderAddress): Promise<void> {
    return this.#records.delete(trustKey(address))
  }

  async #readArchives(address: ProviderAddress, version: Version): Promise<Map<string, ArchiveRecord>> {
    const archives = new Map<string, ArchiveRecord>()
    for (const platform of await this.platforms(address, version)) {
      const archive = await this.readArchive(address, version, platform)
      if (archive !== undefined) archives.set(formatPlatform(platform), archive)
    }
    return archives
  }

  /** A signed release stands for the trust record, which was written before it and may have been damaged since. */
  async #findSignedRelease(address: ProviderAddress): Promise<TrustRecord | undefined> {
    for (const version of await this.versions(address)) {
      const release = await this.readRelease(address, version)
      for (const { authentication } of Object.values(release?.platforms ?? {})) {
        if (release === undefined || authentication.rule !== 'signed-checksums') continue
        const { keyId, fingerprint } = authentication.signer
        return { format: 1, signedSince: release.firstSeenAt, version: release.version, keyId, fingerprint }
      }
    }
    return undefined
  }

  #read<T>(key: RecordKey, schema: z.ZodType<T>): Promise<T | undefined> {
    return readStoredRecord({ records: this.#records, log: this.#log }, key, schema)
  }
}

/**
 * The archives that a release leaves in service. One record makes a new generation the one in service: its release. So
 * archives of the one before, whose records are removed after that, count for nothing from that moment on, whatever
 * interrupts.
 */
export function inService(
  archives: ReadonlyMap<string, ArchiveRecord>,
  release: Release | undefined,
): ReadonlyMap<string, ArchiveRecord> {
  const isRetired = (platform: string, { generation, digest }: ArchiveRecord): boolean =>
    release !== undefined && generation < release.generation && release.platforms[platform]?.digest !== digest
  return new Map([...archives].filter(([platform, archive]) => !isRetired(platform, archive)))
}

/** A held archive stands for its pin, which was written before it and may have been damaged since. */
function pinOf(archives: ReadonlyMap<string, ArchiveRecord>): PinRecord | undefined {
  for (const { generation, cachedAt } of archives.values()) return { format: 1, generation, pinnedAt: cachedAt }
  return undefined
}

function providerKey(address: ProviderAddress): RecordKey {
  return ['providers', address.hostname, address.namespace, address.type]
}

function trustKey(address: ProviderAddress): RecordKey {
  return [...providerKey(address), 'trust']
}

function versionKey(address: ProviderAddress, version: Version): RecordKey {
  return [...providerKey(address), 'versions', version]
}

function releaseKey(address: ProviderAddress, version: Version): RecordKey {
  return [...versionKey(address, version), 'release']
}

function pinKey(address: ProviderAddress, version: Version): RecordKey {
  return [...versionKey(address, version), 'pin']
}

function archiveKey(address: ProviderAddress, version: Version, platform: string): RecordKey {
  return [...versionKey(address, version), 'archives', platform]
}
