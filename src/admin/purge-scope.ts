import { formatModuleAddress, type ModuleAddress, parseModuleAddress } from '../protocol/module-address.ts'
import { formatPlatform, type Platform, parsePlatform } from '../protocol/platform.ts'
import { formatProviderAddress, type ProviderAddress, parseProviderAddress } from '../protocol/provider-address.ts'
import { assertVersion, type Version } from '../protocol/version.ts'

/** What to remove: all of a provider or module, one version, or the archive for one platform. */
export type PurgeScope =
  | {
      readonly kind: 'package'
      readonly address: ProviderAddress
      readonly version?: Version
      readonly platform?: Platform
    }
  | { readonly kind: 'module'; readonly address: ModuleAddress; readonly version?: Version }

/** The scope of a path below `/packages`. @throws MirrorError `INVALID_ADDRESS`, `HOSTILE_INPUT` */
export function packageScope(path: {
  origin: string
  namespace: string
  type: string
  version?: string
  platform?: string
}): PurgeScope {
  const { origin: hostname, namespace, type, version, platform } = path
  return {
    kind: 'package',
    address: parseProviderAddress({ hostname, namespace, type }),
    ...(version === undefined ? {} : { version: assertVersion(version) }),
    ...(platform === undefined ? {} : { platform: parsePlatform(platform) }),
  }
}

/** The scope of a path below `/modules`. @throws MirrorError `INVALID_ADDRESS`, `HOSTILE_INPUT` */
export function moduleScope(path: {
  origin: string
  namespace: string
  name: string
  system: string
  version?: string
}): PurgeScope {
  const { origin: hostname, namespace, name, system: targetSystem, version } = path
  return {
    kind: 'module',
    address: parseModuleAddress({ hostname, namespace, name, targetSystem }),
    ...(version === undefined ? {} : { version: assertVersion(version) }),
  }
}

/** `registry.terraform.io/hashicorp/aws 5.100.0 linux_amd64`, or as much of it as the scope has. */
export function formatPurgeScope(scope: PurgeScope): string {
  const { kind, version } = scope
  const address = kind === 'module' ? formatModuleAddress(scope.address) : formatProviderAddress(scope.address)
  const platform = kind === 'package' && scope.platform !== undefined ? [formatPlatform(scope.platform)] : []
  return [address, ...(version === undefined ? [] : [version]), ...platform].join(' ')
}
