import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import type { Hono } from 'hono'
import { MirrorError } from '../errors.ts'
import type { ConnectionFront } from './connection-front.ts'
import { errorAnswer } from './error-response.ts'
import { beginExchange, type Exchange, type HttpEnv } from './exchange.ts'
import type { FrontPath } from './front-path.ts'
import { findHostility } from './hostile-target.ts'
import type { RequestAccount } from './request-account.ts'

/** What a request listener needs beside its app. */
export interface RequestListenerParts {
  readonly account: Pick<RequestAccount, 'end'>
  readonly serveHot?: FrontPath
  readonly front?: ConnectionFront
  /** Why a request is refused before anything parses it. Default: foreign methods and hostile targets. */
  readonly findRefusal?: (incoming: IncomingMessage) => MirrorError | undefined
}

/**
 * A plain Node request listener around an app. Answers what is hot by the front path, refuses what nobody should send
 * before anything parses it, and accounts for every request.
 */
export function createRequestListener<Env extends HttpEnv>(
  app: Pick<Hono<Env>, 'fetch'>,
  { account, serveHot, front, findRefusal = findPublicRefusal }: RequestListenerParts,
): RequestListener {
  const dispatch = getRequestListener(app.fetch, {
    overrideGlobalObjects: false,
    // HTTP/1.0 clients, such as the health checks of load balancers, send no Host; nothing here depends on it.
    hostname: 'localhost',
    // Only what no URL can be made of comes here; it is answered below.
    errorHandler: () => undefined,
  })
  return (incoming, outgoing) => {
    front?.learn(incoming)
    if (serveHot?.(incoming, outgoing)) return
    const exchange = beginExchange(incoming, outgoing)
    outgoing.once('close', () => end(exchange, { incoming, outgoing, account }))
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

function findPublicRefusal({ method = '', url = '' }: IncomingMessage): MirrorError | undefined {
  if (method !== 'GET' && method !== 'HEAD') {
    return new MirrorError('METHOD_NOT_ALLOWED', `${method} is not served here; use GET or HEAD`, { method })
  }
  return findHostileTarget(url)
}

/** The refusal of a request target that no client of ours sends; undefined for all others. */
export function findHostileTarget(target: string): MirrorError | undefined {
  const reason = findHostility(target)
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

/** Bodies of archives are counted as they leave; of all others, the length says what left. */
function end(
  exchange: Exchange,
  {
    incoming,
    outgoing,
    account,
  }: { incoming: IncomingMessage; outgoing: ServerResponse; account: Pick<RequestAccount, 'end'> },
): void {
  const complete = outgoing.writableFinished
  const length = incoming.method === 'HEAD' ? 0 : Number(outgoing.getHeader('Content-Length') ?? 0)
  if (exchange.sentBytes === 0 && complete) exchange.sentBytes = length
  account.end(exchange, { incoming, status: outgoing.headersSent ? outgoing.statusCode : 0, complete })
}
