import type { RequestListener } from 'node:http'
import type { Hono } from 'hono'
import { MirrorError } from '../errors.ts'
import { exchangeOf } from '../http/exchange.ts'
import type { RequestAccount } from '../http/request-account.ts'
import { createRequestListener, findHostileTarget } from '../http/request-listener.ts'
import type { AdminEnv } from './admin-env.ts'
import type { AuditLog } from './audit-log.ts'
import { clientOf } from './audited.ts'
import type { BearerToken } from './bearer-token.ts'

/** What the listener needs beside the app. */
export interface AdminRequestListenerParts {
  readonly token: BearerToken
  readonly audit: AuditLog
  readonly account: RequestAccount
}

/**
 * The request listener of the admin API. Whoever does not show the token gets 401, whatever the method, the path and the
 * rest of the request: it is asked for here, where no route can forget it, and before anything is looked at.
 */
export function createAdminRequestListener(
  app: Hono<AdminEnv>,
  { token, audit, account }: AdminRequestListenerParts,
): RequestListener {
  return createRequestListener(app, {
    account,
    findRefusal(incoming) {
      if (token.matches(incoming.headers.authorization)) return findHostileTarget(incoming.url ?? '')
      const { id: requestId } = exchangeOf(incoming)
      void audit.recordUnauthorized({ client: clientOf(incoming.socket.remoteAddress), requestId })
      return new MirrorError('UNAUTHORIZED', UNAUTHORIZED, {})
    },
  })
}

const UNAUTHORIZED =
  'the admin API needs its bearer token: admin.token, TERRAMIRROR_ADMIN_TOKEN, or the content of admin-token in stateDir'
