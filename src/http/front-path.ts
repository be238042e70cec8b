import type { IncomingMessage, ServerResponse } from 'node:http'
import type { View } from '../mirror/view.ts'
import { HOPS_HEADER } from '../protocol/hops.ts'
import { type HotDocuments, keyOf, wishOf } from './hot-documents.ts'
import { nextRequestId } from './request-id.ts'

/** As Node spells the names of headers. */
const HOPS = HOPS_HEADER.toLowerCase()

/** Answers a request if it can at once; false: nothing was done, and it must go the long way. */
export type FrontPath = (incoming: IncomingMessage, outgoing: ServerResponse) => boolean

/**
 * The short way for documents that are asked for again and again: look up, write, account, with nothing asynchronous in
 * between. It answers only what the long way would answer in the same words: see `Answer.isCurrent`.
 */
export function createFrontPath(documents: HotDocuments, view: View): FrontPath {
  return (incoming, outgoing) => {
    // Whether a request has been here before is looked into on the long way.
    if (incoming.method !== 'GET' || incoming.headers[HOPS] !== undefined) return false
    const form = documents.find(keyOf(view, incoming), wishOf(incoming))
    if (form === undefined) return false
    const id = nextRequestId()
    outgoing.writeHead(form.status, [...form.headers, id])
    outgoing.end(form.body, 'latin1')
    form.tally(id, incoming.socket.remoteAddress)
    return true
  }
}
