import { isMirrorError } from '../../errors.ts'
import { formatModuleAddress, type ModuleAddress, parseModuleAddressText } from '../../protocol/module-address.ts'
import { formatPlatform, type Platform, parsePlatform } from '../../protocol/platform.ts'
import {
  formatProviderAddress,
  type ProviderAddress,
  parseProviderAddressText,
} from '../../protocol/provider-address.ts'
import { parseVersion, type Version } from '../../protocol/version.ts'

/** What is kept as one thing, and named, listed, pinned and removed as one. */
export type ItemKind = 'package' | 'module'

/** One archive of a provider. */
export interface PackageId {
  readonly address: ProviderAddress
  readonly version: Version
  readonly platform: Platform
}

/** One version of a module. */
export interface ModuleId {
  readonly address: ModuleAddress
  readonly version: Version
}

/** What the name of an item says. */
export type ItemId = ({ readonly kind: 'package' } & PackageId) | ({ readonly kind: 'module' } & ModuleId)

/** Prints `registry.terraform.io/hashicorp/aws 5.100.0 linux_amd64`: the name of a package everywhere. */
export function formatPackageName(id: PackageId): string {
  return `${formatProviderAddress(id.address)} ${id.version} ${formatPlatform(id.platform)}`
}

/** Prints `registry.terraform.io/terraform-aws-modules/vpc/aws 5.1.0`: the name of a module's version everywhere. */
export function formatModuleName(id: ModuleId): string {
  return `${formatModuleAddress(id.address)} ${id.version}`
}

/** The inverse of both; undefined for any other text. */
export function parseItemName(name: string): ItemId | undefined {
  const [address = '', versionText = '', platform, ...rest] = name.split(' ')
  const version = parseVersion(versionText)
  if (version === undefined || rest.length > 0) return undefined
  try {
    const id: ItemId =
      platform === undefined
        ? { kind: 'module', address: parseModuleAddressText(address), version }
        : { kind: 'package', address: parseProviderAddressText(address), version, platform: parsePlatform(platform) }
    return formatItemName(id) === name ? id : undefined
  } catch (error) {
    if (isMirrorError(error)) return undefined
    throw error
  }
}

/** What kind of item a name is of, without looking at the rest of it: a module has no platform. */
export function kindOfName(name: string): ItemKind {
  return name.indexOf(' ') === name.lastIndexOf(' ') ? 'module' : 'package'
}

function formatItemName(id: ItemId): string {
  return id.kind === 'package' ? formatPackageName(id) : formatModuleName(id)
}
