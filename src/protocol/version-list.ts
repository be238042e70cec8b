import { MirrorError, redactUrl } from '../errors.ts'

/** Where a list came from: the origin's host, and the URL that was asked. */
export interface VersionListSource {
  readonly host: string
  readonly upstreamUrl: string
}

const MAX_PROBLEMS = 20
const MAX_QUOTED = 80

/** At most 20 problems of a list, and how many more there are: a line in the log has an end. */
export function shortenProblems(problems: readonly string[]): string[] {
  if (problems.length <= MAX_PROBLEMS) return [...problems]
  return [...problems.slice(0, MAX_PROBLEMS), `and ${problems.length - MAX_PROBLEMS} more`]
}

/** A spelling of the origin as it can stand in the log: escaped, and at most 80 characters of it. */
export function quoteSpelling(text: string): string {
  return JSON.stringify(text.slice(0, MAX_QUOTED))
}

/** The error for JSON that is no list of versions at all; `reason` says what is missing. The query of the URL is left out. */
export function notAVersionList(source: VersionListSource, reason: string): MirrorError<'UPSTREAM_INVALID'> {
  const upstreamUrl = redactUrl(source.upstreamUrl)
  return new MirrorError(
    'UPSTREAM_INVALID',
    `${source.host} answered at ${upstreamUrl}, but with JSON that is ${reason}`,
    { host: source.host, upstreamUrl, reason },
  )
}
