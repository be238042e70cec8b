import { setTimeout as delay } from 'node:timers/promises'

/** Shorter waits are not worth a timer: they are made up for later. */
const MIN_WAIT_MS = 5
/** What was not used for so long is not made up for. */
const MAX_CREDIT_MS = 100

/** Keeps work on bytes at a rate, however many do it. */
export class HashingPace {
  readonly #bytesPerSecond: number
  readonly #signal: AbortSignal
  /** When what was done so far should have been done. */
  #due = performance.now()

  /** `signal` ends all waiting. */
  constructor(bytesPerSecond: number, signal: AbortSignal) {
    this.#bytesPerSecond = bytesPerSecond
    this.#signal = signal
  }

  /** To be awaited after `bytes` were worked on. @throws the reason of the signal */
  async after(bytes: number): Promise<void> {
    this.#signal.throwIfAborted()
    const now = performance.now()
    this.#due = Math.max(this.#due, now - MAX_CREDIT_MS) + (bytes / this.#bytesPerSecond) * 1_000
    const waitMs = this.#due - now
    if (waitMs >= MIN_WAIT_MS) await delay(waitMs, undefined, { signal: this.#signal })
  }
}
