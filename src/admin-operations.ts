import type { Operations } from './admin/operations.ts'
import { createCare } from './care.ts'
import type { Config } from './config/schema.ts'
import { readConfiguration, readLockFile } from './hcl/hcl-reader.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics/metrics.ts'
import { Jobs } from './mirror/jobs/jobs.ts'
import type { PinnedSets } from './mirror/pins/pinned-sets.ts'
import { Pins } from './mirror/pins/pins.ts'
import type { Space } from './mirror/space/space.ts'
import { Statistics } from './mirror/stock/statistics.ts'
import { Stock } from './mirror/stock/stock.ts'
import type { View } from './mirror/view.ts'
import { Warm } from './mirror/warm/warm.ts'
import type { BlobStore } from './store/blob-store.ts'
import type { CheckedBlobStore } from './store/checked-blob-store.ts'
import type { DataFolder } from './store/disk/data-folder.ts'
import type { StateStore } from './store/state-store.ts'
import type { OriginStates } from './upstream/origin-states.ts'
import type { UseCases } from './use-cases.ts'

/** What the operations are made of; all of it belongs to the caller. */
export interface OperationsParts {
  readonly config: Config
  readonly useCases: UseCases
  readonly folder: DataFolder
  readonly state: StateStore
  readonly blobs: BlobStore
  /** The part of `blobs` that hashes. */
  readonly checked: CheckedBlobStore
  readonly space: Space
  readonly pins: PinnedSets
  readonly origins: OriginStates
  readonly metrics: Metrics
  /** What clients may see: nothing else is fetched for operators either. */
  readonly view: View
  readonly shutdown: AbortSignal
  readonly now: () => number
  readonly log: Log
}

/** What operators can do, with the jobs that go on by themselves. */
export interface RunningOperations extends Operations {
  /** Ends what a crash interrupted: before anything is served. @throws MirrorError `STORAGE_FAILED` */
  recover(): Promise<void>
  /** Takes up the jobs of a process before this one, and verifies at regular times: for when clients are served. Never rejects. */
  resume(): Promise<void>
  /** Ends what is running, to go on with it at the next start. */
  close(): Promise<void>
}

/** Puts the use cases of operators together. */
export function createOperations(parts: OperationsParts): RunningOperations {
  const { config, useCases, folder, state, space, pins: sets, origins, metrics, view, now, log } = parts
  const { inventory, clientWork } = useCases
  const jobs = new Jobs({ store: state, clientWork, observer: metrics.jobs, now, log })
  const warm = createWarm(parts)
  jobs.register(warm.kind)
  const care = createCare({
    ...{ ...parts, ...useCases, jobs, records: folder.records, leases: space.leases },
    ...{ isSealed: config.mode === 'sealed', observer: metrics.storage },
  })
  return {
    jobs,
    warm: {
      plan: (request, signal) => warm.plan(request, signal),
      start: ({ dryRun: _, ...request }) => jobs.start(warm.kind, request),
    },
    verify: { start: (request) => jobs.start(care.verify, request) },
    stock: createStock(parts),
    statistics: createStatistics(parts),
    origins: { list: () => origins.list(inventory.all()) },
    pins: new Pins({ sets, inventory, jobs, readLockFile }),
    purge: care.purge,
    refresh: care.refresh,
    explain: { explain: (address, version) => care.explain.explain(view, address, version) },
    recover: () => care.recover(),
    async resume() {
      try {
        await jobs.resumeAll()
      } catch (error) {
        log.error({ err: error }, 'could not take up the jobs of before')
      }
      await care.keepVerifying()
    },
    close: () => jobs.close(),
  }
}

function createWarm({ config, useCases, view, log }: OperationsParts): Warm {
  return new Warm({
    ...{ ...useCases, view, sealed: config.mode === 'sealed', defaultOrigin: config.defaultOrigin, log },
    readCalls: (record, subfolder) => useCases.calls.read(record, subfolder),
    ...{ readLockFile, readConfiguration },
  })
}

function createStock({ useCases, pins }: OperationsParts): Stock {
  return new Stock({
    ...{ ...useCases, modules: useCases.moduleCatalogue },
    pinsOf: (name) => pins.setsOf(name),
    callsOf: (record) => useCases.calls.read(record),
  })
}

function createStatistics({ config, useCases, folder, space, metrics, now }: OperationsParts): Statistics {
  return new Statistics({
    ...{ mode: config.mode, startedAt: now(), inventory: useCases.inventory, usage: useCases.usage },
    traffic: () => metrics.totals(),
    space: async () => ({ ...(await space.figures()), evictions: (await metrics.totals()).evictions }),
    quarantine: () => folder.measureQuarantine(),
  })
}
