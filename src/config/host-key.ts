import { isIP } from 'node:net'
import { MirrorError } from '../errors.ts'
import { parseHostname } from '../protocol/hostname.ts'

/** A host as the configuration names it, in its one spelling, or why it is none. */
export type HostKey = { readonly host: string } | { readonly problem: string }

/** Reads the host of a registry, `name[:port]`. */
export function readRegistryHost(text: string): HostKey {
  if (text.includes('://')) return { problem: 'write the host alone, without https://' }
  try {
    return { host: parseHostname(text) }
  } catch (error) {
    if (!(error instanceof MirrorError && error.is('HOSTILE_INPUT'))) throw error
    return { problem: `not a host name: ${error.fields.reason}` }
  }
}

/** Reads a host that documents may point to: as that of a registry, or an IP address (`10.1.2.3:8443`, `[::1]`). */
export function readHost(text: string): HostKey {
  const url = /^[\d.:[\]a-f]+$/i.test(text) ? URL.parse(`https://${text}/`) : null
  const isAddress = url !== null && isIP(url.hostname.replace(/^\[|\]$/g, '')) !== 0
  return isAddress ? { host: url.host } : readRegistryHost(text)
}

/** As `readRegistryHost`, or a pattern. */
export function readRegistryHostPattern(text: string): HostKey {
  return text.startsWith('*.') ? readPattern(text) : readRegistryHost(text)
}

/** As `readHost`, or a pattern. */
export function readHostPattern(text: string): HostKey {
  return text.startsWith('*.') ? readPattern(text) : readHost(text)
}

/** `*.domain` stands for every host below the domain, on the default port. */
function readPattern(text: string): HostKey {
  const domain = readRegistryHost(text.slice(2))
  if ('problem' in domain) return domain
  if (domain.host.includes(':')) return { problem: 'a pattern such as *.corp.example takes no port' }
  return { host: `*.${domain.host}` }
}
