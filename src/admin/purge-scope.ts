import type { PurgeScope } from '../mirror/care/purge.ts'
import { formatModuleAddress, parseModuleAddress } from '../protocol/module-address.ts'
import { formatPlatform, parsePlatform } from '../protocol/platform.ts'
import { formatProviderAddress, parseProviderAddress } from '../protocol/provider-address.ts'
import { assertVersion } from '../protocol/version.ts'

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
