import { type ErrorCode, isMirrorError, type MirrorError } from '../errors.ts'

/** The one place where a code becomes a status. See design, section 3. */
const STATUS: Readonly<Record<ErrorCode, number>> = {
  HOSTILE_INPUT: 400,
  INVALID_ADDRESS: 404,
  ORIGIN_NOT_ALLOWED: 404,
  ROUTE_NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  PROVIDER_NOT_FOUND: 404,
  MODULE_NOT_FOUND: 404,
  VERSION_NOT_FOUND: 404,
  PLATFORM_NOT_FOUND: 404,
  NOT_CACHED: 404,
  NO_PROVIDER_SERVICE: 404,
  NO_MODULE_SERVICE: 404,
  UPSTREAM_UNREACHABLE: 502,
  UPSTREAM_TLS: 502,
  UPSTREAM_TIMEOUT: 504,
  UPSTREAM_STATUS: 502,
  UPSTREAM_RATE_LIMITED: 503,
  UPSTREAM_INVALID: 502,
  UPSTREAM_TOO_LARGE: 502,
  UPSTREAM_REFUSED: 502,
  MODULE_SOURCE_REFUSED: 502,
  MODULE_INVALID: 502,
  MIRROR_LOOP: 508,
  CHECKSUMS_INVALID: 502,
  CHECKSUM_MISSING: 502,
  CHECKSUM_MISMATCH: 502,
  SIGNATURE_INVALID: 502,
  SIGNATURE_MISSING: 502,
  SIGNATURE_REQUIRED: 502,
  KEY_UNREADABLE: 502,
  ARCHIVE_UNSAFE: 502,
  RELEASE_CHANGED: 502,
  REQUEST_INVALID: 400,
  UNAUTHORIZED: 401,
  CONFIGURATION_FILE_INVALID: 400,
  CONSTRAINT_INVALID: 400,
  ITEM_NOT_FOUND: 404,
  JOB_CANCELLED: 409,
  TOO_MANY_JOBS: 503,
  ACCEPT_REQUIRED: 409,
  STORAGE_FULL: 507,
  STORAGE_FAILED: 500,
  CONFIGURATION: 500,
  MODULE_PENDING: 503,
  SHUTTING_DOWN: 503,
}

/** Clients sleep for the whole of Retry-After, however long it is (client-contract A8). */
const MAX_RETRY_AFTER_S = 3

/** An error as it is answered. */
export interface ErrorAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** JSON text. */
  readonly body: string
}

/** True if the error means "not here" and a client may look elsewhere. */
export function isAbsence(error: unknown): error is MirrorError {
  return isMirrorError(error) && STATUS[error.code] === 404
}

/** The answer for any error. Bugs become a bare 500: their text may hold anything. */
export function errorAnswer(error: unknown, requestId: string): ErrorAnswer {
  const known = isMirrorError(error)
  const status = known ? STATUS[error.code] : 500
  const fields: Record<string, unknown> = known ? { ...error.fields } : {}
  const body = JSON.stringify({
    error: known ? error.message : 'an unexpected error; the log of the mirror has it under this request id',
    code: known ? error.code : 'UNEXPECTED',
    ...(Array.isArray(fields.problems) ? { problems: fields.problems } : {}),
    ...(typeof fields.hint === 'string' ? { hint: fields.hint } : {}),
    ...(typeof fields.baseUrl === 'string' ? { base_url: fields.baseUrl } : {}),
    ...(typeof fields.upstreamUrl === 'string' && fields.upstreamUrl !== ''
      ? { upstream_url: fields.upstreamUrl }
      : {}),
    ...(typeof fields.upstreamStatus === 'number' ? { upstream_status: fields.upstreamStatus } : {}),
    request_id: requestId,
  })
  return {
    status,
    headers: {
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(body)),
      'Cache-Control': 'no-store',
      ...(status === 401 ? { 'WWW-Authenticate': 'Bearer realm="Terramirror"' } : {}),
      ...(status === 405 ? { Allow: typeof fields.allow === 'string' ? fields.allow : 'GET, HEAD' } : {}),
      ...(status === 503 ? { 'Retry-After': String(retryAfterSeconds(error)) } : {}),
      ...(status === 404 ? { 'Terramirror-Cache': 'negative' } : {}),
    },
    body,
  }
}

function retryAfterSeconds(error: unknown): number {
  const wantedMs = !isMirrorError(error)
    ? 1_000
    : error.is('UPSTREAM_RATE_LIMITED')
      ? error.fields.retryAfterMs
      : error.is('MODULE_PENDING')
        ? 2_000
        : 1_000
  return Math.min(MAX_RETRY_AFTER_S, Math.max(1, Math.ceil(wantedMs / 1_000)))
}
