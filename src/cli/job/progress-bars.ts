import cliProgress, { type MultiBar, type SingleBar } from 'cli-progress'
import type { Job, JobItem } from '../../admin/schema/jobs.ts'
import { printable } from '../terminal/printable.ts'
import type { JobDisplay } from './display.ts'
import { formatBytes, formatItemResult, formatPace, isTelling } from './progress-text.ts'
import { Rate } from './rate.ts'

const WIDTH = 30
const CLEAR_REST_OF_LINE = '\u001b[K'

/** A job as two bars, items and bytes, that stay at the bottom of the terminal; they are gone when it is closed. */
export class ProgressBars implements JobDisplay {
  readonly #bars: MultiBar
  readonly #both: readonly SingleBar[]
  readonly #rate = new Rate()
  readonly #told = new Set<string>()
  #job: Job | undefined
  #isOpen = true

  constructor(terminal: NodeJS.WriteStream) {
    this.#bars = new cliProgress.MultiBar({
      stream: terminal,
      clearOnComplete: true,
      // Signals are our caller's: they cancel the job.
      gracefulExit: false,
      // Else a bar whose text is as before is not drawn anew below lines that were written over it.
      forceRedraw: true,
      format: (_options, _params, payload: { readonly format: () => string }) => payload.format(),
    })
    this.#both = [() => this.#formatItems(), () => this.#formatBytes()].map((format) =>
      this.#bars.create(1, 0, { format }),
    )
  }

  update(job: Job): void {
    this.#job = job
    this.#rate.add(job.progress.bytes, performance.now())
  }

  item(item: JobItem): void {
    if (!isTelling(item) || this.#told.has(item.item)) return
    this.#told.add(item.item)
    this.say(formatItemResult(this.#job?.kind ?? 'warm', item))
  }

  say(text: string): void {
    for (const line of printable(text).split('\n')) this.#bars.log(`${line}${CLEAR_REST_OF_LINE}\n`)
    this.#bars.update()
  }

  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    for (const bar of this.#both) bar.stop()
    this.#bars.stop()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #formatItems(): string {
    if (this.#job === undefined) return 'waiting for the mirror'
    const { kind, state, progress } = this.#job
    if (state === 'queued') return `${kind}: waits until other jobs are done`
    return `items ${formatBar(progress.done, progress.total)} ${progress.done} of ${progress.total}`
  }

  #formatBytes(): string {
    if (this.#job === undefined || this.#job.state === 'queued') return ''
    const { progress } = this.#job
    const pace = formatPace(progress, this.#rate.perSecond(performance.now()))
    const bar = formatBar(progress.bytes, progress.totalBytes ?? 0)
    return `bytes ${bar} ${formatBytes(progress)}${pace === '' ? '' : `, ${pace}`}`
  }
}

function formatBar(value: number, total: number): string {
  const filled = total === 0 ? 0 : Math.min(WIDTH, Math.floor((WIDTH * value) / total))
  return `[${'='.repeat(filled)}${'-'.repeat(WIDTH - filled)}]`
}
