import { isMirrorError, isNotFound } from '../../errors.ts'
import type { JobResult } from '../jobs/job.ts'

/** What is wrong with an item that could not be brought. */
export type Refusal = JobResult & { readonly outcome: 'notPublished' | 'refused' | 'failed' }

/** Only an answer of the origin says that something is not published; what this mirror will not do is refused. */
export function refusalOf(error: unknown): Refusal {
  // What was not foreseen may hold anything: the log has it.
  if (!isMirrorError(error)) return { outcome: 'failed', reason: 'an unexpected error; the log of the mirror has it' }
  const { code, message: reason } = error
  if (isNotFound(error)) return { outcome: 'notPublished', reason, code }
  const refused = error.is('ORIGIN_NOT_ALLOWED', 'NOT_CACHED', 'MODULE_SOURCE_REFUSED', 'UPSTREAM_REFUSED')
  return { outcome: refused ? 'refused' : 'failed', reason, code }
}

/** A source that no registry serves: clients fetch it from where it is. */
export function notMirrored(what: string): Refusal {
  return { outcome: 'refused', reason: `not mirrored: ${what}`, code: 'MODULE_SOURCE_REFUSED' }
}
