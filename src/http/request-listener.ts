import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import type { Hono } from 'hono'
import { isMirrorError, MirrorError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import { errorAnswer } from './error-response.ts'
import { beginExchange, type Exchange, type HttpEnv } from './exchange.ts'
import { findHostility } from './hostile-target.ts'

/**
 * The listener of the public port: a plain Node request listener around the app. Refuses hostile targets and foreign
 * methods before anything parses them, and accounts for every request in one log line and the metrics.
 */
export function createRequestListener(app: Hono<HttpEnv>, parts: { log: Log; metrics: Metrics }): RequestListener {
  const dispatch = getRequestListener(app.fetch, {
    overrideGlobalObjects: false,
    // HTTP/1.0 clients, such as the health checks of load balancers, send no Host; nothing here depends on it.
    hostname: 'localhost',
    // Only what no URL can be made of comes here; it is answered below.
    errorHandler: () => undefined,
  })
  return (incoming, outgoing) => {
    const exchange = beginExchange(incoming, outgoing)
    outgoing.once('close', () => account(exchange, { incoming, outgoing, ...parts }))
    const refusal = findRefusal(incoming)
    if (refusal !== undefined) {
      refuse(exchange, outgoing, refusal)
      return
    }
    dispatch(incoming, outgoing).then(
      () => {
        if (!outgoing.headersSent) refuse(exchange, outgoing, hostile('the Host header is not a host'))
      },
      (error: unknown) => {
        exchange.error = error instanceof Error ? error : new Error(String(error))
        outgoing.destroy()
      },
    )
  }
}

function findRefusal({ method = '', url = '' }: IncomingMessage): MirrorError | undefined {
  if (method !== 'GET' && method !== 'HEAD') {
    return new MirrorError('METHOD_NOT_ALLOWED', `${method} is not served here; use GET or HEAD`, { method })
  }
  const reason = findHostility(url)
  return reason === undefined ? undefined : hostile(reason)
}

/** What came is not repeated: it may hold what somebody mistook for a safe place for a password. */
function hostile(reason: string): MirrorError {
  return new MirrorError('HOSTILE_INPUT', `refused: ${reason}`, { input: '', reason })
}

function refuse(exchange: Exchange, outgoing: ServerResponse, error: MirrorError): void {
  exchange.error = error
  exchange.route = 'refused'
  const { status, headers, body } = errorAnswer(error, exchange.id)
  outgoing.writeHead(status, headers)
  outgoing.end(outgoing.req.method === 'HEAD' ? undefined : body)
}

function account(
  exchange: Exchange,
  parts: { incoming: IncomingMessage; outgoing: ServerResponse; log: Log; metrics: Metrics },
): void {
  const { incoming, outgoing, log, metrics } = parts
  const { id, route, fields, outcome, error } = exchange
  const seconds = (performance.now() - exchange.startedAt) / 1_000
  const status = outgoing.headersSent ? outgoing.statusCode : 0
  const complete = outgoing.writableFinished
  const length = incoming.method === 'HEAD' ? 0 : Number(outgoing.getHeader('Content-Length') ?? 0)
  const sentBytes = exchange.sentBytes === 0 && complete ? length : exchange.sentBytes
  metrics.requests.inc({ route, status: String(status), outcome: outcome ?? 'none' })
  metrics.requestSeconds.observe({ route }, seconds)
  metrics.sentBytes.inc({ route }, sentBytes)
  const line = {
    requestId: id,
    client: exchange.client,
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
  log[levelOf(status, error)](line, 'request')
}

/** Bugs are errors, failures and refusals are warnings, the rest is information. */
function levelOf(status: number, error: Error | undefined): 'info' | 'warn' | 'error' {
  if (error !== undefined && !isMirrorError(error)) return 'error'
  return status >= 400 || error !== undefined ? 'warn' : 'info'
}
