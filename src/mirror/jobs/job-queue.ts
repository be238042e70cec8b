import { isMirrorError, MirrorError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import type { ClientWork } from '../client-work.ts'
import type { Job, JobKindName } from './job.ts'
import { type JobJournals, readJob, writeEnd } from './job-journal.ts'
import type { JobKind } from './job-kind.ts'
import { JobRun } from './job-run.ts'
import type { LiveJob } from './live-job.ts'

/** Verifying reads the disk at a given rate, and two would double it. */
const AT_ONCE: Readonly<Record<JobKindName, number>> = { warm: 2, verify: 1 }

/** What `JobQueue` is made of. */
export interface JobQueueParts {
  readonly journals: JobJournals
  readonly kindOf: (name: JobKindName) => JobKind<unknown> | undefined
  readonly clientWork: ClientWork
  /** Called once a job is in a final state. */
  readonly onEnd: (live: LiveJob) => void
  readonly now: () => number
  readonly log: Log
}

/** A job that is being run. */
interface Running {
  readonly live: LiveJob
  /** Why it is to end before it is through. */
  ending?: MirrorError<'JOB_CANCELLED' | 'SHUTTING_DOWN'>
  /** Undefined until its journal is read. */
  run?: JobRun
  done: Promise<void>
}

/** How a run came out; undefined: the process stops, and the next one goes on with it. */
type End = Pick<Job, 'state' | 'reason'> | undefined

/** Runs jobs, a few of each kind at a time, the others in the order in which they came. */
export class JobQueue {
  readonly #parts: JobQueueParts
  readonly #waiting = new Map<string, LiveJob>()
  readonly #running = new Map<string, Running>()
  #closing: MirrorError<'SHUTTING_DOWN'> | undefined

  constructor(parts: JobQueueParts) {
    this.#parts = parts
  }

  /** How many jobs wait for their turn. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** Runs the job when it is its turn. */
  add(live: LiveJob): void {
    this.#waiting.set(live.id, live)
    this.#beginNext()
  }

  /** Resolves when nothing of the job goes on any more; fine if it has ended. @throws MirrorError `STORAGE_*` */
  async cancel(live: LiveJob): Promise<void> {
    const running = this.#running.get(live.id)
    if (running === undefined) return await this.#cancelWaiting(live)
    const { run } = running
    running.ending = new MirrorError('JOB_CANCELLED', `job ${live.id} was cancelled`, { job: live.id })
    run?.write({ cancelledAt: this.#time() })
    run?.end(running.ending)
    await running.done
  }

  /** Ends what is running, to go on with it at the next start; begins nothing more. */
  async close(): Promise<void> {
    this.#closing = new MirrorError('SHUTTING_DOWN', 'this mirror is stopping', {})
    for (const running of this.#running.values()) {
      running.ending ??= this.#closing
      running.run?.end(running.ending)
    }
    await Promise.all(Array.from(this.#running.values(), ({ done }) => done))
  }

  #beginNext(): void {
    for (const live of this.#waiting.values()) {
      const alike = [...this.#running.values()].filter((running) => running.live.kind === live.kind)
      if (this.#closing !== undefined || alike.length >= AT_ONCE[live.kind]) continue
      this.#waiting.delete(live.id)
      const running: Running = { live, done: Promise.resolve() }
      this.#running.set(live.id, running)
      running.done = this.#runToEnd(running)
    }
  }

  async #runToEnd(running: Running): Promise<void> {
    const { live } = running
    const { log, onEnd } = this.#parts
    try {
      const end = await this.#run(running)
      if (end === undefined) return
      log.info({ job: live.id, kind: live.kind, ...end, outcomes: live.job.outcomes }, 'a job has ended')
    } catch (error) {
      log.error({ job: live.id, err: error }, 'a job ended, and its journal could not be written: it runs again later')
      live.change({ state: 'failed', reason: reasonOf(error), finishedAt: this.#time() })
    } finally {
      this.#running.delete(live.id)
      this.#beginNext()
    }
    onEnd(live)
  }

  /** @throws MirrorError `STORAGE_*`; Error if its journal was damaged */
  async #run(running: Running): Promise<End> {
    const { live } = running
    const { journals, clientWork } = this.#parts
    await using journal = await journals.open(live.id)
    const { request } = await readJob(journal, { until: () => true })
    const run = new JobRun(live, { journal, clientWork })
    running.run = run
    if (running.ending !== undefined) run.end(running.ending)
    const startedAt = live.job.startedAt ?? this.#time()
    if (live.job.startedAt === undefined) run.write({ startedAt })
    live.change({ state: 'running', startedAt })
    const end = await this.#work(running, run, request)
    await run.written()
    if (end === undefined) return undefined
    const ended = { ...end, finishedAt: this.#time() }
    // Told when it is durable.
    await writeEnd(journal, { ...live.job, ...ended }, live.items.all())
    live.change(ended)
    return end
  }

  async #work(running: Running, run: JobRun, request: unknown): Promise<End> {
    const { kindOf, log } = this.#parts
    let failure: unknown
    try {
      const kind = kindOf(running.live.kind)
      if (kind === undefined) throw new Error(`there is no kind of job ${running.live.kind}`)
      run.signal.throwIfAborted()
      await kind.run(kind.request.parse(request), run)
    } catch (error) {
      failure = error
    }
    await run.written()
    const { ending } = running
    if (ending?.is('JOB_CANCELLED')) return { state: 'cancelled' }
    if (ending !== undefined) return undefined
    failure ??= run.signal.reason
    if (failure === undefined) return { state: 'done' }
    log.warn({ job: running.live.id, err: failure }, 'a job has failed')
    return { state: 'failed', reason: reasonOf(failure) }
  }

  async #cancelWaiting(live: LiveJob): Promise<void> {
    if (!this.#waiting.delete(live.id)) return
    const ended = { state: 'cancelled', finishedAt: this.#time() } as const
    try {
      await using journal = await this.#parts.journals.open(live.id)
      await writeEnd(journal, { ...live.job, ...ended }, live.items.all())
    } catch (error) {
      this.add(live)
      throw error
    }
    live.change(ended)
    this.#parts.onEnd(live)
  }

  #time(): string {
    return new Date(this.#parts.now()).toISOString()
  }
}

/** What was not foreseen may hold anything: the log has it. */
function reasonOf(error: unknown): string {
  return isMirrorError(error) ? error.message : 'an unexpected error; the log of the mirror has it'
}
