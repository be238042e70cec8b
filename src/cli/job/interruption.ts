/** A signal that comes again within this time is the same key stroke by another way: npm passes it on. */
const SAME_KEY_MS = 500

/** What Ctrl-C and SIGTERM do while a job is watched. Dispose it to give the signals back. */
export class Interruption implements Disposable {
  readonly #onFirst: () => void
  readonly #ended = new AbortController()
  #firstAt: number | undefined

  /** The first one calls `onFirst`; the second one, or the first without `onFirst`, aborts `signal`. */
  constructor(onFirst?: () => void) {
    this.#onFirst = onFirst ?? (() => this.#ended.abort())
    process.on('SIGINT', this.#take)
    process.on('SIGTERM', this.#take)
  }

  /** Aborted when the command is to end at once. */
  get signal(): AbortSignal {
    return this.#ended.signal
  }

  /** True since the first one. */
  get hasCome(): boolean {
    return this.#firstAt !== undefined
  }

  [Symbol.dispose](): void {
    process.off('SIGINT', this.#take)
    process.off('SIGTERM', this.#take)
  }

  readonly #take = (): void => {
    const now = performance.now()
    if (this.#firstAt === undefined) {
      this.#firstAt = now
      this.#onFirst()
    } else if (now - this.#firstAt >= SAME_KEY_MS) {
      this.#ended.abort()
    }
  }
}
