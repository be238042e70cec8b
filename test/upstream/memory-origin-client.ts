import { MirrorError, redactUrl } from '../../src/errors.ts'
import type { ArchiveRequest, DocumentAnswer, DocumentRequest, OriginClient } from '../../src/upstream/http-client.ts'
import type { ArchiveStream } from '../../src/upstream/provider-upstream.ts'

/** What a URL answers: a body (objects as JSON), or where it redirects to. */
export type Reply =
  | {
      readonly status?: number
      readonly mediaType?: string
      readonly terraformGet?: string
      readonly body: string | Buffer | object
    }
  | { readonly redirect: string }

type Route = Reply | ((request: DocumentRequest) => Reply | Promise<Reply>)

/**
 * An `OriginClient` over a map of URLs, by the contract of the interface: redirects are counted, outages are thrown,
 * limits hold, and an aborted request ends as `UPSTREAM_TIMEOUT`. Unknown URLs are 404.
 */
export class MemoryOriginClient implements OriginClient {
  /** Every request, in order. */
  readonly requests: DocumentRequest[] = []
  readonly archives: ArchiveRequest[] = []
  inFlight = 0
  maxInFlight = 0
  readonly #routes = new Map<string, Route>()

  on(url: string, route: Route): this {
    this.#routes.set(url, route)
    return this
  }

  /** How often the URL was asked for. */
  count(url: string): number {
    return this.requests.filter((request) => String(request.url) === url).length
  }

  async fetchDocument(request: DocumentRequest): Promise<DocumentAnswer> {
    this.requests.push(request)
    this.inFlight++
    this.maxInFlight = Math.max(this.maxInFlight, this.inFlight)
    const aborted = Promise.withResolvers<never>()
    const onAbort = () => aborted.reject(failure('UPSTREAM_TIMEOUT', new URL(request.url)))
    if (request.signal.aborted) onAbort()
    request.signal.addEventListener('abort', onAbort, { once: true })
    try {
      return await Promise.race([aborted.promise, this.#answer(request)])
    } finally {
      request.signal.removeEventListener('abort', onAbort)
      this.inFlight--
    }
  }

  async #answer(request: DocumentRequest): Promise<DocumentAnswer> {
    let url = new URL(request.url)
    for (let redirects = 0; redirects <= (request.maxRedirects ?? 5); redirects++) {
      const route = this.#routes.get(url.href) ?? { status: 404, mediaType: 'text/plain', body: 'not found' }
      const reply = typeof route === 'function' ? await route(request) : route
      if (!('redirect' in reply)) return readReply(reply, url, request.maxBytes)
      url = new URL(reply.redirect, url)
    }
    throw failure('UPSTREAM_INVALID', url)
  }

  async openArchive(request: ArchiveRequest): Promise<ArchiveStream> {
    this.archives.push(request)
    return {
      size: 3,
      async *[Symbol.asyncIterator]() {
        yield { kind: 'bytes', bytes: Buffer.from('zip') }
      },
    }
  }

  async close(): Promise<void> {}
}

/** Never answers. */
export function hang(): Promise<never> {
  return new Promise(() => {})
}

/** What the real client throws. */
export function failure(code: 'UPSTREAM_TIMEOUT' | 'UPSTREAM_UNREACHABLE' | 'UPSTREAM_INVALID', url: URL): MirrorError {
  const where = { host: url.host, upstreamUrl: redactUrl(url) }
  if (code === 'UPSTREAM_INVALID') return new MirrorError(code, 'too many redirects', { ...where, reason: 'redirects' })
  return new MirrorError(code, code, where)
}

function readReply(reply: Exclude<Reply, { redirect: string }>, url: URL, maxBytes: number): DocumentAnswer {
  const { status = 200, mediaType = 'application/json', body: content } = reply
  const host = url.host
  const upstreamUrl = redactUrl(url)
  if (status >= 500) {
    throw new MirrorError('UPSTREAM_STATUS', `answered ${status}`, { host, upstreamUrl, upstreamStatus: status })
  }
  const raw = typeof content === 'string' || Buffer.isBuffer(content)
  const body = Buffer.from(raw ? content : JSON.stringify(content))
  if (body.length > maxBytes) throw new MirrorError('UPSTREAM_TOO_LARGE', 'too large', { host, upstreamUrl, maxBytes })
  return { url, status, mediaType, terraformGet: reply.terraformGet, body }
}
