import { createHash } from 'node:crypto'
import type { Context } from 'hono'
import type { Answer } from '../mirror/call.ts'
import type { View } from '../mirror/view.ts'
import { exchangeOf, type HttpEnv } from './exchange.ts'
import type { HotDocuments } from './hot-documents.ts'

/** A JSON document of a protocol as it goes on the wire. */
export interface RenderedDocument {
  /** JSON text. */
  readonly body: string
  /** Without those that depend on the request, and on the form that the body is sent in. */
  readonly headers: Readonly<Record<string, string>>
  /** The part of the ETag in quotes. It is a weak one: it stands for the compressed form too. */
  readonly tag: string
}

/** Sends a document. With `hot`, it is kept for the front path if it is sure to be the answer for a while. */
export function sendDocument(
  context: Context<HttpEnv>,
  answer: Answer<unknown>,
  hot?: { documents: HotDocuments; view: View },
): Response {
  const { outcome, reason, staleForMs, isCurrent } = answer
  const { incoming } = context.env
  const exchange = exchangeOf(incoming)
  exchange.outcome = outcome
  if (reason !== undefined) exchange.error = reason
  if (staleForMs !== undefined) exchange.staleForMs = staleForMs
  const document = render(answer)
  if (hot !== undefined && isCurrent !== undefined) {
    const { route, fields } = exchange
    hot.documents.keep(hot.view, incoming, { document, isCurrent, outcome, route, fields })
  }
  const { headers, body, tag } = document
  if (matches(context.req.header('if-none-match'), tag)) return context.body(null, 304, headers)
  return context.body(body, 200, { ...headers, 'Content-Length': String(Buffer.byteLength(body)) })
}

/** True if a client says in `If-None-Match` that it has the document. */
export function matches(ifNoneMatch: string | undefined, tag: string): boolean {
  return ifNoneMatch !== undefined && (ifNoneMatch.includes(tag) || ifNoneMatch.trim() === '*')
}

function render({ value, outcome }: Answer<unknown>): RenderedDocument {
  const body = JSON.stringify(value)
  const tag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
  const headers = {
    'Content-Type': 'application/json',
    'Cache-Control': 'no-cache, no-transform',
    Vary: 'Accept-Encoding',
    ETag: `W/${tag}`,
    'Terramirror-Cache': outcome,
  }
  return { body, headers, tag }
}
