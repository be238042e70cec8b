import type { IncomingMessage } from 'node:http'
import { gzip } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import type { CacheOutcome } from '../mirror/call.ts'
import type { View } from '../mirror/view.ts'
import type { RenderedDocument } from './document-response.ts'

/** One form of a document, ready for `writeHead` and `end`. */
export interface Representation {
  /** Names and values in turn; ends with the name of the header for the request's id. */
  readonly headers: readonly string[]
  /** Each character is one byte: head and body leave in one write. */
  readonly body: string
}

/** A rendered document and the account of a request for it. */
export interface HotDocument {
  readonly document: RenderedDocument
  /** See `Answer.isCurrent`. */
  readonly isCurrent: () => boolean
  readonly outcome: CacheOutcome
  readonly route: string
  readonly fields: Readonly<Record<string, string>>
}

/** A document with all its forms. */
export interface HotEntry extends HotDocument {
  readonly plain: Representation
  /** For a client that has it already. */
  readonly unmodified: Representation
  /** Undefined until somebody has asked for it, and for documents that are small anyway. */
  readonly compressed: Representation | undefined
}

const MAX_BYTES = 16 * 1024 * 1024
/** What an entry costs beside its body. */
const ENTRY_BYTES = 2_048
/** Smaller ones fit one packet as they are. */
const MIN_COMPRESSED_BYTES = 1_024

/**
 * Rendered documents by view, Host and path exactly as they were asked for: what is found here was accepted the long way
 * before. Bounded in bytes. What is not current any more is not found.
 */
export class HotDocuments {
  readonly #entries = new LRUCache<string, Entry>({ maxSize: MAX_BYTES })

  /** The document that a request asks for, if it is here and current. */
  find(view: View, incoming: IncomingMessage): HotEntry | undefined {
    const key = keyOf(view, incoming)
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.isCurrent()) return entry
    this.#entries.delete(key)
    return undefined
  }

  /** Keeps what is just being answered. */
  keep(view: View, incoming: IncomingMessage, hot: HotDocument): void {
    // A query means nothing here, so there could be any number of them.
    if (incoming.url?.includes('?')) return
    const entry = new Entry(hot)
    this.#entries.set(keyOf(view, incoming), entry, { size: ENTRY_BYTES + 3 * entry.plain.body.length })
  }
}

function keyOf({ id }: View, { headers, url }: IncomingMessage): string {
  return `${id} ${headers.host} ${url}`
}

class Entry implements HotEntry {
  readonly isCurrent: () => boolean
  readonly document: RenderedDocument
  readonly outcome: CacheOutcome
  readonly route: string
  readonly fields: Readonly<Record<string, string>>
  readonly plain: Representation
  readonly unmodified: Representation
  #compressed: Representation | undefined
  #compressing = false

  constructor({ document, isCurrent, outcome, route, fields }: HotDocument) {
    this.document = document
    this.isCurrent = isCurrent
    this.outcome = outcome
    this.route = route
    this.fields = fields
    this.plain = represent(document.headers, Buffer.from(document.body))
    this.unmodified = { headers: [...Object.entries(document.headers).flat(), 'X-Request-Id'], body: '' }
  }

  get compressed(): Representation | undefined {
    const { body, headers } = this.document
    if (!this.#compressing && body.length >= MIN_COMPRESSED_BYTES) {
      this.#compressing = true
      gzip(body, (error, bytes) => {
        // Without it the plain form goes on being sent.
        if (error === null) this.#compressed = represent({ ...headers, 'Content-Encoding': 'gzip' }, bytes)
      })
    }
    return this.#compressed
  }
}

function represent(headers: Readonly<Record<string, string>>, bytes: Buffer): Representation {
  const all = { ...headers, 'Content-Length': String(bytes.length) }
  return { headers: [...Object.entries(all).flat(), 'X-Request-Id'], body: bytes.toString('latin1') }
}
