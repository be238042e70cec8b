import { isIP } from 'node:net'
import { MirrorError, redactUrl } from '../errors.ts'
import { findRefusal } from './address-guard.ts'
import { authorityOf, bareHostname, parseAuthority } from './authority.ts'

/** Which URLs an origin's requests may go to. */
export interface UrlRuleOptions {
  /** The origin's `host[:port]`. */
  readonly hostname: string
  /** The origin's own host is connected to at a configured address, so its name is not judged. */
  readonly hasAddress: boolean
  readonly allowHttp: boolean
  readonly allowPrivateAddresses: boolean
  /** `a.example`, `*.a.example` (subdomains only), each with an optional port; undefined permits every host. */
  readonly allowedHosts: readonly string[] | undefined
}

/** Judges a URL before anything is sent, the first one and the target of every redirect. */
export type UrlRules = (url: URL) => void

/** Makes the rules of one origin. They throw MirrorError `UPSTREAM_REFUSED`. */
export function createUrlRules(options: UrlRuleOptions): UrlRules {
  const own = parseAuthority(options.hostname)
  const patterns = options.allowedHosts?.map(parseHostPattern)
  return (url) => {
    const isOwn = authorityOf(url) === own
    if (url.protocol !== 'https:' && !(url.protocol === 'http:' && options.allowHttp)) {
      throw refused(url, `${url.protocol} is not an allowed scheme for this origin`)
    }
    if (url.username !== '' || url.password !== '') throw refused(url, 'the URL carries a user name or password')
    if (patterns !== undefined && !isOwn && !patterns.some((matches) => matches(url))) {
      throw refused(url, `${url.host} is not among the allowedHosts of ${options.hostname}`)
    }
    const host = bareHostname(url)
    if (isIP(host) === 0 || (isOwn && options.hasAddress)) return
    const refusal = findRefusal(host, host, options.allowPrivateAddresses)
    if (refusal !== undefined) throw refused(url, refusal.reason)
  }
}

/** The error of a request that the connection guard refused. */
export function refused(url: URL, reason: string, cause?: unknown): MirrorError<'UPSTREAM_REFUSED'> {
  const upstreamUrl = redactUrl(url)
  const message = `Refused to connect to ${upstreamUrl}: ${reason}`
  return new MirrorError('UPSTREAM_REFUSED', message, { host: url.host, upstreamUrl, reason }, cause)
}

function parseHostPattern(pattern: string): (url: URL) => boolean {
  const [, wildcard, host = '', port] = /^(\*\.)?(.*?)(:\d+)?$/.exec(pattern.toLowerCase()) ?? []
  const name = URL.parse(`https://${host}/`)?.hostname ?? host
  return (url) => {
    if (port !== undefined && !authorityOf(url).endsWith(port)) return false
    return wildcard === undefined ? url.hostname === name : url.hostname.endsWith(`.${name}`)
  }
}
