import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { z } from 'zod'
import { type HostKey, readHost, readHostPattern, readRegistryHostPattern } from './host-key.ts'
import { parseSize, parseTime } from './units.ts'

const DAY = 86_400_000
/** Most origins of registry.opentofu.org have no key, and OpenTofu itself accepts them (design, rule 1). */
const OPENTOFU_REGISTRY = 'registry.opentofu.org'

/**
 * The configuration after parsing. Keys are the YAML keys; times are milliseconds, sizes are bytes, paths are absolute,
 * host names are in the one spelling of `parseHostname`. Every origin carries the verification that applies to it.
 */
export type Config = z.output<ReturnType<typeof createSchema>>

/** What one origin is allowed and how it is reached. */
export type OriginConfig = Config['origins'][string]

/**
 * Keys that the design fixes but that this version does not have; `*` stands for the key of a record. They are
 * start-up errors like unknown keys, with words of their own.
 */
export const UNAVAILABLE_KEYS: readonly string[] = [
  'defaultOrigin',
  'origins.*.networkMirror',
  'origins.*.filesystem',
  'hosts.*.sshKeyFile',
  'hosts.*.knownHostsFile',
  'archives.maxSize',
  'archives.minFree',
  'archives.delivery',
  'admin',
  'policy',
  'auth',
  'metrics',
]

/** The schema of the configuration. Relative paths in it are resolved against `folder`. */
export function createSchema(folder: string) {
  return createSections(folder).transform((config) => {
    const stateDir = config.stateDir ?? resolve(config.dataDir, 'state')
    const origins = Object.fromEntries(
      Object.entries(config.origins).map(([host, settings]) => {
        const ownDefault = host === OPENTOFU_REGISTRY ? { signatures: 'whenListed' as const } : {}
        const verification = { ...config.verification, ...ownDefault, ...settings.verification }
        return [host, { ...settings, verification }]
      }),
    )
    return { ...config, stateDir, origins }
  })
}

/** The schema of the keys alone, for walks over its shape (`schema-path.ts`). */
export function createSections(folder: string) {
  const path = file(folder)
  return z.strictObject({
    listen: section({
      host: listenHost().prefault('127.0.0.1'),
      port: wholeNumber(0, 65_535).prefault(8443),
      tls: listenTls(path).prefault('auto'),
    }),
    publicUrl: baseUrl(['https:', 'http:']).exactOptional(),
    dataDir: path.prefault('./data'),
    stateDir: path.exactOptional(),
    mode: z.enum(['online', 'sealed']).prefault('online'),
    origins: hostRecord(readRegistryHostPattern, origin(path)).prefault({
      'registry.terraform.io': {},
      [OPENTOFU_REGISTRY]: {},
    }),
    hosts: hostRecord(readHost, hostCredentials(path)).prefault({}),
    upstream: upstream(path),
    freshness: section({
      versions: time(0, 30 * DAY).prefault('5m'),
      discovery: time(0, 30 * DAY).prefault('1h'),
      notFound: time(0, 60_000).prefault('30s'),
    }),
    archives: section({
      maxArchiveSize: size(1).prefault('2GB'),
      recheckAfter: time(0, 3650 * DAY).prefault('24h'),
    }),
    verification: section({
      signatures: signatures().prefault('required'),
      expiredKeys: expiredKeys().prefault('accept'),
    }),
    log: section({
      level: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).prefault('info'),
      format: z.enum(['auto', 'json', 'text']).prefault('auto'),
    }),
  })
}

/** A section that may be left out, or left empty after its key. */
function section<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return entry(z.strictObject(shape)).prefault({})
}

/** `key:` with nothing after it means the same as `key: {}`. */
function entry<Schema extends z.ZodType>(schema: Schema) {
  return z.preprocess((value) => value ?? {}, schema)
}

type Path = ReturnType<typeof file>

function listenTls(path: Path) {
  const automatic = z.strictObject({ auto: z.literal(true), names: z.array(certificateName()).prefault([]) })
  const files = z.strictObject({ certFile: path, keyFile: path, clientCaFile: path.exactOptional() })
  return z
    .union([z.enum(['auto', 'off']), automatic, files], {
      error: 'expected auto, off, { auto: true, names: [NAME] } or { certFile: FILE, keyFile: FILE }',
    })
    .transform((tls) => (tls === 'auto' ? { auto: true as const, names: [] } : tls))
}

function origin(path: Path) {
  return z
    .strictObject({
      token: token().exactOptional(),
      address: hostAndPort().exactOptional(),
      services: section({
        'providers.v1': baseUrl(['https:', 'http:']).exactOptional(),
        'modules.v1': baseUrl(['https:', 'http:']).exactOptional(),
      }),
      caFile: path.exactOptional(),
      allowPrivateAddresses: flag().prefault(false),
      allowedHosts: z.array(host(readHostPattern)).exactOptional(),
      allowHttp: flag().prefault(false),
      verification: section({ signatures: signatures().exactOptional(), expiredKeys: expiredKeys().exactOptional() }),
    })
    .superRefine((value, context) => {
      if (value.allowHttp) return
      for (const [name, url] of Object.entries(value.services)) {
        if (!url.startsWith('http:')) continue
        const message = 'expected an https URL (allowHttp: true at this origin allows http)'
        context.addIssue({ code: 'custom', path: ['services', name], message })
      }
    })
}

function hostCredentials(path: Path) {
  return z
    .strictObject({ token: token().exactOptional(), basic: basic().exactOptional(), caFile: path.exactOptional() })
    .refine((value) => value.token === undefined || value.basic === undefined, {
      error: 'token and basic exclude each other',
    })
}

function upstream(path: Path) {
  return section({
    connectTimeout: time(1, DAY).prefault('5s'),
    idleTimeout: time(1, DAY).prefault('60s'),
    minRate: size(0).prefault('1kB'),
    retries: wholeNumber(0, 20).prefault(3),
    concurrency: wholeNumber(1, 10_000).prefault(32),
    proxy: proxy().exactOptional(),
    noProxy: z.string().exactOptional(),
    caFile: path.exactOptional(),
    userAgent: z
      .string()
      .regex(/^[\x21-\x7e][\x20-\x7e]*$/, { error: 'expected printable ASCII' })
      .exactOptional(),
  })
}

function signatures() {
  return z.enum(['required', 'whenListed'])
}

function expiredKeys() {
  return z.enum(['accept', 'refuse'])
}

/*
 * Kinds of values. No message shows the value itself: it may be a secret that was put into the wrong key.
 */

function file(folder: string) {
  return z
    .string()
    .min(1, { error: 'expected a path' })
    .transform((path) => resolve(folder, path))
}

/** Digits in quotes count too: `${env:PORT}` gives text. */
function wholeNumber(minimum: number, maximum: number) {
  const error = `expected a whole number from ${minimum} to ${maximum}`
  const fromText = (value: unknown) => (typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value)
  return z.preprocess(fromText, z.int({ error }).min(minimum, { error }).max(maximum, { error }))
}

function flag() {
  const fromText = (value: unknown) => (value === 'true' ? true : value === 'false' ? false : value)
  return z.preprocess(fromText, z.boolean({ error: 'expected true or false' }))
}

function time(minimum: number, maximum: number) {
  return quantity(parseTime, { minimum, maximum }, 'a time such as 500ms, 30s, 5m, 24h or 7d')
}

function size(minimum: number) {
  return quantity(parseSize, { minimum, maximum: Number.MAX_SAFE_INTEGER }, 'a size such as 500kB, 20MB or 2GiB')
}

function quantity(
  parse: (text: string) => number | undefined,
  limits: { minimum: number; maximum: number },
  expected: string,
) {
  return z.string({ error: `expected ${expected}` }).transform((text, context) => {
    const value = parse(text)
    if (value !== undefined && value >= limits.minimum && value <= limits.maximum) return value
    const limit = value !== undefined && value > limits.maximum ? `, at most ${formatLimit(limits.maximum)}` : ''
    const least = value !== undefined && value < limits.minimum ? ', more than zero' : ''
    context.addIssue({ code: 'custom', message: `expected ${expected}${limit}${least}` })
    return z.NEVER
  })
}

function formatLimit(milliseconds: number): string {
  return milliseconds >= DAY ? `${milliseconds / DAY}d` : `${milliseconds / 1000}s`
}

function token() {
  return z
    .string({ error: 'expected a token as text; put it in quotes' })
    .regex(/^[\x21-\x7e]+$/, { error: 'expected a token of printable ASCII characters without spaces' })
}

function basic() {
  return z
    .string({ error: "expected 'user:password'" })
    .regex(/^[^:\p{Cc}]+:[^\p{Cc}]*$/u, { error: "expected 'user:password'" })
}

function host(read: (text: string) => HostKey) {
  return z.string().transform((text, context) => {
    const key = read(text)
    if ('host' in key) return key.host
    context.addIssue({ code: 'custom', message: key.problem })
    return z.NEVER
  })
}

/** A record whose keys are hosts, each in one spelling only. */
function hostRecord<Value extends z.ZodType>(read: (text: string) => HostKey, value: Value) {
  const schema = z.record(host(read), entry(value))
  return z.preprocess((input, context) => {
    const seen = new Map<string, string>()
    for (const key of Object.keys(Object(input ?? {}))) {
      const known = read(key)
      if (!('host' in known)) continue
      const other = seen.get(known.host)
      const message = `the same host as ${other}; name it once`
      if (other !== undefined) context.addIssue({ code: 'custom', path: [key], message })
      seen.set(known.host, key)
    }
    return input ?? {}
  }, schema)
}

function listenHost() {
  const error = 'expected a host name or an IP address, without a port'
  return z
    .string({ error })
    .transform((text) => text.replace(/^\[(.*)\]$/, '$1'))
    .refine((text) => isIP(text) !== 0 || isLookupName(text), { error })
}

function certificateName() {
  const error = 'expected a host name, *.domain or an IP address'
  return z.string({ error }).refine((text) => isIP(text) !== 0 || isDnsName(text.replace(/^\*\./, '')), { error })
}

function isDnsName(text: string): boolean {
  return text.length <= 253 && text.split('.').every((label) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i.test(label))
}

/** Names of containers have underscores too. */
function isLookupName(text: string): boolean {
  return isDnsName(text.replaceAll('_', '-'))
}

function hostAndPort() {
  const error = "expected 'host:port'"
  return z.string({ error }).refine(
    (text) => {
      const [, ipv6, name = '', port = ''] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? []
      if (Number(port) < 1 || Number(port) > 65_535) return false
      return ipv6 === undefined ? isLookupName(name) : isIP(ipv6) === 6
    },
    { error },
  )
}

/** A URL that others are resolved against: it gets the slash at its end that RFC 3986 resolution needs. */
function baseUrl(schemes: readonly string[]) {
  const error = `expected an absolute ${schemes.map((scheme) => scheme.slice(0, -1)).join(' or ')} URL`
  return z.string({ error }).transform((text, context) => {
    const url = URL.parse(text)
    if (url === null || !schemes.includes(url.protocol) || url.username || url.password || url.search || url.hash) {
      context.addIssue({ code: 'custom', message: `${error} without user, query and fragment` })
      return z.NEVER
    }
    return url.pathname.endsWith('/') ? url.href : `${url.href}/`
  })
}

/** `off` beats a proxy that the environment names. */
function proxy() {
  const error = 'expected an http or https URL, with user and password if the proxy asks for them, or off'
  return z.string({ error }).refine((text) => text === 'off' || isProxyUrl(text), { error })
}

/** True for a URL that names an HTTP proxy: scheme and host, user-info if any, and nothing more. */
export function isProxyUrl(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:') && url.pathname === '/' && !url.search
}
