import { z } from 'zod'
import { bytes, page, pageQuery, time } from './common.ts'

/** What became of one thing of a job. `held`: it was here already. */
export const JobOutcome = z.enum(['done', 'held', 'notPublished', 'refused', 'failed'])
export type JobOutcome = z.infer<typeof JobOutcome>

/** One thing that a job does. */
export const JobItem = z.object({
  /** As `registry.terraform.io/hashicorp/aws 5.100.0 linux_amd64`, or a module's `registry.terraform.io/a/b/c 1.0.0`. */
  item: z.string(),
  /** Null while it is not decided. */
  outcome: JobOutcome.nullable(),
  /** Why, unless all is well; with an error code where there is one. */
  reason: z.string().optional(),
  code: z.string().optional(),
  /** So far. */
  bytes,
  totalBytes: bytes.optional(),
})
export type JobItem = z.infer<typeof JobItem>

/** A piece of work that goes on by itself. */
export const Job = z.object({
  id: z.string(),
  kind: z.enum(['warm', 'verify']),
  state: z.enum(['queued', 'running', 'done', 'failed', 'cancelled']),
  /** Why it failed as a whole. */
  reason: z.string().optional(),
  createdAt: time,
  startedAt: time.optional(),
  finishedAt: time.optional(),
  /** `total` and `totalBytes` grow while more becomes known; `totalBytes` is null while no size is known. */
  progress: z.object({ done: z.int(), total: z.int(), bytes, totalBytes: bytes.nullable() }),
  /** How many items had each outcome so far. */
  outcomes: z.record(JobOutcome, z.int()),
})
export type Job = z.infer<typeof Job>

/** One job with a page of its items. */
export const JobWithItems = Job.extend(page(JobItem).shape)

/** `GET /jobs` */
export const JobPage = page(Job)

/** `GET /jobs/:id`: the page is that of the items; `outcome` picks those, `failed` meaning every one that is not well. */
export const JobQuery = pageQuery.extend({ outcome: JobOutcome.optional() })

/** `event: job` carries the job without its items, `event: item` one item; the last event is a `job` in a final state. */
export const JobEvent = z.discriminatedUnion('event', [
  z.object({ event: z.literal('job'), data: Job }),
  z.object({ event: z.literal('item'), data: JobItem }),
])
export type JobEvent = z.infer<typeof JobEvent>
