/**
 * Every error that Terramirror raises on purpose, as one closed union of codes.
 *
 * An error says what happened and why in words for people (`message`), carries the facts as typed `fields`, and keeps
 * what it was caused by as `cause`. It knows nothing of HTTP: `http/error-response.ts` is the one place that maps a
 * code to a status. URLs in messages and fields are redacted before they come here (`redactUrl`): no query, no
 * user-info, no fragment.
 */

/** What each code carries beside its message. */
export interface ErrorFields {
  /** Bytes that no honest client sends: NUL, traversal, overlong, an impossible host. */
  HOSTILE_INPUT: { input: string; reason: string }
  /** An address or version outside the grammar that the clients accept; `hint` says what to do if we know. */
  INVALID_ADDRESS: { input: string; reason: string; hint?: string }
  /** The provider's host is not among the configured origins. */
  ORIGIN_NOT_ALLOWED: { hostname: string }
  /** No such route; `baseUrl` is the base URL of the door that the client probably wanted. */
  ROUTE_NOT_FOUND: { baseUrl: string }
  /** A method that the path does not have; `allow` are those that it has, default `GET, HEAD`. */
  METHOD_NOT_ALLOWED: { method: string; allow?: string }

  /** The origin said so itself (a true 404), or its fresh list does not have it. */
  PROVIDER_NOT_FOUND: { address: string; upstreamUrl?: string; upstreamStatus?: number }
  MODULE_NOT_FOUND: { address: string; upstreamUrl?: string; upstreamStatus?: number }
  VERSION_NOT_FOUND: { address: string; version: string; upstreamUrl?: string; upstreamStatus?: number }
  PLATFORM_NOT_FOUND: {
    address: string
    version: string
    platform: string
    upstreamUrl?: string
    upstreamStatus?: number
  }
  /** Sealed mode, and the thing is not held. */
  NOT_CACHED: { item: string }

  /** DNS, connect or socket failure. */
  UPSTREAM_UNREACHABLE: { host: string; upstreamUrl: string }
  /** The origin's certificate is not trusted or does not match its name. */
  UPSTREAM_TLS: { host: string; upstreamUrl: string }
  /** No answer, or no complete answer, within the time limit. */
  UPSTREAM_TIMEOUT: { host?: string; upstreamUrl?: string }
  /** A status that means neither success nor absence (401, 403, 5xx, an unexpected one). */
  UPSTREAM_STATUS: { host: string; upstreamUrl: string; upstreamStatus: number; detail?: string }
  /** 429, or 403 with an exhausted rate limit, or our own waiting time after one. */
  UPSTREAM_RATE_LIMITED: { host: string; upstreamUrl: string; upstreamStatus: number; retryAfterMs: number }
  /** An answer that is not what the protocol says: wrong media type, not JSON, a missing field, a broken encoding. */
  UPSTREAM_INVALID: { host: string; upstreamUrl: string; reason: string }
  /** An answer larger than its limit. */
  UPSTREAM_TOO_LARGE: { host: string; upstreamUrl: string; maxBytes: number }
  /** The connection guard refused: a private address, a host that is not allowed, a scheme that is not allowed. */
  UPSTREAM_REFUSED: { host: string; upstreamUrl: string; reason: string }
  /** Service discovery: the host answers, but offers no `providers.v1`. */
  NO_PROVIDER_SERVICE: { hostname: string; upstreamUrl: string; upstreamStatus?: number }
  /** The same for `modules.v1`. */
  NO_MODULE_SERVICE: { hostname: string; upstreamUrl: string; upstreamStatus?: number }
  /** A module's source is of a kind, or at a place, that this mirror does not fetch from; `scheme` may be empty. */
  MODULE_SOURCE_REFUSED: { scheme: string; reason: string }
  /** The files of a module cannot be served: unsafe paths or links, a broken archive, too many or too large. */
  MODULE_INVALID: { reason: string; upstreamUrl?: string }
  /** Mirrors that ask each other in a circle. */
  MIRROR_LOOP: { hops: readonly string[] }

  /** SHA256SUMS is missing, unreadable, or contradicts itself. */
  CHECKSUMS_INVALID: { upstreamUrl?: string; reason: string }
  /** SHA256SUMS has no line for the file. */
  CHECKSUM_MISSING: { filename: string; upstreamUrl?: string }
  /** Two statements of one file's digest disagree, or the bytes do not match. */
  CHECKSUM_MISMATCH: { filename: string; expected: string; actual: string; upstreamUrl?: string }
  /** No listed key made the signature, or it is damaged, or the key was revoked or not valid when it signed. */
  SIGNATURE_INVALID: { reason: string; upstreamUrl?: string }
  /** The origin lists keys, but gives no signature. */
  SIGNATURE_MISSING: { upstreamUrl?: string }
  /** The origin lists no key where one is required, or where this provider was signed before. */
  SIGNATURE_REQUIRED: { reason: string }
  /** Every listed key that could have made the signature is one that we cannot read. */
  KEY_UNREADABLE: { reason: string }
  /** The bytes are the published ones, but nobody signed them, and unpacking them could do harm. */
  ARCHIVE_UNSAFE: { filename: string; reason: string; upstreamUrl?: string }
  /** The origin re-released a pinned version with other bytes. */
  RELEASE_CHANGED: { address: string; version: string; filename: string; held: string; offered: string }

  /** A request to the admin API that is not as its schema says; one problem a line, with its place. */
  REQUEST_INVALID: { problems: readonly string[] }
  /** No bearer token, or a wrong one. */
  UNAUTHORIZED: Record<string, never>
  /** A lock file or configuration that Terraform itself would refuse, or that cannot be read here. Lines count from 1. */
  CONFIGURATION_FILE_INVALID: { file: string; line?: number; reason: string }
  /** A version constraint outside the grammar of Terraform. */
  CONSTRAINT_INVALID: { input: string; reason: string }
  /** No job, set of pins, package or module of this name is held. */
  ITEM_NOT_FOUND: { item: string }
  /** A job was cancelled, and with it the work that only it wanted. */
  JOB_CANCELLED: { job: string }
  /** So many jobs wait already that another one is not taken. */
  TOO_MANY_JOBS: { max: number }
  /** A release was published anew with other bytes; replacing what is held needs a yes. */
  ACCEPT_REQUIRED: {
    address: string
    version: string
    /** Every changed file with both digests; `offered` is null for one that is not published any more. */
    changes: readonly { readonly filename: string; readonly held: string; readonly offered: string | null }[]
  }

  /** Disk full or quota reached. */
  STORAGE_FULL: { operation: string }
  /** Any other storage failure. */
  STORAGE_FAILED: { operation: string }
  /** The configuration is wrong; the message names the key and the place. */
  CONFIGURATION: { key?: string }
  /** A module is being fetched, and it takes longer than a client waits. */
  MODULE_PENDING: { address: string; version: string }
  /** The process is stopping. */
  SHUTTING_DOWN: Record<string, never>
}

export type ErrorCode = keyof ErrorFields

/** An error of ours. Narrow with `error.is('CODE')`, which types `fields`. */
export class MirrorError<C extends ErrorCode = ErrorCode> extends Error {
  override readonly name = 'MirrorError'
  readonly code: C
  readonly fields: ErrorFields[C]

  constructor(code: C, message: string, fields: ErrorFields[C], cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.fields = fields
  }

  /** Narrows to one code (or several), so that `fields` has its type. */
  is<K extends ErrorCode>(...codes: K[]): this is MirrorError<K> {
    return (codes as ErrorCode[]).includes(this.code)
  }
}

/** True for our own errors, whatever the code. */
export function isMirrorError(error: unknown): error is MirrorError {
  return error instanceof MirrorError
}

const NOT_FOUND = [
  'PROVIDER_NOT_FOUND',
  'MODULE_NOT_FOUND',
  'VERSION_NOT_FOUND',
  'PLATFORM_NOT_FOUND',
  'NO_PROVIDER_SERVICE',
  'NO_MODULE_SERVICE',
] as const satisfies readonly ErrorCode[]

/** Codes for what does not exist, by the origin's word. */
export type NotFoundCode = (typeof NOT_FOUND)[number]

/**
 * True if the error is the origin's affirmative word that a thing does not exist. An outage is never one of these
 * (design, rule 3).
 */
export function isNotFound(error: unknown): error is MirrorError<NotFoundCode> {
  return isMirrorError(error) && error.is(...NOT_FOUND)
}

/** What somebody typed, as it may be shown: short, and without what stands before an `@` or behind a `?`, as in URLs. */
export function redactInput(text: string, length = 80): string {
  return text.replace(/^.*@/s, '…@').replace(/\?.*$/s, '?…').slice(0, length)
}

/** A URL as it may be shown: scheme, host, port and path only. Anything that does not parse becomes `(invalid URL)`. */
export function redactUrl(url: string | URL): string {
  const parsed = URL.parse(String(url))
  return parsed === null ? '(invalid URL)' : `${parsed.protocol}//${parsed.host}${parsed.pathname}`
}
