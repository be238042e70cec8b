import type { Inventory } from './inventory.ts'
import type { ItemKind } from './item-name.ts'
import type { Usage } from './usage.ts'

const TOP_ITEMS = 20

/** What was answered since the start. */
export interface Traffic {
  /** Answers by outcome, e.g. `hit`; those without one are not here. */
  readonly answers: Readonly<Record<string, number>>
  /** Bytes sent to clients, and received from origins. */
  readonly sentBytes: number
  readonly receivedBytes: number
}

/** How full it is, in bytes. */
export interface SpaceFigures {
  /** Disk blocks of everything stored; null until they are added up. */
  readonly used: number | null
  /** For downloads under way. */
  readonly reserved: number
  readonly maxSize: number | null
  /** Of the file system. */
  readonly free: number
  readonly minFree: number | null
  /** Since the start. */
  readonly evictions: { readonly items: number; readonly bytes: number }
}

/** What was set aside as damaged. */
export interface QuarantineFigures {
  readonly files: number
  readonly bytes: number
}

/** What `Statistics` is made of; each source is asked anew each time. */
export interface StatisticsParts {
  readonly mode: 'online' | 'sealed'
  /** Milliseconds since 1970. */
  readonly startedAt: number
  readonly inventory: Inventory
  readonly usage: Pick<Usage, 'top'>
  readonly traffic: () => Promise<Traffic>
  readonly space: () => Promise<SpaceFigures>
  readonly quarantine: () => Promise<QuarantineFigures>
}

interface Stocked {
  readonly count: number | null
  readonly bytes: number | null
}

/** Everything at a glance: since the start, unless it says otherwise. Times are RFC 3339 text. */
export interface StatisticsFigures {
  readonly startedAt: string
  readonly mode: 'online' | 'sealed'
  readonly packages: Stocked
  readonly modules: Stocked
  readonly disk: Omit<SpaceFigures, 'evictions'>
  readonly answers: Readonly<Record<string, number>>
  /** Hits and coalesced answers among all that had an outcome; null before the first. */
  readonly hitRatio: number | null
  readonly sentBytes: number
  readonly receivedBytes: number
  /** What origins did not have to send. */
  readonly savedBytes: number
  /** Of all time, the most used first. */
  readonly top: readonly { readonly item: string; readonly hits: number; readonly lastUsedAt: string }[]
  readonly evictions: SpaceFigures['evictions']
  readonly quarantine: QuarantineFigures
}

/** Adds up what the mirror does and holds. */
export class Statistics {
  readonly #parts: StatisticsParts

  constructor(parts: StatisticsParts) {
    this.#parts = parts
  }

  /** The figures of now. @throws MirrorError `STORAGE_FAILED` */
  async read(): Promise<StatisticsFigures> {
    const { mode, startedAt, usage } = this.#parts
    const [traffic, { evictions, ...disk }, quarantine] = await Promise.all([
      this.#parts.traffic(),
      this.#parts.space(),
      this.#parts.quarantine(),
    ])
    return {
      startedAt: new Date(startedAt).toISOString(),
      mode,
      packages: this.#stocked('package'),
      modules: this.#stocked('module'),
      disk,
      answers: traffic.answers,
      hitRatio: hitRatio(traffic.answers),
      sentBytes: traffic.sentBytes,
      receivedBytes: traffic.receivedBytes,
      savedBytes: Math.max(0, traffic.sentBytes - traffic.receivedBytes),
      top: usage.top(TOP_ITEMS).map(({ name, hits, lastUsedAt }) => {
        return { item: name, hits, lastUsedAt: new Date(lastUsedAt).toISOString() }
      }),
      evictions,
      quarantine,
    }
  }

  /** Null until it is known what is held. */
  #stocked(kind: ItemKind): Stocked {
    const { inventory } = this.#parts
    if (!inventory.isComplete) return { count: null, bytes: null }
    return { count: inventory.count(kind), bytes: inventory.bytes(kind) }
  }
}

function hitRatio({ hit = 0, coalesced = 0, miss = 0, stale = 0, negative = 0 }: Traffic['answers']): number | null {
  const all = hit + coalesced + miss + stale + negative
  return all === 0 ? null : (hit + coalesced) / all
}
