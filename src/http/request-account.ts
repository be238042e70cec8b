import type { IncomingMessage } from 'node:http'
import { isMirrorError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import type { Exchange } from './exchange.ts'

/** How a request ended. */
export interface Ending {
  readonly incoming: IncomingMessage
  /** 0 if no head was sent. */
  readonly status: number
  /** Whether the whole answer has left. */
  readonly complete: boolean
}

/** Accounts for one request that has ended. */
export type Account = (exchange: Exchange, ending: Ending) => void

/** One line in the log and one count in the metrics for every request. */
export function createAccount({ log, metrics }: { log: Log; metrics: Metrics }): Account {
  return (exchange, { incoming, status, complete }) => {
    const { id, client, route, fields, sentBytes, outcome, error } = exchange
    const seconds = (performance.now() - exchange.startedAt) / 1_000
    metrics.requests.inc({ route, status: String(status), outcome: outcome ?? 'none' })
    metrics.requestSeconds.observe({ route }, seconds)
    metrics.sentBytes.inc({ route }, sentBytes)
    const level = levelOf(status, error)
    if (!log.isLevelEnabled(level)) return
    const line = {
      requestId: id,
      client,
      method: incoming.method,
      route,
      // Who sends what nothing here serves must be found without its path: some put tokens there.
      ...(route.startsWith('/') ? {} : { userAgent: incoming.headers['user-agent']?.slice(0, 120) }),
      ...fields,
      status,
      ...(outcome === undefined ? {} : { outcome }),
      bytes: sentBytes,
      ms: Math.round(seconds * 1_000),
      ...(complete ? {} : { aborted: true }),
      ...(error === undefined ? {} : { err: error }),
    }
    log[level](line, 'request')
  }
}

/** Bugs are errors, failures and refusals are warnings, the rest is information. */
function levelOf(status: number, error: Error | undefined): 'info' | 'warn' | 'error' {
  if (error !== undefined && !isMirrorError(error)) return 'error'
  return status >= 400 || error !== undefined ? 'warn' : 'info'
}
