import type { JobObserver } from '../observer.ts'
import { isFinal, type Job, type JobEvent, type JobItem, type JobKindName, type JobResult } from './job.ts'
import { JobItems } from './job-items.ts'
import { JobWatch } from './job-watch.ts'

/** A job without what its items come to. */
export type JobHead = Omit<Job, 'progress' | 'outcomes'>

/** A job that waits or runs, as it is in memory, with those who watch it. */
export class LiveJob {
  readonly items = new JobItems()
  readonly #watches = new Set<JobWatch>()
  readonly #observer: JobObserver | undefined
  #head: JobHead

  constructor(head: JobHead, observer?: JobObserver) {
    this.#head = head
    this.#observer = observer
    observer?.jobMoved({ kind: head.kind, to: head.state })
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
    const { kind, state: from } = this.#head
    if (isFinal(from)) return
    this.#head = { ...this.#head, ...change }
    const { state: to } = this.#head
    if (to !== from) this.#observer?.jobMoved({ kind, from, to })
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
    if (settled === undefined) return undefined
    this.#observer?.jobItemSettled({ kind: this.kind, outcome: result.outcome })
    this.#tell(item)
    return settled
  }

  /** The item that is not here any more; undefined if that was not said of it. */
  lose(item: string, reason: string): JobItem | undefined {
    const lost = this.items.lose(item, reason)
    if (lost !== undefined) this.#tell(item)
    return lost
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
