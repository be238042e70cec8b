import type { IncomingMessage } from 'node:http'
import { gzip } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import type { CacheOutcome } from '../mirror/call.ts'
import type { View } from '../mirror/view.ts'
import { matches, type RenderedDocument } from './document-response.ts'
import type { RequestAccount, Tally } from './request-account.ts'

/** One form of a document, with all that is the same each time it is sent. */
export interface Representation {
  readonly status: 200 | 304
  /** Names and values in turn; ends with the name of the header for the request's id. */
  readonly headers: readonly string[]
  /** The same as text, from the status line to where the id follows. */
  readonly head: string
  /** Each character is one byte: head and body leave in one write. */
  readonly body: string
  readonly tally: Tally
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

/** The headers of a request that choose the form. */
export interface Wish {
  readonly ifNoneMatch: string | undefined
  readonly gzip: boolean
}

const MAX_BYTES = 16 * 1024 * 1024
/** What an entry costs beside its body. */
const ENTRY_BYTES = 4_096
/** Smaller ones fit one packet as they are. */
const MIN_COMPRESSED_BYTES = 1_024

/**
 * Rendered documents by view, Host and path exactly as they were asked for: what is found here was accepted the long way
 * before. Bounded in bytes. What is not current any more is not found.
 */
export class HotDocuments {
  readonly #entries = new LRUCache<string, Entry>({ maxSize: MAX_BYTES })
  readonly #account: RequestAccount

  constructor(account: RequestAccount) {
    this.#account = account
  }

  /** The document of a key in the form that is wished for, if it is here and current. */
  find(key: string, wish: Wish): Representation | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    if (entry.isCurrent()) return entry.formFor(wish)
    this.#entries.delete(key)
    return undefined
  }

  /** Keeps what is just being answered. */
  keep(view: View, incoming: IncomingMessage, hot: HotDocument): void {
    // A query means nothing here, so there could be any number of them.
    if (incoming.url?.includes('?')) return
    const entry = new Entry(hot, this.#account)
    this.#entries.set(keyOf(view, incoming), entry, { size: ENTRY_BYTES + 4 * hot.document.body.length })
  }
}

/** Names what a request asks for. */
export function keyOf({ id }: View, { headers, url }: IncomingMessage): string {
  return `${id} ${headers.host} ${url}`
}

/** Reads the headers that choose the form. */
export function wishOf({ headers }: IncomingMessage): Wish {
  const accepted = String(headers['accept-encoding'] ?? '')
  const gzip = accepted === 'gzip' || /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(accepted)
  return { ifNoneMatch: headers['if-none-match'], gzip }
}

class Entry {
  readonly isCurrent: () => boolean
  readonly #hot: HotDocument
  readonly #account: RequestAccount
  readonly #plain: Representation
  readonly #unmodified: Representation
  #compressed: Representation | 'being made' | undefined

  constructor(hot: HotDocument, account: RequestAccount) {
    this.isCurrent = hot.isCurrent
    this.#hot = hot
    this.#account = account
    this.#plain = this.#represent(200, hot.document.headers, Buffer.from(hot.document.body))
    this.#unmodified = this.#represent(304, hot.document.headers, Buffer.alloc(0))
  }

  formFor({ ifNoneMatch, gzip }: Wish): Representation {
    if (matches(ifNoneMatch, this.#hot.document.tag)) return this.#unmodified
    if (!gzip) return this.#plain
    if (this.#compressed === undefined) this.#compress()
    return typeof this.#compressed === 'object' ? this.#compressed : this.#plain
  }

  /** Off the way of all requests; until it is done, and if it fails, the plain form is sent. */
  #compress(): void {
    const { body, headers } = this.#hot.document
    this.#compressed = 'being made'
    if (body.length < MIN_COMPRESSED_BYTES) return
    gzip(body, (error, bytes) => {
      if (error === null) this.#compressed = this.#represent(200, { ...headers, 'Content-Encoding': 'gzip' }, bytes)
    })
  }

  #represent(status: 200 | 304, fixed: Readonly<Record<string, string>>, bytes: Buffer): Representation {
    const { route, fields, outcome } = this.#hot
    const all = { ...fixed, ...(status === 200 ? { 'Content-Length': String(bytes.length) } : {}) }
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
    return {
      status,
      headers: [...Object.entries(all).flat(), 'X-Request-Id'],
      head: `HTTP/1.1 ${status === 200 ? '200 OK' : '304 Not Modified'}\r\n${lines.join('')}X-Request-Id: `,
      body: bytes.toString('latin1'),
      tally: this.#account.repeated({ route, fields, status, outcome, bytes: bytes.length }),
    }
  }
}
