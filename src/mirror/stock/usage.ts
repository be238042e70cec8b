import { z } from 'zod'
import type { Log } from '../../log.ts'
import type { Journal } from '../../store/journal.ts'

const FLUSH_MS = 10_000
const ENTRIES_OF_A_LINE = 200
/** The journal is written anew when it has so many more entries than there are items. */
const SPARE_ENTRIES = 10_000

const usedLine = z.object({ used: z.array(z.tuple([z.string(), z.number(), z.number()])) })
const forgottenLine = z.object({ forgotten: z.array(z.string()) })

/** What is known of the use of one item. */
export interface Use {
  /** Milliseconds since 1970; undefined if it was never used. */
  readonly lastUsedAt: number | undefined
  readonly hits: number
}

/** Who serves an item tells this. */
export interface UseObserver {
  /** An item is being served: `hits` more of it were handed out, 1 if not given. 0: it is about to be. Costs next to nothing. */
  touch(name: string, hits?: number): void
}

/** What `Usage` is made of. */
export interface UsageParts {
  /** Keeps it from one start to the next. The caller closes it. */
  readonly journal: Journal
  readonly now: () => number
  readonly log: Log
  /** How long what is new stays in memory alone; 10 seconds if not given. */
  readonly flushMs?: number
}

interface Entry {
  lastUsedAt: number
  hits: number
}

const NEVER: Use = { lastUsedAt: undefined, hits: 0 }

/**
 * When each item was used last, and how often: by name, because records never change. Kept in memory and written in
 * batches; a crash loses the last seconds. What cannot be written is told once and tried again.
 */
export class Usage implements UseObserver {
  readonly #parts: UsageParts
  readonly #entries = new Map<string, Entry>()
  readonly #changed = new Set<string>()
  readonly #forgotten = new Set<string>()
  /** No entry is later: shows that the clock was set back. */
  #latest = Number.NEGATIVE_INFINITY
  /** Entries that the journal has. */
  #written = 0
  #loaded = false
  #timer: NodeJS.Timeout | undefined
  #flushing: Promise<void> = Promise.resolve()
  #failing = false
  #closed = false

  constructor(parts: UsageParts) {
    this.#parts = parts
  }

  /** Reads what was known before; what was used meanwhile is added to it. In the background; never rejects. */
  async load(): Promise<void> {
    const before = new Map<string, Entry>()
    try {
      for await (const line of this.#parts.journal.read()) this.#written += readLine(line, before)
    } catch (error) {
      this.#parts.log.warn({ err: error }, 'could not read when what was used; it counts as unused')
    }
    for (const [name, { lastUsedAt, hits }] of before) {
      if (this.#forgotten.has(name)) continue
      const since = this.#entries.get(name)
      if (since === undefined) this.#entries.set(name, { lastUsedAt, hits })
      else since.hits += hits
      this.#latest = Math.max(this.#latest, lastUsedAt)
    }
    this.#loaded = true
    this.#notice(this.#parts.now())
    if (this.#changed.size + this.#forgotten.size > 0) this.#schedule()
  }

  touch(name: string, hits = 1): void {
    const now = this.#parts.now()
    this.#notice(now)
    const entry = this.#entries.get(name)
    if (entry === undefined) {
      this.#entries.set(name, { lastUsedAt: now, hits })
    } else {
      entry.lastUsedAt = now
      entry.hits += hits
    }
    this.#latest = now
    this.#changed.add(name)
    this.#schedule()
  }

  /** How an item was used. */
  of(name: string): Use {
    return this.#entries.get(name) ?? NEVER
  }

  /** The item is not held any more. */
  forget(name: string): void {
    if (!this.#entries.delete(name) && this.#loaded) return
    this.#changed.delete(name)
    this.#forgotten.add(name)
    this.#schedule()
  }

  /** Forgets everything that is not held, e.g. what was removed by hand. */
  retain(isHeld: (name: string) => boolean): void {
    for (const name of [...this.#entries.keys()]) if (!isHeld(name)) this.forget(name)
  }

  /** The `count` items that were used most, the most used first. */
  top(count: number): { readonly name: string; readonly hits: number; readonly lastUsedAt: number }[] {
    const best: { name: string; hits: number; lastUsedAt: number }[] = []
    for (const [name, { hits, lastUsedAt }] of this.#entries) {
      const last = best.at(-1)
      if (hits === 0 || (best.length >= count && last !== undefined && last.hits >= hits)) continue
      const index = best.findIndex((each) => each.hits < hits)
      best.splice(index === -1 ? best.length : index, 0, { name, hits, lastUsedAt })
      if (best.length > count) best.pop()
    }
    return best
  }

  /** Writes what is new. Never rejects: what cannot be written is tried again. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#flush())
    return this.#flushing
  }

  /** Writes what is new, and no more from then on. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.flush()
  }

  /** What was used in what is now the future was used just now: else it would count as the newest until then. */
  #notice(now: number): void {
    if (now >= this.#latest) return
    for (const [name, entry] of this.#entries) {
      if (entry.lastUsedAt <= now) continue
      entry.lastUsedAt = now
      this.#changed.add(name)
    }
    this.#latest = now
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#closed || !this.#loaded) return
    const { flushMs = FLUSH_MS } = this.#parts
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.flush()
    }, flushMs).unref()
  }

  async #flush(): Promise<void> {
    // Before that, the numbers are not the whole ones.
    if (!this.#loaded) return
    const [changed, forgotten] = [[...this.#changed], [...this.#forgotten]]
    if (changed.length + forgotten.length === 0) return
    this.#changed.clear()
    this.#forgotten.clear()
    try {
      const isLong = this.#written + changed.length > 2 * this.#entries.size + SPARE_ENTRIES
      await (isLong ? this.#replace() : this.#append(changed, forgotten))
      this.#failing = false
    } catch (error) {
      for (const name of changed) if (this.#entries.has(name)) this.#changed.add(name)
      for (const name of forgotten) if (!this.#entries.has(name)) this.#forgotten.add(name)
      if (!this.#failing) this.#parts.log.warn({ err: error }, 'cannot write when what was used; going on without it')
      this.#failing = true
      this.#schedule()
    }
  }

  async #append(changed: readonly string[], forgotten: readonly string[]): Promise<void> {
    const lines: unknown[] = forgotten.length === 0 ? [] : [{ forgotten }]
    for (const line of this.#lines(changed)) lines.push(line)
    await Promise.all(lines.map((line) => this.#parts.journal.append(line)))
    this.#written += changed.length + forgotten.length
  }

  async #replace(): Promise<void> {
    const names = [...this.#entries.keys()]
    await this.#parts.journal.replace(this.#lines(names))
    this.#written = names.length
  }

  *#lines(names: readonly string[]): Iterable<z.infer<typeof usedLine>> {
    for (let index = 0; index < names.length; index += ENTRIES_OF_A_LINE) {
      const used: [string, number, number][] = []
      for (const name of names.slice(index, index + ENTRIES_OF_A_LINE)) {
        const entry = this.#entries.get(name)
        if (entry !== undefined) used.push([name, entry.lastUsedAt, entry.hits])
      }
      yield { used }
    }
  }
}

/** Takes a line over; returns how many entries it has. Later lines count. */
function readLine(line: unknown, entries: Map<string, Entry>): number {
  const { used = [] } = usedLine.safeParse(line).data ?? {}
  const { forgotten = [] } = forgottenLine.safeParse(line).data ?? {}
  for (const name of forgotten) entries.delete(name)
  for (const [name, lastUsedAt, hits] of used) entries.set(name, { lastUsedAt, hits })
  return used.length + forgotten.length
}
