import { resolve } from 'node:path'
import { z } from 'zod'
import { parseHostname } from '../protocol/hostname.ts'
import { readHost, readHostPattern, readRegistryHost, readRegistryHostPattern } from './host-key.ts'
import {
  baseUrl,
  basic,
  certificateName,
  file,
  flag,
  host,
  hostAndPort,
  hostRecord,
  listenHost,
  proxy,
  section,
  size,
  time,
  token,
  wholeNumber,
} from './value-kinds.ts'

const DAY = 86_400_000
/** Most origins of registry.opentofu.org have no key, and OpenTofu itself accepts them (design, rule 1). */
const OPENTOFU_REGISTRY = 'registry.opentofu.org'
/** Whose providers and modules addresses with the mirror's own host mean. */
const DEFAULT_ORIGIN = 'registry.terraform.io'

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
  'origins.*.networkMirror',
  'origins.*.filesystem',
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
  return createSections(folder).transform((config, context) => {
    const { defaultOrigin } = config
    if (defaultOrigin !== undefined && !Object.keys(config.origins).some((pattern) => covers(pattern, defaultOrigin))) {
      const message = 'expected one of the origins; name the host under "origins" too'
      context.addIssue({ code: 'custom', path: ['defaultOrigin'], message })
    }
    const stateDir = config.stateDir ?? resolve(config.dataDir, 'state')
    const origins = Object.fromEntries(
      Object.entries(config.origins).map(([host, settings]) => {
        const ownDefault = host === OPENTOFU_REGISTRY ? { signatures: 'whenListed' as const } : {}
        const verification = { ...config.verification, ...ownDefault, ...settings.verification }
        return [host, { ...settings, verification }]
      }),
    )
    return { ...config, stateDir, origins, defaultOrigin: parseHostname(defaultOrigin ?? DEFAULT_ORIGIN) }
  })
}

/** As the allow list of origins takes its patterns. */
function covers(pattern: string, hostname: string): boolean {
  return pattern === hostname || (pattern.startsWith('*.') && hostname.endsWith(pattern.slice(1)))
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
    publicUrl: baseUrl(['https:']).exactOptional(),
    dataDir: path.prefault('./data'),
    stateDir: path.exactOptional(),
    mode: z.enum(['online', 'sealed']).prefault('online'),
    defaultOrigin: host(readRegistryHost).exactOptional(),
    origins: hostRecord(readRegistryHostPattern, origin(path))
      .refine((origins) => Object.keys(origins).length > 0, {
        error: 'no registry is named, so nothing would be served; name one, or delete the key for the defaults',
      })
      .prefault({ [DEFAULT_ORIGIN]: {}, [OPENTOFU_REGISTRY]: {} }),
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
    .strictObject({
      token: token().exactOptional(),
      basic: basic().exactOptional(),
      caFile: path.exactOptional(),
      sshKeyFile: path.exactOptional(),
      knownHostsFile: path.exactOptional(),
    })
    .refine((value) => value.token === undefined || value.basic === undefined, {
      error: 'token and basic exclude each other',
    })
    .refine((value) => (value.sshKeyFile === undefined) === (value.knownHostsFile === undefined), {
      error: 'sshKeyFile and knownHostsFile belong together: the host must be known, and must know us',
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
