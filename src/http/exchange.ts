import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpBindings } from '@hono/node-server'
import type { MirrorError } from '../errors.ts'
import type { CacheOutcome } from '../mirror/call.ts'
import { nextRequestId } from './request-id.ts'

/** What is known of one request while it is answered; it becomes one log line and one count. */
export interface Exchange {
  /** In the answer, in the error body and in the log. */
  readonly id: string
  readonly startedAt: number
  /** Address of the client, or of the front that it came through. */
  readonly client: string | undefined
  /** Template of the route, never the path itself. */
  route: string
  /** Parsed fields of the request, as they may be shown. */
  readonly fields: Record<string, string>
  /** Of the body of an archive, as they leave; other bodies are counted by their length. */
  sentBytes: number
  outcome?: CacheOutcome
  /** See `Answer.staleForMs`. */
  staleForMs?: number
  error?: MirrorError | Error
}

/** The environment of every Hono app here: Node's own request and response. */
export interface HttpEnv {
  Bindings: HttpBindings
}

const exchanges = new WeakMap<IncomingMessage, Exchange>()

/** Begins the account of a request, and tells the client its id. */
export function beginExchange(incoming: IncomingMessage, outgoing: ServerResponse): Exchange {
  const startedAt = performance.now()
  const client = incoming.socket.remoteAddress
  const exchange: Exchange = { id: nextRequestId(), startedAt, client, route: 'unknown', fields: {}, sentBytes: 0 }
  exchanges.set(incoming, exchange)
  outgoing.setHeader('X-Request-Id', exchange.id)
  return exchange
}

/** The account of a request that `beginExchange` has seen. */
export function exchangeOf(incoming: IncomingMessage): Exchange {
  const exchange = exchanges.get(incoming)
  if (exchange === undefined) throw new Error('a request came past the request listener')
  return exchange
}
