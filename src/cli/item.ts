import { isMirrorError } from '../errors.ts'
import { parseHostname } from '../protocol/hostname.ts'
import { type ItemAddress, namesHost, parseItemAddress } from '../protocol/item-address.ts'
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

/** Stands in for the one that the mirror takes: what is read here is given on without it. */
const DEFAULT_HOST = parseHostname('registry.terraform.io')

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

function parseAddress(text: string): Item {
  const item = readAddress(text)
  const origin = namesHost(text) ? { origin: item.address.hostname } : {}
  const { kind, address } = item
  if (kind === 'provider') return { kind, ...origin, namespace: address.namespace, type: address.type }
  const { namespace, name, targetSystem } = address
  return { kind, ...origin, namespace, name, targetSystem }
}

function readAddress(text: string): ItemAddress {
  try {
    return parseItemAddress(text, DEFAULT_HOST)
  } catch (error) {
    throw isMirrorError(error) ? wrongUse(error.message) : error
  }
}
