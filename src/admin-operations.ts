import type { Operations } from './admin/operations.ts'
import type { Config } from './config/schema.ts'
import { readConfiguration, readLockFile } from './hcl/hcl-reader.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics/metrics.ts'
import { Explain } from './mirror/care/explain.ts'
import { Purge } from './mirror/care/purge.ts'
import { Refresh } from './mirror/care/refresh.ts'
import { Restoration } from './mirror/care/restoration.ts'
import { Verify } from './mirror/care/verify.ts'
import { VerifySchedule } from './mirror/care/verify-schedule.ts'
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
  const { inventory, clientWork, replacement } = useCases
  const jobs = new Jobs({ store: state, clientWork, observer: metrics.jobs, now, log })
  const isSealed = config.mode === 'sealed'
  const common = { ...parts, ...useCases, isSealed, defaultHost: config.defaultOrigin }
  const warm = createWarm(parts)
  const verify = new Verify({
    ...{ ...common, records: folder.records, leases: space.leases, restoration: new Restoration(common) },
    ...{ observer: metrics.storage, rate: config.verify.rate },
  })
  const explain = new Explain({ ...common, freshForMs: config.freshness.versions })
  jobs.register(warm.kind)
  jobs.register(verify)
  return {
    jobs,
    warm: {
      plan: (request, signal) => warm.plan(request, signal),
      start: ({ dryRun: _, ...request }) => jobs.start(warm.kind, request),
    },
    verify: { start: (request) => jobs.start(verify, request) },
    stock: createStock(parts),
    statistics: createStatistics(parts),
    origins: { list: () => origins.list(inventory.all()) },
    pins: new Pins({ ...common, sets, jobs, readLockFile }),
    purge: new Purge(common),
    refresh: new Refresh(common),
    explain: { explain: (address, version) => explain.explain(view, address, version) },
    recover: () => replacement.resume(),
    async resume() {
      try {
        await jobs.resumeAll()
      } catch (error) {
        log.error({ err: error }, 'could not take up the jobs of before')
      }
      await keepVerifying(() => jobs.start(verify, { prefix: '', repair: true }), parts)
    },
    close: () => jobs.close(),
  }
}

/** Verifies everything at regular times, as configured, until the process stops. Never rejects. */
async function keepVerifying(
  begin: () => Promise<unknown>,
  { config, state, shutdown, now, log }: OperationsParts,
): Promise<void> {
  const { every } = config.verify
  if (every === 'off') return
  await new VerifySchedule({ records: state.records, every, begin, shutdown, now, log }).run()
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
