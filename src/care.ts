import type { Config } from './config/schema.ts'
import type { Log } from './log.ts'
import type { Archives } from './mirror/archives.ts'
import { Explain } from './mirror/care/explain.ts'
import { Purge } from './mirror/care/purge.ts'
import { Refresh } from './mirror/care/refresh.ts'
import { Restoration } from './mirror/care/restoration.ts'
import { type ScrubObserver, Verify } from './mirror/care/verify.ts'
import { VerifySchedule } from './mirror/care/verify-schedule.ts'
import type { Catalogue } from './mirror/catalogue.ts'
import type { Jobs } from './mirror/jobs/jobs.ts'
import type { ModuleCatalogue } from './mirror/module-catalogue.ts'
import type { ModuleLists } from './mirror/module-lists.ts'
import type { Modules } from './mirror/modules.ts'
import type { PinnedSets } from './mirror/pins/pinned-sets.ts'
import type { ReleaseReplacement } from './mirror/release-replacement.ts'
import type { Releases } from './mirror/releases.ts'
import type { Inventory } from './mirror/stock/inventory.ts'
import type { ItemRemoval } from './mirror/stock/item-removal.ts'
import type { Versions } from './mirror/versions.ts'
import type { View } from './mirror/view.ts'
import type { BlobLeases } from './store/blob-leases.ts'
import type { BlobStore } from './store/blob-store.ts'
import type { CheckedBlobStore } from './store/checked-blob-store.ts'
import type { RecordStore } from './store/record-store.ts'
import type { StateStore } from './store/state-store.ts'

/** What care works with. */
export interface CareParts {
  readonly config: Config
  readonly isSealed: boolean
  readonly view: View
  readonly catalogue: Catalogue
  readonly versions: Versions
  readonly releases: Releases
  readonly replacement: ReleaseReplacement
  readonly archives: Archives
  readonly moduleCatalogue: ModuleCatalogue
  readonly moduleLists: ModuleLists
  readonly modules: Modules
  readonly inventory: Inventory
  readonly removal: ItemRemoval
  readonly pins: PinnedSets
  readonly jobs: Jobs
  readonly records: RecordStore
  readonly state: Pick<StateStore, 'records'>
  readonly blobs: BlobStore
  readonly checked: CheckedBlobStore
  readonly leases: BlobLeases
  readonly observer: ScrubObserver
  readonly shutdown: AbortSignal
  readonly now: () => number
  readonly log: Log
}

/** What keeps the stock in order, on an operator's word and by itself. */
export interface Care {
  readonly purge: Purge
  readonly refresh: Refresh
  readonly explain: Explain
  readonly verify: Verify
  /** Ends what a crash interrupted: before anything is served. @throws MirrorError `STORAGE_FAILED` */
  recover(): Promise<void>
  /** Verifies everything at regular times, as configured, until the process stops. Never rejects. */
  keepVerifying(): Promise<void>
}

/** Composes it, and teaches `jobs` to verify. */
export function createCare(parts: CareParts): Care {
  const { config, jobs, replacement, state, shutdown, now, log } = parts
  const verify = new Verify({ ...parts, restoration: new Restoration(parts), rate: config.verify.rate })
  jobs.register(verify)
  const { every } = config.verify
  const common = { ...parts, defaultHost: config.defaultOrigin }
  return {
    verify,
    purge: new Purge(parts),
    refresh: new Refresh(common),
    explain: new Explain({ ...common, freshForMs: config.freshness.versions }),
    recover: () => replacement.resume(),
    async keepVerifying() {
      if (every === 'off') return
      const begin = (): Promise<unknown> => jobs.start(verify, { prefix: '', repair: true })
      await new VerifySchedule({ records: state.records, every, begin, shutdown, now, log }).run()
    },
  }
}
