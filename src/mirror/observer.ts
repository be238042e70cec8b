import type { ErrorCode } from '../errors.ts'
import type { Authentication } from '../protocol/authentication.ts'

/** What the mirror tells those who count. Metrics implement it. */
export interface MirrorObserver {
  /** One platform of a release was judged: let in by a rule, or refused for a reason. */
  judged(verdict: Authentication['rule'] | ErrorCode): void
  /** An origin offered other bytes for a pinned version; they were refused. */
  releaseChanged(): void
  /** A download of an archive began (1) or ended (-1). */
  downloading(change: 1 | -1): void
  /** So many bytes were freed to make space: an archive that was not used for long, or a file that nobody names. */
  evicted(what: 'unused' | 'orphan', bytes: number): void
}
