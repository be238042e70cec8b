import { readFile } from 'node:fs/promises'
import { LRUCache } from 'lru-cache'
import type { Config, OriginConfig } from './config/schema.ts'
import { MirrorError } from './errors.ts'
import type { Log } from './log.ts'
import { findOriginKey } from './policy/origin-key.ts'
import type { Hostname } from './protocol/hostname.ts'
import { Discovery } from './upstream/discovery.ts'
import type { DiscoveryStore } from './upstream/discovery-memory.ts'
import type { OriginClient } from './upstream/http-client.ts'
import { ModuleSources } from './upstream/module-source/module-sources.ts'
import { createOriginRepositories } from './upstream/module-source/origin-repositories.ts'
import type { Workspaces } from './upstream/module-source/workspace.ts'
import type { ModuleUpstream } from './upstream/module-upstream.ts'
import type { UpstreamObserver } from './upstream/observer.ts'
import { createOriginClient, type OriginClientOptions } from './upstream/origin-client.ts'
import type { OriginStates } from './upstream/origin-states.ts'
import type { ProviderUpstream } from './upstream/provider-upstream.ts'
import type { ProxySettings } from './upstream/proxy.ts'
import { RegistryModuleUpstream } from './upstream/registry/registry-module-upstream.ts'
import { RegistryUpstream } from './upstream/registry/registry-upstream.ts'
import { watchModules, watchProviders } from './upstream/watched-upstream.ts'

/** One fixed version: some registries vary their answers by it (client-contract C14). */
const TERRAFORM_VERSION = '1.11.4'
/** With an expired discovery document at hand, a refresh is waited for this long. */
const DISCOVERY_GRACE_MS = 1_500
/** A pattern such as `*.corp.example` lets clients make up hosts: so many are kept connected at most. */
const MAX_MATCHED_ORIGINS = 256
/** More than any module has, and few enough to handle at once. */
const MAX_MODULE_FILES = 50_000

/** The configuration of an origin: its own entry, else that of the longest pattern that it matches. */
export function findOriginConfig(origins: Config['origins'], hostname: Hostname): OriginConfig | undefined {
  const key = findOriginKey(Object.keys(origins), hostname)
  return key === undefined ? undefined : origins[key]
}

/** What all origins share. */
export interface OriginUpstreamsParts {
  readonly config: Config
  readonly memory: DiscoveryStore
  readonly workspaces: Workspaces
  readonly observer: UpstreamObserver
  /** Told how each origin does. */
  readonly states: OriginStates
  readonly instanceId: string
  readonly userAgent: string
  readonly now: () => number
  readonly log: Log
}

interface Origin {
  readonly upstream: ProviderUpstream
  readonly modules: ModuleUpstream
  readonly client: OriginClient
}

/** The upstreams of all configured origins, each made at first use with connections and rules of its own. */
export class OriginUpstreams implements AsyncDisposable {
  readonly #parts: OriginUpstreamsParts
  readonly #pem: ReadonlyMap<string, string>
  readonly #clients = new Set<OriginClient>()
  /** Those that the configuration names: hosts that clients make up never push them out. */
  readonly #named = new Map<string, Origin>()
  readonly #matched: LRUCache<string, Origin>

  private constructor(parts: OriginUpstreamsParts, pem: ReadonlyMap<string, string>) {
    this.#parts = parts
    this.#pem = pem
    this.#matched = new LRUCache({ max: MAX_MATCHED_ORIGINS, dispose: ({ client }) => void this.#close(client) })
  }

  /** Reads the CA files that the configuration names. @throws MirrorError `CONFIGURATION` */
  static async create(parts: OriginUpstreamsParts): Promise<OriginUpstreams> {
    const { upstream, origins, hosts } = parts.config
    const files = [upstream, ...Object.values(origins), ...Object.values(hosts)].map(({ caFile }) => caFile)
    const pem = new Map<string, string>()
    for (const file of new Set(files.filter((path) => path !== undefined))) pem.set(file, await readPem(file))
    return new OriginUpstreams(parts, pem)
  }

  /** Where the providers of an allowed origin come from. @throws MirrorError `ORIGIN_NOT_ALLOWED` */
  for(hostname: Hostname): ProviderUpstream {
    return this.#origin(hostname).upstream
  }

  /** Where its modules come from. @throws MirrorError `ORIGIN_NOT_ALLOWED` */
  modulesFor(hostname: Hostname): ModuleUpstream {
    return this.#origin(hostname).modules
  }

  #origin(hostname: Hostname): Origin {
    const known = this.#named.get(hostname) ?? this.#matched.get(hostname)
    if (known !== undefined) return known
    const settings = findOriginConfig(this.#parts.config.origins, hostname)
    if (settings === undefined) {
      throw new MirrorError('ORIGIN_NOT_ALLOWED', `${hostname} is not among the configured origins`, { hostname })
    }
    const { config, memory, states, now, log } = this.#parts
    const options = this.#clientOptions(hostname, settings)
    const client = createOriginClient(options)
    this.#clients.add(client)
    const discovery = new Discovery({
      hostname,
      client,
      overrides: settings.services,
      memory,
      freshForMs: config.freshness.discovery,
      graceMs: DISCOVERY_GRACE_MS,
      now,
      log,
    })
    const upstream = new RegistryUpstream({
      hostname,
      client,
      discovery,
      maxArchiveBytes: config.archives.maxArchiveSize,
    })
    const modules = new RegistryModuleUpstream({ client, discovery, sources: this.#sources(options, client) })
    const watch = states.watch(hostname)
    const origin = { upstream: watchProviders(upstream, watch), modules: watchModules(modules, watch), client }
    const kept = Object.hasOwn(config.origins, hostname) ? this.#named : this.#matched
    kept.set(hostname, origin)
    return origin
  }

  #sources(options: OriginClientOptions, client: OriginClient): ModuleSources {
    const { config, workspaces } = this.#parts
    const bytes = config.archives.maxArchiveSize
    const limits = { downloadBytes: bytes, unpackedBytes: bytes, files: MAX_MODULE_FILES }
    const keys = new Map(Object.entries(config.hosts))
    const credentials = new Map(
      [...options.hosts].map(([host, known]) => [host, { ...known, ...sshFiles(keys.get(host)) }]),
    )
    const git = createOriginRepositories(options, { credentials, workspaces, limits })
    return new ModuleSources({ client, git, workspaces, limits })
  }

  /** Closes every connection. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#clients].map((client) => this.#close(client)))
  }

  async #close(client: OriginClient): Promise<void> {
    this.#clients.delete(client)
    await client.close()
  }

  #clientOptions(hostname: Hostname, settings: OriginConfig): OriginClientOptions {
    const { config, observer, instanceId, userAgent, now, log } = this.#parts
    const { upstream } = config
    const proxy = proxySettings(upstream)
    const { token, address, allowedHosts } = settings
    return {
      hostname,
      ...(token === undefined ? {} : { token }),
      ...(address === undefined ? {} : { address: splitAddress(address) }),
      ...(allowedHosts === undefined ? {} : { allowedHosts }),
      ...(proxy === undefined ? {} : { proxy }),
      allowHttp: settings.allowHttp,
      allowPrivateAddresses: settings.allowPrivateAddresses,
      ca: [settings.caFile, upstream.caFile].flatMap((file) => this.#pemOf(file)),
      hosts: this.#hostCredentials(),
      userAgent,
      terraformVersion: TERRAFORM_VERSION,
      instanceId,
      connectTimeoutMs: upstream.connectTimeout,
      idleTimeoutMs: upstream.idleTimeout,
      minBytesPerSecond: upstream.minRate,
      retries: upstream.retries,
      concurrency: upstream.concurrency,
      observer,
      now,
      log,
    }
  }

  #hostCredentials(): OriginClientOptions['hosts'] {
    const { hosts } = this.#parts.config
    return new Map(
      Object.entries(hosts).map(([host, { token, basic, caFile }]) => {
        const [ca] = this.#pemOf(caFile)
        return [
          host,
          {
            ...(token === undefined ? {} : { token }),
            ...(basic === undefined ? {} : { basic }),
            ...(ca === undefined ? {} : { ca }),
          },
        ]
      }),
    )
  }

  #pemOf(file: string | undefined): string[] {
    const pem = file === undefined ? undefined : this.#pem.get(file)
    return pem === undefined ? [] : [pem]
  }
}

function sshFiles(host: Config['hosts'][string] | undefined): { sshKeyFile?: string; knownHostsFile?: string } {
  return {
    ...(host?.sshKeyFile === undefined ? {} : { sshKeyFile: host.sshKeyFile }),
    ...(host?.knownHostsFile === undefined ? {} : { knownHostsFile: host.knownHostsFile }),
  }
}

function proxySettings({ proxy, noProxy = '' }: Config['upstream']): ProxySettings | undefined {
  return proxy === undefined || proxy === 'off' ? undefined : { httpsProxy: proxy, httpProxy: proxy, noProxy }
}

async function readPem(file: string): Promise<string> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
    throw new MirrorError('CONFIGURATION', `caFile ${file} cannot be read${code}`, { key: 'caFile' }, error)
  }
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text
  throw new MirrorError('CONFIGURATION', `caFile ${file} holds no PEM certificate`, { key: 'caFile' })
}

function splitAddress(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':')
  return { host: address.slice(0, colon).replace(/^\[(.*)\]$/, '$1'), port: Number(address.slice(colon + 1)) }
}
