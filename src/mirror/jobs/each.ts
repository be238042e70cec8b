/** How to work through many things. */
export interface EachOptions {
  readonly atOnce: number
  /** Ends it, when the pieces of work under way have ended. */
  readonly signal: AbortSignal
  /** Is waited for before each piece of work. */
  readonly before?: () => Promise<void>
}

/**
 * Does `work` for each item, some at a time; draws an item when there is room for it.
 * @throws what `items`, `before` or `work` throw first, after the others under way; the reason of the signal
 */
export async function each<T>(
  items: Iterable<T> | AsyncIterable<T>,
  { atOnce, signal, before = async () => undefined }: EachOptions,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const source = iterate(items)
  const failures: unknown[] = []
  const worker = async (): Promise<void> => {
    while (failures.length === 0) {
      signal.throwIfAborted()
      const next = await source.next()
      if (next.done) return
      await before()
      await work(next.value)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, () => worker().catch((error: unknown) => failures.push(error))))
  await source.return()
  signal.throwIfAborted()
  if (failures.length > 0) throw failures[0]
}

/** One iterator that several may draw from at the same time. */
async function* iterate<T>(items: Iterable<T> | AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
  yield* items
}
