import { type Authority, authorityOf, parseAuthority } from './authority.ts'

/** Credentials for one host: a bearer token or `user:password`. */
export interface HostCredentials {
  readonly token?: string
  readonly basic?: string
}

/** One request of a chain of redirects, as far as credentials depend on it. */
export interface CredentialQuery {
  readonly url: URL
  /** The URL is still on the host that was asked for, and that host was named by the origin itself. */
  readonly trusted: boolean
}

/** Chooses the `Authorization` of every single request anew, so that no credential crosses to another host. */
export interface Credentials {
  /** The header's value, or undefined if this host gets none. */
  find(query: CredentialQuery): string | undefined
  /** An error's body without the secrets: some servers repeat the token that they did not like. */
  redact(body: Buffer): Buffer
}

/**
 * The origin's token goes to the origin's own host and port, and to a trusted one. Entries of `hosts` (keyed by
 * `host[:port]`, 443 if no port is given) go to exactly that host and port; they win over a merely trusted token.
 */
export function createCredentials(
  hostname: string,
  token: string | undefined,
  hosts: ReadonlyMap<string, HostCredentials>,
): Credentials {
  const own = parseAuthority(hostname)
  const ownHeader = token === undefined ? undefined : `Bearer ${token}`
  const headers = new Map<Authority, string>()
  for (const [host, credentials] of hosts) {
    const header = formatAuthorization(credentials)
    if (header !== undefined) headers.set(parseAuthority(host), header)
  }
  const secrets = [{ token }, ...hosts.values()].flatMap(secretsOf)
  return {
    redact: (body) => {
      const text = body.toString('utf8')
      return Buffer.from(secrets.reduce((shown, secret) => shown.replaceAll(secret, '(redacted)'), text))
    },
    find({ url, trusted }) {
      const authority = authorityOf(url)
      if (authority === own && ownHeader !== undefined) return ownHeader
      return headers.get(authority) ?? (trusted ? ownHeader : undefined)
    },
  }
}

/** Whole values before their parts. */
function secretsOf({ token, basic }: { token?: string | undefined; basic?: string | undefined }): string[] {
  const password = basic?.slice(basic.indexOf(':') + 1)
  const encoded = basic === undefined ? undefined : Buffer.from(basic).toString('base64')
  return [token, encoded, basic, password].filter((secret) => secret !== undefined).filter((secret) => secret !== '')
}

function formatAuthorization({ token, basic }: HostCredentials): string | undefined {
  if (token !== undefined) return `Bearer ${token}`
  return basic === undefined ? undefined : `Basic ${Buffer.from(basic).toString('base64')}`
}
