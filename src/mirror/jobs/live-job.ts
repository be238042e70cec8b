import { isFinal, type Job, type JobEvent, type JobItem, type JobKindName, type JobResult } from './job.ts'
import { JobItems } from './job-items.ts'
import { JobWatch } from './job-watch.ts'

/** A job that waits or runs, as it is in memory, with those who watch it. */
export class LiveJob {
  readonly items = new JobItems()
  readonly #watches = new Set<JobWatch>()
  #head: Omit<Job, 'progress' | 'outcomes'>

  constructor(head: Omit<Job, 'progress' | 'outcomes'>) {
    this.#head = head
  }

  get id(): string {
    return this.#head.id
  }

  get kind(): JobKindName {
    return this.#head.kind
  }

  /** As it is now. */
  get job(): Job {
    return { ...this.#head, progress: this.items.progress, outcomes: this.items.outcomes }
  }

  item(name: string): JobItem | undefined {
    return this.items.get(name)
  }

  change(change: Partial<Pick<Job, 'state' | 'reason' | 'startedAt' | 'finishedAt'>>): void {
    if (isFinal(this.#head.state)) return
    this.#head = { ...this.#head, ...change }
    this.#tell()
  }

  /** @throws MirrorError as `JobItems.add` */
  add(items: Iterable<{ readonly item: string; readonly totalBytes?: number }>): void {
    let added = false
    for (const item of items) added = this.items.add(item) || added
    if (added) this.#tell()
  }

  progressed(item: string, bytes: number, totalBytes?: number): void {
    if (this.items.progressed(item, bytes, totalBytes)) this.#tell(item)
  }

  /** The decided item; undefined if it was decided before. @throws MirrorError as `JobItems.add` */
  settle(item: string, result: JobResult): JobItem | undefined {
    const settled = this.items.settle(item, result)
    if (settled !== undefined) this.#tell(item)
    return settled
  }

  /** As `Jobs.events`. */
  async *events(signal: AbortSignal): AsyncGenerator<JobEvent, void, undefined> {
    const watch = new JobWatch(this)
    this.#watches.add(watch)
    try {
      yield* watch.events(signal)
    } finally {
      this.#watches.delete(watch)
    }
  }

  #tell(item?: string): void {
    for (const watch of this.#watches) watch.changed(item)
  }
}
