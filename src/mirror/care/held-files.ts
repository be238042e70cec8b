import { formatModuleAddress } from '../../protocol/module-address.ts'
import type { Sha256 } from '../../protocol/package-hash.ts'
import { parsePlatformName } from '../../protocol/platform.ts'
import { formatProviderAddress } from '../../protocol/provider-address.ts'
import type { Catalogue } from '../catalogue.ts'
import type { ModuleCatalogue } from '../module-catalogue.ts'
import { statesOf } from '../module-record.ts'
import { evidenceOf } from '../release-record.ts'
import { type HeldItem, moduleItem, packageItem } from '../stock/held-item.ts'
import { formatModuleName, formatPackageName, type ItemId } from '../stock/item-name.ts'

/** What a file is needed for. */
export type FileUse =
  | { readonly kind: 'item'; readonly item: HeldItem; readonly id: ItemId }
  /** SHA256SUMS, signatures and keys of a release. */
  | { readonly kind: 'evidence'; readonly id: Omit<ItemId & { kind: 'package' }, 'platform' | 'kind'> }

/** A blob that a record names. */
export interface HeldFile {
  readonly digest: Sha256
  readonly use: FileUse
  /** False for what is kept as long as it is there: states and evidence of before. */
  readonly isRequired: boolean
}

/** All files of one version of a provider or module. */
export interface FileGroup {
  /** As `registry.terraform.io/hashicorp/aws 5.100.0`. */
  readonly name: string
  /** As recorded when this is called. @throws MirrorError `STORAGE_FAILED` */
  files(): Promise<HeldFile[]>
}

/**
 * Everything that records name, by version; only items whose name begins with `prefix`.
 * @throws MirrorError `STORAGE_FAILED`
 */
export async function* heldFiles(
  prefix: string,
  { catalogue, moduleCatalogue }: { catalogue: Catalogue; moduleCatalogue: ModuleCatalogue },
): AsyncIterable<FileGroup> {
  // One is the beginning of the other: the rest may still differ, either way.
  const mayFit = (name: string): boolean => name.startsWith(prefix) || prefix.startsWith(name)
  for await (const address of catalogue.records.providers()) {
    if (!mayFit(formatProviderAddress(address))) continue
    for (const version of await catalogue.records.versions(address)) {
      const name = `${formatProviderAddress(address)} ${version}`
      const files = async (): Promise<HeldFile[]> => {
        const found = await providerFiles({ address, version }, catalogue)
        return found.filter(({ use }) => (use.kind === 'item' ? use.item.name : name).startsWith(prefix))
      }
      if (mayFit(name)) yield { name, files }
    }
  }
  for await (const address of moduleCatalogue.modules()) {
    if (!mayFit(formatModuleAddress(address))) continue
    for (const version of await moduleCatalogue.heldVersions(address)) {
      const name = formatModuleName({ address, version })
      const id: ItemId = { kind: 'module', address, version }
      if (name.startsWith(prefix)) yield { name, files: () => moduleFiles(name, id, moduleCatalogue) }
    }
  }
}

async function providerFiles(
  { address, version }: Omit<ItemId & { kind: 'package' }, 'platform' | 'kind'>,
  catalogue: Catalogue,
): Promise<HeldFile[]> {
  const { release, archives } = await catalogue.look(address, version)
  const files: HeldFile[] = []
  for (const [name, archive] of archives) {
    const platform = parsePlatformName(name)
    if (platform === undefined) continue
    const id: ItemId = { kind: 'package', address, version, platform }
    const item = packageItem(formatPackageName(id), archive)
    files.push({ digest: archive.digest, use: { kind: 'item', item, id }, isRequired: true })
  }
  const outdated = new Set(release?.outdatedChecksums)
  for (const digest of release === undefined ? [] : evidenceOf(release)) {
    files.push({ digest, use: { kind: 'evidence', id: { address, version } }, isRequired: !outdated.has(digest) })
  }
  return files
}

async function moduleFiles(
  name: string,
  id: ItemId & { kind: 'module' },
  catalogue: ModuleCatalogue,
): Promise<HeldFile[]> {
  const record = await catalogue.read(id.address, id.version)
  if (record === undefined) return []
  const item = moduleItem(name, record)
  return statesOf(record).map(({ digest }, index) => ({
    digest,
    use: { kind: 'item', item, id },
    isRequired: index === 0,
  }))
}
