import { MirrorError } from '../errors.ts'
import type { Hostname } from '../protocol/hostname.ts'

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

/** What a caller waits for, and the origin that it comes from. */
export interface Awaited {
  readonly name: string
  readonly hostname: Hostname
}

/** The origin did not answer within the time that a caller can wait. */
export function slowOrigin({ name, hostname }: Awaited): MirrorError<'UPSTREAM_TIMEOUT'> {
  const message = `${name}: ${hostname} did not answer in time; the work goes on, try again shortly`
  return new MirrorError('UPSTREAM_TIMEOUT', message, { host: hostname, upstreamUrl: `https://${hostname}/` })
}

/**
 * Waits for `work` until `signal` fires; the work itself goes on.
 * @throws MirrorError `UPSTREAM_TIMEOUT`; whatever `work` throws
 */
export async function waitFor<T>(work: Promise<T>, signal: AbortSignal, what: Awaited): Promise<T> {
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

/** Waits for `work` until `signal` fires; the work itself goes on. @throws the reason of the signal; what `work` throws */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await work
  const left = Promise.withResolvers<never>()
  const onAbort = (): void => left.reject(signal.reason)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([work, left.promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
    left.promise.catch(() => undefined)
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
