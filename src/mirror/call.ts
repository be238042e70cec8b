import type { MirrorError } from '../errors.ts'
import type { Deadline } from './deadline.ts'

/** What one request brings to a use case, beside the view and what it asks for. */
export interface Call {
  /** When the caller must have an answer; work that others may want goes on after it. */
  readonly deadline: Deadline
  /** Mirrors that the request has already passed (see `protocol/hops.ts`). */
  readonly hops: readonly string[]
  /** Set by a caller that may lose interest, as a job that is cancelled: what nobody else wants is given up when it fires. */
  readonly leaving?: AbortSignal
}

/**
 * How an answer came about; clients see it as `Terramirror-Cache`.
 * `hit`: from what we hold. `miss`: fetched for this request. `coalesced`: fetched for another request that was on its
 * way. `stale`: from what we hold, because the origin could not confirm it. `negative`: a remembered 404.
 */
export type CacheOutcome = 'hit' | 'miss' | 'coalesced' | 'stale' | 'negative'

export interface Answer<T> {
  readonly value: T
  readonly outcome: CacheOutcome
  /** Why the answer is stale. */
  readonly reason?: MirrorError
  /** How long ago the origin last confirmed a stale value, in milliseconds, where that is known. */
  readonly staleForMs?: number
  /**
   * True as long as the same question would get this same answer without the origin being asked and without anything
   * being begun. Without it, that is not known. Keeps little in memory.
   */
  readonly isCurrent?: () => boolean
}
