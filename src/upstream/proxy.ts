import { BlockList, isIP } from 'node:net'
import { MirrorError } from '../errors.ts'
import { type Authority, authorityOf, bareHostname } from './authority.ts'

/** Proxies as the environment or the configuration names them; credentials may stand in the URLs. */
export interface ProxySettings {
  readonly httpsProxy?: string
  readonly httpProxy?: string
  /** Comma or space separated: `corp.example`, `.corp.example`, `host:8443`, `10.1.2.3`, `10.0.0.0/8`, `*`. */
  readonly noProxy: string
}

/** A proxy to use, its credentials apart from its URL, so that neither errors nor logs can show them. */
export interface Proxy {
  readonly url: URL
  readonly authority: Authority
  /** Value of `Proxy-Authorization`. */
  readonly authorization: string | undefined
}

/** Decides which proxy a URL goes through. */
export interface ProxySelector {
  find(url: URL): Proxy | undefined
}

/**
 * Reads proxy settings. Loopback is never proxied.
 * @throws MirrorError `CONFIGURATION` for a URL that is not that of an http or https proxy
 */
export function createProxySelector(settings: ProxySettings | undefined): ProxySelector {
  if (settings === undefined) return { find: () => undefined }
  const https = parseProxy(settings.httpsProxy)
  const http = parseProxy(settings.httpProxy)
  const bypasses = createBypass(settings.noProxy)
  return {
    find(url) {
      const proxy = url.protocol === 'http:' ? http : https
      return proxy === undefined || bypasses(url) ? undefined : proxy
    },
  }
}

function parseProxy(text: string | undefined): Proxy | undefined {
  if (text === undefined || text === '') return undefined
  const url = URL.parse(text.includes('://') ? text : `http://${text}`)
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new MirrorError('CONFIGURATION', 'The proxy is not a URL of the form http://[user:password@]host:port', {
      key: 'upstream.proxy',
    })
  }
  const { username, password } = url
  const credentials = `${decodePercent(username)}:${decodePercent(password)}`
  url.username = ''
  url.password = ''
  return {
    url,
    authority: authorityOf(url),
    authorization: username === '' ? undefined : `Basic ${Buffer.from(credentials).toString('base64')}`,
  }
}

function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

type Bypass = (url: URL) => boolean

function createBypass(noProxy: string): Bypass {
  const rules = noProxy
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .map(parseBypassRule)
  return (url) => isLoopback(bareHostname(url)) || rules.some((rule) => rule(url))
}

function isLoopback(host: string): boolean {
  return (
    host === 'localhost' ||
    host.endsWith('.localhost') ||
    host === '::1' ||
    (isIP(host) === 4 && host.startsWith('127.'))
  )
}

function parseBypassRule(entry: string): Bypass {
  if (entry === '*') return () => true
  const [network = '', prefix] = entry.split('/')
  if (prefix !== undefined) return createNetworkRule(network, Number(prefix))
  if (isIP(entry) !== 0) return createNetworkRule(entry, isIP(entry) === 4 ? 32 : 128)
  const [, host = '', port] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? []
  const name = host.replace(/^\[|\]$/g, '')
  const matchesHost = isIP(name) === 0 ? createSuffixRule(name) : createNetworkRule(name, isIP(name) === 4 ? 32 : 128)
  return (url) => matchesHost(url) && (port === undefined || authorityOf(url).endsWith(`:${port}`))
}

function createSuffixRule(name: string): Bypass {
  const suffix = name.replace(/^\*?\.?/, '')
  return (url) => suffix !== '' && (url.hostname === suffix || url.hostname.endsWith(`.${suffix}`))
}

function createNetworkRule(network: string, prefix: number): Bypass {
  const version = isIP(network)
  // An entry that is no network matches nothing, as in other tools.
  if (version === 0 || !Number.isInteger(prefix) || prefix < 0 || prefix > (version === 4 ? 32 : 128))
    return () => false
  const list = new BlockList()
  list.addSubnet(network, prefix, version === 4 ? 'ipv4' : 'ipv6')
  return (url) => {
    const host = bareHostname(url)
    return isIP(host) !== 0 && list.check(host, isIP(host) === 4 ? 'ipv4' : 'ipv6')
  }
}
