/** A piece of work that may have several waiters. `Tail` is what it shows of itself while it runs. */
export interface Flight<T, Tail = undefined> {
  /** Settles when the work does. Waiters may leave; the work goes on. */
  readonly done: Promise<T>
  /** True for every caller but the one that began it. */
  readonly joined: boolean
  /** The same for all waiters. */
  tail(): Tail
}

interface Running<T, Tail> {
  readonly done: Promise<T>
  readonly tail: Tail
}

/**
 * Runs one piece of work per key at a time; callers that come meanwhile share it, its failure too, and the next caller
 * after that begins anew (design, rule 6).
 */
export class SingleFlight<T, Tail = undefined> {
  readonly #running = new Map<string, Running<T, Tail>>()
  readonly #createTail: () => Tail

  /** `createTail` makes what one piece of work shows of itself; without it, nothing is shown. */
  constructor(...[createTail]: undefined extends Tail ? [createTail?: () => Tail] : [createTail: () => Tail]) {
    this.#createTail = createTail ?? ((): Tail => undefined as Tail)
  }

  /** Joins the running work for `key`, or begins it. */
  run(key: string, work: (tail: Tail) => Promise<T>): Flight<T, Tail> {
    const running = this.#running.get(key)
    if (running !== undefined) return { done: running.done, joined: true, tail: () => running.tail }
    const tail = this.#createTail()
    const done = Promise.resolve(tail)
      .then(work)
      .finally(() => this.#running.delete(key))
    // A failure belongs to whoever waits; if all have left, it is nobody's.
    done.catch(() => undefined)
    this.#running.set(key, { done, tail })
    return { done, joined: false, tail: () => tail }
  }

  /** Waits until nothing is running. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled([...this.#running.values()].map(({ done }) => done))
  }
}
