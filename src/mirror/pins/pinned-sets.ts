import { z } from 'zod'
import type { Log } from '../../log.ts'
import type { RecordStore } from '../../store/record-store.ts'
import { SerialByKey } from '../../store/serial-by-key.ts'
import { parsePinnedItem, pinnableForms } from './pinned-item.ts'

const PinSetRecord = z.object({ format: z.literal(1), updatedAt: z.string(), items: z.array(z.string()) })

/** A named set of items that are never evicted. */
export interface PinnedSet {
  readonly name: string
  /** ISO 8601. */
  readonly updatedAt: string
  /** As `parsePinnedItem` spells them; each once. One without platform or version stands for all of it. */
  readonly items: readonly string[]
}

/** What `PinnedSets` is made of. */
export interface PinnedSetsParts {
  /** Of this one instance; below `pins` all is ours. */
  readonly records: RecordStore
  readonly now: () => number
  readonly log: Log
}

/**
 * Named sets of items that eviction and purge leave alone, durable in the state folder and whole in memory. They say
 * nothing of whether an item is held. Not to be confused with the pin of a release, which fixes its digests.
 */
export class PinnedSets {
  readonly #parts: PinnedSetsParts
  readonly #sets = new Map<string, PinnedSet>()
  /** The names of the sets that hold an item, or all that begins so. */
  readonly #holders = new Map<string, Set<string>>()
  readonly #serial = new SerialByKey()

  private constructor(parts: PinnedSetsParts) {
    this.#parts = parts
  }

  /** Reads all sets. @throws MirrorError `STORAGE_FAILED` */
  static async open(parts: PinnedSetsParts): Promise<PinnedSets> {
    const sets = new PinnedSets(parts)
    for (const name of await parts.records.children(['pins'])) {
      const parsed = PinSetRecord.safeParse(await parts.records.get(['pins', name]))
      if (parsed.success) sets.#take({ name, updatedAt: parsed.data.updatedAt, items: parsed.data.items })
      else parts.log.error({ set: name }, 'a set of pins cannot be read, and holds nothing: put it anew')
    }
    return sets
  }

  /** By name. */
  list(): PinnedSet[] {
    return [...this.#sets.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  get(name: string): PinnedSet | undefined {
    return this.#sets.get(name)
  }

  /**
   * Makes a set, or replaces it whole. It holds what it names when this returns.
   * @throws MirrorError `HOSTILE_INPUT`, `INVALID_ADDRESS`, `STORAGE_FULL`, `STORAGE_FAILED`
   */
  async put(name: string, items: Iterable<string>): Promise<PinnedSet> {
    const { records, now } = this.#parts
    const canonical = [...new Set(Array.from(items, parsePinnedItem))].sort()
    return await this.#serial.run(name, async () => {
      const set = { name, updatedAt: new Date(now()).toISOString(), items: canonical }
      await records.put(['pins', name], { format: 1, updatedAt: set.updatedAt, items: canonical })
      this.#drop(name)
      this.#take(set)
      return set
    })
  }

  /** Removes a set; what it named may be evicted. False if there is none. @throws MirrorError `STORAGE_FAILED` */
  async delete(name: string): Promise<boolean> {
    return await this.#serial.run(name, async () => {
      if (!this.#sets.has(name)) return false
      await this.#parts.records.delete(['pins', name])
      this.#drop(name)
      return true
    })
  }

  /** True if a set names this item, its version or its address. */
  isPinned(item: string): boolean {
    return pinnableForms(item).some((form) => this.#holders.has(form))
  }

  /** The names of the sets that do, sorted. */
  setsOf(item: string): string[] {
    const names = pinnableForms(item).flatMap((form) => [...(this.#holders.get(form) ?? [])])
    return [...new Set(names)].sort()
  }

  #take(set: PinnedSet): void {
    this.#sets.set(set.name, set)
    for (const item of set.items) {
      const holders = this.#holders.get(item)
      if (holders === undefined) this.#holders.set(item, new Set([set.name]))
      else holders.add(set.name)
    }
  }

  #drop(name: string): void {
    for (const item of this.#sets.get(name)?.items ?? []) {
      const holders = this.#holders.get(item)
      holders?.delete(name)
      if (holders?.size === 0) this.#holders.delete(item)
    }
    this.#sets.delete(name)
  }
}
