import type { Job } from '../../admin/schema/jobs.ts'
import { note, print, printJson } from '../terminal/output.ts'

/** Prints a job that is left to itself: its id alone for scripts, or the job as JSON. @throws CommandError as `print` */
export async function printStarted(job: Job, { json }: { readonly json: boolean }): Promise<void> {
  if (json) return printJson(job)
  await print(`${job.id}\n`)
  note(`the job goes on by itself: terramirror jobs watch ${job.id}`)
}
