import type { Job, JobItem } from '../../admin/schema/jobs.ts'
import { note } from '../terminal/output.ts'
import type { JobDisplay } from './display.ts'
import { formatBytes, formatItemResult, formatPace, isTelling } from './progress-text.ts'
import { Rate } from './rate.ts'

const SHORTEST_MS = 1_000
const LONGEST_MS = 10_000

/**
 * A job in plain lines, for logs: the first after a second, then in growing distances of up to ten seconds, so that a
 * job of an hour does not fill a page with each minute. Nothing is said twice within ten seconds. What is not well, or was mended, has its line at once.
 */
export class ProgressLines implements JobDisplay {
  readonly #now: () => number
  readonly #write: (line: string) => void
  readonly #startedAt: number
  readonly #rate = new Rate()
  readonly #told = new Set<string>()
  #kind: Job['kind'] = 'warm'
  #lastAt: number
  #lastLine = ''

  /** `now` in milliseconds; default the monotonic clock. `write` gets one line a call; default standard error. */
  constructor(now: () => number = () => performance.now(), write: (line: string) => void = note) {
    this.#now = now
    this.#write = write
    this.#startedAt = now()
    this.#lastAt = now()
  }

  update(job: Job): void {
    const now = this.#now()
    this.#kind = job.kind
    this.#rate.add(job.progress.bytes, now)
    const pause = Math.min(Math.max((now - this.#startedAt) / 10, SHORTEST_MS), LONGEST_MS)
    if (now - this.#lastAt < pause) return
    const line = this.#format(job, now)
    if (line === this.#lastLine && now - this.#lastAt < LONGEST_MS) return
    this.#lastAt = now
    this.#lastLine = line
    this.#write(line)
  }

  item(item: JobItem): void {
    if (!isTelling(item) || this.#told.has(item.item)) return
    this.#told.add(item.item)
    this.#write(formatItemResult(this.#kind, item))
  }

  say(text: string): void {
    this.#write(text)
  }

  close(): void {}

  [Symbol.dispose](): void {
    this.close()
  }

  #format({ kind, state, progress }: Job, now: number): string {
    if (state === 'queued') return `${kind}: waits until other jobs are done`
    const parts = [
      `${progress.done} of ${progress.total} items`,
      formatBytes(progress),
      formatPace(progress, this.#rate.perSecond(now)),
    ]
    return `${kind}: ${parts.filter((part) => part !== '').join(', ')}`
  }
}
