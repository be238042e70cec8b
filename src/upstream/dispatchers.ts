import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import { Agent, type Dispatcher, Pool } from 'undici'
import { type Authority, authorityOf, bareHostname, parseAuthority } from './authority.ts'
import { createConnector } from './connector.ts'
import { createProxyDispatcher, type ProxySelector } from './proxy.ts'

/** How an origin's connections are made. */
export interface DispatcherOptions {
  /** The origin's `host[:port]`. */
  readonly hostname: string
  readonly address: { readonly host: string; readonly port: number } | undefined
  readonly allowPrivateAddresses: boolean
  readonly proxies: ProxySelector
  readonly roots: TrustedRoots
  readonly connectTimeoutMs: number
  /** Connections to each host. */
  readonly connections: number
}

/**
 * Makes an agent with a pool of connections for each host: guarded, or through a proxy. The origin's own host is never
 * proxied when its address is configured. The caller destroys the agent.
 */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  return new Agent({ allowH2: false, factory: (origin) => createHostDispatcher(new URL(origin), options) })
}

function createHostDispatcher(url: URL, options: DispatcherOptions): Dispatcher {
  const { roots, connections, connectTimeoutMs: timeoutMs } = options
  const authority = authorityOf(url)
  const secureContext = roots.find(authority)
  const address = authority === parseAuthority(options.hostname) ? options.address : undefined
  const proxy = address === undefined ? options.proxies.find(url) : undefined
  if (proxy !== undefined) {
    const proxySecureContext = roots.find(proxy.authority)
    return createProxyDispatcher({ proxy, connections, timeoutMs, secureContext, proxySecureContext })
  }
  const { allowPrivateAddresses } = options
  const hostname = bareHostname(url)
  const connect = createConnector({ hostname, timeoutMs, allowPrivateAddresses, secureContext, address })
  return new Pool(url, { connections, allowH2: false, connect })
}

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
