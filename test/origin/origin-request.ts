import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

/** What a request asks for. */
export type RequestKind =
  | 'discovery'
  | 'versions'
  | 'download'
  | 'sums'
  | 'signature'
  | 'archive'
  | 'module-versions'
  | 'module-download'
  | 'git'
  | 'other'

/** A request to the origin, understood. */
export interface Target {
  readonly kind: RequestKind
  /** The virtual host that was asked, as the origin's `hosts` has it. */
  readonly host: string
  /** `acme/widget`; with the host in front (`other.example.test/acme/widget`) unless it is the origin's first host. */
  readonly provider?: string
  /** `acme/net/aws`, the host in front as for `provider`. */
  readonly module?: string
  /** The repository below `/git/`, without `.git`. */
  readonly repository?: string
  /** As the client spelled it. */
  readonly version?: string
  /** `linux_amd64`; only for `download` and `archive`. */
  readonly platform?: string
}

/** One line of the origin's log. It changes while the request runs. */
export interface RecordedRequest extends Target {
  /** The name that `counts` knows it by, e.g. `archive acme/widget 1.0.0 linux_amd64`. */
  readonly key: string
  readonly method: string
  /** Path and query as sent. */
  readonly url: string
  readonly headers: IncomingHttpHeaders
  /** `aborted`: the client left before the answer ended, or a fault cut it off. */
  outcome: 'pending' | 'answered' | 'aborted'
  /** Once the head of the answer was sent. */
  status?: number
}

/**
 * Reads host and path. `/at/HOST/…` stands for `/…` at HOST, for clients that cannot be told an address (the `host`
 * block of Terraform's CLI configuration); any host that the origin does not play counts as its first.
 */
export function parseTarget(request: IncomingMessage, hosts: readonly string[]): Target {
  const path = (request.url ?? '/').split('?', 1)[0] ?? '/'
  const segments = path.slice(1).split('/').map(decodeSegment)
  const asked = (request.headers.host ?? '').toLowerCase()
  const prefixed = segments[0] === 'at'
  const host = knownHost(prefixed ? segments[1] : asked, hosts)
  return parsePath(host, prefixed ? segments.slice(2) : segments, (address) => shorten(address, hosts))
}

function parsePath(host: string, segments: readonly string[], shortened: (address: string) => string): Target {
  const [root, second, ...rest] = segments
  if (root === '.well-known' && second === 'terraform.json') return { kind: 'discovery', host }
  if (root === 'v1' && second === 'providers') return parseRegistryPath(host, rest, shortened)
  if (root === 'v1' && second === 'modules') return parseModulePath(host, rest, shortened)
  if (root === 'git') return parseGitPath(host, segments.slice(1))
  if (root === 'releases') return parseReleasePath(host, segments.slice(1), shortened)
  return { kind: 'other', host }
}

function parseRegistryPath(host: string, segments: readonly string[], shortened: (address: string) => string): Target {
  const [namespace, type, version = '', action, os, arch] = segments
  const provider = shortened(`${host}/${namespace}/${type}`)
  if (segments.length === 3 && version === 'versions') return { kind: 'versions', host, provider }
  if (segments.length === 6 && action === 'download') {
    return { kind: 'download', host, provider, version, platform: `${os}_${arch}` }
  }
  return { kind: 'other', host }
}

function parseModulePath(host: string, segments: readonly string[], shortened: (address: string) => string): Target {
  const [namespace, name, system, version = '', action] = segments
  const module = shortened(`${host}/${namespace}/${name}/${system}`)
  if (segments.length === 4 && version === 'versions') return { kind: 'module-versions', host, module }
  if (segments.length === 5 && action === 'download') return { kind: 'module-download', host, module, version }
  return { kind: 'other', host }
}

function parseGitPath(host: string, segments: readonly string[]): Target {
  const [, repository] = /^(.*?)\.git(?:\/|$)/.exec(segments.join('/')) ?? []
  return repository === undefined ? { kind: 'other', host } : { kind: 'git', host, repository }
}

function parseReleasePath(host: string, segments: readonly string[], shortened: (address: string) => string): Target {
  const [origin, namespace, type, version = '', file = ''] = segments
  const release = { host, provider: shortened(`${origin}/${namespace}/${type}`), version }
  if (segments.length === 6) return { kind: 'archive', ...release, platform: file }
  if (segments.length === 5 && file.endsWith('_SHA256SUMS')) return { kind: 'sums', ...release }
  if (segments.length === 5 && file.endsWith('_SHA256SUMS.sig')) return { kind: 'signature', ...release }
  return { kind: 'other', host }
}

/** The key of a request in `counts`. All but GET carry their method: `HEAD archive acme/widget 1.0.0 linux_amd64`. */
export function requestKey(target: Target, method: string, url: string): string {
  const name = target.provider ?? target.module ?? target.repository
  const subject =
    name === undefined
      ? [target.host, target.kind === 'other' ? url : undefined]
      : [name, target.version, target.platform]
  const words = [method === 'GET' ? undefined : method, target.kind, ...subject]
  return words.filter((word) => word !== undefined).join(' ')
}

/** `acme/widget` in full: the first host in front unless the text names one. */
export function fullAddress(provider: string, hosts: readonly string[]): string {
  return provider.split('/').length === 3 ? provider : `${hosts[0]}/${provider}`
}

/** `acme/net/aws` in full, likewise. */
export function fullModuleAddress(module: string, hosts: readonly string[]): string {
  return module.split('/').length === 4 ? module : `${hosts[0]}/${module}`
}

function shorten(address: string, hosts: readonly string[]): string {
  const prefix = `${hosts[0]}/`
  return address.startsWith(prefix) ? address.slice(prefix.length) : address
}

function knownHost(name: string | undefined, hosts: readonly string[]): string {
  const withoutPort = name?.replace(/:\d+$/, '')
  return hosts.find((host) => host === name) ?? hosts.find((host) => host === withoutPort) ?? hosts[0] ?? ''
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
