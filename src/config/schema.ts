import { resolve } from 'node:path'
import { z } from 'zod'
import { parseHostname } from '../protocol/hostname.ts'
import { admin, completeAdmin } from './admin-schema.ts'
import { readHost, readRegistryHost, readRegistryHostPattern } from './host-key.ts'
import { expiredKeys, hostCredentials, origin, signatures } from './origin-schema.ts'
import {
  baseUrl,
  certificateName,
  file,
  flag,
  host,
  hostRecord,
  listenHost,
  type Path,
  proxy,
  section,
  size,
  text,
  time,
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
export const UNAVAILABLE_KEYS: readonly string[] = ['origins.*.networkMirror', 'origins.*.filesystem', 'policy', 'auth']

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
    const admin = completeAdmin(config.admin, config.listen, (path, message) =>
      context.addIssue({ code: 'custom', path: [...path], message }),
    )
    return { ...config, admin, stateDir, origins, defaultOrigin: parseHostname(defaultOrigin ?? DEFAULT_ORIGIN) }
  })
}

/** As the allow list of origins takes its patterns. */
function covers(pattern: string, hostname: string): boolean {
  return pattern === hostname || (pattern.startsWith('*.') && hostname.endsWith(pattern.slice(1)))
}

/**
 * The schema of the keys alone, for walks over its shape (`schema-path.ts`). Descriptions and examples are the source of
 * docs/configuration.md (`npm run docs`).
 */
export function createSections(folder: string) {
  const path = file(folder)
  return z.strictObject({
    listen: section({
      host: listenHost()
        .prefault('127.0.0.1')
        .describe('Address or name to listen on. `0.0.0.0` or `::` for all; the default is for this machine alone.'),
      port: wholeNumber(0, 65_535).prefault(8443).describe('Port to listen on; `0` takes any free one.'),
      tls: listenTls(path)
        .prefault('auto')
        .describe(
          '`auto` makes a private certificate authority in `stateDir/tls`, which clients must trust. `off` speaks plain http, for a TLS front. Else one of the two forms below.',
        ),
    }).describe('Where clients connect.'),
    publicUrl: baseUrl(['https:']).exactOptional().meta({
      description:
        'The address that clients use, for the names in the certificate and configurations that are printed.',
      example: 'https://mirror.example.com/',
    }),
    dataDir: path.prefault('./data').describe('Archives, evidence and records. Safe to copy while the mirror runs.'),
    stateDir: path.exactOptional().meta({
      description: 'TLS keys and other things of this one instance, never to be shared. Default: `state` in `dataDir`.',
      example: '/var/lib/terramirror-state',
    }),
    mode: z
      .enum(['online', 'sealed'])
      .prefault('online')
      .describe('`sealed`: nothing is fetched, no connection is made, only what is held is served.'),
    defaultOrigin: host(readRegistryHost).exactOptional().meta({
      description:
        "The origin that is meant by source addresses which begin with the mirror's own host. Most people need none. Default: `registry.terraform.io`.",
      example: 'registry.terraform.io',
    }),
    origins: hostRecord(readRegistryHostPattern, origin(path))
      .refine((origins) => Object.keys(origins).length > 0, {
        error: 'no registry is named, so nothing would be served; name one, or delete the key for the defaults',
      })
      .prefault({ [DEFAULT_ORIGIN]: {}, [OPENTOFU_REGISTRY]: {} })
      .describe(
        'The registries that are served, by `host[:port]` as clients write it, or `*.domain` for every host below it. Without the list: registry.terraform.io and registry.opentofu.org; a list of your own replaces it.',
      ),
    hosts: hostRecord(readHost, hostCredentials(path))
      .prefault({})
      .describe(
        'Credentials for other hosts, to which the documents of origins point (archives, git repositories of modules).',
      ),
    upstream: upstream(path).describe('How origins are talked to.'),
    freshness: section({
      versions: time(0, 30 * DAY)
        .prefault('5m')
        .describe('Lists of versions.'),
      discovery: time(0, 30 * DAY)
        .prefault('1h')
        .describe('Service discovery documents.'),
      notFound: time(0, 60_000).prefault('30s').describe('An origin\'s "not found"; at most `60s`.'),
    }).describe('How long answers of origins are served before they are asked for again.'),
    archives: section({
      maxSize: size(1).exactOptional().meta({
        description:
          'The most that all stored archives and evidence may take of the disk, with what is being fetched. What was used least recently is evicted to keep it. Default: no limit.',
        example: '100GB',
      }),
      minFree: size(1).exactOptional().meta({
        description:
          'So much of the disk of `dataDir` stays free, whoever fills it: archives are evicted for it, and nothing is fetched that would break it. Default: no limit.',
        example: '5GB',
      }),
      maxArchiveSize: size(1)
        .prefault('2GB')
        .describe('A larger archive is refused; so is a module that is larger, packed or not.'),
      recheckAfter: time(0, 3650 * DAY)
        .prefault('24h')
        .describe('A held archive is hashed again before it is served when the last time is longer ago.'),
      delivery: z
        .enum(['verified', 'progressive'])
        .prefault('verified')
        .describe(
          '`verified`: an archive that must be fetched is sent when it is verified. `progressive`: while it comes in, its last 64 KB when it is verified.',
        ),
    }).describe('How archives are kept and handed out.'),
    verification: section({
      signatures: signatures()
        .prefault('required')
        .describe('`required`: the origin must list keys. `whenListed`: without keys, checksums are enough.'),
      expiredKeys: expiredKeys()
        .prefault('accept')
        .describe('`accept`: a key counts as of the time of signing. `refuse`: an expired key is no key.'),
    }).describe(
      'What providers must show, at every origin that has no rules of its own. registry.opentofu.org has a default of its own: `signatures: whenListed`.',
    ),
    admin: admin(path),
    metrics: section({
      perProvider: flag()
        .prefault(false)
        .describe('Count requests and bytes of each provider too; of the 200 in use, the rest as `other`.'),
    }).describe('What `/metrics` tells beside the usual.'),
    log: section({
      level: z
        .enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
        .prefault('info')
        .describe('The least level that is logged.'),
      format: z
        .enum(['auto', 'json', 'text'])
        .prefault('auto')
        .describe('`auto`: text on a terminal, else one JSON object a line.'),
    }).describe('What is logged, on standard error.'),
  })
}

function listenTls(path: Path) {
  const automatic = z.strictObject({
    auto: z.literal(true).meta({ description: 'The long form of `auto`.', example: true }),
    names: z.array(certificateName()).prefault([]).describe('More names and addresses that clients use.'),
  })
  const files = z.strictObject({
    certFile: path.meta({
      description: "Your own certificate chain, the server's first (PEM). Read again when it changes.",
      example: '/etc/terramirror/tls.crt',
    }),
    keyFile: path.meta({ description: 'Its key, without a password (PEM).', example: '/etc/terramirror/tls.key' }),
    clientCaFile: path.exactOptional().meta({
      description: 'Clients must show a certificate of this authority. Terraform cannot: it is for a front.',
      example: '/etc/terramirror/client-ca.pem',
    }),
  })
  return z
    .union([z.enum(['auto', 'off']), automatic, files], {
      error: 'expected auto, off, { auto: true, names: [NAME] } or { certFile: FILE, keyFile: FILE }',
    })
    .transform((tls) => (tls === 'auto' ? { auto: true as const, names: [] } : tls))
    .meta({ kind: '`auto`, `off`, `{ auto, names }` or `{ certFile, keyFile }`' })
}

function upstream(path: Path) {
  return section({
    connectTimeout: time(1, DAY).prefault('5s').describe('To look a name up, connect and shake hands.'),
    idleTimeout: time(1, DAY).prefault('60s').describe('The longest silence while an answer is awaited or comes in.'),
    minRate: size(0)
      .prefault('1kB')
      .describe('An archive that comes slower, per second, is given up and resumed; `0B` for no limit.'),
    retries: wholeNumber(0, 20).prefault(3).describe('How often a failed request is repeated.'),
    concurrency: wholeNumber(1, 10_000).prefault(32).describe('Requests at one time to one origin.'),
    proxy: proxy().exactOptional().meta({
      description:
        'An http or https proxy, or `off`. Default: `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` of the environment.',
      example: 'http://user:password@proxy.example:3128',
    }),
    noProxy: text().exactOptional().meta({
      description: 'Hosts, domains and networks that are reached without the proxy.',
      example: 'localhost,.acme.example,10.0.0.0/8',
    }),
    caFile: path.exactOptional().meta({
      description: 'Trusted beside the public roots, for all origins (TLS-inspecting proxies).',
      example: './corporate-ca.pem',
    }),
    userAgent: z
      .string()
      .regex(/^[\x21-\x7e][\x20-\x7e]*$/, { error: 'expected printable ASCII' })
      .exactOptional()
      .meta({
        description: 'What origins see. Default: `Terramirror/VERSION`.',
        example: 'Terramirror (ops@acme.example)',
      }),
  })
}
