/** Runs actions of one key one after another, in the order of the calls; those of different keys run side by side. */
export class SerialByKey {
  readonly #tails = new Map<string, Promise<unknown>>()

  /** Runs `action` after all earlier ones of this key, whether they succeeded or not. */
  run<T>(key: string, action: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key) ?? Promise.resolve()
    const result = before.then(action, action)
    const tail: Promise<unknown> = result
      .catch(() => undefined)
      .then(() => {
        if (this.#tails.get(key) === tail) this.#tails.delete(key)
      })
    this.#tails.set(key, tail)
    return result
  }
}
