import { MirrorError } from '../errors.ts'

/** A moment by which an answer must be there, as a signal and as time left. */
export interface Deadline {
  readonly signal: AbortSignal
  remainingMs(): number
}

/** A deadline `ms` from now. Needs no clean-up: the timer holds nothing alive. */
export function createDeadline(ms: number): Deadline {
  const end = performance.now() + ms
  return { signal: AbortSignal.timeout(ms), remainingMs: () => Math.max(0, Math.ceil(end - performance.now())) }
}

/** The origin did not answer for `what` within the time that a caller can wait. */
export function slowOrigin(what: string): MirrorError<'UPSTREAM_TIMEOUT'> {
  return new MirrorError('UPSTREAM_TIMEOUT', `${what}: the origin did not answer in time; try again shortly`, {})
}

/**
 * Waits for `work` until `signal` fires; the work itself goes on.
 * @throws MirrorError `UPSTREAM_TIMEOUT` naming `what`; whatever `work` throws
 */
export async function waitFor<T>(work: Promise<T>, signal: AbortSignal, what: string): Promise<T> {
  const late = Promise.withResolvers<never>()
  const onAbort = (): void => late.reject(slowOrigin(what))
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([work, late.promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
    late.promise.catch(() => undefined)
    work.catch(() => undefined)
  }
}

/** Waits for `work` at most `ms`; true if it settled, well or badly. */
export async function settledWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  const timer = Promise.withResolvers<false>()
  const handle = setTimeout(() => timer.resolve(false), ms)
  try {
    return await Promise.race([
      work.then(
        () => true,
        () => true,
      ),
      timer.promise,
    ])
  } finally {
    clearTimeout(handle)
  }
}
