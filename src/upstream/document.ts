import type { Dispatcher } from 'undici'
import { type Answer, findContentLength, findHeader, mediaTypeOf } from './answer.ts'
import { contentEncodings, readBody } from './body.ts'
import { tooLarge } from './failure.ts'
import type { DocumentAnswer } from './http-client.ts'
import { type OriginRules, openAnswer } from './redirects.ts'
import { Retries, type RetryOptions } from './retry.ts'
import { assertNoOutage, type StatusOptions } from './status.ts'

/** One document to fetch. */
export interface DocumentJob {
  readonly url: URL
  readonly dispatcher: Dispatcher
  readonly headers: Readonly<Record<string, string>>
  readonly trusted: boolean
  readonly maxRedirects: number
  readonly maxBytes: number
  /** Limit of one attempt up to the headers of the last answer. */
  readonly attemptTimeoutMs: number
  readonly body: StatusOptions
  readonly retry: Omit<RetryOptions, 'url' | 'maxRetryAfterMs'>
}

// A document has seconds; a longer pause is better spent by telling the client.
const maxRetryAfterMs = 3_000
const maxErrorBytes = 65_536

/** Fetches a document as `OriginClient.fetchDocument` promises. */
export async function fetchDocument(rules: OriginRules, job: DocumentJob): Promise<DocumentAnswer> {
  const retries = new Retries({ ...job.retry, url: job.url, maxRetryAfterMs })
  return await retries.run(async () => {
    const answer = await openAnswer(rules, {
      ...job,
      headers: { ...job.headers, 'accept-encoding': 'gzip' },
      signal: job.body.signal,
      openTimeoutMs: job.attemptTimeoutMs,
      headersTimeoutMs: job.attemptTimeoutMs,
    })
    await assertNoOutage(answer, job.body)
    const body = answer.status < 300 ? await readWhole(answer, job) : await readCut(answer, job)
    return {
      url: answer.url,
      status: answer.status,
      mediaType: mediaTypeOf(answer),
      terraformGet: findHeader(answer, 'x-terraform-get'),
      body,
    }
  })
}

async function readWhole(answer: Answer, { maxBytes, body }: DocumentJob): Promise<Buffer> {
  const declaredBytes = contentEncodings(answer).length === 0 ? findContentLength(answer) : undefined
  if (declaredBytes !== undefined && declaredBytes > maxBytes) {
    answer.body.destroy()
    throw tooLarge(answer.url, maxBytes)
  }
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of readBody(answer, body)) {
    length += chunk.length
    if (length > maxBytes) throw tooLarge(answer.url, maxBytes)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

async function readCut(answer: Answer, { maxBytes, body }: DocumentJob): Promise<Buffer> {
  const limit = Math.min(maxBytes, maxErrorBytes)
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of readBody(answer, body)) {
    chunks.push(chunk)
    length += chunk.length
    if (length >= limit) break
  }
  return body.credentials.redact(Buffer.concat(chunks).subarray(0, limit))
}
