/**
 * Host and port of a server in one spelling, the port always given: `registry.acme.example:443`. Credentials, proxies
 * and rate limits are kept by it.
 */
export type Authority = string

/** The authority that a URL connects to. */
export function authorityOf(url: URL): Authority {
  return `${url.hostname}:${url.port || (url.protocol === 'http:' ? '80' : '443')}`
}

/** The authority of a configured `host[:port]`. Without a port it is 443, so a name alone never covers plain http. */
export function parseAuthority(host: string): Authority {
  const url = URL.parse(`https://${host}/`)
  return url === null ? host.toLowerCase() : authorityOf(url)
}

/** The host of a URL without the brackets of an IPv6 literal. */
export function bareHostname(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '')
}
