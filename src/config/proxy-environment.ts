import { MirrorError } from '../errors.ts'
import { isProxyUrl } from './value-kinds.ts'

/** The proxy that the environment asks for. */
export interface ProxyEnvironment {
  /** URL, with user-info if the proxy asks for it. */
  readonly proxy?: string
  /** Comma-separated, as curl and Go read it. */
  readonly noProxy?: string
}

/**
 * Reads `HTTPS_PROXY`, `https_proxy`, `HTTP_PROXY` (the first that is set) and `NO_PROXY`, `no_proxy`. Empty means not
 * set; a value without a scheme is an http proxy, as in curl and Go.
 * @throws MirrorError `CONFIGURATION` naming the variable, not its value
 */
export function proxyFromEnvironment(env: NodeJS.ProcessEnv): ProxyEnvironment {
  const name = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY'].find((variable) => env[variable])
  const noProxy = env.NO_PROXY || env.no_proxy
  return { ...(name && { proxy: readProxy(name, env[name] ?? '') }), ...(noProxy && { noProxy }) }
}

function readProxy(name: string, value: string): string {
  const url = value.includes('://') ? value : `http://${value}`
  if (isProxyUrl(url)) return url
  throw new MirrorError('CONFIGURATION', `environment variable ${name}: expected an http or https URL of a proxy`, {
    key: 'upstream.proxy',
  })
}
