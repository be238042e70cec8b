import { constants } from 'node:os'
import { isMirrorError, MirrorError } from '../../errors.ts'

/** The errno name of a system error, e.g. `ENOENT`; undefined for anything else. */
export function errnoOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined
  // libuv has no name for a reached quota and calls it "Unknown system error".
  if ('errno' in error && error.errno === -constants.errno.EDQUOT) return 'EDQUOT'
  return error.code
}

/**
 * The one place that turns a failure of the file system into an error of ours: `STORAGE_FULL` for a full disk or a
 * reached quota, else `STORAGE_FAILED`. An error of ours passes through.
 * @param operation What was tried, as a verb phrase: `write`, `set aside`.
 */
export function storageError(operation: string, path: string, cause: unknown): MirrorError {
  if (isMirrorError(cause)) return cause
  const errno = errnoOf(cause)
  if (errno === 'ENOSPC') return new MirrorError('STORAGE_FULL', ...words(operation, path, 'the disk is full'), cause)
  if (errno === 'EDQUOT')
    return new MirrorError('STORAGE_FULL', ...words(operation, path, 'the quota is used up'), cause)
  const why = errno ?? (cause instanceof Error ? cause.message : String(cause))
  return new MirrorError('STORAGE_FAILED', ...words(operation, path, why), cause)
}

/** Runs `action` and maps what it throws with `storageError`. */
export async function withStorageErrors<T>(operation: string, path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    throw storageError(operation, path, error)
  }
}

/** Runs `action`; if what it needs is not there, the answer is `fallback`. */
export async function unlessMissing<T, F>(action: Promise<T>, fallback: F): Promise<T | F> {
  try {
    return await action
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return fallback
    throw error
  }
}

function words(operation: string, path: string, why: string): [string, { operation: string }] {
  return [`Cannot ${operation} ${path}: ${why}.`, { operation }]
}
