import { MirrorError, redactInput } from '../errors.ts'
import type { Hostname } from '../protocol/hostname.ts'
import { type ProviderAddress, parseProviderAddress } from '../protocol/provider-address.ts'

/** The registry of addresses without a host, as Terraform has it. */
export const DEFAULT_REGISTRY = 'registry.terraform.io' as Hostname
const DEFAULT_NAMESPACE = 'hashicorp'
const MAX_LENGTH = 600

/**
 * Parses the `source` of a provider: `aws`, `hashicorp/aws` or `registry.terraform.io/hashicorp/aws`, in any letter case.
 * @throws MirrorError `HOSTILE_INPUT`, `INVALID_ADDRESS`
 */
export function parseProviderSource(text: string, registry: Hostname = DEFAULT_REGISTRY): ProviderAddress {
  if (text.length > MAX_LENGTH) throw invalid(text, `it is longer than ${MAX_LENGTH} characters`)
  const [type, namespace = DEFAULT_NAMESPACE, hostname = registry, ...rest] = text.split('/').reverse()
  if (rest.length > 0 || type === undefined || text === '') {
    throw invalid(text, 'expected TYPE, NAMESPACE/TYPE or HOST/NAMESPACE/TYPE')
  }
  const address = parseProviderAddress({ hostname, namespace, type })
  for (const prefix of ['terraform-provider-', 'terraform-']) {
    if (!address.type.startsWith(prefix)) continue
    throw invalid(text, `the type of a provider is written without ${prefix}: ${address.type.slice(prefix.length)}`)
  }
  return address
}

/** Those that are a part of the client: no registry has them. */
export function isBuiltin({ hostname, namespace }: ProviderAddress): boolean {
  return hostname === 'terraform.io' && namespace === 'builtin'
}

function invalid(text: string, reason: string): MirrorError<'INVALID_ADDRESS'> {
  const input = redactInput(text)
  return new MirrorError('INVALID_ADDRESS', `not a provider address: ${JSON.stringify(input)}: ${reason}`, {
    input,
    reason,
  })
}
