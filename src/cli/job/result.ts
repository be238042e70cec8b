import prettyBytes from 'pretty-bytes'
import type { Job } from '../../admin/schema/jobs.ts'
import type { ExitCode } from '../command-error.ts'
import { formatSeconds } from '../terminal/age.ts'
import { print, printJson } from '../terminal/output.ts'
import { countBad, formatItemResult, formatOutcomes } from './progress-text.ts'
import type { FinishedJob } from './watch.ts'

/** More than these scroll away what one wants to see; `jobs show` has all. */
const MOST_SHOWN = 50

/**
 * Prints what became of a job: for people a summary and what is not well with its reason, for programs the job with the
 * items that are not well. Resolves to the exit code.
 * @throws CommandError as `print`
 */
export async function printResult(finished: FinishedJob, { json }: { readonly json: boolean }): Promise<ExitCode> {
  const { job, bad, isInterrupted } = finished
  await (json ? printJson({ ...job, items: bad, next: null }) : print(formatResult(finished)))
  return isInterrupted ? 130 : jobExitCode(job)
}

/** 0 if all that the job was to do is done and well. */
export function jobExitCode(job: Job): ExitCode {
  return job.state === 'done' && countBad(job) === 0 ? 0 : 1
}

function formatResult({ job, bad }: FinishedJob): string {
  const { id, kind, state, reason, progress, startedAt, finishedAt } = job
  const seconds = (Date.parse(finishedAt ?? '') - Date.parse(startedAt ?? '')) / 1000
  const span = Number.isNaN(seconds) ? '' : ` in ${formatSeconds(seconds)}`
  const lines = [
    `${kind} ${state}${span}: ${formatOutcomes(job)}; ${prettyBytes(progress.bytes)}`,
    ...(reason === undefined ? [] : [reason]),
    ...bad.slice(0, MOST_SHOWN).map((item) => `  ${formatItemResult(kind, item)}`),
  ]
  if (bad.length > MOST_SHOWN) {
    lines.push(`  and ${bad.length - MOST_SHOWN} more: terramirror jobs show ${id} --outcome failed --all`)
  }
  return `${lines.join('\n')}\n`
}
