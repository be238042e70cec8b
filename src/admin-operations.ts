import type { Operations } from './admin/operations.ts'
import type { Config } from './config/schema.ts'
import { readConfiguration, readLockFile } from './hcl/hcl-reader.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics/metrics.ts'
import { Explain } from './mirror/care/explain.ts'
import { ModuleCallsReader } from './mirror/care/module-calls-reader.ts'
import { Purge } from './mirror/care/purge.ts'
import { Refresh } from './mirror/care/refresh.ts'
import { Restoration } from './mirror/care/restoration.ts'
import { Verify } from './mirror/care/verify.ts'
import { Jobs } from './mirror/jobs/jobs.ts'
import type { PinnedSets } from './mirror/pins/pinned-sets.ts'
import { Pins } from './mirror/pins/pins.ts'
import type { Space } from './mirror/space/space.ts'
import { Statistics } from './mirror/stock/statistics.ts'
import { Stock } from './mirror/stock/stock.ts'
import type { View } from './mirror/view.ts'
import { Warm } from './mirror/warm/warm.ts'
import type { CheckedBlobStore } from './store/checked-blob-store.ts'
import type { DataFolder } from './store/disk/data-folder.ts'
import type { StateStore } from './store/state-store.ts'
import type { OriginStates } from './upstream/origin-states.ts'
import type { UseCases } from './use-cases.ts'

/** What a verification reads in a second: a disk has that to spare. */
const VERIFY_BYTES_PER_SECOND = 50_000_000

/** What the operations are made of; all of it belongs to the caller. */
export interface OperationsParts {
  readonly config: Config
  readonly useCases: UseCases
  readonly folder: DataFolder
  readonly state: StateStore
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
  /** Takes up what a process before this one left undone; for when clients are served. Never rejects. */
  resume(): Promise<void>
  /** Ends what is running, to go on with it at the next start. */
  close(): Promise<void>
}

/** Puts the use cases of operators together. */
export function createOperations(parts: OperationsParts): RunningOperations {
  const { config, useCases, state, pins: sets, origins, metrics, view, now, log } = parts
  const { inventory, clientWork } = useCases
  const jobs = new Jobs({ store: state, clientWork, observer: metrics.jobs, now, log })
  const calls = createCallsReader(parts)
  const warm = createWarm(parts, calls)
  const verify = createVerify(parts)
  jobs.register(warm.kind)
  jobs.register(verify)
  const isSealed = config.mode === 'sealed'
  const asked = { ...useCases, view, isSealed, defaultHost: config.defaultOrigin }
  const explain = new Explain({
    ...{ ...asked, blobs: parts.checked, checked: parts.checked, freshForMs: config.freshness.versions, now },
  })
  return {
    jobs,
    warm: {
      plan: (request, signal) => warm.plan(request, signal),
      start: ({ dryRun: _, ...request }) => jobs.start(warm.kind, request),
    },
    verify: { start: (request) => jobs.start(verify, request) },
    stock: createStock(parts, calls),
    statistics: createStatistics(parts),
    origins: { list: () => origins.list(inventory.all()) },
    pins: new Pins({ sets, inventory, jobs, readLockFile }),
    purge: new Purge({ ...useCases, pins: sets }),
    refresh: new Refresh(asked),
    explain: { explain: (address, version) => explain.explain(view, address, version) },
    async resume() {
      try {
        await jobs.resumeAll()
      } catch (error) {
        log.error({ err: error }, 'could not take up the jobs of before')
      }
    },
    close: () => jobs.close(),
  }
}

function createCallsReader({ folder, checked: blobs, shutdown, log }: OperationsParts): ModuleCallsReader {
  return new ModuleCallsReader({ records: folder.records, blobs, readConfiguration, shutdown, log })
}

function createWarm({ config, useCases, view, log }: OperationsParts, calls: ModuleCallsReader): Warm {
  return new Warm({
    ...{ ...useCases, view, sealed: config.mode === 'sealed', defaultOrigin: config.defaultOrigin, log },
    readCalls: (record, subfolder) => calls.read(record, subfolder),
    ...{ readLockFile, readConfiguration },
  })
}

function createVerify(parts: OperationsParts): Verify {
  const { config, useCases, folder, checked, space, metrics, view, now, log } = parts
  const isSealed = config.mode === 'sealed'
  const restoration = new Restoration({ ...useCases, isSealed, view, blobs: checked })
  return new Verify({
    ...{ ...useCases, records: folder.records, blobs: checked, checked, leases: space.leases, restoration },
    ...{ rate: VERIFY_BYTES_PER_SECOND, observer: metrics.storage, now, log },
  })
}

function createStock({ useCases, pins }: OperationsParts, calls: ModuleCallsReader): Stock {
  return new Stock({
    ...{ ...useCases, modules: useCases.moduleCatalogue },
    pinsOf: (name) => pins.setsOf(name),
    callsOf: (record) => calls.read(record),
  })
}

function createStatistics({ config, useCases, folder, space, metrics, now }: OperationsParts): Statistics {
  const { maxSize, minFree } = config.archives
  return new Statistics({
    ...{ mode: config.mode, startedAt: now(), inventory: useCases.inventory, usage: useCases.usage },
    traffic: () => metrics.totals(),
    async space() {
      const { stored } = space.blobs
      return {
        used: stored.isMeasured ? stored.sum.diskBytes : null,
        reserved: space.ledger.reserved,
        maxSize: maxSize ?? null,
        free: await folder.freeBytes(),
        minFree: minFree ?? null,
        evictions: (await metrics.totals()).evictions,
      }
    },
    quarantine: () => folder.measureQuarantine(),
  })
}
