import type { SecureContext } from 'node:tls'
import { type Dispatcher, Pool, ProxyAgent } from 'undici'
import type { Proxy as ProxyInUse } from './proxy.ts'

/** How to go through a proxy to one server. */
export interface ProxyDispatcherOptions {
  readonly proxy: ProxyInUse
  readonly connections: number
  readonly timeoutMs: number
  /** Trusted roots for the server behind the proxy; undefined for Node's own. */
  readonly secureContext: SecureContext | undefined
  /** Trusted roots for the proxy itself, if its URL is https. */
  readonly proxySecureContext: SecureContext | undefined
}

/** Makes the dispatcher that reaches one server through a proxy: CONNECT for https, absolute URLs for http. */
export function createProxyDispatcher(options: ProxyDispatcherOptions): Dispatcher {
  const { proxy, connections, timeoutMs, secureContext, proxySecureContext } = options
  return new ProxyAgent({
    uri: proxy.url.href,
    ...(proxy.authorization !== undefined && { token: proxy.authorization }),
    connections,
    allowH2: false,
    requestTls: { allowH2: false, timeout: timeoutMs, ...(secureContext && { secureContext }) },
    proxyTls: { allowH2: false, timeout: timeoutMs, ...(proxySecureContext && { secureContext: proxySecureContext }) },
    // Ends the wait for a proxy that takes a CONNECT and never answers.
    clientFactory: (origin, poolOptions) => new Pool(origin, { ...poolOptions, headersTimeout: timeoutMs }),
    factory: (origin, poolOptions) => new Pool(origin, { ...poolOptions, connections }),
  })
}
