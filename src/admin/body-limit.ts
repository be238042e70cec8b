import type { MiddlewareHandler } from 'hono'
import type { AdminEnv } from './admin-env.ts'
import { requestInvalid } from './request-problems.ts'

/** Lock files and configurations of a whole company. */
const MAX_BODY_BYTES = 32_000_000

/** Refuses a body that is too large before any of it is read, and one that does not say how large it is. */
export const limitBodies: MiddlewareHandler<AdminEnv> = async ({ req }, next) => {
  if (req.header('transfer-encoding') !== undefined) throw requestInvalid(['body: needs a Content-Length'])
  if (Number(req.header('content-length') ?? 0) > MAX_BODY_BYTES) {
    throw requestInvalid([`body: larger than ${MAX_BODY_BYTES / 1_000_000} MB`])
  }
  await next()
}
