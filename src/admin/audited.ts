import type { MiddlewareHandler } from 'hono'
import { isMirrorError } from '../errors.ts'
import { exchangeOf } from '../http/exchange.ts'
import type { AdminEnv } from './admin-env.ts'
import type { AuditLog } from './audit-log.ts'
import type { AdminObserver } from './observer.ts'

/** The client of a Unix socket has no address. */
const SOCKET = 'socket'

/** What the audit needs to know. */
export interface AuditParts {
  readonly audit: AuditLog
  /** The name of the token that opens the API. */
  readonly who: string
  readonly observer: AdminObserver
  /** Names the operation of a request by method and path; undefined if that is none. */
  readonly actionOf: (method: string, path: string) => string | undefined
}

/**
 * Writes one line for each change, also for one that was refused or failed, before it is answered. A change that cannot
 * be written down is answered as a failure, though it was made.
 */
export function auditChanges({ audit, who, observer, actionOf }: AuditParts): MiddlewareHandler<AdminEnv> {
  return async (context, next) => {
    await next()
    const { incoming } = context.env
    const { change, route } = context.var
    const action = actionOf(context.req.method, route)
    if (!change.isChange || action === undefined) return
    const { id, error } = exchangeOf(incoming)
    const code = error === undefined ? undefined : isMirrorError(error) ? error.code : 'UNEXPECTED'
    const { status } = context.res
    try {
      await audit.record({
        who,
        client: clientOf(incoming.socket.remoteAddress),
        action,
        target: change.target,
        result: status < 400 ? 'done' : status < 500 ? 'refused' : 'failed',
        ...(code === undefined ? {} : { code }),
        requestId: id,
      })
    } catch (failure) {
      observer.auditFailed()
      // Else Hono would put the headers of the answer that is not given on the one that is.
      context.res = undefined
      throw failure
    }
  }
}

/** As the audit names who is at the other end. */
export function clientOf(remoteAddress: string | undefined): string {
  return remoteAddress ?? SOCKET
}
