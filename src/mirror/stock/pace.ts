import { setTimeout as delay } from 'node:timers/promises'

const WORK_MS = 25
const PAUSE_MS = 75

/** For long work that nobody waits for: it works for a moment, and then leaves the disk to others three times as long. */
export class Pace {
  readonly #signal: AbortSignal
  #since = performance.now()

  /** `signal` ends a rest. */
  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  /** Rests if it is time to. @throws the reason of the signal */
  async rest(): Promise<void> {
    if (performance.now() - this.#since < WORK_MS) return
    await delay(PAUSE_MS, undefined, { signal: this.#signal, ref: false })
    this.#since = performance.now()
  }
}
