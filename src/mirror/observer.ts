import type { ErrorCode } from '../errors.ts'
import type { Authentication } from '../protocol/authentication.ts'

/*
 * What the use cases tell those who count. Metrics implement all of it. Methods never throw, and are cheap enough to be
 * called for every single thing.
 */

/** What is fetched, and what is made of it. */
export interface MirrorObserver {
  /** One platform of a release was judged: let in by a rule, or refused for a reason. */
  judged(verdict: Authentication['rule'] | ErrorCode): void
  /** An origin offered other bytes for a pinned version; they were refused. */
  releaseChanged(): void
  /** A download of an archive began (1) or ended (-1). */
  downloading(change: 1 | -1): void
}

/** Which limit asked for room; `orphan`: a file that nothing named any more. */
export type EvictionReason = 'maxSize' | 'minFree' | 'orphan'

/** What is deleted to make room. */
export interface SpaceObserver {
  /** One item, or one orphan, was deleted; `bytes` are the disk blocks that it freed, 0 if another item shares its blob. */
  evicted(eviction: { readonly reason: EvictionReason; readonly bytes: number }): void
  /** A download was refused with `STORAGE_FULL`, because nothing could be evicted for it. */
  spaceRefused(): void
}

/** The states of jobs. */
export type ObservedJobState = 'queued' | 'running' | 'done' | 'failed' | 'cancelled'

/** What the jobs do. */
export interface JobObserver {
  /**
   * A job changed its state. `from` is missing for a new job, and for each unfinished one that a start found: nothing
   * else remembers them.
   */
  jobMoved(move: {
    readonly kind: 'warm' | 'verify'
    readonly from?: ObservedJobState | undefined
    readonly to: ObservedJobState
  }): void
  /** The outcome of one of its items is decided; not again for those that were decided before a restart. */
  jobItemSettled(item: {
    readonly kind: 'warm' | 'verify'
    readonly outcome: 'done' | 'held' | 'notPublished' | 'refused' | 'failed'
  }): void
}

/** What verification in the background finds. */
export interface ScrubObserver {
  /** One stored file was checked; `bytes` is what was read of it. */
  scrubbed(check: { readonly bytes: number; readonly result: 'good' | 'damaged' | 'missing' }): void
  /** A verification of everything came to its end, at `at` (ms since 1970), and found so much; repaired or not. */
  scrubEnded(end: { readonly at: number; readonly orphans: number; readonly dangling: number }): void
}
