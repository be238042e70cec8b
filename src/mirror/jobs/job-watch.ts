import { setTimeout } from 'node:timers/promises'
import { isFinal, type Job, type JobEvent, type JobItem } from './job.ts'

/** Between two batches of events: what changes meanwhile is told once, as it is then. */
const BATCH_MS = 100

/** What is watched. */
export interface Watched {
  readonly job: Job
  item(name: string): JobItem | undefined
}

/**
 * One who watches a job. A slow one gets fewer events, never older ones: what has changed is remembered by name alone,
 * so that it takes no more memory than the job itself.
 */
export class JobWatch {
  readonly #watched: Watched
  #changed = new Set<string>()
  #jobChanged = false
  #next = Promise.withResolvers<void>()

  constructor(watched: Watched) {
    this.#watched = watched
  }

  /** An item has changed; without a name, the job has. */
  changed(item?: string): void {
    if (item !== undefined) this.#changed.add(item)
    this.#jobChanged = true
    this.#next.resolve()
  }

  /** The job as it is, then items that changed and the job again, until it is final or the signal fires. */
  async *events(signal: AbortSignal): AsyncGenerator<JobEvent, void, undefined> {
    const { job } = this.#watched
    yield { event: 'job', data: job }
    let final = isFinal(job.state)
    while (!final && (await this.#waits(signal))) {
      const changed = this.#changed
      this.#changed = new Set()
      this.#jobChanged = false
      for (const name of changed) {
        const item = this.#watched.item(name)
        if (item !== undefined) yield { event: 'item', data: item }
      }
      // Read first: what changed while others were told of is in the next batch.
      const { job } = this.#watched
      final = isFinal(job.state) && this.#changed.size === 0
      if (final || !isFinal(job.state)) yield { event: 'job', data: job }
    }
  }

  /** True when there is something to tell; false when the signal has fired. */
  async #waits(signal: AbortSignal): Promise<boolean> {
    const aborted = (): void => this.#next.resolve()
    signal.addEventListener('abort', aborted, { once: true })
    try {
      while (!this.#jobChanged && !signal.aborted) {
        this.#next = Promise.withResolvers()
        await this.#next.promise
      }
      if (!signal.aborted) await setTimeout(BATCH_MS, undefined, { signal }).catch(() => undefined)
      return !signal.aborted
    } finally {
      signal.removeEventListener('abort', aborted)
    }
  }
}
