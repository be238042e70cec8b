import type { Config, OriginConfig } from './config/schema.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics/metrics.ts'
import { Archives } from './mirror/archives.ts'
import { Catalogue } from './mirror/catalogue.ts'
import { ClientWork } from './mirror/client-work.ts'
import { DownloadDocuments } from './mirror/download-documents.ts'
import { DocumentCache, type Freshness, type Subject } from './mirror/freshness.ts'
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
import { packageItem } from './mirror/stock/held-item.ts'
import { Inventory } from './mirror/stock/inventory.ts'
import { formatPackageName } from './mirror/stock/item-name.ts'
import { ItemRemoval } from './mirror/stock/item-removal.ts'
import { RecordedModules, RecordedPackages } from './mirror/stock/recorded-items.ts'
import { Usage } from './mirror/stock/usage.ts'
import { parseStoredModuleVersions, parseStoredVersions } from './mirror/stored-versions.ts'
import { Versions } from './mirror/versions.ts'
import { findOriginConfig, type OriginUpstreams } from './origin-upstreams.ts'
import type { Hostname } from './protocol/hostname.ts'
import type { Sha256 } from './protocol/package-hash.ts'
import { parsePlatform } from './protocol/platform.ts'
import type { BlobStore } from './store/blob-store.ts'
import type { DataFolder } from './store/disk/data-folder.ts'
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
  readonly blobs: BlobStore
  readonly space: Space
  /** What this one instance keeps for itself. */
  readonly state: StateStore
  readonly pins: PinnedSets
  readonly metrics: Metrics
  readonly origins: OriginStates
  /** Undefined: the mirror is sealed. */
  readonly upstreams: OriginUpstreams | undefined
  readonly shutdown: AbortSignal
  readonly now: () => number
  readonly log: Log
}

/** What the mirror does for its clients, and what that stands on. */
export interface UseCases {
  readonly mirror: Mirror
  readonly modules: Modules
  readonly catalogue: Catalogue
  readonly moduleCatalogue: ModuleCatalogue
  readonly versions: Versions
  readonly moduleLists: ModuleLists
  readonly releases: Releases
  readonly archives: Archives
  readonly hashes: PackageHashes
  readonly inventory: Inventory
  readonly removal: ItemRemoval
  readonly usage: Usage
  readonly clientWork: ClientWork
  /** Brings the inventory up to date, in the background: for when clients are served. Never rejects. */
  takeStock(): Promise<void>
  /** Waits until nothing is on its way from any origin. */
  close(): Promise<void>
}

/** Composes the use cases: providers in `Mirror`, modules in `Modules`. @throws MirrorError `STORAGE_FAILED` */
export async function createUseCases(parts: UseCaseParts): Promise<UseCases> {
  const { folder, state, blobs, shutdown, now, log } = parts
  await using opened = new AsyncDisposableStack()
  const usage = new Usage({ journal: opened.use(await state.journal('usage')), now, log })
  const inventory = new Inventory({
    journal: opened.use(await folder.openJournal('inventory')),
    onRemoved: (name) => usage.forget(name),
    log,
  })
  const catalogue = new Catalogue(folder.records, inventory, log)
  const moduleCatalogue = new ModuleCatalogue(folder.records, inventory, log)
  const hashes = new PackageHashes({ records: folder.records, blobs, hasher: new PackageHasher(), log })
  const forget = (digest: Sha256): Promise<void> => hashes.forget(digest)
  const removal = new ItemRemoval({ catalogue, modules: moduleCatalogue, inventory, blobs, forget })
  const common = {
    ...{ ...parts, claims: inventory.claims, inventory, removal, usage, clientWork: new ClientWork() },
    ...{ observer: parts.metrics.verification, freshness: freshnessOf(parts.config) },
  }
  const providers = createMirror({ ...common, catalogue, hashes })
  const modules = createModules({ ...common, catalogue: moduleCatalogue })
  makeSpace(common)
  const journals = opened.move()
  return {
    ...{ ...providers, ...modules, catalogue, moduleCatalogue, hashes, inventory, removal, usage },
    clientWork: common.clientWork,
    async takeStock() {
      const sources = [new RecordedPackages(catalogue), new RecordedModules(moduleCatalogue)]
      await Promise.all([usage.load(), inventory.start(sources, shutdown)])
      if (shutdown.aborted) return
      usage.retain((name) => inventory.get(name) !== undefined)
    },
    async close() {
      await using _journals = journals
      await Promise.all([providers.mirror.close(), modules.modules.idle()])
      await inventory.close()
      await usage.close()
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
  readonly inventory: Inventory
  readonly removal: ItemRemoval
  readonly usage: Usage
  readonly observer: MirrorObserver
  readonly freshness: Freshness
  readonly clientWork: ClientWork
}

/** From now on, what is not used for long goes where space is short. */
function makeSpace(parts: SharedParts): void {
  const { space, metrics } = parts
  const { leases } = space
  const observer = metrics.storage
  const orphans = new OrphanSweep({ ...parts, observer, leases })
  const evictor = new Evictor({ ...parts, observer, leases, orphans })
  space.ledger.evictBy((options) => evictor.evict(options))
}

function createMirror(parts: SharedParts & { catalogue: Catalogue; hashes: PackageHashes }) {
  const { config, folder, catalogue, hashes, claims, removal, usage, blobs, origins, upstreams, observer } = parts
  const { freshness, clientWork, shutdown, now, log } = parts
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
    removeArchive: (address, archive) => {
      const platform = parsePlatform(archive.platform)
      return removal.remove(packageItem(formatPackageName({ address, version: archive.version, platform }), archive))
    },
  })
  const releases = new Releases({ ...common, versions, rulesFor, freshness, replacement })
  const archives = new Archives({ ...common, releases, hashes, findUnsafety, delivery: config.archives.delivery })
  const downloads = new DownloadDocuments({ catalogue, releases, hashes, upstreamFor, log })
  const mirror = new Mirror({ catalogue, versions, releases, archives, hashes, downloads, usage, upstreamFor })
  return { mirror, versions, releases, archives }
}

function createModules(parts: SharedParts & { catalogue: ModuleCatalogue }) {
  const { folder, catalogue, claims, usage, blobs, origins, upstreams, shutdown, observer } = parts
  const { freshness, clientWork, now, log } = parts
  const upstreamFor = (hostname: Hostname) => upstreams?.modulesFor(hostname)
  const stored = { cache: folder.metadata, prefix: 'module-versions', parse: parseStoredModuleVersions }
  const onBackOff = ({ hostname }: Subject, untilMs: number): void => origins.postpone(hostname, untilMs)
  const documents = new DocumentCache({ ...stored, onBackOff, freshness, clientWork, now, log, shutdown })
  const lists = new ModuleLists({ catalogue, upstreamFor, lists: documents, now, log })
  const common = { catalogue, lists, blobs, upstreamFor, now, log }
  const fetches = new ModuleFetches({ ...common, claims, shutdown, observer })
  const modules = new Modules({ ...common, fetches, usage, clientWork, ...freshness })
  return { modules, moduleLists: lists }
}
