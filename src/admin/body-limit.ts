import type { MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { AdminEnv } from './admin-env.ts'
import { requestInvalid } from './request-problems.ts'

/** Lock files and configurations of a whole company. */
const MAX_BODY_BYTES = 32_000_000

/** Refuses a body that is too large, without reading more of it than that. */
export const limitBodies: MiddlewareHandler<AdminEnv> = bodyLimit({
  maxSize: MAX_BODY_BYTES,
  onError: () => {
    throw requestInvalid([`body: larger than ${MAX_BODY_BYTES / 1_000_000} MB`])
  },
})
