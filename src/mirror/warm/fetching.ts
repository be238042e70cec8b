import type { Log } from '../../log.ts'
import { settledWithin, untilAborted } from '../deadline.ts'
import type { JobResult } from '../jobs/job.ts'
import { isHere } from '../jobs/job-items.ts'
import type { JobContext } from '../jobs/job-kind.ts'
import type { Mirror } from '../mirror.ts'
import type { ModuleRecord } from '../module-record.ts'
import type { Modules } from '../modules.ts'
import type { Inventory } from '../stock/inventory.ts'
import type { ModuleId } from '../stock/item-name.ts'
import { formatModuleName } from '../stock/item-name.ts'
import type { View } from '../view.ts'
import { findLockConflict } from './lock-comparison.ts'
import { originCall } from './origin-call.ts'
import type { Refusal } from './outcomes.ts'
import { orRefuse, type WarmPackage, type WarmWork } from './warm-work.ts'

/** For the inventory to be complete. */
const INVENTORY_MS = 5 * 60_000
const DRIVEN_OUT =
  'it was removed again before the job ended. If nobody purged it, archives.maxSize or archives.minFree leaves no room for everything that the job brings: give it more room, or warm less'
/** A module's repository may have a long history. */
const MODULE_MS = 20 * 60_000

/** What fetching works with. */
export interface FetchingParts {
  readonly mirror: Pick<Mirror, 'obtainArchive' | 'hashArchive'>
  readonly modules: Pick<Modules, 'locate' | 'find'>
  readonly inventory: Pick<Inventory, 'has' | 'whenComplete'>
  readonly view: View
  readonly log: Log
}

/** Brings what is wanted, by the same ways as clients do, and settles it in a job. */
export class Fetching implements WarmWork {
  readonly #job: JobContext
  readonly #parts: FetchingParts
  readonly #here: string[]

  constructor(job: JobContext, parts: FetchingParts) {
    this.#job = job
    this.#here = [...job.settled.values()].filter(isHere).map(({ item }) => item)
    this.#parts = parts
  }

  get signal(): AbortSignal {
    return this.#job.signal
  }

  get log(): Log {
    return this.#parts.log
  }

  each<T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void> {
    return this.#job.each(items, work)
  }

  refuse(item: string, refusal: Refusal): void {
    this.#job.settle(item, refusal)
  }

  async module(id: ModuleId): Promise<ModuleRecord | undefined> {
    const { modules, view } = this.#parts
    const name = formatModuleName(id)
    this.#job.add([{ item: name }])
    return await orRefuse(this, name, async () => {
      if (!this.#job.settled.has(name)) {
        const { value, outcome } = await modules.locate(view, id, originCall(this.signal, MODULE_MS))
        const held = outcome === 'hit' || outcome === 'stale'
        this.#settle(name, held ? { outcome: 'held' } : { outcome: 'done', bytes: value.size })
      }
      return await modules.find(view, id)
    })
  }

  async packages(packages: readonly WarmPackage[]): Promise<void> {
    this.#job.add(packages.map(({ name }) => ({ item: name })))
    const open = packages.filter(({ name }) => !this.#job.settled.has(name))
    await this.#job.each(open, (wanted) => this.#fetch(wanted))
  }

  /**
   * What was brought must still be here at the end: with too little room, the later items drive out the earlier ones.
   */
  async checkAll(): Promise<void> {
    const { inventory } = this.#parts
    // Long after a start it is not complete only where the records cannot be read: then nothing can be told.
    if (!(await settledWithin(inventory.whenComplete(this.signal), INVENTORY_MS)) || this.signal.aborted) return
    for (const name of this.#here) if (!inventory.has(name)) this.#job.lose(name, DRIVEN_OUT)
  }

  #settle(name: string, result: JobResult): void {
    this.#here.push(name)
    this.#job.settle(name, result)
  }

  async #fetch({ name, id, locks }: WarmPackage): Promise<void> {
    const { mirror, view } = this.#parts
    await orRefuse(this, name, async () => {
      const { value, outcome } = await mirror.obtainArchive(view, id, {
        call: originCall(this.signal),
        onProgress: ({ bytes, size }) => this.#job.progress(name, bytes, size),
      })
      const hashAll = () => untilAborted(mirror.hashArchive(value), this.signal)
      const conflict = await findLockConflict(locks, value.digest, hashAll)
      if (conflict !== undefined) this.refuse(name, conflict)
      else this.#settle(name, outcome === 'hit' ? { outcome: 'held' } : { outcome: 'done', bytes: value.size })
    })
  }
}
