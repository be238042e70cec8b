import type { Version } from '../../protocol/version.ts'
import type { Remembered } from '../freshness.ts'
import type { OriginList } from '../origin-lists.ts'
import { ago, counted, type Finding, findingOf } from './finding.ts'

/** What is known of whether an origin lists a version. */
export type Listing = 'listed' | 'notListed' | 'unknown'

/** What the remembered list of an origin says. */
export interface ExplainedList {
  readonly listing: Listing
  /** Old: the next request asks the origin anew. */
  readonly isStale: boolean
  readonly findings: readonly Finding[]
}

/** Explains a remembered list, and whether `version` is in it. Times in milliseconds. */
export function explainList(
  { found, failure }: Remembered<OriginList<{ readonly version: Version }>>,
  version: Version | undefined,
  { now, freshForMs }: { now: number; freshForMs: number },
): ExplainedList {
  const failed = failure === undefined ? [] : [findingOf('origin', failure.error, failure.at)]
  if (found === undefined) {
    const text = 'The list of versions is not remembered: the next request asks the origin for it.'
    return { listing: 'unknown', isStale: true, findings: [{ about: 'list', verdict: 'missing', text }, ...failed] }
  }
  const at = new Date(found.at).toISOString()
  const isStale = now - found.at >= freshForMs || failure !== undefined
  if ('absent' in found) {
    return { listing: 'notListed', isStale, findings: [findingOf('list', found.absent, found.at), ...failed] }
  }
  const { versions, problems } = found.value
  const isListed = version !== undefined && versions.some((listed) => listed.version === version)
  const listing: Listing = version === undefined || isListed ? 'listed' : 'notListed'
  const age = `It is from ${ago(found.at, now)}${isStale ? ', and asked for anew by the next request' : ''}.`
  const has = version === undefined ? '' : isListed ? `, ${version} among them` : `, and not ${version}`
  const text = `The origin lists ${counted(versions.length, 'version')}${has}. ${age}`
  const verdict = listing === 'notListed' ? 'missing' : isStale ? 'stale' : 'ok'
  const odd = problems.map((problem): Finding => ({ about: 'list', verdict: 'refused', text: problem }))
  return { listing, isStale, findings: [{ about: 'list', verdict, text, at }, ...odd.slice(0, 10), ...failed] }
}
