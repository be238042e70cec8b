import { performance } from 'node:perf_hooks'
import type { Dispatcher } from 'undici'
import { type Answer, discard, findHeader } from './answer.ts'
import type { Credentials } from './credentials.ts'
import { failureOf, invalid, WaitExceeded } from './failure.ts'
import type { UpstreamObserver } from './observer.ts'
import type { RateLimits } from './rate-limits.ts'
import type { UrlRules } from './url-rules.ts'

/** What all requests of one origin share. */
export interface OriginRules {
  readonly urlRules: UrlRules
  readonly credentials: Credentials
  readonly rateLimits: RateLimits
  readonly observer: UpstreamObserver
}

/** One GET with its redirects. */
export interface RedirectedRequest {
  readonly url: URL
  readonly dispatcher: Dispatcher
  /** Without `Authorization`: that is chosen for each host. */
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  readonly maxRedirects: number
  /** The host of `url` may see the origin's token. */
  readonly trusted: boolean
  /** Limit of the whole way to the last answer's headers; undefined: only that of undici for each request. */
  readonly openTimeoutMs?: number
  /** Limit from a request sent to its headers. */
  readonly headersTimeoutMs: number
}

/**
 * Sends a GET and follows its redirects; returns the first answer that is none. Every hop is judged by the rules of the
 * origin and gets only the credentials of its own host.
 * @throws MirrorError, or AttemptFailed where another attempt makes sense
 */
export async function openAnswer(rules: OriginRules, request: RedirectedRequest): Promise<Answer> {
  const { openTimeoutMs } = request
  if (openTimeoutMs === undefined) return await followRedirects(rules, request, request.signal)
  const limit = new AbortController()
  const timer = setTimeout(
    () => limit.abort(new WaitExceeded(`no answer within ${openTimeoutMs} ms`, openTimeoutMs)),
    openTimeoutMs,
  )
  try {
    return await followRedirects(rules, request, AbortSignal.any([request.signal, limit.signal]))
  } finally {
    clearTimeout(timer)
  }
}

async function followRedirects(rules: OriginRules, request: RedirectedRequest, signal: AbortSignal): Promise<Answer> {
  const visited = new Set<string>()
  let { url, trusted } = request
  for (;;) {
    visited.add(url.href)
    const authorization = isDowngrade(request.url, url) ? undefined : rules.credentials.find({ url, trusted })
    const answer = await sendOnce(rules, { ...request, url, signal }, { authorization, callerSignal: request.signal })
    const location = isRedirect(answer.status) ? findHeader(answer, 'location') : undefined
    if (location === undefined) return answer
    discard(answer)
    const target = parseLocation(location, url)
    if (visited.has(target.href)) throw invalid(url, 'it redirects in a circle')
    if (visited.size > request.maxRedirects) throw invalid(url, `it redirects more than ${request.maxRedirects} times`)
    // Trust ends for good with the first step to another host.
    trusted = trusted && target.origin === url.origin
    url = target
  }
}

interface HopOptions {
  readonly authorization: string | undefined
  readonly callerSignal: AbortSignal
}

async function sendOnce(rules: OriginRules, request: RedirectedRequest, hop: HopOptions): Promise<Answer> {
  const { url, dispatcher, signal, headersTimeoutMs } = request
  rules.urlRules(url)
  rules.rateLimits.assertOpen(url)
  const started = performance.now()
  rules.observer.sending(url.host, 1)
  try {
    const { statusCode, headers, body } = await dispatcher.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: 'GET',
      headers: { ...request.headers, ...(hop.authorization !== undefined && { authorization: hop.authorization }) },
      signal,
      headersTimeout: headersTimeoutMs,
      // readBody watches the body: it knows whether the upstream or our own reader is slow.
      bodyTimeout: 0,
    })
    rules.observer.answered(url.host, statusCode, performance.now() - started)
    // A body may fail while nobody reads it; the next read reports that.
    body.on('error', () => undefined)
    body.once('close', () => rules.observer.sending(url.host, -1))
    return { url, status: statusCode, headers, body }
  } catch (error) {
    rules.observer.answered(url.host, 'error', performance.now() - started)
    rules.observer.sending(url.host, -1)
    throw failureOf(error, { url, signal: hop.callerSignal })
  }
}

function isRedirect(status: number): boolean {
  return [301, 302, 303, 307, 308].includes(status)
}

function isDowngrade(from: URL, to: URL): boolean {
  return from.protocol === 'https:' && to.protocol !== 'https:'
}

function parseLocation(location: string, base: URL): URL {
  const target = URL.parse(location, base)
  if (target === null) throw invalid(base, 'it redirects to something that is not a URL')
  target.hash = ''
  return target
}
