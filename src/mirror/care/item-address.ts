import { MirrorError, redactInput } from '../../errors.ts'
import type { Hostname } from '../../protocol/hostname.ts'
import { formatModuleAddress, type ModuleAddress, parseModuleAddress } from '../../protocol/module-address.ts'
import { formatProviderAddress, type ProviderAddress, parseProviderAddress } from '../../protocol/provider-address.ts'

/** What an operator may name: a provider or a module. */
export type ItemAddress =
  | { readonly kind: 'provider'; readonly address: ProviderAddress }
  | { readonly kind: 'module'; readonly address: ModuleAddress }

/**
 * Parses a provider's `hashicorp/aws` or a module's `terraform-aws-modules/vpc/aws`, with a host before it or not. Only
 * hosts have dots or colons, so that three parts are never in doubt.
 * @throws MirrorError `INVALID_ADDRESS`, `HOSTILE_INPUT`
 */
export function parseItemAddress(text: string, defaultHost: Hostname): ItemAddress {
  const parts = text.split('/', 5)
  const hasHost = parts.length === 4 || (parts.length === 3 && /[.:]/.test(parts[0] ?? ''))
  const hostname = hasHost ? (parts.shift() ?? '') : defaultHost
  const [namespace = '', name = '', targetSystem = ''] = parts
  if (parts.length === 2) {
    return { kind: 'provider', address: parseProviderAddress({ hostname, namespace, type: name }) }
  }
  if (parts.length === 3) {
    return { kind: 'module', address: parseModuleAddress({ hostname, namespace, name, targetSystem }) }
  }
  const input = redactInput(text)
  const reason = 'expected [HOST/]NAMESPACE/TYPE or [HOST/]NAMESPACE/NAME/SYSTEM'
  throw new MirrorError('INVALID_ADDRESS', `not an address: ${JSON.stringify(input)}: ${reason}`, { input, reason })
}

/** The form for people and for names of items, the host in front. */
export function formatItemAddress(item: ItemAddress): string {
  return item.kind === 'provider' ? formatProviderAddress(item.address) : formatModuleAddress(item.address)
}
