import { LRUCache } from 'lru-cache'

/** Between two refreshes that unknown versions cause, per list: a scanner must not become the origin's problem. */
const INTERVAL_MS = 5_000

/** Remembers when which list was last refreshed because it lacked a version. */
export class ForcedRefreshes {
  readonly #now: () => number
  readonly #at = new LRUCache<string, number>({ max: 5_000 })

  constructor(now: () => number) {
    this.#now = now
  }

  /** From when a list must be to be believed that it lacks a version: now, or the refresh that was forced just before. */
  newEnough(list: string): number {
    const now = this.#now()
    const last = this.#at.get(list)
    if (last !== undefined && now - last < INTERVAL_MS && now >= last) return last
    this.#at.set(list, now)
    return now
  }
}
