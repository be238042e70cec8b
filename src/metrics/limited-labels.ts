/** How many values a label may have. */
export interface LimitedLabelsOptions {
  readonly max: number
  /** One that was not used for so long makes room for another. */
  readonly idleMs: number
  /** Called with a value that is not used any more: its series should be removed. */
  readonly onDrop: (value: string) => void
  /** Milliseconds on a clock that only goes forward. */
  readonly now?: () => number
}

/**
 * Keeps a label bounded whose values come from outside. The first ones keep their names as long as they are used; when all
 * places are taken, a new one takes that of the one that was used longest ago if that is idle, and else is `other`.
 */
export class LimitedLabels {
  readonly #options: LimitedLabelsOptions
  readonly #now: () => number
  /** By last use, longest ago first. */
  readonly #usedAt = new Map<string, number>()

  constructor(options: LimitedLabelsOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  /** The label for a value that is being used now. */
  of(value: string): string {
    const now = this.#now()
    if (!this.#usedAt.delete(value) && this.#usedAt.size >= this.#options.max && !this.#makeRoom(now)) return 'other'
    this.#usedAt.set(value, now)
    return value
  }

  #makeRoom(now: number): boolean {
    const [oldest] = this.#usedAt
    if (oldest === undefined || now - oldest[1] < this.#options.idleMs) return false
    this.#usedAt.delete(oldest[0])
    this.#options.onDrop(oldest[0])
    return true
  }
}
