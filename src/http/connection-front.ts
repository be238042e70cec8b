import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { LRUCache } from 'lru-cache'
import type { View } from '../mirror/view.ts'
import { HOPS_HEADER } from '../protocol/hops.ts'
import { type HotDocuments, keyOf, type Wish, wishOf } from './hot-documents.ts'
import { nextRequestId } from './request-id.ts'

/** A request that is known by its bytes. */
interface Known extends Wish {
  readonly key: string
}

const HEAD_END = '\r\n\r\n'
const MAX_REQUEST_BYTES = 2_048
const MAX_BYTES = 4 * 1024 * 1024
/** A request with one of these means something that only the long way looks into. */
const TELLING_HEADERS = [
  ...['authorization', 'cookie', 'content-length', 'expect', 'transfer-encoding', 'upgrade'],
  HOPS_HEADER.toLowerCase(),
]
/** Later than clients are told, for requests that are on their way then; as Node does. */
const GRACE_MS = 1_000

/**
 * Stands on the bare connection before Node's HTTP server, because that takes more processor time than all of nginx.
 * It parses nothing: it knows whole requests by their bytes, because Node has parsed the very same bytes before, on this
 * way or the long one. What it does not know to the last byte, it hands over, and the connection with it, for good: a
 * part of a request, two at once, anything strange, a document that is not hot any more, a client that does not take its
 * answers.
 */
export class ConnectionFront {
  readonly #documents: HotDocuments
  readonly #view: View
  readonly #idleMs: number
  readonly #known = new LRUCache<string, Known>({ maxSize: MAX_BYTES })
  /** By connection: the bytes that it was handed over with, until Node has made a request of them. */
  readonly #handedOver = new WeakMap<Socket, string>()

  /** `idleMs`: for so long clients may expect an idle connection to stay open. */
  constructor(parts: { documents: HotDocuments; view: View; idleMs: number }) {
    this.#documents = parts.documents
    this.#view = parts.view
    this.#idleMs = parts.idleMs
  }

  /** Takes a new connection, plain or TLS; `handOver` gives it to Node's HTTP server. */
  accept(socket: Socket, handOver: () => void): void {
    const end = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(this.#idleMs / 1_000)}${HEAD_END}`
    const onData = (bytes: Buffer): void => {
      const text = bytes.toString('latin1')
      const known = this.#known.get(text)
      const form = known && socket.writableLength === 0 ? this.#documents.find(known.key, known) : undefined
      if (form === undefined) {
        leave()
        if (isWholeRequest(text)) this.#handedOver.set(socket, text)
        socket.pause()
        socket.unshift(bytes)
        handOver()
        socket.resume()
        return
      }
      const id = nextRequestId()
      socket.write(`${form.head}${id}\r\nDate: ${httpDate()}\r\n${end}${form.body}`, 'latin1')
      form.tally(id, socket.remoteAddress)
    }
    const onEnd = (): void => void socket.end()
    const onTrouble = (): void => void socket.destroy()
    const leave = (): void => {
      socket.off('data', onData).off('end', onEnd).off('error', onTrouble).off('timeout', onTrouble).setTimeout(0)
    }
    socket.on('data', onData).on('end', onEnd).on('error', onTrouble).on('timeout', onTrouble)
    socket.setTimeout(this.#idleMs + GRACE_MS)
  }

  /** Node has made a request of bytes: if it is a plain one, they are known from now on. */
  learn(incoming: IncomingMessage): void {
    const text = this.#handedOver.get(incoming.socket)
    if (text === undefined) return
    this.#handedOver.delete(incoming.socket)
    const { method, httpVersion, headers } = incoming
    if (method !== 'GET' || httpVersion !== '1.1' || !/^keep-alive$/i.test(headers.connection ?? 'keep-alive')) return
    if (TELLING_HEADERS.some((name) => headers[name] !== undefined)) return
    const known = { ...wishOf(incoming), key: keyOf(this.#view, incoming) }
    this.#known.set(text, known, { size: 2 * text.length + 256 })
  }
}

/** Exactly one head, whole, nothing before or after it: then the first request that Node makes is made of it alone. */
function isWholeRequest(text: string): boolean {
  return text.length <= MAX_REQUEST_BYTES && /^GET [^\r\n]+(\r\n[^\r\n]+)+\r\n\r\n$/.test(text)
}

let dateAtMs = 0
let dateText = ''

/** The time now as `Date` has it, made once a second. */
function httpDate(): string {
  const now = Date.now()
  if (now - dateAtMs >= 1_000 || now < dateAtMs) {
    dateAtMs = now - (now % 1_000)
    dateText = new Date(now).toUTCString()
  }
  return dateText
}
