import type { z } from 'zod'
import type { JobItem, JobKindName, JobResult } from './job.ts'

/**
 * What jobs of one kind do. A job may be run several times: after a restart of the process it begins anew, with what
 * was settled before.
 */
export interface JobKind<Request> {
  readonly kind: JobKindName
  /** How a request is read back after a restart. */
  readonly request: z.ZodType<Request>
  /** Refuses a request that could only fail, before there is a job. @throws MirrorError why */
  check?(request: Request): Promise<void>
  /**
   * Does the work. What goes wrong with one item is settled as its outcome; what is thrown fails the whole job, unless
   * `job.signal` has fired: then it was cancelled, or the process stops.
   */
  run(request: Request, job: JobContext): Promise<void>
}

/** What a running job is given. */
export interface JobContext {
  /** Fires when the job is cancelled, or when the process stops: everything must end soon then. */
  readonly signal: AbortSignal
  /** Outcomes from before a restart, by item: these are not to be done again. */
  readonly settled: ReadonlyMap<string, JobItem>
  /**
   * Announces items; one that is known already is left as it is.
   * @throws MirrorError `REQUEST_INVALID` beyond 100,000 items
   */
  add(items: Iterable<{ readonly item: string; readonly totalBytes?: number }>): void
  /** Tells how far an item is: bytes so far, and of all of it where that is known. Cheap. */
  progress(item: string, bytes: number, totalBytes?: number): void
  /** Decides an item, for ever; announces it first if need be. A second decision is ignored. */
  settle(item: string, result: JobResult): void
  /** Takes back that an item was brought or found: it was removed since, and fails for `reason`. Else nothing happens. */
  lose(item: string, reason: string): void
  /**
   * Does `work` for each item, a few at a time; begins nothing new while clients wait for origins, nor once the signal
   * has fired. What `work` throws ends it all, after the others under way.
   * @throws what `items` or `work` throw first; the reason of the signal
   */
  each<T>(items: Iterable<T> | AsyncIterable<T>, work: (item: T) => Promise<void>): Promise<void>
}
