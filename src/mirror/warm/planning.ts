import type { Log } from '../../log.ts'
import { untilAborted } from '../deadline.ts'
import { each } from '../jobs/each.ts'
import type { Mirror } from '../mirror.ts'
import type { ModuleRecord } from '../module-record.ts'
import type { Modules } from '../modules.ts'
import { notCached } from '../origin-lists.ts'
import type { ModuleId } from '../stock/item-name.ts'
import { formatModuleName } from '../stock/item-name.ts'
import type { View } from '../view.ts'
import { findLockConflict } from './lock-comparison.ts'
import { originCall } from './origin-call.ts'
import type { Refusal } from './outcomes.ts'
import { orRefuse, type WarmPackage, type WarmWork } from './warm-work.ts'

/** Things that are looked up at one time. */
const AT_ONCE = 4

/** What a dry run tells of one item. */
export interface PlannedItem {
  readonly item: string
  /** `fetch`: it would be downloaded; `held`: it is here; else why it cannot come. */
  readonly outcome: 'fetch' | 'held' | Refusal['outcome']
  readonly reason?: string
  /** In bytes, where it is known. */
  readonly size?: number
}

/** The answer to a dry run. `bytes` sums up the known sizes of what would be fetched. */
export interface WarmPlan {
  readonly items: readonly PlannedItem[]
  readonly bytes: number
  readonly unknownSizes: number
}

/** What planning works with. */
export interface PlanningParts {
  readonly mirror: Pick<Mirror, 'findArchive' | 'expectArchive' | 'hashArchive'>
  readonly modules: Pick<Modules, 'find'>
  readonly view: View
  readonly sealed: boolean
  /** What modules call would be fetched too: of those that are not here, it cannot be known yet. */
  readonly follows: boolean
  readonly log: Log
}

/** Looks what is wanted up, and fetches nothing but documents. */
export class Planning implements WarmWork {
  readonly signal: AbortSignal
  readonly log: Log
  readonly #parts: PlanningParts
  readonly #items = new Map<string, PlannedItem>()

  constructor(parts: PlanningParts, signal: AbortSignal) {
    this.#parts = parts
    this.signal = signal
    this.log = parts.log
  }

  /** Everything that was looked up, in that order. */
  get plan(): WarmPlan {
    const items = [...this.#items.values()]
    const sizes = items.filter(({ outcome }) => outcome === 'fetch').map(({ size }) => size)
    return {
      items,
      bytes: sizes.reduce<number>((sum, size = 0) => sum + size, 0),
      unknownSizes: sizes.filter((size) => size === undefined).length,
    }
  }

  each<T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void> {
    return each(items, { atOnce: AT_ONCE, signal: this.signal }, work)
  }

  refuse(item: string, { outcome, reason }: Refusal): void {
    this.#put({ item, outcome, ...(reason === undefined ? {} : { reason }) })
  }

  async module(id: ModuleId): Promise<ModuleRecord | undefined> {
    const { modules, view, sealed, follows } = this.#parts
    const item = formatModuleName(id)
    return await orRefuse(this, item, async () => {
      const record = await modules.find(view, id)
      if (record === undefined && sealed) throw notCached(item)
      const unknown = follows ? { reason: 'what it calls is known when it is here' } : {}
      this.#put(record ? { item, outcome: 'held', size: record.state.size } : { item, outcome: 'fetch', ...unknown })
      return record
    })
  }

  async packages(packages: readonly WarmPackage[]): Promise<void> {
    await this.each(packages, async (wanted) => {
      const planned = await orRefuse(this, wanted.name, () => this.#look(wanted))
      if (planned !== undefined) this.#put(planned)
    })
    // In the order in which they were asked for, whichever was looked up first.
    for (const { name } of packages) this.#moveToEnd(name)
  }

  async #look({ name, id, locks }: WarmPackage): Promise<PlannedItem> {
    const { mirror, view } = this.#parts
    const held = await mirror.findArchive(view, id)
    const digest = held?.digest ?? (await mirror.expectArchive(view, id, originCall(this.signal)))
    const hashAll = held && (() => untilAborted(mirror.hashArchive(held), this.signal))
    const conflict = await findLockConflict(locks, digest, hashAll)
    if (conflict !== undefined) return { item: name, outcome: conflict.outcome, reason: conflict.reason ?? '' }
    return held ? { item: name, outcome: 'held', size: held.size } : { item: name, outcome: 'fetch' }
  }

  #put(item: PlannedItem): void {
    if (!this.#items.has(item.item)) this.#items.set(item.item, item)
  }

  #moveToEnd(name: string): void {
    const item = this.#items.get(name)
    if (item === undefined) return
    this.#items.delete(name)
    this.#items.set(name, item)
  }
}
