import { randomInt } from 'node:crypto'
import { MirrorError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import type { StateStore } from '../../store/state-store.ts'
import type { ClientWork } from '../client-work.ts'
import type { JobObserver } from '../observer.ts'
import { EndedJobs } from './ended-jobs.ts'
import { isFinal, type Job, type JobEvent, type JobItem, type JobKindName } from './job.ts'
import { type ItemQuery, isHere, type JobItems, type Page } from './job-items.ts'
import { JobJournals } from './job-journal.ts'
import type { JobKind } from './job-kind.ts'
import { JobQueue } from './job-queue.ts'
import { type JobHead, LiveJob } from './live-job.ts'

const MAX_WAITING = 100
/** An id begins with the time at which it was made, in so many digits of base 36. */
const TIME_DIGITS = 9

/** What `Jobs` is made of. */
export interface JobsParts {
  /** Its journals outlive this process. */
  readonly store: Pick<StateStore, 'journal' | 'journals' | 'deleteJournal'>
  readonly clientWork: ClientWork
  readonly observer?: JobObserver
  readonly now: () => number
  readonly log: Log
}

/**
 * Work that goes on by itself. Every job is a journal: what was going on when the process ended goes on at the next start,
 * without the items that were decided (ADR 13). Jobs that have ended are kept for 30 days, 200 at most.
 */
export class Jobs {
  readonly #now: () => number
  readonly #observer: JobObserver | undefined
  readonly #journals: JobJournals
  readonly #queue: JobQueue
  readonly #kinds = new Map<JobKindName, JobKind<unknown>>()
  readonly #live = new Map<string, LiveJob>()
  readonly #ended: EndedJobs
  readonly #closing = new AbortController()
  #lastIdAt = 0
  /** Jobs whose journals are being made: they will wait too. */
  #beginning = 0

  constructor({ store, clientWork, observer, now, log }: JobsParts) {
    const journals = new JobJournals(store, log)
    this.#now = now
    this.#observer = observer
    this.#journals = journals
    this.#ended = new EndedJobs({ journals, now, log })
    const kindOf = (name: JobKindName) => this.#kinds.get(name)
    this.#queue = new JobQueue({ journals, kindOf, clientWork, onEnd: (live) => this.#keep(live), now, log })
  }

  /** Teaches it a kind, before any job of that kind is started or resumed. */
  register<Request>(kind: JobKind<Request>): void {
    // What `run` gets is what the kind's own schema reads.
    this.#kinds.set(kind.kind, kind as JobKind<unknown>)
  }

  /**
   * Begins a job, or queues it: it is durable when this resolves.
   * @throws MirrorError what the kind's `check` throws; `TOO_MANY_JOBS`, `SHUTTING_DOWN`, `STORAGE_*`
   */
  async start<Request>(kind: JobKind<Request>, request: Request): Promise<Job> {
    await kind.check?.(request)
    this.#closing.signal.throwIfAborted()
    if (this.#queue.waiting + this.#beginning >= MAX_WAITING) throw tooManyJobs()
    const createdAt = new Date(this.#now()).toISOString()
    const head: JobHead = { id: this.#newId(), kind: kind.kind, state: 'queued', createdAt }
    const { job } = new LiveJob(head)
    this.#beginning += 1
    try {
      await this.#journals.create(job, request)
    } finally {
      this.#beginning -= 1
    }
    const live = new LiveJob(head, this.#observer)
    this.#live.set(live.id, live)
    this.#queue.add(live)
    return job
  }

  /** Takes up what the last process left. A job that cannot be read is told and left out. @throws MirrorError `STORAGE_FAILED` */
  async resumeAll(): Promise<void> {
    for (const id of (await this.#journals.ids()).sort()) {
      this.#lastIdAt = Math.max(this.#lastIdAt, timeOfId(id))
      const stored = this.#live.has(id) ? undefined : await this.#journals.recall(id)
      if (stored === undefined) continue
      const { progress: _, outcomes: __, ...head } = stored.job
      if (isFinal(head.state)) {
        this.#ended.add(stored.job)
        continue
      }
      const { startedAt, cancelledAt } = stored
      const live = new LiveJob({ ...head, ...(startedAt === undefined ? {} : { startedAt }) }, this.#observer)
      for (const item of stored.items) live.items.restore(item)
      if (cancelledAt !== undefined) {
        live.change({ state: 'cancelled', finishedAt: cancelledAt })
        this.#ended.add(live.job)
        continue
      }
      this.#live.set(id, live)
      this.#queue.add(live)
    }
    await this.#ended.prune()
  }

  /** Newest first. `after` is the `next` of the page before. */
  list({ after, limit }: { readonly after?: string; readonly limit: number }): Page<Job> {
    const all = [...this.#ended.all(), ...Array.from(this.#live.values(), ({ job }) => job)]
    const items = all
      .filter(({ id }) => after === undefined || id < after)
      .sort((a, b) => (a.id < b.id ? 1 : -1))
      .slice(0, limit + 1)
    const last = items[limit - 1]
    return items.length <= limit || last === undefined ? { items } : { items: items.slice(0, limit), next: last.id }
  }

  /** @throws MirrorError `ITEM_NOT_FOUND` */
  get(id: string): Job {
    const job = this.#live.get(id)?.job ?? this.#ended.get(id)
    if (job === undefined) throw unknownJob(id)
    return job
  }

  /** In the order in which they became known. @throws MirrorError `ITEM_NOT_FOUND`, `STORAGE_FAILED` */
  async items(id: string, query: ItemQuery): Promise<Page<JobItem>> {
    return (await this.#itemsOf(id)).page(query)
  }

  /** Names of all that a job brought or found. @throws MirrorError `ITEM_NOT_FOUND`, `STORAGE_FAILED` */
  async itemsOf(id: string): Promise<string[]> {
    const items = [...(await this.#itemsOf(id)).all()]
    return items.filter(isHere).map(({ item }) => item)
  }

  /**
   * The job as it is now, then what changes, until it has ended, the signal fires or the process stops. Who reads slowly
   * gets fewer events, never older ones. @throws MirrorError `ITEM_NOT_FOUND`, at once
   */
  events(id: string, signal: AbortSignal): AsyncIterable<JobEvent> {
    const live = this.#live.get(id)
    if (live !== undefined) return live.events(AbortSignal.any([signal, this.#closing.signal]))
    return onlyEvent({ event: 'job', data: this.get(id) })
  }

  /**
   * Cancels a job for ever: nothing of it is on its way any more when this resolves, but for what clients want too. One
   * that has ended stays as it is. @throws MirrorError `ITEM_NOT_FOUND`, `STORAGE_*`
   */
  async cancel(id: string): Promise<Job> {
    const live = this.#live.get(id)
    if (live !== undefined) await this.#queue.cancel(live)
    return this.get(id)
  }

  /** Ends what is running, to go on with it at the next start, and all events. */
  async close(): Promise<void> {
    this.#closing.abort(new MirrorError('SHUTTING_DOWN', 'this mirror is stopping', {}))
    await this.#queue.close()
  }

  async #itemsOf(id: string): Promise<JobItems> {
    const live = this.#live.get(id)
    if (live !== undefined) return live.items
    this.get(id)
    return await this.#ended.items(id)
  }

  #keep(live: LiveJob): void {
    this.#ended.add(live.job)
    this.#live.delete(live.id)
    void this.#ended.prune()
  }

  /** Of two ids the later one is greater, also after the clock was set back. */
  #newId(): string {
    this.#lastIdAt = Math.max(this.#now(), this.#lastIdAt + 1)
    return `${this.#lastIdAt.toString(36).padStart(TIME_DIGITS, '0')}-${randomInt(36 ** 4)
      .toString(36)
      .padStart(4, '0')}`
  }
}

async function* onlyEvent(event: JobEvent): AsyncGenerator<JobEvent, void, undefined> {
  yield event
}

/** Zero for what is no id of ours. */
function timeOfId(id: string): number {
  return /^[0-9a-z]{9}-/.test(id) ? Number.parseInt(id.slice(0, TIME_DIGITS), 36) : 0
}

function unknownJob(id: string): MirrorError<'ITEM_NOT_FOUND'> {
  return new MirrorError('ITEM_NOT_FOUND', `there is no job ${JSON.stringify(id.slice(0, 80))}`, {
    item: id.slice(0, 80),
  })
}

function tooManyJobs(): MirrorError<'TOO_MANY_JOBS'> {
  const message = `${MAX_WAITING} jobs wait already; cancel some, or try again when they are through`
  return new MirrorError('TOO_MANY_JOBS', message, { max: MAX_WAITING })
}
