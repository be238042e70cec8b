import type { z } from 'zod'
import { MirrorError } from '../errors.ts'

const MAX_PROBLEMS = 100
const MAX_PLACE_LENGTH = 200

type Issue = z.core.$ZodIssue

/** Everything that is wrong with one part of a request, as one error; values are not repeated. */
export function invalidRequest(part: 'body' | 'query' | 'path', issues: readonly Issue[]): MirrorError {
  const problems = issues.slice(0, MAX_PROBLEMS).flatMap((issue) => describeIssue(part, issue, []))
  if (issues.length > MAX_PROBLEMS) problems.push(`and ${issues.length - MAX_PROBLEMS} more`)
  return requestInvalid(problems)
}

/** @param problems each with its place, for people */
export function requestInvalid(problems: readonly string[], cause?: unknown): MirrorError<'REQUEST_INVALID'> {
  return new MirrorError('REQUEST_INVALID', `the request is not valid: ${problems.join('; ')}`, { problems }, cause)
}

function describeIssue(part: string, issue: Issue, above: readonly PropertyKey[]): string[] {
  const path = [...above, ...issue.path]
  const place = formatPlace(part, path)
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.slice(0, MAX_PROBLEMS).map((key) => `${formatPlace(part, [...path, key])}: unknown`)
  }
  if (issue.code === 'invalid_key') return issue.issues.flatMap((inner) => describeIssue(part, inner, path))
  if (issue.code === 'invalid_value') return [`${place}: expected ${issue.values.map(String).join(' or ')}`]
  if (issue.code === 'invalid_type' && issue.message.endsWith('received undefined')) return [`${place}: missing`]
  return [`${place}: ${issue.message.replace(/^(Invalid input|Too small|Too big): /, '')}`]
}

/** `body.providers[0].source` */
function formatPlace(part: string, path: readonly PropertyKey[]): string {
  const place = path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`
    const name = String(key)
    return /^[\w-]+$/.test(name) ? `${text}.${name}` : `${text}[${JSON.stringify(name)}]`
  }, part)
  return place.length > MAX_PLACE_LENGTH ? `${place.slice(0, MAX_PLACE_LENGTH)}…` : place
}
