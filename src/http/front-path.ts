import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { View } from '../mirror/view.ts'
import { HOPS_HEADER } from '../protocol/hops.ts'
import { matches } from './document-response.ts'
import type { Exchange } from './exchange.ts'
import type { HotDocuments, HotEntry, Representation } from './hot-documents.ts'
import type { Account } from './request-account.ts'

/** As Node spells the names of headers. */
const HOPS = HOPS_HEADER.toLowerCase()

/** Answers a request if it can at once; false: nothing was done, and it must go the long way. */
export type FrontPath = (incoming: IncomingMessage, outgoing: ServerResponse) => boolean

/**
 * The short way for documents that are asked for again and again: look up, write, account, with nothing asynchronous in
 * between. It answers only what the long way would answer in the same words: see `Answer.isCurrent`.
 */
export function createFrontPath(parts: { documents: HotDocuments; view: View; account: Account }): FrontPath {
  const { documents, view, account } = parts
  return (incoming, outgoing) => {
    if (incoming.method !== 'GET') return false
    const entry = documents.find(view, incoming)
    // Whether a request has been here before is looked into on the long way.
    if (entry === undefined || incoming.headers[HOPS] !== undefined) return false
    const startedAt = performance.now()
    const id = randomUUID()
    const { headers, body } = chooseForm(entry, incoming)
    const status = body === '' ? 304 : 200
    outgoing.writeHead(status, [...headers, id])
    outgoing.end(body, 'latin1')
    const { route, fields, outcome } = entry
    const client = incoming.socket.remoteAddress
    const exchange: Exchange = { id, startedAt, client, route, fields, sentBytes: body.length, outcome }
    account(exchange, { incoming, status, complete: true })
    return true
  }
}

function chooseForm(entry: HotEntry, { headers }: IncomingMessage): Representation {
  if (matches(headers['if-none-match'], entry.document.tag)) return entry.unmodified
  return (acceptsGzip(headers['accept-encoding']) ? entry.compressed : undefined) ?? entry.plain
}

function acceptsGzip(header: string | string[] | undefined): boolean {
  return header !== undefined && (header === 'gzip' || /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(String(header)))
}
