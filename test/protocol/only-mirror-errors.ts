import { isMirrorError, type MirrorError } from '../../src/errors.ts'

/** The result, or the error of ours that was thrown; every other error passes through and fails the test. */
export function outcome<T>(parse: () => T): T | MirrorError {
  try {
    return parse()
  } catch (error) {
    if (isMirrorError(error)) return error
    throw error
  }
}

/** The error of ours that `parse` throws. Fails if it returns. */
export function thrownBy(parse: () => unknown): MirrorError {
  const result = outcome(parse)
  if (isMirrorError(result)) return result
  throw new Error(`expected an error, got ${JSON.stringify(result)}`)
}

/** How long `work` takes, in milliseconds. */
export function elapsedMs(work: () => unknown): number {
  const start = performance.now()
  work()
  return performance.now() - start
}
