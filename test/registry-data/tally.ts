/** Counts of what a test saw, under names, for a table that the test prints. */
export class Tally {
  readonly #counts: Map<string, number>

  /** `names` come first in the table, and stand in it if nothing is counted. */
  constructor(names: Iterable<string> = []) {
    this.#counts = new Map(Array.from(names, (name) => [name, 0]))
  }

  add(name: string, count = 1): void {
    this.#counts.set(name, this.count(name) + count)
  }

  count(name: string): number {
    return this.#counts.get(name) ?? 0
  }

  /** All counts, for an assertion. */
  toObject(): Record<string, number> {
    return Object.fromEntries(this.#counts)
  }

  /** One line a count: the names given first, then others in the order of their appearance. */
  toString(): string {
    const lines = [...this.#counts].map(([name, count]) => `  ${String(count).padStart(8)}  ${name}`)
    return lines.join('\n')
  }
}

/** Runs `work` for each item, so many at a time. The first failure ends it. */
export async function forEachOf<T>(
  items: Iterable<T>,
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items[Symbol.iterator]()
  const lane = async (): Promise<void> => {
    for (let next = rest.next(); !next.done; next = rest.next()) await work(next.value)
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
}
