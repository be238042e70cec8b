import { createHash } from 'node:crypto'
import { MirrorError } from '../../../src/errors.ts'
import { readConfiguration, readLockFile } from '../../../src/hcl/hcl-reader.ts'
import { ModuleCallsReader } from '../../../src/mirror/care/module-calls-reader.ts'
import { ClientWork } from '../../../src/mirror/client-work.ts'
import { DocumentCache } from '../../../src/mirror/freshness.ts'
import type { Job, JobItem } from '../../../src/mirror/jobs/job.ts'
import { Jobs } from '../../../src/mirror/jobs/jobs.ts'
import { ModuleCatalogue } from '../../../src/mirror/module-catalogue.ts'
import { ModuleFetches } from '../../../src/mirror/module-fetches.ts'
import { ModuleLists } from '../../../src/mirror/module-lists.ts'
import { Modules } from '../../../src/mirror/modules.ts'
import { parseStoredModuleVersions } from '../../../src/mirror/stored-versions.ts'
import type { View } from '../../../src/mirror/view.ts'
import { Warm } from '../../../src/mirror/warm/warm.ts'
import type { WarmRequest } from '../../../src/mirror/warm/warm-request.ts'
import { parseHostname } from '../../../src/protocol/hostname.ts'
import { formatModuleAddress, type ModuleAddress } from '../../../src/protocol/module-address.ts'
import type { ModuleLocation } from '../../../src/protocol/module-location.ts'
import { parseRemoteSource } from '../../../src/protocol/module-source.ts'
import { formatProviderAddress, type ProviderAddress } from '../../../src/protocol/provider-address.ts'
import { assertVersion } from '../../../src/protocol/version.ts'
import { BlobLeases } from '../../../src/store/blob-leases.ts'
import { MemoryMetadataCache } from '../../../src/store/memory/memory-metadata-cache.ts'
import { MemoryStateStore } from '../../../src/store/memory/memory-state-store.ts'
import type { ModuleTree, ModuleUpstream } from '../../../src/upstream/module-upstream.ts'
import type { ProviderUpstream, ReleaseQuery, UpstreamRequest } from '../../../src/upstream/provider-upstream.ts'
import { ended } from '../jobs/jobs-fixture.ts'
import { createParts, freshness, type PartsOptions } from '../parts-fixture.ts'
import { type Publication, providerNotFound, ScriptedUpstream } from '../scripted-upstream.ts'

const HOST = 'registry.example.test'

/** Many providers without a network. */
export class ManyProviders implements ProviderUpstream {
  readonly #providers = new Map<string, ScriptedUpstream>()

  /** `acme/widget` at the usual host, or a whole address. */
  async publish(provider: string, version: string, publication: Publication = {}): Promise<ScriptedUpstream> {
    const name = provider.split('/').length === 2 ? `${HOST}/${provider}` : provider
    const upstream = this.#providers.get(name) ?? new ScriptedUpstream()
    this.#providers.set(name, upstream)
    const bytes = (platform: string): Buffer => Buffer.from(`${name} ${version} ${platform}`)
    await upstream.publish(version, { bytes, ...publication, link: `?of=${name}` })
    return upstream
  }

  /** Everything that was asked, of every provider. */
  get asked(): string[] {
    return [...this.#providers.values()].flatMap(({ asked }) => asked)
  }

  get archivesAsked(): number {
    return this.asked.filter((each) => each.startsWith('archive')).length
  }

  async versions(address: ProviderAddress, request: UpstreamRequest) {
    return await this.#of(address).versions(address, request)
  }

  async release(query: ReleaseQuery, request: UpstreamRequest) {
    return await this.#of(query.address).release(query, request)
  }

  async openArchive(published: { readonly archiveUrl: string }, request: UpstreamRequest) {
    const upstream = this.#providers.get(new URL(published.archiveUrl).searchParams.get('of') ?? '')
    if (upstream === undefined) throw new Error(`nobody has ${published.archiveUrl}`)
    return await upstream.openArchive(published, request)
  }

  #of(address: ProviderAddress): ScriptedUpstream {
    const upstream = this.#providers.get(formatProviderAddress(address))
    if (upstream === undefined) throw providerNotFound(address)
    return upstream
  }
}

/** Many modules without a network: files by path, for each version. */
export class ManyModules implements ModuleUpstream {
  readonly asked: string[] = []
  readonly #modules = new Map<string, Map<string, Record<string, string>>>()

  /** `acme/net/aws` at the usual host. */
  publish(module: string, version: string, files: Record<string, string>): void {
    const name = `${HOST}/${module}`
    const versions = this.#modules.get(name) ?? new Map()
    this.#modules.set(name, versions.set(version, files))
  }

  async versions(address: ModuleAddress) {
    const name = formatModuleAddress(address)
    this.asked.push(`versions ${name}`)
    const versions = this.#modules.get(name)
    if (versions === undefined) throw new MirrorError('MODULE_NOT_FOUND', `${name}: 404`, { address: name })
    const listed = Array.from(versions.keys(), (spelling) => ({ version: assertVersion(spelling), spelling }))
    return { versions: listed, problems: [] }
  }

  async locate(address: ModuleAddress, spelling: string): Promise<ModuleLocation> {
    const source = parseRemoteSource(`https://files.example.test/${formatModuleAddress(address)}/${spelling}.zip`)
    return { source, withOriginToken: false }
  }

  async open({ source }: ModuleLocation): Promise<ModuleTree> {
    const [, ...parts] = source.url.pathname.replace(/\.zip$/, '').split('/')
    const version = parts.pop() ?? ''
    this.asked.push(`files ${parts.join('/')} ${version}`)
    const files = this.#modules.get(parts.join('/'))?.get(version) ?? {}
    const entries = Object.entries(files).sort(([a], [b]) => (a < b ? -1 : 1))
    return {
      revision: { kind: 'archive', digest: createHash('sha256').update(JSON.stringify(entries)).digest('hex') },
      files: new Map(entries.map(([path, text]) => [path, moduleFile(text)])),
      notes: [],
      [Symbol.asyncDispose]: async () => undefined,
    }
  }

  async currentCommit() {
    return undefined
  }
}

function moduleFile(text: string) {
  const bytes = Buffer.from(text)
  const read = async function* () {
    yield bytes
  }
  return { size: bytes.length, executable: false, read }
}

/** What a test wants otherwise than usual. */
export interface WarmOptions extends Pick<PartsOptions, 'hasher' | 'records' | 'blobs'> {
  readonly sealed?: boolean
  readonly view?: View
  /** What was evicted since it came. */
  readonly isGone?: (name: string) => boolean
  readonly store?: MemoryStateStore
}

/** Warming over memory, with providers and modules to publish. */
export function createWarm(options: WarmOptions = {}) {
  const providers = new ManyProviders()
  const modulesUpstream = new ManyModules()
  const { sealed = false, view = { id: 'test', allowsOrigin: (host) => host === HOST } } = options
  const parts = createParts({ ...options, upstreamFor: () => (sealed ? undefined : providers) })
  const { records, blobs, inventory, mirror, log, lines, clock, shutdown } = parts
  const { now } = clock
  const catalogue = new ModuleCatalogue(records, inventory, log)
  const upstreamFor = () => (sealed ? undefined : modulesUpstream)
  const stored = { cache: new MemoryMetadataCache(), prefix: 'module-versions', parse: parseStoredModuleVersions }
  const documents = new DocumentCache({ ...stored, freshness, now, log, shutdown: shutdown.signal })
  const lists = new ModuleLists({ catalogue, upstreamFor, lists: documents, now, log })
  const observer = { judged: () => undefined, releaseChanged: () => undefined, downloading: () => undefined }
  const common = { catalogue, lists, blobs, upstreamFor, observer, shutdown: shutdown.signal, now, log }
  const fetches = new ModuleFetches({ ...common, claims: inventory.claims })
  const modules = new Modules({
    ...common,
    leases: new BlobLeases(),
    fetches,
    usage: { touch: () => undefined },
    ...freshness,
  })
  const calls = new ModuleCallsReader({ records, blobs, readConfiguration, shutdown: shutdown.signal, log })
  const warm = new Warm({
    ...{ mirror, modules, view, sealed, readLockFile, readConfiguration, log },
    inventory: {
      has: (name) => options.isGone?.(name) !== true,
      whenComplete: async () => undefined,
    },
    readCalls: (record, subfolder) => calls.read(record, subfolder),
    defaultOrigin: parseHostname(HOST),
  })
  const store = options.store ?? new MemoryStateStore()
  const jobs = new Jobs({ store, clientWork: new ClientWork(), now, log })
  jobs.register(warm.kind)
  return { providers, modulesUpstream, warm, jobs, mirror, modules, view, store, records, blobs, lines, clock }
}

export type WarmParts = ReturnType<typeof createWarm>

/** A request, as the admin API hands it over, with the defaults filled in. */
export function request(parts: Partial<WarmRequest>): WarmRequest {
  return {
    ...{ providers: [], modules: [], lockFiles: [], configuration: {}, platforms: [], followModules: true },
    ...parts,
  }
}

/** What became of each item of a job with this request. */
export async function warmed(
  { jobs, warm }: WarmParts,
  parts: Partial<WarmRequest>,
): Promise<{ job: Job; items: readonly JobItem[]; outcomes: Record<string, string> }> {
  const { id } = await jobs.start(warm.kind, request(parts))
  const job = await ended(jobs, id)
  const { items } = await jobs.items(id, { limit: 100_000 })
  return { job, items, outcomes: Object.fromEntries(items.map(({ item, outcome }) => [item, String(outcome)])) }
}

/** The outcome of each item of a dry run. */
export async function planned({ warm }: WarmParts, parts: Partial<WarmRequest>) {
  const plan = await warm.plan(request(parts), AbortSignal.timeout(20_000))
  return { plan, outcomes: Object.fromEntries(plan.items.map(({ item, outcome }) => [item, outcome])) }
}
