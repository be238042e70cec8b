import { gzipSync } from 'node:zlib'
import type { RecordedRequest, RequestKind } from './origin-request.ts'
import { type Body, bufferBody, type Reply, readAll } from './reply.ts'

/** Which requests a fault strikes: those that fit every field given. */
export interface FaultMatcher {
  readonly kind?: RequestKind | readonly RequestKind[]
  /** The virtual host that was asked. */
  readonly host?: string
  /** As in `counts`: `acme/widget`, or with a host in front for all but the first host. */
  readonly provider?: string
  readonly module?: string
  readonly repository?: string
  readonly version?: string
  readonly platform?: string
  readonly method?: string
  /** Any further condition. */
  readonly when?: (request: RecordedRequest) => boolean
  /** Strikes so many times, then never again; default always. */
  readonly times?: number
  /** Lets so many fitting requests pass first; default 0. */
  readonly after?: number
}

/**
 * What a struck request gets instead of the honest answer. Fields combine; `fraction`s are of the body that would
 * have been sent. At most one of the ways to end early makes sense at a time.
 */
export interface Behaviour {
  /** Waits before anything is sent. */
  readonly delayMs?: number
  /** Reads the request and never answers. */
  readonly hang?: true
  /** Destroys the socket without an answer. */
  readonly drop?: true

  /** Replaces the status; without `body` the answer is empty. */
  readonly status?: number
  /** Added to, or instead of, the honest headers. */
  readonly headers?: Readonly<Record<string, string>>
  /** Replaces the body. */
  readonly body?: string | Buffer
  readonly contentType?: string
  /** 302 to this URL (`status` may choose another code). */
  readonly redirect?: string | ((request: RecordedRequest) => string)
  /** One byte in the middle is changed; length and ETag stay. */
  readonly wrongBytes?: true
  /** Compressed, with `Content-Encoding: gzip`. Holds the body in memory. */
  readonly gzip?: true
  /** Always the whole file with 200, without `Accept-Ranges`. */
  readonly ignoreRange?: true

  /** Full Content-Length, this fraction of the body, then the connection breaks. */
  readonly torn?: number
  /** Chunked, this fraction of the body, then the connection breaks before the last chunk. */
  readonly tornChunked?: number
  /** Chunked, this fraction of the body, then a clean end: only a digest finds it out. */
  readonly shortChunked?: number
  /** Full Content-Length, this fraction of the body, then silence on an open connection. */
  readonly stall?: number
  /** Bytes per second. */
  readonly trickle?: number
}

/** A fault that is in force until it is cleared. */
export interface Fault extends Disposable {
  /** How many requests it struck. */
  readonly struck: number
  /** Ends it; a second call does nothing. */
  clear(): void
}

/** The faults in force. The newest that fits a request wins. */
export class FaultBook {
  #faults: ActiveFault[] = []

  add(matcher: FaultMatcher, behaviour: Behaviour): Fault {
    const fault = new ActiveFault(matcher, behaviour, () => {
      this.#faults = this.#faults.filter((each) => each !== fault)
    })
    this.#faults.unshift(fault)
    return fault
  }

  clear(): void {
    this.#faults = []
  }

  /** What this request must suffer; nothing for an honest answer. Counts the strike. */
  strike(request: RecordedRequest): Behaviour {
    return this.#faults.find((fault) => fault.strikes(request))?.behaviour ?? {}
  }
}

class ActiveFault implements Fault {
  readonly behaviour: Behaviour
  readonly clear: () => void
  readonly #matcher: FaultMatcher
  #passed = 0
  #struck = 0

  constructor(matcher: FaultMatcher, behaviour: Behaviour, clear: () => void) {
    this.#matcher = matcher
    this.behaviour = behaviour
    this.clear = clear
  }

  get struck(): number {
    return this.#struck
  }

  strikes(request: RecordedRequest): boolean {
    const { times = Number.POSITIVE_INFINITY, after = 0 } = this.#matcher
    if (this.#struck >= times || !matches(this.#matcher, request)) return false
    if (this.#passed < after) {
      this.#passed += 1
      return false
    }
    this.#struck += 1
    return true
  }

  [Symbol.dispose](): void {
    this.clear()
  }
}

function matches(matcher: FaultMatcher, request: RecordedRequest): boolean {
  const { kind, when } = matcher
  const plain = ['host', 'provider', 'module', 'repository', 'version', 'platform', 'method'] as const
  return (
    (kind === undefined || [kind].flat().includes(request.kind)) &&
    plain.every((field) => matcher[field] === undefined || matcher[field] === request[field]) &&
    (when === undefined || when(request))
  )
}

/** The reply with all that a behaviour changes in it. How it is sent (delay, tearing) is not done here. */
export async function spoil(reply: Reply, behaviour: Behaviour, request: RecordedRequest): Promise<Reply> {
  const replaced = replace(reply, behaviour, request)
  const changed = behaviour.wrongBytes ? { ...replaced, body: flipMiddleByte(replaced.body) } : replaced
  const plain = behaviour.ignoreRange ? withoutRanges(changed) : changed
  return behaviour.gzip ? compress(plain) : plain
}

function replace(reply: Reply, behaviour: Behaviour, request: RecordedRequest): Reply {
  const { status, body, redirect, contentType } = behaviour
  const location = typeof redirect === 'function' ? redirect(request) : redirect
  const emptied = body === undefined && (status !== undefined || location !== undefined)
  return {
    status: status ?? (location === undefined ? reply.status : 302),
    headers: {
      ...(emptied ? {} : reply.headers),
      ...(location === undefined ? {} : { location }),
      ...(contentType === undefined ? {} : { 'content-type': contentType }),
      ...behaviour.headers,
    },
    body: emptied ? bufferBody('') : body === undefined ? reply.body : bufferBody(body),
  }
}

function flipMiddleByte({ size, read }: Body): Body {
  const victim = Math.floor(size / 2)
  return {
    size,
    async *read(start, end) {
      let position = start
      for await (const chunk of read(start, end)) {
        const copy = Buffer.from(chunk)
        const index = victim - position
        if (index >= 0 && index < copy.length) copy.writeUInt8(copy.readUInt8(index) ^ 0xff, index)
        position += copy.length
        yield copy
      }
    },
  }
}

function withoutRanges(reply: Reply): Reply {
  const { 'accept-ranges': _, etag: __, ...headers } = reply.headers
  return { ...reply, headers }
}

async function compress(reply: Reply): Promise<Reply> {
  const bytes = await readAll(reply.body)
  return { ...reply, headers: { ...reply.headers, 'content-encoding': 'gzip' }, body: bufferBody(gzipSync(bytes)) }
}
