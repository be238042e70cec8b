import type { Journal } from '../../store/journal.ts'
import type { ClientWork } from '../client-work.ts'
import { each } from './each.ts'
import type { JobItem, JobResult } from './job.ts'
import type { JobEntry } from './job-journal.ts'
import type { JobContext } from './job-kind.ts'
import type { LiveJob } from './live-job.ts'

/** Items of one job that are worked on at one time. */
const AT_ONCE = 4
/** The longest that one item gives way to clients. */
const GIVE_WAY_MS = 30_000
/** Outcomes that may wait to become durable before no further item is begun. */
const MAX_UNWRITTEN = 64

/** One run of a job: what its kind is given, writing down what becomes of the items. */
export class JobRun implements JobContext {
  readonly settled: ReadonlyMap<string, JobItem>
  readonly #live: LiveJob
  readonly #journal: Journal
  readonly #clientWork: ClientWork
  readonly #ending = new AbortController()
  readonly #writing = new Set<Promise<void>>()

  constructor(live: LiveJob, { journal, clientWork }: { journal: Journal; clientWork: ClientWork }) {
    this.#live = live
    this.#journal = journal
    this.#clientWork = clientWork
    this.settled = new Map(Array.from(live.items.all(), (item) => [item.item, item]))
  }

  get signal(): AbortSignal {
    return this.#ending.signal
  }

  /** Ends the run soon, for `reason`. */
  end(reason: Error): void {
    this.#ending.abort(reason)
  }

  add(items: Iterable<{ readonly item: string; readonly totalBytes?: number }>): void {
    this.#live.add(items)
  }

  progress(item: string, bytes: number, totalBytes?: number): void {
    this.#live.progressed(item, bytes, totalBytes)
  }

  settle(item: string, result: JobResult): void {
    // What ends because the job does is not decided.
    if (this.signal.aborted) return
    const settled = this.#live.settle(item, result)
    if (settled !== undefined) this.write({ item: settled })
  }

  lose(item: string, reason: string): void {
    const lost = this.#live.lose(item, reason)
    if (lost !== undefined) this.write({ item: lost })
  }

  each<T>(items: Iterable<T> | AsyncIterable<T>, work: (item: T) => Promise<void>): Promise<void> {
    return each(items, { atOnce: AT_ONCE, signal: this.signal, before: () => this.#turn() }, work)
  }

  /** Begins to write; a failure ends the run. */
  write(entry: JobEntry): void {
    const writing: Promise<void> = this.#journal
      .append(entry)
      .catch((error: unknown) => this.#ending.abort(error))
      .finally(() => this.#writing.delete(writing))
    this.#writing.add(writing)
  }

  /** Waits until everything is durable, or could not be. */
  async written(): Promise<void> {
    await Promise.all(this.#writing)
  }

  /** Waits until another item may be begun. */
  async #turn(): Promise<void> {
    while (this.#writing.size >= MAX_UNWRITTEN) await Promise.race(this.#writing)
    await this.#clientWork.giveWay({ maxMs: GIVE_WAY_MS, signal: this.signal })
  }
}
