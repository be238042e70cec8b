import type { Context } from 'hono'
import type { Answer } from '../mirror/call.ts'
import { exchangeOf, type HttpEnv } from './exchange.ts'

/** Answers with a JSON document of a protocol. Nobody on the way may keep or change it. */
export function sendDocument(context: Context<HttpEnv>, { value, outcome, reason }: Answer<unknown>): Response {
  const exchange = exchangeOf(context.env.incoming)
  exchange.outcome = outcome
  if (reason !== undefined) exchange.error = reason
  const body = JSON.stringify(value)
  const length = Buffer.byteLength(body)
  return context.body(body, 200, {
    'Content-Type': 'application/json',
    'Content-Length': String(length),
    'Cache-Control': 'no-cache, no-transform',
    'Terramirror-Cache': outcome,
  })
}
