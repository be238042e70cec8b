import { silentLog } from '../../../src/log.ts'
import { Catalogue } from '../../../src/mirror/catalogue.ts'
import { ModuleCatalogue } from '../../../src/mirror/module-catalogue.ts'
import type { ModuleRecord, ModuleState } from '../../../src/mirror/module-record.ts'
import type { ArchiveRecord, Release } from '../../../src/mirror/release-record.ts'
import type { HeldItem } from '../../../src/mirror/stock/held-item.ts'
import { Inventory } from '../../../src/mirror/stock/inventory.ts'
import { kindOfName } from '../../../src/mirror/stock/item-name.ts'
import type { ItemSource } from '../../../src/mirror/stock/item-source.ts'
import { RecordedModules, RecordedPackages } from '../../../src/mirror/stock/recorded-items.ts'
import { parseModuleAddressText } from '../../../src/protocol/module-address.ts'
import { assertSha256, type Sha256 } from '../../../src/protocol/package-hash.ts'
import { formatPlatform, parsePlatform } from '../../../src/protocol/platform.ts'
import { formatProviderAddress, parseProviderAddressText } from '../../../src/protocol/provider-address.ts'
import { assertVersion } from '../../../src/protocol/version.ts'
import { sha256 } from '../../../src/store/digest.ts'
import type { Journal } from '../../../src/store/journal.ts'
import { MemoryRecordStore } from '../../../src/store/memory/memory-record-store.ts'
import type { RecordStore } from '../../../src/store/record-store.ts'

export const AT = '2026-11-30T12:00:00.000Z'
export const never = new AbortController().signal

/** The digest of a text: blobs of tests are texts. */
export function digestOf(text: string): Sha256 {
  return assertSha256(sha256(Buffer.from(text)))
}

/** An item of this name whose blob is `content`. */
export function itemOf(name: string, content = name): HeldItem {
  return { name, kind: kindOfName(name), digest: digestOf(content), size: content.length, cachedAt: Date.parse(AT) }
}

/** `acme/widget 1.0.0 linux_amd64` as parsed values. */
export function packageId(text: string) {
  const [address = '', version = '', platform = ''] = text.split(' ')
  return {
    address: parseProviderAddressText(`registry.example.test/${address}`),
    version: assertVersion(version),
    platform: parsePlatform(platform),
  }
}

/** The record of a package whose blob is `content`. */
export function archiveRecord(text: string, content = text): ArchiveRecord {
  const { address, version, platform } = packageId(text)
  const digest = digestOf(content)
  return {
    ...{ format: 1, address: formatProviderAddress(address), version, platform: formatPlatform(platform) },
    ...{ filename: `${address.type}.zip`, digest, size: content.length, generation: 1, cachedAt: AT },
    authentication: { rule: 'stated-checksum', digest },
    archiveUrl: 'https://files.example.test/x.zip',
  }
}

/** A release with one platform that is authenticated by these sums. */
export function releaseRecord(text: string, sums: string): Release {
  const { address, version, platform } = packageId(text)
  const digest = digestOf(text)
  return {
    ...{ format: 1, address: formatProviderAddress(address), version, spelling: version, generation: 1 },
    ...{ firstSeenAt: AT, recordedAt: AT, files: [], complete: true },
    platforms: {
      [formatPlatform(platform)]: {
        ...{
          filename: `${address.type}.zip`,
          digest,
          archiveUrl: 'https://files.example.test/x.zip',
          protocols: ['5.0'],
        },
        ...{ statedHashes: [], document: {}, documentUrl: 'https://registry.example.test/download' },
        authentication: { rule: 'unsigned-checksums', digest, sums: digestOf(sums) },
      },
    },
  }
}

/** `acme/vpc/aws 1.0.0` as parsed values. */
export function moduleId(text: string) {
  const [address = '', version = ''] = text.split(' ')
  return { address: parseModuleAddressText(`registry.example.test/${address}`), version: assertVersion(version) }
}

/** The record of a module's version whose blob is `content`, and whose blobs before were `earlier`. */
export function moduleRecord(text: string, content = text, earlier: readonly string[] = []): ModuleRecord {
  const { version } = moduleId(text)
  const state = (bytes: string): ModuleState => ({
    ...{ digest: digestOf(bytes), size: bytes.length, tarDigest: digestOf(`tar ${bytes}`), unpackedBytes: 1, files: 1 },
    ...{ source: 'git::https://git.example.test/vpc at main', subfolder: '', cachedAt: AT },
    revision: { kind: 'commit', commit: 'a'.repeat(40), moving: true },
  })
  const address = `registry.example.test/${text.split(' ')[0]}`
  return { format: 1, address, version, spelling: version, state: state(content), earlier: earlier.map(state) }
}

/** An inventory with its catalogues, over these records. */
export function openStock({
  records = new MemoryRecordStore(),
  journal,
}: {
  records?: RecordStore
  journal?: Journal
} = {}) {
  const log = silentLog()
  const removed: string[] = []
  const onRemoved = (name: string): void => void removed.push(name)
  const inventory = new Inventory({ log, onRemoved, ...(journal === undefined ? {} : { journal }) })
  const catalogue = new Catalogue(records, inventory, log)
  const modules = new ModuleCatalogue(records, inventory, log)
  const sources: ItemSource[] = [new RecordedPackages(catalogue), new RecordedModules(modules)]
  const save = (text: string, content?: string): Promise<void> => {
    const { address, platform } = packageId(text)
    return catalogue.saveArchive(address, platform, archiveRecord(text, content))
  }
  const remove = (text: string): Promise<void> => {
    const { address, version, platform } = packageId(text)
    return catalogue.deleteArchive(address, version, platform)
  }
  const saveModule = (text: string, content?: string, earlier?: readonly string[]): Promise<void> =>
    modules.save(moduleId(text).address, moduleRecord(text, content, earlier))
  return { records, inventory, catalogue, modules, sources, removed, save, remove, saveModule }
}

/** What the records say, read anew. */
export async function recordedItems(sources: readonly ItemSource[]): Promise<HeldItem[]> {
  const items: HeldItem[] = []
  for (const source of sources) for await (const part of source.recorded()) items.push(...part.items)
  return items.sort((a, b) => (a.name < b.name ? -1 : 1))
}
