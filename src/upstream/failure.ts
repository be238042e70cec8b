import { isMirrorError, MirrorError, redactUrl } from '../errors.ts'
import { AddressRefused } from './address-guard.ts'
import { refused } from './url-rules.ts'

/** Why an attempt is made again; the label of a metric. */
export type RetryReason = 'connection' | 'timeout' | 'torn' | 'status' | 'rate-limit'

/** An attempt failed in a way that may pass. `failure` is what to throw when no further attempt is made. */
export class AttemptFailed extends Error {
  override readonly name = 'AttemptFailed'
  readonly failure: MirrorError
  readonly reason: RetryReason
  /** How long the upstream asked to wait. */
  readonly retryAfterMs: number | undefined

  constructor(failure: MirrorError, reason: RetryReason, retryAfterMs?: number) {
    super(failure.message, { cause: failure })
    this.failure = failure
    this.reason = reason
    this.retryAfterMs = retryAfterMs
  }
}

/** Our own time limit passed while we waited for the upstream. */
export class WaitExceeded extends Error {
  override readonly name = 'WaitExceeded'
  readonly afterMs: number

  constructor(message: string, afterMs: number) {
    super(message)
    this.afterMs = afterMs
  }
}

/** Where and under which signal something failed. */
export interface FailureContext {
  readonly url: URL
  /** The caller's signal. */
  readonly signal: AbortSignal
}

/**
 * Turns whatever a request or a body threw into an error of ours: `AttemptFailed` if another attempt makes sense,
 * `MirrorError` if not. An abort with a reason of ours is that reason.
 */
export function failureOf(error: unknown, context: FailureContext): AttemptFailed | MirrorError {
  if (context.signal.aborted) return abortOf(context, error)
  if (error instanceof AttemptFailed || isMirrorError(error)) return error
  if (error instanceof AddressRefused) return refused(context.url, error.reason, error)
  const code = codeOf(error)
  if (code === 'UND_ERR_PRX_TLS' || certificateCodes.test(code)) return certificateFailure(error, context.url)
  if (error instanceof WaitExceeded || timeoutCodes.has(code)) return timeout(error, context.url)
  const proxyStatus = proxyStatusOf(error)
  if (proxyStatus !== undefined) return proxyFailure(error, proxyStatus, context.url)
  if (code === 'UND_ERR_HEADERS_OVERFLOW') return invalid(context.url, 'its headers are too large', error)
  return new AttemptFailed(unreachable(context.url, describe(error), error), 'connection')
}

/** The error of an answer that is not what HTTP or the protocol says. */
export function invalid(url: URL, reason: string, cause?: unknown): MirrorError<'UPSTREAM_INVALID'> {
  const place = placeOf(url)
  return new MirrorError(
    'UPSTREAM_INVALID',
    `The answer of ${place.upstreamUrl} is not usable: ${reason}`,
    { ...place, reason },
    cause,
  )
}

/** The error of an answer over its limit. */
export function tooLarge(url: URL, maxBytes: number): MirrorError<'UPSTREAM_TOO_LARGE'> {
  const place = placeOf(url)
  const message = `The answer of ${place.upstreamUrl} is larger than the limit of ${maxBytes} bytes`
  return new MirrorError('UPSTREAM_TOO_LARGE', message, { ...place, maxBytes })
}

/** A body that ended early. */
export function torn(url: URL, detail: string, cause?: unknown): AttemptFailed {
  return new AttemptFailed(unreachable(url, detail, cause), 'torn')
}

/** The error for a caller whose signal fired: its reason if that is ours, `UPSTREAM_TIMEOUT` for a deadline. */
export function abortOf({ url, signal }: FailureContext, cause?: unknown): MirrorError {
  const reason: unknown = signal.reason
  if (isMirrorError(reason)) return reason
  const place = placeOf(url)
  const isDeadline = reason instanceof DOMException && reason.name === 'TimeoutError'
  const why = isDeadline ? 'did not answer completely within the time limit' : 'was given up before it answered'
  const last = cause instanceof AttemptFailed ? ` (before that: ${cause.message})` : ''
  return new MirrorError('UPSTREAM_TIMEOUT', `${place.upstreamUrl} ${why}${last}`, place, cause ?? reason)
}

/** Host and redacted URL, as most fields of upstream errors have them. */
export function placeOf(url: URL): { host: string; upstreamUrl: string } {
  return { host: url.host, upstreamUrl: redactUrl(url) }
}

const timeoutCodes = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'ETIMEDOUT',
])

// OpenSSL's X509_V_ERR names as Node spells them.
const certificateCodes =
  /^(ERR_TLS_CERT_|CERT_|CRL_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_|HOSTNAME_MISMATCH|ERROR_IN_CERT)/

function certificateFailure(error: unknown, url: URL): MirrorError {
  const place = placeOf(url)
  const subject = codeOf(error) === 'UND_ERR_PRX_TLS' ? `the proxy on the way to ${url.host}` : url.host
  const message =
    `The certificate of ${subject} is not trusted: ${describe(error)} (${place.upstreamUrl}). ` +
    'If a private authority issued it, name that authority in caFile of the origin, of the host or of upstream'
  return new MirrorError('UPSTREAM_TLS', message, place, withoutAdvice(error))
}

/** The log shows causes too: there, Node's advice on switches of its own would stand beside ours to set caFile. */
function withoutAdvice(error: unknown): Error {
  return Object.assign(new Error(describe(error)), { code: codeOf(error) })
}

function timeout(error: unknown, url: URL): AttemptFailed {
  const place = placeOf(url)
  const afterMs = error instanceof WaitExceeded ? { afterMs: error.afterMs } : {}
  const message = `${place.upstreamUrl} did not answer in time: ${describe(error)}`
  return new AttemptFailed(new MirrorError('UPSTREAM_TIMEOUT', message, { ...place, ...afterMs }, error), 'timeout')
}

function proxyFailure(error: unknown, status: number, url: URL): AttemptFailed | MirrorError {
  const why =
    status === 407 ? 'the proxy wants other credentials (407)' : `the proxy refused the connection (${status})`
  const failure = unreachable(url, why, error)
  return status >= 500 ? new AttemptFailed(failure, 'connection') : failure
}

function unreachable(url: URL, why: string, cause: unknown): MirrorError<'UPSTREAM_UNREACHABLE'> {
  const place = placeOf(url)
  return new MirrorError('UPSTREAM_UNREACHABLE', `Cannot read ${place.upstreamUrl}: ${why}`, place, cause)
}

// undici has no code of its own for a proxy's refusal.
function proxyStatusOf(error: unknown): number | undefined {
  const message = error instanceof Error ? error.message : ''
  const status = /^Proxy response \((\d{3})\)|^Proxy Authentication Required \((407)\)/.exec(message)
  return status === null ? undefined : Number(status[1] ?? status[2])
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** OpenSSL puts its own file names around the reason, and Node advice that is not for our users behind it. */
function describe(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  if (codeOf(error) === 'ERR_SSL_PACKET_LENGTH_TOO_LONG' || codeOf(error) === 'ERR_SSL_WRONG_VERSION_NUMBER') {
    return 'it does not speak TLS; for plain http set allowHttp and services of the origin'
  }
  const [, openSslReason] = /^[0-9A-F]+:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+):/.exec(message) ?? []
  const text = openSslReason ?? message.replace(/; if the root CA is installed locally.*$/s, '')
  return text === '' ? codeOf(error) || 'unknown failure' : text
}
