import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import { type Authority, parseAuthority } from './authority.ts'

/** Which certificates are trusted for which host. */
export interface TrustedRoots {
  /** Undefined means Node's own roots. */
  find(authority: Authority): SecureContext | undefined
}

/** Adds authorities to the public roots: `ca` for every host, those of `hosts` for one `host[:port]` each. PEM texts. */
export function createTrustedRoots(
  ca: readonly string[],
  hosts: ReadonlyMap<string, { readonly ca?: string }>,
): TrustedRoots {
  const shared = ca.length === 0 ? undefined : createRoots(ca)
  const own = new Map<Authority, SecureContext>()
  for (const [host, options] of hosts) {
    if (options.ca !== undefined) own.set(parseAuthority(host), createRoots([...ca, options.ca]))
  }
  return { find: (authority) => own.get(authority) ?? shared }
}

/**
 * By the PEM texts, of which there are as many as the configuration names. Reading all the roots takes tens of
 * milliseconds, and hosts below a pattern of origins are as many as clients make up.
 */
const made = new Map<string, SecureContext>()

function createRoots(ca: readonly string[]): SecureContext {
  const key = ca.join('\n')
  // `ca` replaces the public roots unless they are named too.
  const roots = made.get(key) ?? createSecureContext({ ca: [...getCACertificates('default'), ...ca] })
  made.set(key, roots)
  return roots
}
