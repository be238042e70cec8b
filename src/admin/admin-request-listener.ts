import type { RequestListener } from 'node:http'
import type { Hono } from 'hono'
import { MirrorError } from '../errors.ts'
import { exchangeOf } from '../http/exchange.ts'
import { logRequest, secondsOf } from '../http/request-account.ts'
import { createRequestListener, findHostileTarget } from '../http/request-listener.ts'
import type { Log } from '../log.ts'
import type { AdminEnv } from './admin-env.ts'
import type { AuditLog } from './audit-log.ts'
import { clientOf } from './audited.ts'
import type { BearerToken } from './bearer-token.ts'
import type { AdminObserver } from './observer.ts'

/** What the listener needs beside the app. */
export interface AdminRequestListenerParts {
  readonly token: BearerToken
  readonly audit: AuditLog
  readonly observer: AdminObserver
  readonly log: Log
}

/**
 * The request listener of the admin API. Whoever does not show the token gets 401, whatever the method, the path and the
 * rest of the request: it is asked for here, where no route can forget it, and before anything is looked at.
 */
export function createAdminRequestListener(
  app: Pick<Hono<AdminEnv>, 'fetch'>,
  { token, audit, observer, log }: AdminRequestListenerParts,
): RequestListener {
  return createRequestListener(app, {
    account: {
      end(exchange, ending) {
        observer.adminAnswered({ route: exchange.route, status: ending.status, seconds: secondsOf(exchange) })
        logRequest(log, exchange, ending)
      },
    },
    findRefusal(incoming) {
      const { authorization } = incoming.headers
      if (token.matches(authorization)) return findHostileTarget(incoming.url ?? '')
      observer.tokenRefused(authorization === undefined ? 'missing' : 'wrong')
      const { id: requestId } = exchangeOf(incoming)
      void audit.recordUnauthorized({ client: clientOf(incoming.socket.remoteAddress), requestId })
      return new MirrorError('UNAUTHORIZED', UNAUTHORIZED, {})
    },
  })
}

const UNAUTHORIZED =
  'the admin API needs its bearer token: admin.token, TERRAMIRROR_ADMIN_TOKEN, or the content of admin-token in stateDir'
