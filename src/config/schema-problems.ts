import type { z } from 'zod'
import type { KeyPath } from './schema-path.ts'
import { describeUnknownKey } from './unknown-keys.ts'

/** One thing that is wrong with the configuration. */
export interface Problem {
  readonly path: KeyPath
  /** Without the place; never quotes a value. */
  readonly message: string
  /** The message names the key already. */
  readonly namesKey: boolean
}

type Issue = z.core.$ZodIssue

/** What zod found, one entry for each key that is wrong. */
export function listProblems(schema: z.core.$ZodType, issues: readonly Issue[]): Problem[] {
  return issues.flatMap((issue) => describeIssue(schema, issue, []))
}

function describeIssue(schema: z.core.$ZodType, issue: Issue, above: KeyPath): Problem[] {
  const path = [...above, ...issue.path]
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => {
      const unknown = [...path, key]
      return { path: unknown, message: describeUnknownKey(schema, unknown), namesKey: true }
    })
  }
  if (issue.code === 'invalid_union') {
    const branch = findLikelyBranch(issue.errors)
    if (branch !== undefined) return branch.flatMap((inner) => describeIssue(schema, inner, path))
  }
  if (issue.code === 'invalid_key') return issue.issues.flatMap((inner) => describeIssue(schema, inner, path))
  return [{ path, message: formatMessage(issue), namesKey: false }]
}

/** The branch that was probably meant: its outer form fits, and it has the fewest problems. */
function findLikelyBranch(branches: readonly (readonly Issue[])[]): readonly Issue[] | undefined {
  const isInside = (issue: Issue) => issue.path.length > 0 || issue.code === 'unrecognized_keys'
  return branches.filter((issues) => issues.every(isInside)).sort((a, b) => a.length - b.length)[0]
}

function formatMessage(issue: Issue): string {
  if (issue.code === 'invalid_type' && issue.message.endsWith('received undefined')) return 'this key is required here'
  if (issue.code === 'invalid_value') return `expected ${issue.values.map(String).join(' or ')}`
  return issue.message.replace(/^(Invalid input|Invalid option|Too small|Too big): /, '')
}
