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

/** How much of the processor `work` takes, in milliseconds. Whatever else the machine does is not counted. */
export function cpuMs(work: () => unknown): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}
