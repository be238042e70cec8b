/**
 * Who reads which blob just now, or has just brought it in. Whoever makes space claims a blob first, and gets none that
 * is leased: a file that is removed while it is read gives its space back only later. Knows nothing of whether a blob is
 * there.
 */
export class BlobLeases {
  /** Called when the last lease of a blob ends: it can be taken away again. */
  onReleased: () => void = () => undefined
  readonly #leases = new Map<string, number>()
  readonly #claims = new Map<string, PromiseWithResolvers<void>>()

  /** Takes a lease; waits while the blob is claimed. Otherwise it is taken before this returns its promise. */
  async lease(digest: string): Promise<Disposable> {
    for (let claim = this.#claims.get(digest); claim !== undefined; claim = this.#claims.get(digest)) {
      await claim.promise
    }
    this.#leases.set(digest, (this.#leases.get(digest) ?? 0) + 1)
    return once(() => this.#release(digest))
  }

  isLeased(digest: string): boolean {
    return this.#leases.has(digest)
  }

  /** The right to take a blob away, until it is disposed of; undefined if somebody needs the blob, or has this right. */
  claim(digest: string): Disposable | undefined {
    if (this.#leases.has(digest) || this.#claims.has(digest)) return undefined
    const claim = Promise.withResolvers<void>()
    this.#claims.set(digest, claim)
    return once(() => {
      this.#claims.delete(digest)
      claim.resolve()
    })
  }

  #release(digest: string): void {
    const left = (this.#leases.get(digest) ?? 1) - 1
    if (left > 0) {
      this.#leases.set(digest, left)
      return
    }
    this.#leases.delete(digest)
    this.onReleased()
  }
}

function once(action: () => void): Disposable {
  let done = false
  return {
    [Symbol.dispose]: () => {
      if (done) return
      done = true
      action()
    },
  }
}
