import { MirrorError } from '../errors.ts'
import { type Answer, discard, findHeader, mediaTypeOf } from './answer.ts'
import { parseRetryAfter } from './backoff.ts'
import { type BodyOptions, readBody } from './body.ts'
import type { Credentials } from './credentials.ts'
import { AttemptFailed, placeOf } from './failure.ts'
import { findOriginText } from './origin-text.ts'
import type { RateLimits } from './rate-limits.ts'

/** What judging a status needs beside the answer. */
export interface StatusOptions extends BodyOptions {
  readonly rateLimits: RateLimits
  readonly credentials: Credentials
  readonly now: () => number
}

/**
 * Throws for the statuses that mean an outage or a limit: 408, 429, 5xx, and 403 with an exhausted rate limit.
 * @throws AttemptFailed where another attempt makes sense, else MirrorError
 */
export async function assertNoOutage(answer: Answer, options: StatusOptions): Promise<void> {
  const limited = options.rateLimits.note(answer)
  if (limited !== undefined) {
    discard(answer)
    throw new AttemptFailed(limited, 'rate-limit', limited.fields.retryAfterMs)
  }
  const { status } = answer
  if (status !== 408 && status < 500) return
  const failure = await statusFailure(answer, options)
  if (status === 501) throw failure
  throw new AttemptFailed(failure, 'status', parseRetryAfter(findHeader(answer, 'retry-after'), options.now()))
}

/** The error of an unwelcome status, with what the upstream says about it. Ends the answer. */
export async function statusFailure(answer: Answer, options: StatusOptions): Promise<MirrorError<'UPSTREAM_STATUS'>> {
  const detail = await readDetail(answer, options)
  const place = placeOf(answer.url)
  const message = `${place.upstreamUrl} answered with status ${answer.status}${detail === undefined ? '' : `: ${detail}`}`
  const fields = { ...place, upstreamStatus: answer.status, ...(detail !== undefined && { detail }) }
  return new MirrorError('UPSTREAM_STATUS', message, fields)
}

const maxDetailBytes = 4_096
const detailTimeoutMs = 1_000

async function readDetail(answer: Answer, options: StatusOptions): Promise<string | undefined> {
  const mediaType = mediaTypeOf(answer)
  const isJson = mediaType === 'application/json' || mediaType.endsWith('+json')
  if (isJson || mediaType === 'text/plain') {
    return findOriginText(options.credentials.redact(await readStart(answer, options)), isJson ? 'json' : 'text')
  }
  discard(answer)
  return undefined
}

async function readStart(answer: Answer, options: BodyOptions): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  const timer = setTimeout(() => answer.body.destroy(), detailTimeoutMs)
  try {
    for await (const chunk of readBody(answer, options)) {
      chunks.push(chunk)
      length += chunk.length
      if (length >= maxDetailBytes) break
    }
  } catch {
    // The status is what counts; its explanation may be cut.
  } finally {
    clearTimeout(timer)
  }
  return Buffer.concat(chunks).subarray(0, maxDetailBytes)
}
