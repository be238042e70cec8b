import { MirrorError, redactInput } from '../errors.ts'
import type { Hostname } from './hostname.ts'
import { formatModuleAddress, type ModuleAddress, parseModuleAddress } from './module-address.ts'
import { formatProviderAddress, type ProviderAddress, parseProviderAddress } from './provider-address.ts'

/** What an operator may name: a provider or a module. */
export type ItemAddress =
  | { readonly kind: 'provider'; readonly address: ProviderAddress }
  | { readonly kind: 'module'; readonly address: ModuleAddress }

/**
 * Parses a provider's `hashicorp/aws` or a module's `terraform-aws-modules/vpc/aws`, with a host before it or not.
 * @throws MirrorError `INVALID_ADDRESS`, `HOSTILE_INPUT`
 */
export function parseItemAddress(text: string, defaultHost: Hostname): ItemAddress {
  const parts = text.split('/', 5)
  const hostname = hasHost(parts) ? (parts.shift() ?? '') : defaultHost
  const [namespace = '', name = '', targetSystem = ''] = parts
  if (parts.length === 2) {
    return { kind: 'provider', address: parseProviderAddress({ hostname, namespace, type: name }) }
  }
  if (parts.length === 3) {
    return { kind: 'module', address: parseModuleAddress({ hostname, namespace, name, targetSystem }) }
  }
  const input = redactInput(text)
  const reason = 'expected [HOST/]NAMESPACE/TYPE, or [HOST/]NAMESPACE/NAME/SYSTEM for a module'
  throw new MirrorError('INVALID_ADDRESS', `not an address: ${JSON.stringify(input)}: ${reason}`, { input, reason })
}

/** True if the text of an address begins with a host. */
export function namesHost(text: string): boolean {
  return hasHost(text.split('/', 5))
}

/** The form for people and for names of items, the host in front. */
export function formatItemAddress(item: ItemAddress): string {
  return item.kind === 'provider' ? formatProviderAddress(item.address) : formatModuleAddress(item.address)
}

/** Only hosts have dots or colons, so that three parts are never in doubt. */
function hasHost(parts: readonly string[]): boolean {
  return parts.length === 4 || (parts.length === 3 && /[.:]/.test(parts[0] ?? ''))
}
