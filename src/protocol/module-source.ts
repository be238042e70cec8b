import { MirrorError } from '../errors.ts'
import {
  formatGetterAddress,
  type GetterAddress,
  parameter,
  parseGetterAddress,
  parseQuery,
  type QueryParameter,
} from './getter-address.ts'
import { formatModuleAddress, type ModuleAddress, parseModuleAddress } from './module-address.ts'

/** Kinds of archive that clients unpack. */
export type ArchiveFormat = 'zip' | 'tar' | 'tar.gz' | 'tar.bz2' | 'tar.xz' | 'tar.zst'

/** A digest that a source states of its archive. */
export interface SourceChecksum {
  readonly algorithm: 'md5' | 'sha1' | 'sha256' | 'sha512'
  /** Lower-case hexadecimal. */
  readonly hex: string
}

/** A git repository. */
export interface GitSource {
  readonly kind: 'git'
  /** `https:`, `ssh:` or (for tests) `file:`; without query, fragment and password. */
  readonly url: URL
  /** Tag, branch or commit, decoded; undefined for the default branch. */
  readonly ref: string | undefined
  /** Path below the root, as written; empty for the root. */
  readonly subfolder: string
}

/** An archive at an https URL. */
export interface HttpArchiveSource {
  readonly kind: 'http-archive'
  /** Without what only the client reads (`archive=`, `checksum=`); the rest of the query is kept as written. */
  readonly url: URL
  /** As the source says, else by the path's suffix; undefined: the content must tell. */
  readonly format: ArchiveFormat | undefined
  readonly checksum: SourceChecksum | undefined
  /** Path below the root, as written; its first part may be `*`, the one top folder. Empty for the root. */
  readonly subfolder: string
}

/** Where a module's files come from. */
export type RemoteModuleSource = GitSource | HttpArchiveSource

/** What the `source` of a module block can say. */
export type ModuleSource =
  | RemoteModuleSource
  | { readonly kind: 'registry'; readonly address: ModuleAddress; readonly subfolder: string }
  | { readonly kind: 'local'; readonly path: string }

const MAX_LENGTH = 4_096
const DEFAULT_REGISTRY = 'registry.terraform.io'
/** Never registries: their short forms are git repositories. */
const NOT_REGISTRIES = new Set(['github.com', 'bitbucket.org', 'gitlab.com'])

const FORMATS: readonly (readonly [suffix: string, format: ArchiveFormat])[] = [
  ['tar.gz', 'tar.gz'],
  ['tgz', 'tar.gz'],
  ['tar.bz2', 'tar.bz2'],
  ['tbz2', 'tar.bz2'],
  ['tar.xz', 'tar.xz'],
  ['txz', 'tar.xz'],
  ['tar.zst', 'tar.zst'],
  ['tzst', 'tar.zst'],
  ['tar', 'tar'],
  ['zip', 'zip'],
]
const ALGORITHMS_BY_LENGTH: ReadonlyMap<number, SourceChecksum['algorithm']> = new Map([
  [32, 'md5'],
  [40, 'sha1'],
  [64, 'sha256'],
  [128, 'sha512'],
])

/** What our own locations can carry to clients unchanged: what Go's URLs leave as it is. */
const FOLDER_NAME = /^(?:[A-Za-z0-9._~!$&'()+,;=:@-]|%[0-9A-Fa-f]{2})+$/
/** What `git check-ref-format` forbids anywhere in a ref. */
const NO_REF = /[\p{Cc} ~^:?*[\\]|\.\.|@\{|\/\/|^[-/.]|[/.]$|\/\.|\.lock(?:\/|$)/u

/**
 * Parses the `source` of a module block as the clients do (client-contract E; go-getter's detection).
 * @throws MirrorError `MODULE_SOURCE_REFUSED`, with the scheme, for what this mirror does not fetch
 */
export function parseModuleSource(text: string): ModuleSource {
  if (/^\.\.?(?:\/|$)/.test(text)) return { kind: 'local', path: text }
  return parseRegistrySource(text) ?? parseRemoteSource(text)
}

/**
 * Parses an address that must lead to files: a git repository or an archive. Whether plain http is fine, is for the
 * rules of the origin to say.
 * @throws MirrorError `MODULE_SOURCE_REFUSED`
 */
export function parseRemoteSource(text: string): RemoteModuleSource {
  if (text.length > MAX_LENGTH) throw refusedSource('', `it is longer than ${MAX_LENGTH} characters`)
  if (/[\p{Cc}\\]/u.test(text)) throw refusedSource('', 'it holds control characters or backslashes')
  const address = parseGetterAddress(text)
  const url = address.location.includes('://') ? URL.parse(address.location) : null
  if (url === null) throw refusedSource('', 'it is neither a URL nor a short form that clients know')
  const scheme = address.getter ?? url.protocol.slice(0, -1)
  if (url.hash !== '') throw refusedSource(scheme, 'it has a fragment')
  if (url.password !== '')
    throw refusedSource(scheme, 'it holds a password; credentials belong to `hosts` of the configuration')
  if (scheme === 'git' && address.getter === 'git') return gitSource(address, url)
  if (scheme !== 'https' && scheme !== 'http') throw unsupported(scheme)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw unsupported(url.protocol.slice(0, -1))
  return archiveSource(address, url)
}

/** Prints a source so that parsing it again gives the same. No secret is ever part of a source. */
export function formatModuleSource(source: ModuleSource): string {
  switch (source.kind) {
    case 'local':
      return source.path
    case 'registry':
      return formatModuleAddress(source.address) + (source.subfolder === '' ? '' : `//${source.subfolder}`)
    case 'git':
      return formatGetterAddress({
        getter: 'git',
        location: source.url.href,
        subfolder: source.subfolder,
        query: source.ref === undefined ? [] : [parameter(`ref=${encodeURIComponent(source.ref)}`)],
      })
    case 'http-archive':
      return formatArchiveSource(source)
  }
}

function formatArchiveSource({ url, format, checksum, subfolder }: HttpArchiveSource): string {
  const location = new URL(url)
  location.search = ''
  const implied = formatBySuffix(url.pathname)
  return formatGetterAddress({
    getter: undefined,
    location: location.href,
    subfolder,
    query: [
      ...parseQuery(url.search.slice(1)),
      ...(format === implied || format === undefined ? [] : [parameter(`archive=${format}`)]),
      ...(checksum === undefined ? [] : [parameter(`checksum=${checksum.algorithm}:${checksum.hex}`)]),
    ],
  })
}

function parseRegistrySource(text: string): ModuleSource | undefined {
  const [address = '', ...folders] = text.split('//')
  const parts = address.split('/')
  if (parts.length === 3) parts.unshift(DEFAULT_REGISTRY)
  const [hostname = '', namespace = '', name = '', targetSystem = ''] = parts
  if (parts.length !== 4 || !hostname.includes('.') || NOT_REGISTRIES.has(hostname.toLowerCase())) return undefined
  try {
    const parsed = parseModuleAddress({ hostname, namespace, name, targetSystem })
    return { kind: 'registry', address: parsed, subfolder: parseSubfolder(folders.join('/'), 'registry') }
  } catch (error) {
    if (error instanceof MirrorError && error.is('INVALID_ADDRESS', 'HOSTILE_INPUT')) return undefined
    throw error
  }
}

function gitSource({ query, subfolder }: GetterAddress, url: URL): GitSource {
  let ref: string | undefined
  for (const { name, value } of query) {
    if (name === 'ref') ref = parseRef(value)
    else if (name === 'sshkey')
      throw refusedSource('git', 'it holds a private key; keys belong to `hosts` of the configuration')
    else if (name === 'checksum')
      throw refusedSource('git', 'no checksum can be stated for a git repository; name a commit')
    else if (name !== 'depth' && name !== 'archive')
      throw refusedSource('git', 'it has a parameter that git sources do not have')
  }
  if (!['https:', 'http:', 'ssh:', 'file:'].includes(url.protocol))
    throw unsupported(`git::${url.protocol.slice(0, -1)}`)
  if (url.hostname.startsWith('-') || url.username.startsWith('-'))
    throw refusedSource('git', 'a name begins with a dash')
  const repository = new URL(url)
  repository.search = ''
  // A name without a password says nothing; the configuration has the credentials of hosts.
  if (repository.protocol !== 'ssh:') repository.username = ''
  return { kind: 'git', url: repository, ref, subfolder: parseSubfolder(subfolder, 'git') }
}

/** A plus sign stays one: refs have no spaces, tags do have build metadata. */
function parseRef(value: string): string | undefined {
  const ref = decode(value)
  if (ref === '') return undefined
  if (ref === undefined || ref.length > 255 || NO_REF.test(ref))
    throw refusedSource('git', 'its ref is none that git can have')
  return ref
}

function archiveSource(address: GetterAddress, url: URL): HttpArchiveSource {
  const scheme = url.protocol.slice(0, -1)
  let format = formatBySuffix(url.pathname)
  let checksum: SourceChecksum | undefined
  const kept: QueryParameter[] = []
  for (const part of address.query) {
    if (part.name === 'archive') format = parseFormat(part.value, scheme)
    else if (part.name === 'checksum') checksum = parseChecksum(part.value, scheme)
    else if (part.name !== 'filename') kept.push(part)
  }
  const location = new URL(url)
  location.username = ''
  location.search = kept.map(({ text }) => text).join('&')
  const subfolder = parseSubfolder(address.subfolder, scheme)
  return { kind: 'http-archive', url: location, format, checksum, subfolder }
}

function parseFormat(value: string, scheme: string): ArchiveFormat {
  const format = FORMATS.find(([suffix]) => suffix === value)?.[1]
  if (format !== undefined) return format
  throw refusedSource(scheme, 'its `archive` names no kind of archive that holds a folder')
}

function formatBySuffix(pathname: string): ArchiveFormat | undefined {
  return FORMATS.find(([suffix]) => pathname.endsWith(`.${suffix}`))?.[1]
}

function parseChecksum(value: string, scheme: string): SourceChecksum {
  const [, named, digits = ''] =
    /^(?:(md5|sha1|sha256|sha512):)?([0-9a-f]+)$/.exec(decode(value)?.toLowerCase() ?? '') ?? []
  const algorithm = ALGORITHMS_BY_LENGTH.get(digits.length)
  if (algorithm !== undefined && (named === undefined || named === algorithm)) return { algorithm, hex: digits }
  throw refusedSource(scheme, 'its `checksum` is no digest: expected e.g. `sha256:` and 64 hexadecimal digits')
}

/** Without empty parts; nothing in it leaves the package. Only an archive has the glob `*` for its one top folder. */
function parseSubfolder(text: string, scheme: string): string {
  const parts = text.split('/').filter((part) => part !== '')
  for (const [index, part] of parts.entries()) {
    if (index === 0 && part === '*' && (scheme === 'https' || scheme === 'http')) continue
    if (part === '.' || part === '..' || !FOLDER_NAME.test(part)) {
      throw refusedSource(scheme, 'its sub-folder leaves the package, or has characters that clients would change')
    }
  }
  return parts.join('/')
}

function decode(value: string): string | undefined {
  try {
    return decodeURIComponent(value)
  } catch {
    return undefined
  }
}

function unsupported(scheme: string): MirrorError<'MODULE_SOURCE_REFUSED'> {
  return refusedSource(scheme, 'this mirror fetches modules from git repositories (https, ssh) and https archives only')
}

/** Refuses a source by its scheme; nothing else of it is repeated: it may hold a token. */
export function refusedSource(scheme: string, reason: string, cause?: unknown): MirrorError<'MODULE_SOURCE_REFUSED'> {
  const what = scheme === '' ? 'the module source is refused' : `the module source (${scheme}) is refused`
  return new MirrorError('MODULE_SOURCE_REFUSED', `${what}: ${reason}`, { scheme, reason }, cause)
}
