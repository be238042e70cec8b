import { settledWithin } from './deadline.ts'

/** Counts the work for origins that clients wait for, so that jobs can give way to it. */
export class ClientWork {
  #running = 0
  #none = Promise.withResolvers<void>()

  /** One piece of work has begun (1), or ended (-1). */
  count(change: 1 | -1): void {
    this.#running += change
    if (this.#running > 0) return
    this.#none.resolve()
    this.#none = Promise.withResolvers()
  }

  /**
   * Waits until there is none, but no longer than `maxMs`: a mirror that is always busy still gets its jobs done.
   * @throws the reason of `signal`
   */
  async giveWay({ maxMs, signal }: { maxMs: number; signal: AbortSignal }): Promise<void> {
    signal.throwIfAborted()
    if (this.#running === 0) return
    const aborted = Promise.withResolvers<void>()
    const onAbort = (): void => aborted.resolve()
    signal.addEventListener('abort', onAbort, { once: true })
    await settledWithin(Promise.race([this.#none.promise, aborted.promise]), maxMs)
    signal.removeEventListener('abort', onAbort)
    signal.throwIfAborted()
  }
}
