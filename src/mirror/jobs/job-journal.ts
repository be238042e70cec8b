import { z } from 'zod'
import type { Log } from '../../log.ts'
import type { Journal } from '../../store/journal.ts'
import type { StateStore } from '../../store/state-store.ts'
import { isFinal, type Job, type JobItem } from './job.ts'

/*
 * One journal a job. The first entry is the job itself, with its request while it is not final; then come items as they
 * are decided, the start, and that it was cancelled. When the job ends, all of it is replaced by its final state and its
 * items.
 */

const PREFIX = 'jobs-'

const count = z.int().nonnegative()
const outcome = z.enum(['done', 'held', 'notPublished', 'refused', 'failed'])
const jobItem: z.ZodType<JobItem> = z.object({
  item: z.string(),
  outcome: outcome.nullable(),
  reason: z.string().exactOptional(),
  code: z.string().exactOptional(),
  bytes: count,
  totalBytes: count.exactOptional(),
})
const job: z.ZodType<Job> = z.object({
  id: z.string(),
  kind: z.enum(['warm', 'verify']),
  state: z.enum(['queued', 'running', 'done', 'failed', 'cancelled']),
  reason: z.string().exactOptional(),
  createdAt: z.string(),
  startedAt: z.string().exactOptional(),
  finishedAt: z.string().exactOptional(),
  progress: z.object({ done: count, total: count, bytes: count, totalBytes: count.nullable() }),
  outcomes: z.record(outcome, count),
})
const head = z.object({ format: z.literal(1), job, request: z.unknown().optional() })
const entry = z.union([
  z.strictObject({ item: jobItem }),
  z.strictObject({ startedAt: z.string() }),
  z.strictObject({ cancelledAt: z.string() }),
])

/** What is written while a job goes on. */
export type JobEntry = z.infer<typeof entry>

/** A job as its journal tells. */
export interface StoredJob {
  readonly job: Job
  readonly request: unknown
  readonly items: readonly JobItem[]
  readonly startedAt: string | undefined
  readonly cancelledAt: string | undefined
}

/** The journals of jobs in the state store. One that cannot be read is left alone and told: its job is lost, no other. */
export class JobJournals {
  readonly #store: Pick<StateStore, 'journal' | 'journals' | 'deleteJournal'>
  readonly #log: Log

  constructor(store: Pick<StateStore, 'journal' | 'journals' | 'deleteJournal'>, log: Log) {
    this.#store = store
    this.#log = log
  }

  /** Of all jobs, in no promised order. @throws MirrorError `STORAGE_FAILED` */
  async ids(): Promise<string[]> {
    const names = await this.#store.journals()
    return names.filter((name) => name.startsWith(PREFIX)).map((name) => name.slice(PREFIX.length))
  }

  /** The caller disposes of it; one at a time for each job. @throws MirrorError `STORAGE_FAILED` */
  open(id: string): Promise<Journal> {
    return this.#store.journal(PREFIX + id)
  }

  /** Durable when it resolves. @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED` */
  async create(created: Job, request: unknown): Promise<void> {
    await using journal = await this.open(created.id)
    await journal.append({ format: 1, job: created, request })
  }

  /** The job, with its items unless it is final; undefined if the journal cannot be read. */
  async recall(id: string): Promise<Omit<StoredJob, 'request'> | undefined> {
    try {
      await using journal = await this.open(id)
      return await readJob(journal, { until: (stored) => isFinal(stored.state) })
    } catch (error) {
      this.#log.error({ job: id, err: error }, 'a job is lost: its journal cannot be read')
      return undefined
    }
  }

  /** The items of a job that has ended. @throws MirrorError `STORAGE_FAILED` */
  async items(id: string): Promise<readonly JobItem[]> {
    await using journal = await this.open(id)
    return (await readJob(journal)).items
  }

  /** Fine if there is none. @throws MirrorError `STORAGE_FAILED` */
  delete(id: string): Promise<void> {
    return this.#store.deleteJournal(PREFIX + id)
  }
}

/** Reads a whole journal, or its first entry alone if `until` says so. @throws Error if the first entry is damaged */
export async function readJob(
  journal: Journal,
  { until = () => false }: { until?: (stored: Job) => boolean } = {},
): Promise<StoredJob> {
  let first: z.infer<typeof head> | undefined
  const items: JobItem[] = []
  const moments: { startedAt?: string; cancelledAt?: string } = {}
  for await (const line of journal.read()) {
    if (first === undefined) {
      first = head.parse(line)
      if (until(first.job)) break
      continue
    }
    const { data } = entry.safeParse(line)
    // Without its outcome, an item is done again.
    if (data === undefined) continue
    if ('item' in data) items.push(data.item)
    else Object.assign(moments, data)
  }
  if (first === undefined) throw new Error('the journal is empty')
  const { startedAt, cancelledAt } = moments
  return { job: first.job, request: first.request, items, startedAt, cancelledAt }
}

/** Replaces everything by the end of the job. @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED` */
export async function writeEnd(journal: Journal, ended: Job, items: Iterable<JobItem>): Promise<void> {
  await journal.replace(endEntries(ended, items))
}

function* endEntries(ended: Job, items: Iterable<JobItem>): Generator<unknown> {
  yield { format: 1, job: ended }
  for (const item of items) yield { item }
}
