/** What became of one thing of a job. `held`: it was here already. */
export type JobOutcome = 'done' | 'held' | 'notPublished' | 'refused' | 'failed'

/** One thing that a job does. */
export interface JobItem {
  /** As `registry.terraform.io/hashicorp/aws 5.100.0 linux_amd64`, or a module's `registry.terraform.io/a/b/c 1.0.0`. */
  readonly item: string
  /** Null while it is not decided. */
  readonly outcome: JobOutcome | null
  /** Why, unless all is well; with an error code where there is one. */
  readonly reason?: string
  readonly code?: string
  /** So far. */
  readonly bytes: number
  readonly totalBytes?: number
}

/** How an item ended. `bytes`: of all of it, where that is known. */
export interface JobResult {
  readonly outcome: JobOutcome
  readonly reason?: string
  readonly code?: string
  readonly bytes?: number
}

/** What jobs are there for. */
export type JobKindName = 'warm' | 'verify'

/** `done` says that every item is decided, not that all went well. The last three are final. */
export type JobState = 'queued' | 'running' | 'done' | 'failed' | 'cancelled'

/** A piece of work that goes on by itself, and over restarts. Times are RFC 3339 text. */
export interface Job {
  readonly id: string
  readonly kind: JobKindName
  readonly state: JobState
  /** Why it failed as a whole. */
  readonly reason?: string
  readonly createdAt: string
  readonly startedAt?: string
  readonly finishedAt?: string
  /** `total` and `totalBytes` grow while more becomes known; `totalBytes` is null while no size is known. */
  readonly progress: {
    readonly done: number
    readonly total: number
    readonly bytes: number
    readonly totalBytes: number | null
  }
  /** How many items had each outcome so far; all five are there. */
  readonly outcomes: Readonly<Record<JobOutcome, number>>
}

/** What happened to a job: the job without its items, or one item. The last one is a job in a final state. */
export type JobEvent =
  | { readonly event: 'job'; readonly data: Job }
  | { readonly event: 'item'; readonly data: JobItem }

/** True in a state that a job never leaves. */
export function isFinal(state: JobState): boolean {
  return state === 'done' || state === 'failed' || state === 'cancelled'
}
