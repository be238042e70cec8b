import type { Dispatcher } from 'undici'

/** An answer whose headers are in and whose body is still on its way. Whoever holds it reads or discards the body. */
export interface Answer {
  /** The URL that answered. May carry a secret query. */
  readonly url: URL
  readonly status: number
  readonly headers: Dispatcher.ResponseData['headers']
  readonly body: Dispatcher.ResponseData['body']
}

/** One header of an answer; repeated ones joined as RFC 9110 (5.3) says. `name` is lower case. */
export function findHeader(answer: Answer, name: string): string | undefined {
  const value = answer.headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}

/** `Content-Length`, if the answer states one. */
export function findContentLength(answer: Answer): number | undefined {
  const value = findHeader(answer, 'content-length')
  return value !== undefined && /^\d+$/.test(value) ? Number(value) : undefined
}

const drainableBytes = 16_384
const drainMs = 1_000

/** Leaves a body: a short one is read, so that its connection can be used again; any other is cut. */
export function discard({ body }: Answer): void {
  body.dump({ limit: drainableBytes, signal: AbortSignal.timeout(drainMs) }).catch(() => undefined)
}

/** Lower-case media type without parameters; empty if none was sent. */
export function mediaTypeOf(answer: Answer): string {
  return (findHeader(answer, 'content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
}
