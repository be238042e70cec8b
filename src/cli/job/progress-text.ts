import prettyBytes from 'pretty-bytes'
import type { Job, JobItem, JobOutcome } from '../../admin/schema/jobs.ts'
import { formatSeconds } from '../terminal/age.ts'

/** What an outcome is called when a job of this kind has it. */
const WORDS: Readonly<Record<Job['kind'], Readonly<Record<JobOutcome, string>>>> = {
  warm: {
    done: 'fetched',
    held: 'held already',
    notPublished: 'not published',
    refused: 'refused',
    failed: 'failed',
  },
  verify: {
    done: 'well',
    held: 'skipped',
    notPublished: 'no longer published',
    refused: 'refused',
    failed: 'not well',
  },
}

/** True for an outcome that nobody wants. */
function isBad(outcome: JobOutcome | null): boolean {
  return outcome === 'notPublished' || outcome === 'refused' || outcome === 'failed'
}

/** True for what people want to hear of at once: it ended badly, or was mended. */
export function isTelling({ outcome, reason }: JobItem): boolean {
  return isBad(outcome) || (outcome === 'done' && reason !== undefined)
}

/** How many things of a job ended badly. */
export function countBad({ outcomes }: Job): number {
  const bad = ['notPublished', 'refused', 'failed'] as const
  return bad.reduce((sum, outcome) => sum + outcomes[outcome], 0)
}

/** The outcomes of a job in words: `33 fetched, 5 held already, 2 failed`. */
export function formatOutcomes({ kind, state, outcomes }: Job): string {
  const words = WORDS[kind]
  const order = ['done', 'held', 'notPublished', 'refused', 'failed'] as const
  const parts = order.flatMap((outcome) => (outcomes[outcome] > 0 ? `${outcomes[outcome]} ${words[outcome]}` : []))
  if (parts.length > 0) return parts.join(', ')
  return state === 'done' ? 'nothing to do' : 'nothing yet'
}

/** What became of one thing, in one line: which, what, why. */
export function formatItemResult(kind: Job['kind'], { item, outcome, reason, code }: JobItem): string {
  const what = outcome === null ? 'not decided' : WORDS[kind][outcome]
  const why = reason === undefined ? '' : `: ${reason.replaceAll('\n', ' ')}`
  return `${item}: ${what}${why}${code === undefined ? '' : ` (${code})`}`
}

/** `1.2 GB of 3.4 GB`, or without the whole where it is not known. */
export function formatBytes({ bytes, totalBytes }: Job['progress']): string {
  return totalBytes === null ? prettyBytes(bytes) : `${prettyBytes(bytes)} of ${prettyBytes(totalBytes)}`
}

/** `45 MB/s, 48 s left`; as much of it as can be told, perhaps nothing. */
export function formatPace({ bytes, totalBytes }: Job['progress'], perSecond: number | undefined): string {
  if (perSecond === undefined || perSecond <= 0) return ''
  const rate = `${prettyBytes(Math.round(perSecond))}/s`
  const left = totalBytes === null ? 0 : (totalBytes - bytes) / perSecond
  return left > 0 ? `${rate}, ${formatSeconds(left)} left` : rate
}
