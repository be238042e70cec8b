import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** What the automatic certificate's names are taken from. */
export interface NameSources {
  /** The address or name that the server listens on; one for all addresses is no name. */
  readonly listenHost: string
  readonly publicUrl?: string
  /** More DNS names, `*.domain` and IP addresses. */
  readonly names: readonly string[]
}

/** What a certificate authority may sign for (RFC 5280, 4.2.1.10). */
export interface PermittedNames {
  /** Each stands for itself and everything below it. */
  readonly domains: readonly string[]
  /** CIDR. */
  readonly networks: readonly string[]
}

const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '::1']

/** The names that the certificate must have: those of this machine to itself, and all that the configuration gives. */
export function listConfiguredNames({ listenHost, publicUrl, names }: NameSources): readonly string[] {
  const publicHost = publicUrl === undefined ? undefined : URL.parse(publicUrl)?.hostname
  const given = [listenHost, publicHost, ...names].filter((name) => name !== undefined && !isEveryAddress(name))
  return [...new Set([...LOOPBACK_NAMES, ...given].map((name) => canonicalName(name ?? '')))]
}

/** The machine's name as a certificate may carry it; undefined if it is no DNS name. */
export function parseMachineName(text: string): string | undefined {
  const name = text.toLowerCase()
  const labels = name.split('.')
  const isValid = labels.every((label) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(label))
  // A last label of digits makes it an IP address to some clients.
  return isValid && name.length <= 253 && !/^\d+$/.test(labels.at(-1) ?? '') ? name : undefined
}

/** The subtrees that permit these names and as little else as the form allows. */
export function permitNames(names: readonly string[]): PermittedNames {
  const domains = names.filter((name) => isIP(name) === 0).map((name) => name.replace(/^\*\./, ''))
  const addresses = names.filter((name) => isIP(name) !== 0)
  return {
    domains: [...new Set(domains)],
    networks: addresses.map((address) => `${address}/${isIP(address) === 4 ? 32 : 128}`),
  }
}

/** True if the authority may sign for the name. */
export function isPermitted(name: string, permitted: PermittedNames): boolean {
  if (isIP(name) === 0) return permitted.domains.some((domain) => name === domain || name.endsWith(`.${domain}`))
  const address = ipaddr.parse(name)
  return permitted.networks.some((network) => {
    const [base, bits] = ipaddr.parseCIDR(network)
    return base.kind() === address.kind() && address.match(base, bits)
  })
}

/** One spelling for one name: lower case, addresses as RFC 5952 writes them, without zone. */
export function canonicalName(text: string): string {
  const bare = text.replace(/^\[(.*)\]$/, '$1').replace(/%.*$/, '')
  return isIP(bare) === 0 ? bare.toLowerCase().replace(/\.$/, '') : ipaddr.parse(bare).toString()
}

function isEveryAddress(name: string): boolean {
  const canonical = canonicalName(name)
  return canonical === '' || canonical === '0.0.0.0' || canonical === '::'
}
