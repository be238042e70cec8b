import { MirrorError } from '../errors.ts'
import { type Answer, findHeader } from './answer.ts'
import { type Authority, authorityOf } from './authority.ts'
import { parseRetryAfter } from './backoff.ts'
import { placeOf } from './failure.ts'

const defaultPauseMs = 5_000
const maxPauseMs = 300_000

interface Pause {
  readonly sinceMs: number
  readonly untilMs: number
  readonly status: number
}

/**
 * Remembers which hosts told us to wait, so that nobody asks them again before the time is over: further requests
 * would only prolong the limit.
 */
export class RateLimits {
  readonly #pauses = new Map<Authority, Pause>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  /** @throws MirrorError `UPSTREAM_RATE_LIMITED` while the URL's host is to be left alone */
  assertOpen(url: URL): void {
    const authority = authorityOf(url)
    const pause = this.#pauses.get(authority)
    if (pause === undefined) return
    const now = this.#now()
    // A clock that was set back must not make minutes into hours.
    if (pause.sinceMs <= now && now < pause.untilMs) throw limited(url, pause.status, pause.untilMs - now)
    this.#pauses.delete(authority)
  }

  /**
   * Notes a limit if the answer states one: 429, or 403 with `X-RateLimit-Remaining: 0`.
   * @returns the error for it, or undefined for any other answer
   */
  note(answer: Answer): MirrorError<'UPSTREAM_RATE_LIMITED'> | undefined {
    const { status, url } = answer
    const exhausted = status === 403 && findHeader(answer, 'x-ratelimit-remaining') === '0'
    if (status !== 429 && !exhausted) return undefined
    const pauseMs = Math.min(this.#askedPauseMs(answer) || defaultPauseMs, maxPauseMs)
    const sinceMs = this.#now()
    this.#pauses.set(authorityOf(url), { sinceMs, untilMs: sinceMs + pauseMs, status })
    return limited(url, status, pauseMs)
  }

  #askedPauseMs(answer: Answer): number | undefined {
    const retryAfterMs = parseRetryAfter(findHeader(answer, 'retry-after'), this.#now())
    if (retryAfterMs !== undefined) return retryAfterMs
    // GitHub gives the end of its window in seconds since 1970.
    const reset = Number(findHeader(answer, 'x-ratelimit-reset'))
    return reset > 0 ? Math.max(0, reset * 1_000 - this.#now()) : undefined
  }
}

function limited(url: URL, upstreamStatus: number, retryAfterMs: number): MirrorError<'UPSTREAM_RATE_LIMITED'> {
  const place = placeOf(url)
  const seconds = Math.ceil(retryAfterMs / 1_000)
  const message = `${url.host} limits our requests (upstream ${upstreamStatus}, ${place.upstreamUrl}); it is asked again in ${seconds} s`
  return new MirrorError('UPSTREAM_RATE_LIMITED', message, { ...place, upstreamStatus, retryAfterMs })
}
