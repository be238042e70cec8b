import { MirrorError } from '../errors.ts'
import { parseModuleAddress } from '../protocol/module-address.ts'
import { parseProviderAddress } from '../protocol/provider-address.ts'
import { wrongUse } from './command-error.ts'

/** What an operator names: a provider or a module, with a host or for every host, perhaps a version, a platform. */
export type Item = NamedProvider | NamedModule

interface NamedProvider {
  readonly kind: 'provider'
  readonly origin?: string
  readonly namespace: string
  readonly type: string
  readonly version?: string
  readonly platform?: string
}

interface NamedModule {
  readonly kind: 'module'
  readonly origin?: string
  readonly namespace: string
  readonly name: string
  readonly targetSystem: string
  readonly version?: string
}

/** The host that an address without one means to Terraform. */
export const DEFAULT_HOST = 'registry.terraform.io'

/**
 * Reads the words of a command that name one thing: `hashicorp/aws`, `hashicorp/aws 5.100.0 linux_amd64` in one word or
 * three, `hashicorp/aws@5.100.0`; for a module `terraform-aws-modules/vpc/aws 5.1.0`. Any with a host before it.
 * @throws CommandError wrong use
 */
export function parseItem(words: readonly string[]): Item {
  const [address = '', version, platform, ...rest] = words.join(' ').replace('@', ' ').split(/\s+/)
  if (rest.length > 0) throw wrongUse(`expected ADDRESS [VERSION [PLATFORM]], not ${rest.length} words more`)
  const item = { ...parseAddress(address), ...(version === undefined ? {} : { version }) }
  if (platform === undefined) return item
  if (item.kind === 'module') throw wrongUse(`${address} is a module, and modules have no platforms`)
  return { ...item, platform }
}

/** As the mirror names it; without a host where none was given. */
export function formatItem(item: Item): string {
  const parts = item.kind === 'provider' ? [item.namespace, item.type] : [item.namespace, item.name, item.targetSystem]
  const address = [...(item.origin === undefined ? [] : [item.origin]), ...parts].join('/')
  const platform = item.kind === 'provider' ? item.platform : undefined
  return [address, item.version, platform].filter((word) => word !== undefined).join(' ')
}

/** Only hosts have dots or colons, so that three parts are never in doubt. */
function parseAddress(text: string): Item {
  const parts = text.split('/')
  const hasHost = parts.length === 4 || (parts.length === 3 && /[.:]/.test(parts[0] ?? ''))
  const hostname = hasHost ? (parts.shift() ?? '') : DEFAULT_HOST
  const [namespace = '', name = '', targetSystem = ''] = parts
  try {
    if (parts.length === 2) {
      const address = parseProviderAddress({ hostname, namespace, type: name })
      const { namespace: folded, type } = address
      return { kind: 'provider', ...(hasHost ? { origin: address.hostname } : {}), namespace: folded, type }
    }
    if (parts.length === 3) {
      const { hostname: origin, ...rest } = parseModuleAddress({ hostname, namespace, name, targetSystem })
      return { kind: 'module', ...(hasHost ? { origin } : {}), ...rest }
    }
  } catch (error) {
    if (error instanceof MirrorError) throw wrongUse(error.message)
    throw error
  }
  throw wrongUse(
    `${JSON.stringify(text)}: expected [HOST/]NAMESPACE/TYPE, or [HOST/]NAMESPACE/NAME/SYSTEM for a module`,
  )
}
