import type { Job, JobItem } from '../../admin/schema/jobs.ts'
import { note } from '../terminal/output.ts'
import { ProgressLines } from './progress-lines.ts'

/** Shows people how a job goes on, on standard error. Close it before something else is written to the terminal. */
export interface JobDisplay extends Disposable {
  /** The job's newest state. */
  update(job: Job): void
  /** Something of the job; what is not well, or was mended, is shown at once. */
  item(item: JobItem): void
  /** A word between. */
  say(text: string): void
  /** May be called twice. */
  close(): void
}

/** The display that fits: bars on a terminal, plain lines elsewhere, and nothing but words if it is to be quiet. */
export async function openDisplay({ quiet }: { readonly quiet: boolean }): Promise<JobDisplay> {
  if (quiet) return new Silence()
  if (!process.stderr.isTTY || process.env.TERM === 'dumb') return new ProgressLines()
  const { ProgressBars } = await import('./progress-bars.ts')
  return new ProgressBars(process.stderr)
}

class Silence implements JobDisplay {
  update(): void {}
  item(): void {}
  say(text: string): void {
    note(text)
  }
  close(): void {}
  [Symbol.dispose](): void {}
}
