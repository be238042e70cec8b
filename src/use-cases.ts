import type { Config, OriginConfig } from './config/schema.ts'
import { readConfiguration, readLockFile } from './hcl/hcl-reader.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics/metrics.ts'
import { Archives } from './mirror/archives.ts'
import { ModuleCallsReader } from './mirror/care/module-calls-reader.ts'
import { Catalogue } from './mirror/catalogue.ts'
import { ClientWork } from './mirror/client-work.ts'
import { DownloadDocuments } from './mirror/download-documents.ts'
import { DocumentCache, type Freshness, type Subject } from './mirror/freshness.ts'
import { Jobs } from './mirror/jobs/jobs.ts'
import { Mirror } from './mirror/mirror.ts'
import { ModuleCatalogue } from './mirror/module-catalogue.ts'
import { ModuleFetches } from './mirror/module-fetches.ts'
import { ModuleLists } from './mirror/module-lists.ts'
import { Modules } from './mirror/modules.ts'
import type { MirrorObserver } from './mirror/observer.ts'
import { PackageHashes } from './mirror/package-hashes.ts'
import type { PinnedSets } from './mirror/pins/pinned-sets.ts'
import { ReleaseRecorder } from './mirror/release-recorder.ts'
import { ReleaseReplacement } from './mirror/release-replacement.ts'
import { Releases } from './mirror/releases.ts'
import { Evictor } from './mirror/space/evictor.ts'
import { OrphanSweep } from './mirror/space/orphan-sweep.ts'
import type { Space } from './mirror/space/space.ts'
import type { BlobClaims } from './mirror/stock/blob-claims.ts'
import { Inventory } from './mirror/stock/inventory.ts'
import { ItemRemoval } from './mirror/stock/item-removal.ts'
import { RecordedModules, RecordedPackages } from './mirror/stock/recorded-items.ts'
import { parseStoredModuleVersions, parseStoredVersions } from './mirror/stored-versions.ts'
import { Versions } from './mirror/versions.ts'
import type { View } from './mirror/view.ts'
import type { ReadCalls } from './mirror/warm/module-walk.ts'
import { Warm } from './mirror/warm/warm.ts'
import { findOriginConfig, type OriginUpstreams } from './origin-upstreams.ts'
import type { Hostname } from './protocol/hostname.ts'
import type { BlobStore } from './store/blob-store.ts'
import type { DataFolder } from './store/disk/data-folder.ts'
import type { Journal } from './store/journal.ts'
import type { StateStore } from './store/state-store.ts'
import type { OriginStates } from './upstream/origin-states.ts'
import { PackageHasher } from './verify/h1-worker.ts'
import { findUnsafety } from './verify/package-safety.ts'

/** What is held is served stale when the origin has not answered within this time (design, rule 2). */
const GRACE_MS = 1_500
/** After a failed refresh, what is held is served at once for this long. */
const MAX_BACK_OFF_MS = 10_000
/** One refresh with all its retries; less than the 8 s in which a request must be answered. */
const REFRESH_MS = 7_500

/** What the use cases work with; all of it belongs to the caller. */
export interface UseCaseParts {
  readonly config: Config
  readonly folder: DataFolder
  /** Where the inventory is kept from one start to the next. */
  readonly inventoryJournal: Journal
  readonly blobs: BlobStore
  readonly space: Space
  /** What this one instance keeps for itself. */
  readonly state: StateStore
  readonly pins: PinnedSets
  readonly metrics: Metrics
  readonly origins: OriginStates
  /** What clients may see, and what may be warmed. */
  readonly view: View
  /** Undefined: the mirror is sealed. */
  readonly upstreams: OriginUpstreams | undefined
  readonly shutdown: AbortSignal
  readonly now: () => number
  readonly log: Log
}

/** Everything that the product does, apart from how it is asked. */
export interface UseCases {
  readonly mirror: Mirror
  readonly modules: Modules
  readonly inventory: Inventory
  readonly removal: ItemRemoval
  /** Brings the inventory up to date, in the background: for when clients are served. Never rejects. */
  takeStock(): Promise<void>
  /** `resumeAll` is for the caller, when all kinds are registered and clients are served. */
  readonly jobs: Jobs
  readonly warm: Warm
  /** Waits until nothing is on its way from any origin. */
  close(): Promise<void>
}

/** Composes the use cases: providers in `Mirror`, modules in `Modules`. */
export function createUseCases(parts: UseCaseParts): UseCases {
  const observer = parts.metrics.verification
  const { folder, blobs, shutdown, log } = parts
  const inventory = new Inventory({ journal: parts.inventoryJournal, log })
  const catalogue = new Catalogue(folder.records, inventory, log)
  const moduleCatalogue = new ModuleCatalogue(folder.records, inventory, log)
  const clientWork = new ClientWork()
  const common = { ...parts, claims: inventory.claims, observer, freshness: freshnessOf(parts.config), clientWork }
  const mirror = createMirror({ ...common, catalogue })
  const modules = createModules({ ...common, catalogue: moduleCatalogue })
  const removal = new ItemRemoval({ catalogue, modules: moduleCatalogue, inventory, blobs })
  makeSpace({ ...common, inventory, removal })
  const { state: store, now } = parts
  const jobs = new Jobs({ store, clientWork, observer: parts.metrics.jobs, now, log })
  const warm = createWarm(parts, { mirror, modules })
  jobs.register(warm.kind)
  return {
    mirror,
    modules,
    inventory,
    removal,
    takeStock: () => inventory.start([new RecordedPackages(catalogue), new RecordedModules(moduleCatalogue)], shutdown),
    jobs,
    warm,
    async close() {
      await jobs.close()
      await Promise.all([mirror.close(), modules.idle()])
      await inventory.close()
    },
  }
}

function freshnessOf(config: Config): Freshness {
  return {
    freshForMs: config.freshness.versions,
    notFoundForMs: config.freshness.notFound,
    graceMs: GRACE_MS,
    backOffMs: Math.min(MAX_BACK_OFF_MS, config.freshness.versions),
    refreshForMs: REFRESH_MS,
  }
}

interface SharedParts extends UseCaseParts {
  readonly claims: BlobClaims
  readonly observer: MirrorObserver
  readonly freshness: Freshness
  readonly clientWork: ClientWork
}

/** From now on, what is not used for long goes where space is short. */
function makeSpace(parts: SharedParts & { inventory: Inventory; removal: ItemRemoval }): void {
  const { space, metrics } = parts
  const { leases } = space
  const observer = metrics.storage
  const usage = { of: () => ({ lastUsedAt: undefined }) }
  const orphans = new OrphanSweep({ ...parts, observer, leases })
  const evictor = new Evictor({ ...parts, observer, leases, usage, orphans })
  space.ledger.evictBy((options) => evictor.evict(options))
}

function createMirror(parts: SharedParts & { catalogue: Catalogue }): Mirror {
  const { config, folder, catalogue, claims, blobs, origins, upstreams, shutdown, observer } = parts
  const { freshness, clientWork, now, log } = parts
  const upstreamFor = (hostname: Hostname) => upstreams?.for(hostname)
  const rulesFor = (hostname: Hostname): OriginConfig['verification'] =>
    findOriginConfig(config.origins, hostname)?.verification ?? config.verification
  const stored = { cache: folder.metadata, prefix: 'versions', parse: parseStoredVersions }
  const onChange = ({ name }: Subject): void => catalogue.editions.end(name)
  const onBackOff = ({ hostname }: Subject, untilMs: number): void => origins.postpone(hostname, untilMs)
  const lists = new DocumentCache({ ...stored, onChange, onBackOff, freshness, clientWork, now, log, shutdown })
  const versions = new Versions({ catalogue, upstreamFor, lists, now, log })
  const common = { catalogue, claims, blobs, upstreamFor, shutdown, clientWork, observer, now, log }
  const replacement = new ReleaseReplacement({
    ...{ catalogue, records: folder.records, recorder: new ReleaseRecorder({ catalogue, claims, blobs, log }), log },
    removeArchive: async () => undefined,
  })
  const releases = new Releases({ ...common, versions, rulesFor, freshness, replacement })
  const hashes = new PackageHashes({ records: folder.records, blobs, hasher: new PackageHasher(), log })
  const archives = new Archives({ ...common, releases, hashes, findUnsafety, delivery: config.archives.delivery })
  const downloads = new DownloadDocuments({ catalogue, releases, hashes, upstreamFor, log })
  return new Mirror({ catalogue, versions, releases, archives, hashes, downloads, upstreamFor })
}

function createModules(parts: SharedParts & { catalogue: ModuleCatalogue }): Modules {
  const { folder, catalogue, claims, blobs, origins, upstreams, shutdown, observer } = parts
  const { freshness, clientWork, now, log } = parts
  const upstreamFor = (hostname: Hostname) => upstreams?.modulesFor(hostname)
  const stored = { cache: folder.metadata, prefix: 'module-versions', parse: parseStoredModuleVersions }
  const onBackOff = ({ hostname }: Subject, untilMs: number): void => origins.postpone(hostname, untilMs)
  const documents = new DocumentCache({ ...stored, onBackOff, freshness, clientWork, now, log, shutdown })
  const lists = new ModuleLists({ catalogue, upstreamFor, lists: documents, now, log })
  const common = { catalogue, lists, blobs, upstreamFor, now, log }
  const fetches = new ModuleFetches({ ...common, claims, shutdown, observer })
  return new Modules({ ...common, fetches, clientWork, ...freshness })
}

function createWarm(parts: UseCaseParts, useCases: Pick<UseCases, 'mirror' | 'modules'>): Warm {
  const { config, folder, blobs, upstreams, view, shutdown, log } = parts
  const { defaultOrigin } = config
  const calls = new ModuleCallsReader({ records: folder.records, blobs, readConfiguration, shutdown, log })
  const readCalls: ReadCalls = (record, subfolder) => calls.read(record, subfolder)
  const sealed = upstreams === undefined
  return new Warm({ ...useCases, view, sealed, readCalls, readLockFile, readConfiguration, defaultOrigin })
}
