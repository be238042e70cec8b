import { LRUCache } from 'lru-cache'
import type { Log } from '../../log.ts'
import { SingleFlight } from '../single-flight.ts'
import type { Job } from './job.ts'
import { JobItems, MAX_ITEMS } from './job-items.ts'
import type { JobJournals } from './job-journal.ts'

const MAX_KEPT = 200
const KEPT_MS = 30 * 24 * 3_600_000

/** What `EndedJobs` is made of. */
export interface EndedJobsParts {
  readonly journals: JobJournals
  readonly now: () => number
  readonly log: Log
}

/** Jobs in a final state: in memory without their items, for 30 days, 200 at most. */
export class EndedJobs {
  readonly #parts: EndedJobsParts
  readonly #jobs = new Map<string, Job>()
  /** Of the jobs that somebody looked at last, so many as one large job may have twice. */
  readonly #items = new LRUCache<string, JobItems>({
    maxSize: 2 * (MAX_ITEMS + 1),
    sizeCalculation: (items) => items.size + 1,
  })
  readonly #reading = new SingleFlight<JobItems>()

  constructor(parts: EndedJobsParts) {
    this.#parts = parts
  }

  add(job: Job): void {
    this.#jobs.set(job.id, job)
  }

  get(id: string): Job | undefined {
    return this.#jobs.get(id)
  }

  all(): Iterable<Job> {
    return this.#jobs.values()
  }

  /** @throws MirrorError `STORAGE_FAILED` */
  async items(id: string): Promise<JobItems> {
    const seen = this.#items.get(id)
    if (seen !== undefined) return seen
    const { done } = this.#reading.run(id, async () => {
      const items = new JobItems()
      for (const item of await this.#parts.journals.items(id)) items.restore(item)
      this.#items.set(id, items)
      return items
    })
    return await done
  }

  /** Drops what is too old or too much. A journal that cannot be deleted goes another time. */
  async prune(): Promise<void> {
    const { journals, now, log } = this.#parts
    const newestFirst = [...this.#jobs.values()].sort((a, b) => (a.id < b.id ? 1 : -1))
    for (const [place, { id, finishedAt = '' }] of newestFirst.entries()) {
      if (place < MAX_KEPT && now() - Date.parse(finishedAt) < KEPT_MS) continue
      try {
        await journals.delete(id)
        this.#jobs.delete(id)
        this.#items.delete(id)
      } catch (error) {
        log.warn({ job: id, err: error }, 'could not delete the journal of an old job')
      }
    }
  }
}
