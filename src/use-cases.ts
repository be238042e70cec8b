import type { Config, OriginConfig } from './config/schema.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import { Archives } from './mirror/archives.ts'
import { Catalogue } from './mirror/catalogue.ts'
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
import { Releases } from './mirror/releases.ts'
import { Evictor } from './mirror/space/evictor.ts'
import { OrphanSweep } from './mirror/space/orphan-sweep.ts'
import type { Space } from './mirror/space/space.ts'
import type { BlobClaims } from './mirror/stock/blob-claims.ts'
import { Inventory } from './mirror/stock/inventory.ts'
import { ItemRemoval } from './mirror/stock/item-removal.ts'
import { RecordedModules, RecordedPackages } from './mirror/stock/recorded-items.ts'
import { Usage } from './mirror/stock/usage.ts'
import { parseStoredModuleVersions, parseStoredVersions } from './mirror/stored-versions.ts'
import { Versions } from './mirror/versions.ts'
import { findOriginConfig, type OriginUpstreams } from './origin-upstreams.ts'
import type { Hostname } from './protocol/hostname.ts'
import type { BlobStore } from './store/blob-store.ts'
import type { DataFolder } from './store/disk/data-folder.ts'
import type { StateStore } from './store/state-store.ts'
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
  readonly state: StateStore
  readonly blobs: BlobStore
  readonly space: Space
  readonly pins: PinnedSets
  readonly metrics: Metrics
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
  readonly catalogue: Catalogue
  readonly moduleCatalogue: ModuleCatalogue
  readonly hashes: PackageHashes
  readonly inventory: Inventory
  readonly removal: ItemRemoval
  readonly usage: Usage
  /** Brings the inventory up to date, in the background: for when clients are served. Never rejects. */
  takeStock(): Promise<void>
  /** Waits until nothing is on its way from any origin. */
  close(): Promise<void>
}

/** Composes the use cases: providers in `Mirror`, modules in `Modules`. @throws MirrorError `STORAGE_FAILED` */
export async function createUseCases(parts: UseCaseParts): Promise<UseCases> {
  const { metrics } = parts
  const observer: MirrorObserver = {
    judged: (verdict) => metrics.verdicts.inc({ verdict }),
    releaseChanged: () => metrics.releaseChanges.inc(),
    downloading: (change) => metrics.downloads.inc(change),
    evicted: (reason, bytes) => {
      metrics.evictedItems.inc({ reason })
      metrics.evictedBytes.inc({ reason }, bytes)
    },
  }
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
  const common = { ...parts, claims: inventory.claims, usage, observer, freshness: freshnessOf(parts.config) }
  const hashes = new PackageHashes({ records: folder.records, blobs, hasher: new PackageHasher(), log })
  const mirror = createMirror({ ...common, catalogue, hashes })
  const modules = createModules({ ...common, catalogue: moduleCatalogue })
  const removal = new ItemRemoval({ catalogue, modules: moduleCatalogue, inventory, blobs })
  makeSpace({ ...common, inventory, removal })
  const journals = opened.move()
  return {
    mirror,
    modules,
    catalogue,
    moduleCatalogue,
    hashes,
    inventory,
    removal,
    usage,
    async takeStock() {
      const sources = [new RecordedPackages(catalogue), new RecordedModules(moduleCatalogue)]
      await Promise.all([usage.load(), inventory.start(sources, shutdown)])
      if (!shutdown.aborted) usage.retain((name) => inventory.get(name) !== undefined)
    },
    async close() {
      await using _journals = journals
      await Promise.all([mirror.close(), modules.idle()])
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
  readonly usage: Usage
  readonly observer: MirrorObserver
  readonly freshness: Freshness
}

/** From now on, what is not used for long goes where space is short. */
function makeSpace(parts: SharedParts & { inventory: Inventory; removal: ItemRemoval }): void {
  const { space } = parts
  const { leases } = space
  const observer: Pick<MirrorObserver, 'evicted'> = {
    evicted(what, bytes) {
      space.countEviction(bytes)
      parts.observer.evicted(what, bytes)
    },
  }
  const orphans = new OrphanSweep({ ...parts, leases, observer })
  const evictor = new Evictor({ ...parts, leases, observer, orphans })
  space.ledger.evictBy((options) => evictor.evict(options))
}

function createMirror(parts: SharedParts & { catalogue: Catalogue; hashes: PackageHashes }): Mirror {
  const {
    config,
    folder,
    catalogue,
    hashes,
    claims,
    usage,
    blobs,
    space: { leases },
    upstreams,
    shutdown,
    observer,
    freshness,
    now,
    log,
  } = parts
  const upstreamFor = (hostname: Hostname) => upstreams?.for(hostname)
  const rulesFor = (hostname: Hostname): OriginConfig['verification'] =>
    findOriginConfig(config.origins, hostname)?.verification ?? config.verification
  const stored = { cache: folder.metadata, prefix: 'versions', parse: parseStoredVersions }
  const onChange = ({ name }: Subject): void => catalogue.editions.end(name)
  const lists = new DocumentCache({ ...stored, onChange, freshness, now, log, shutdown })
  const versions = new Versions({ catalogue, upstreamFor, lists, now, log })
  const common = { catalogue, claims, blobs, upstreamFor, shutdown, observer, now, log }
  const releases = new Releases({ ...common, versions, rulesFor, freshness })
  const { delivery } = config.archives
  const archives = new Archives({ ...common, leases, releases, hashes, findUnsafety, delivery })
  const downloads = new DownloadDocuments({ catalogue, releases, hashes, upstreamFor, log })
  return new Mirror({ catalogue, versions, releases, archives, hashes, downloads, usage, upstreamFor })
}

function createModules(parts: SharedParts & { catalogue: ModuleCatalogue }): Modules {
  const { folder, catalogue, claims, usage, blobs, space, upstreams, shutdown, observer, freshness, now, log } = parts
  const upstreamFor = (hostname: Hostname) => upstreams?.modulesFor(hostname)
  const stored = { cache: folder.metadata, prefix: 'module-versions', parse: parseStoredModuleVersions }
  const documents = new DocumentCache({ ...stored, freshness, now, log, shutdown })
  const lists = new ModuleLists({ catalogue, upstreamFor, lists: documents, now, log })
  const common = { catalogue, lists, blobs, leases: space.leases, upstreamFor, now, log }
  const fetches = new ModuleFetches({ ...common, claims, shutdown, observer })
  return new Modules({ ...common, fetches, usage, ...freshness })
}
