import { type MirrorError, redactUrl } from '../errors.ts'
import type { Log } from '../log.ts'
import { backoffMs, wait } from './backoff.ts'
import { AttemptFailed, abortOf } from './failure.ts'
import type { UpstreamObserver } from './observer.ts'

/** The bounds of repeated attempts. */
export interface RetryOptions {
  /** What was asked for; every attempt begins there. */
  readonly url: URL
  readonly signal: AbortSignal
  /** Repetitions without progress. */
  readonly retries: number
  /** A `Retry-After` longer than this ends the attempts at once. */
  readonly maxRetryAfterMs: number
  readonly observer: UpstreamObserver
  readonly log: Log
  readonly random: () => number
}

const maxAttempts = 50

/** Counts the attempts at one thing and waits between them. */
export class Retries {
  readonly #options: RetryOptions
  #failures = 0
  #attempts = 1

  constructor(options: RetryOptions) {
    this.#options = options
  }

  /** Makes attempts until one succeeds or the bounds are reached. @throws MirrorError of the last attempt */
  async run<T>(attempt: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await attempt()
      } catch (error) {
        if (!(error instanceof AttemptFailed)) throw error
        await this.pause(error)
      }
    }
  }

  /** Waits before the next attempt. @throws MirrorError if there must be none */
  async pause(failed: AttemptFailed): Promise<void> {
    const { url, signal, retries, maxRetryAfterMs, observer, log, random } = this.#options
    const { failure, retryAfterMs = 0 } = failed
    this.#failures += 1
    this.#attempts += 1
    if (this.#failures > retries || this.#attempts > maxAttempts || retryAfterMs > maxRetryAfterMs) throw failure
    const host = hostOf(failure, url)
    const waitMs = Math.round(retryAfterMs + backoffMs(this.#failures, random))
    observer.retried(host, failed.reason)
    log.debug({ host, url: redactUrl(url), code: failure.code, waitMs }, `trying again: ${failure.message}`)
    try {
      await wait(waitMs, signal)
    } catch {
      throw abortOf({ url, signal }, failed)
    }
  }

  /** Something was achieved since the last failure: the count of repetitions begins anew. */
  reset(): void {
    this.#failures = 0
  }
}

function hostOf(failure: MirrorError, url: URL): string {
  return 'host' in failure.fields ? failure.fields.host : url.host
}
