import { Agent, type Dispatcher, Pool } from 'undici'
import { authorityOf, bareHostname, parseAuthority } from './authority.ts'
import { createConnector } from './connector.ts'
import type { ProxySelector } from './proxy.ts'
import { createProxyDispatcher } from './proxy-dispatcher.ts'
import type { TrustedRoots } from './trusted-roots.ts'

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

/** The connections of one origin. Documents have their own, so that long downloads never keep one waiting. */
export interface Dispatchers {
  readonly documents: Dispatcher
  readonly archives: Dispatcher
}

/**
 * Makes agents with a pool of connections for each host: guarded, or through a proxy. The origin's own host is never
 * proxied when its address is configured. The caller destroys them.
 */
export function createDispatchers(options: DispatcherOptions): Dispatchers {
  const create = () =>
    new Agent({ allowH2: false, factory: (origin) => createHostDispatcher(new URL(origin), options) })
  return { documents: create(), archives: create() }
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
