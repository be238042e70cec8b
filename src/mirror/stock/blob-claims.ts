/**
 * Keeps a blob from being removed between the moment when somebody relies on it and the moment when its record is
 * written. Who is about to record something that points to a blob claims it first, before looking whether it is there;
 * who removes one asks here.
 */
export class BlobClaims {
  readonly #claims = new Map<string, number>()
  readonly #removals = new Map<string, Promise<void>>()

  /** From when this resolves until the claim is disposed of, nobody removes these blobs. */
  async claim(digests: Iterable<string>): Promise<Disposable> {
    const claimed = [...digests]
    // At once, so that no other removal begins; then those that have begun are awaited.
    for (const digest of claimed) this.#claims.set(digest, (this.#claims.get(digest) ?? 0) + 1)
    let done = false
    const release = (): void => {
      if (done) return
      done = true
      for (const digest of claimed) this.#release(digest)
    }
    await Promise.all(claimed.map((digest) => this.#removals.get(digest)))
    return { [Symbol.dispose]: release }
  }

  /** True while somebody relies on the blob. */
  isClaimed(digest: string): boolean {
    return this.#claims.has(digest)
  }

  /**
   * Runs `remove` while nobody can claim the blob; undefined, without running it, if it is claimed or being removed.
   * @throws what `remove` throws
   */
  async removing<T>(digest: string, remove: () => Promise<T>): Promise<T | undefined> {
    if (this.#claims.has(digest) || this.#removals.has(digest)) return undefined
    const done = Promise.withResolvers<void>()
    this.#removals.set(digest, done.promise)
    try {
      return await remove()
    } finally {
      this.#removals.delete(digest)
      done.resolve()
    }
  }

  #release(digest: string): void {
    const count = this.#claims.get(digest) ?? 0
    if (count > 1) this.#claims.set(digest, count - 1)
    else this.#claims.delete(digest)
  }
}
