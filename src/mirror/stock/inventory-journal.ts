import type { Log } from '../../log.ts'
import type { Journal } from '../../store/journal.ts'
import { type InventoryFact, type InventoryLine, parseInventoryLine } from './inventory-line.ts'

/** With so many lines after it, a snapshot is made anew. */
const MAX_CHANGES = 10_000
const WARN_EVERY_MS = 60_000

/** What `InventoryJournal` is made of. */
export interface InventoryJournalParts {
  readonly log: Log
  /** Where the lines are kept; without it none are. The caller closes it. */
  readonly journal?: Journal
  /** The lines of a whole snapshot, at this moment. */
  readonly snapshot: () => Iterable<InventoryLine>
}

/**
 * Keeps a copy of the inventory from one process to the next: a snapshot, and what has changed since. A copy only: what
 * cannot be written is warned of, and is no failure.
 */
export class InventoryJournal {
  /** Lines since the last snapshot; those of one that was read must be taken off. */
  changes = 0
  readonly #parts: InventoryJournalParts
  #compacting: Promise<void> | undefined
  #warnedAt = Number.NEGATIVE_INFINITY

  constructor(parts: InventoryJournalParts) {
    this.#parts = parts
  }

  /** What is kept, in order; nothing if it does not begin with a whole snapshot. @throws MirrorError `STORAGE_FAILED` */
  async *read(): AsyncIterable<InventoryFact> {
    let isFirst = true
    for await (const entry of this.#parts.journal?.read() ?? []) {
      const fact = parseInventoryLine(entry)
      if (isFirst && fact?.kind !== 'start') return
      isFirst = false
      this.changes += 1
      if (fact !== undefined) yield fact
    }
  }

  /** Adds a line. Never rejects: what is not written is found when the records are compared. */
  async append(line: InventoryLine): Promise<void> {
    const { journal } = this.#parts
    if (journal === undefined) return
    this.changes += 1
    await journal.append(line, 'written').catch((error: unknown) => this.warn(error))
  }

  /** Makes the snapshot anew if it is far behind. */
  compactIfLong(): void {
    if (this.changes > MAX_CHANGES) void this.compact()
  }

  /** Makes the snapshot anew; who asks while that is being done joins. Never rejects. */
  compact(): Promise<void> {
    this.#compacting ??= this.#replace().finally(() => {
      this.#compacting = undefined
    })
    return this.#compacting
  }

  /** Waits until what is being written is written. */
  async settle(): Promise<void> {
    await this.#compacting
  }

  /** Tells of what failed, once a minute. */
  warn(error: unknown): void {
    const now = performance.now()
    if (now - this.#warnedAt < WARN_EVERY_MS) return
    this.#warnedAt = now
    this.#parts.log.warn({ err: error }, 'could not keep the inventory; it is made right at the next start')
  }

  async #replace(): Promise<void> {
    this.changes = 0
    const { journal, snapshot } = this.#parts
    await journal?.replace(snapshot()).catch((error: unknown) => this.warn(error))
  }
}
