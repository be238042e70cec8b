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

function createRoots(ca: readonly string[]): SecureContext {
  // `ca` replaces the public roots unless they are named too.
  return createSecureContext({ ca: [...getCACertificates('default'), ...ca] })
}
