import type { Operations } from './admin/operations.ts'
import type { Config } from './config/schema.ts'
import { readLockFile } from './hcl/hcl-reader.ts'
import type { PinnedSets } from './mirror/pins/pinned-sets.ts'
import { Pins } from './mirror/pins/pins.ts'
import type { OriginStates } from './upstream/origin-states.ts'
import type { UseCases } from './use-cases.ts'

/** What the operations are made of. */
export interface OperationsParts {
  readonly config: Config
  readonly useCases: UseCases
  readonly pins: PinnedSets
  readonly origins: OriginStates
}

/** Puts the use cases of operators together, as the admin app takes them. */
export function createOperations({ useCases, pins: sets, origins }: OperationsParts): Operations {
  const { jobs, warm, inventory } = useCases
  const missing = (): never => {
    throw new Error('not merged yet')
  }
  return {
    jobs,
    warm: {
      plan: (request, signal) => warm.plan(request, signal),
      start: ({ dryRun: _, ...request }) => jobs.start(warm.kind, request),
    },
    origins: { list: () => origins.list(inventory.all()) },
    pins: new Pins({ sets, inventory, jobs, readLockFile }),
    verify: { start: missing },
    stock: { listPackages: missing, listModules: missing },
    statistics: { read: missing },
    purge: { purge: missing },
    refresh: { refresh: missing },
    explain: { explain: missing },
  }
}
