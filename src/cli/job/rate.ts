/** What counts as now, in milliseconds. */
const WINDOW_MS = 10_000

/** How fast a number of bytes has grown within the last seconds. */
export class Rate {
  readonly #samples: { readonly at: number; readonly bytes: number }[] = []

  /** `at` in milliseconds of any clock that does not jump. Fewer bytes than before begin anew. */
  add(bytes: number, at: number): void {
    const last = this.#samples.at(-1)
    if (last !== undefined && bytes < last.bytes) this.#samples.length = 0
    this.#samples.push({ at, bytes })
    this.#forget(at)
  }

  /** Bytes per second at this moment; undefined while there is nothing to tell it from. */
  perSecond(at: number): number | undefined {
    this.#forget(at)
    const [first] = this.#samples
    const last = this.#samples.at(-1)
    if (first === undefined || last === undefined || at - first.at < 500) return undefined
    return ((last.bytes - first.bytes) * 1000) / (at - first.at)
  }

  /** The newest sample stays: from it on nothing has come. So does the last one from before the window. */
  #forget(at: number): void {
    while (this.#samples.length > 1 && (this.#samples[1]?.at ?? at) <= at - WINDOW_MS) this.#samples.shift()
  }
}
