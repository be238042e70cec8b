import type { IncomingMessage } from 'node:http'
import { isMirrorError } from '../errors.ts'
import { type Log, writeLine } from '../log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { CacheOutcome } from '../mirror/call.ts'
import type { Exchange } from './exchange.ts'

/** How a request ended. */
export interface Ending {
  readonly incoming: IncomingMessage
  /** 0 if no head was sent. */
  readonly status: number
  /** Whether the whole answer has left. */
  readonly complete: boolean
}

/** An answer that is given again and again. */
export interface RepeatedAnswer {
  readonly route: string
  readonly fields: Readonly<Record<string, string>>
  readonly status: 200 | 304
  readonly outcome: CacheOutcome
  readonly bytes: number
}

/** Accounts for one GET that was answered at once. */
export type Tally = (requestId: string, client: string | undefined) => void

/** So many are counted before they are handed to the metrics, unless those are read before. */
const MAX_UNCOUNTED = 1_000

/** Accounts for every request: one line in the log and one count in the metrics. */
export class RequestAccount {
  readonly #log: Log
  readonly #clients: Metrics['clients']
  /** Each hands to the metrics what it has counted. */
  readonly #uncounted = new Set<() => void>()

  constructor({ log, metrics }: { log: Log; metrics: Metrics }) {
    this.#log = log
    this.#clients = metrics.clients
    metrics.onRead(() => {
      for (const hand of this.#uncounted) hand()
    })
  }

  /** A request has ended. */
  end(exchange: Exchange, { incoming, status, complete }: Ending): void {
    const { route, fields, sentBytes, outcome, staleForMs } = exchange
    const { provider } = fields
    const seconds = secondsOf(exchange)
    this.#clients.count({ route, status, outcome, bytes: sentBytes, seconds, provider, staleForMs, times: 1 })
    logRequest(this.#log, exchange, { incoming, status, complete })
  }

  /**
   * Accounts for an answer that will be given many times, in the same words as `end` does, but for a tenth of the
   * processor time: all that does not change is prepared here.
   */
  repeated(answer: RepeatedAnswer): Tally {
    const { route, fields, status, outcome, bytes } = answer
    const known = JSON.stringify({ method: 'GET', route, ...fields, status, outcome, bytes, ms: 0, msg: 'request' })
    const logged = this.#log.isLevelEnabled('info')
    let count = 0
    const hand = (): void => {
      this.#uncounted.delete(hand)
      // They take microseconds: all of them belong to the first bucket.
      this.#clients.count({ route, status, outcome, bytes, seconds: 0, provider: fields.provider, times: count })
      count = 0
    }
    return (requestId, client) => {
      count += 1
      if (count === 1) this.#uncounted.add(hand)
      else if (count === MAX_UNCOUNTED) hand()
      if (!logged) return
      const who = client === undefined ? '' : `"client":"${client}",`
      writeLine(this.#log, `{"level":"info","time":"${isoTime()}","requestId":"${requestId}",${who}${known.slice(1)}\n`)
    }
  }
}

/** How long a request has taken so far. */
export function secondsOf({ startedAt }: Exchange): number {
  return (performance.now() - startedAt) / 1_000
}

/** Writes the one line of a request that has ended. */
export function logRequest(log: Log, exchange: Exchange, { incoming, status, complete }: Ending): void {
  const { id, client, route, fields, sentBytes, outcome, error } = exchange
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
    ms: Math.round(secondsOf(exchange) * 1_000),
    ...(complete ? {} : { aborted: true }),
    ...(error === undefined ? {} : { err: error }),
  }
  log[levelOf(status, error)](line, 'request')
}

/** Bugs are errors, failures and refusals are warnings, the rest is information. */
function levelOf(status: number, error: Error | undefined): 'info' | 'warn' | 'error' {
  if (error !== undefined && !isMirrorError(error)) return 'error'
  return status >= 400 || error !== undefined ? 'warn' : 'info'
}

let timeMs = 0
let timeText = ''

/** The time now, made once a millisecond. */
function isoTime(): string {
  const now = Date.now()
  if (now !== timeMs) {
    timeMs = now
    timeText = new Date(now).toISOString()
  }
  return timeText
}
