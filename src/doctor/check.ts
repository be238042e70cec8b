import { isMirrorError } from '../errors.ts'
import { type Finding, findingsAbout } from './finding.ts'

/** One thing that is looked at. */
export interface Check {
  readonly name: string
  /** Looks, changes nothing, and gives up when the signal fires. */
  run(signal: AbortSignal): Promise<readonly Finding[]>
}

/**
 * Runs checks at the same time and gives their findings in the order of the checks. Each has `limitMs`; one that fails
 * or does not end is a finding itself, and hides nothing of the others.
 */
export async function runChecks(checks: readonly Check[], limitMs: number): Promise<Finding[]> {
  const findings = await Promise.all(checks.map((check) => runCheck(check, limitMs)))
  return findings.flat()
}

async function runCheck({ name, run }: Check, limitMs: number): Promise<readonly Finding[]> {
  const about = findingsAbout(name)
  const signal = AbortSignal.timeout(limitMs)
  const late = Promise.withResolvers<readonly Finding[]>()
  const finding = about.problem(`this was not known after ${limitMs / 1000} s`, 'See whether disk or network hang.')
  // A moment later than the check itself is told: what it has found out until then says more.
  const timer = setTimeout(() => late.resolve([finding]), limitMs + 500)
  try {
    return await Promise.race([run(signal), late.promise])
  } catch (error) {
    return [
      about.problem(
        textOf(error),
        signal.aborted ? 'See whether disk or network hang.' : 'This was not expected: please report it.',
      ),
    ]
  } finally {
    clearTimeout(timer)
  }
}

function textOf(error: unknown): string {
  if (isMirrorError(error)) return error.message
  const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
  return error instanceof Error ? `${error.message}${code}` : String(error)
}
