/** A piece of work that may have several waiters. */
export interface Flight<T> {
  /** Settles when the work does. Waiters may leave; the work goes on. */
  readonly done: Promise<T>
  /** True for every caller but the one that began it. */
  readonly joined: boolean
}

/**
 * Runs one piece of work per key at a time; callers that come meanwhile share it, its failure too, and the next caller
 * after that begins anew (design, rule 6).
 */
export class SingleFlight<T> {
  readonly #running = new Map<string, Promise<T>>()

  /** Joins the running work for `key`, or begins it. */
  run(key: string, work: () => Promise<T>): Flight<T> {
    const running = this.#running.get(key)
    if (running !== undefined) return { done: running, joined: true }
    const done = Promise.resolve()
      .then(work)
      .finally(() => this.#running.delete(key))
    // A failure belongs to whoever waits; if all have left, it is nobody's.
    done.catch(() => undefined)
    this.#running.set(key, done)
    return { done, joined: false }
  }

  /** Waits until nothing is running. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running.values())
  }
}
