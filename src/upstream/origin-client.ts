import { MirrorError } from '../errors.ts'
import type { Log } from '../log.ts'
import { formatHops, HOPS_HEADER } from '../protocol/hops.ts'
import type { Hostname } from '../protocol/hostname.ts'
import { openArchive } from './archive.ts'
import { createCredentials } from './credentials.ts'
import type { DispatcherOptions, Dispatchers } from './dispatchers.ts'
import { fetchDocument } from './document.ts'
import type { ArchiveRequest, DocumentAnswer, DocumentRequest, OriginClient } from './http-client.ts'
import type { UpstreamObserver } from './observer.ts'
import type { ArchiveStream } from './provider-upstream.ts'
import { createProxySelector, type ProxySettings } from './proxy.ts'
import { RateLimits } from './rate-limits.ts'
import type { OriginRules } from './redirects.ts'
import type { StatusOptions } from './status.ts'
import { createTrustedRoots } from './trusted-roots.ts'
import { createUrlRules } from './url-rules.ts'

/** The rules of one origin. */
export interface OriginClientOptions {
  /** The origin's host as clients write it. */
  readonly hostname: Hostname
  /**
   * Connect here instead of DNS and port 443 of `hostname`; TLS and `Host` keep the name. Permits this address, and
   * bypasses the proxy. Holds for this host only.
   */
  readonly address?: { readonly host: string; readonly port: number }
  /** Bearer token of the origin. Goes to `hostname` and to what `DocumentRequest.trusted` names. */
  readonly token?: string
  readonly allowHttp: boolean
  /** Permits private, loopback, unique-local and CGNAT addresses; link-local and metadata addresses never. */
  readonly allowPrivateAddresses: boolean
  /** `a.example`, `*.a.example` (subdomains only). If given, every host but the origin's own must match one. */
  readonly allowedHosts?: readonly string[]
  /** PEM texts, added to the public roots for all hosts of this origin. */
  readonly ca: readonly string[]
  /** Credentials (`basic` is `user:password`) and authorities by `host[:port]`; 443 if no port is given. */
  readonly hosts: ReadonlyMap<string, { readonly token?: string; readonly basic?: string; readonly ca?: string }>
  readonly proxy?: ProxySettings
  readonly userAgent: string
  /** Sent as `X-Terraform-Version`. */
  readonly terraformVersion: string
  /** Name of this instance in the hop header. */
  readonly instanceId: string
  /** DNS, connect and TLS handshake. */
  readonly connectTimeoutMs: number
  /** How long an upstream may be silent, and the window of `minBytesPerSecond`. */
  readonly idleTimeoutMs: number
  /** Archives only. */
  readonly minBytesPerSecond: number
  /** Repetitions after the first attempt. */
  readonly retries: number
  /** Connections to each host, for documents and for archives apart. */
  readonly concurrency: number
  /** Limit of one attempt at a document up to its headers; default 4000. */
  readonly attemptTimeoutMs?: number
  readonly observer: UpstreamObserver
  readonly log: Log
  readonly random?: () => number
  readonly now?: () => number
}

const defaultAttemptTimeoutMs = 4_000
const defaultMaxRedirects = 5

/**
 * Makes the client of one origin. The caller closes it.
 * @throws MirrorError `CONFIGURATION` for an unusable proxy URL
 */
export function createOriginClient(options: OriginClientOptions): OriginClient {
  return new GuardedOriginClient(options)
}

class GuardedOriginClient implements OriginClient {
  readonly #options: OriginClientOptions
  readonly #rules: OriginRules
  readonly #dispatcherOptions: DispatcherOptions
  #dispatchers: Promise<Dispatchers> | undefined
  readonly #closing = new AbortController()

  constructor(options: OriginClientOptions) {
    this.#options = options
    this.#rules = createRules(options)
    this.#dispatcherOptions = {
      ...options,
      address: options.address,
      proxies: createProxySelector(options.proxy),
      roots: createTrustedRoots(options.ca, options.hosts),
      connections: options.concurrency,
    }
  }

  async fetchDocument(request: DocumentRequest): Promise<DocumentAnswer> {
    const { accept = 'application/json', maxBytes, maxRedirects = defaultMaxRedirects, trusted = false } = request
    const url = this.#parseUrl(request.url)
    const { documents: dispatcher } = await this.#connect()
    return await fetchDocument(this.#rules, {
      url,
      dispatcher,
      headers: { ...this.#headers(request.hops), accept },
      trusted,
      maxRedirects,
      maxBytes,
      attemptTimeoutMs: this.#options.attemptTimeoutMs ?? defaultAttemptTimeoutMs,
      ...this.#limits(request.signal, 0),
    })
  }

  async openArchive(request: ArchiveRequest): Promise<ArchiveStream> {
    const url = this.#parseUrl(request.url)
    const { archives: dispatcher } = await this.#connect()
    return await openArchive(this.#rules, {
      url,
      dispatcher,
      headers: { ...this.#headers(request.hops), accept: '*/*' },
      maxBytes: request.maxBytes,
      trusted: request.trusted ?? false,
      headersTimeoutMs: this.#options.idleTimeoutMs,
      ...this.#limits(request.signal, this.#options.minBytesPerSecond),
    })
  }

  async close(): Promise<void> {
    const stopping = new MirrorError('SHUTTING_DOWN', `The connections to ${this.#options.hostname} were closed`, {})
    this.#closing.abort(stopping)
    const dispatchers = await this.#dispatchers
    await Promise.all([dispatchers?.documents.destroy(stopping), dispatchers?.archives.destroy(stopping)])
  }

  /** At the first request: undici takes 20 ms and 7 MB, and a mirror that holds all that it is asked for needs none. */
  #connect(): Promise<Dispatchers> {
    this.#closing.signal.throwIfAborted()
    this.#dispatchers ??= import('./dispatchers.ts').then(({ createDispatchers }) =>
      createDispatchers(this.#dispatcherOptions),
    )
    return this.#dispatchers
  }

  #limits(callerSignal: AbortSignal, minBytesPerSecond: number) {
    const { observer, log, retries, idleTimeoutMs, random = Math.random, now = Date.now } = this.#options
    const signal = AbortSignal.any([callerSignal, this.#closing.signal])
    const { rateLimits, credentials } = this.#rules
    const body: StatusOptions = { signal, observer, idleTimeoutMs, minBytesPerSecond, rateLimits, credentials, now }
    return { body, retry: { signal, retries, observer, log, random } }
  }

  #headers(hops: readonly string[]): Record<string, string> {
    return {
      'user-agent': this.#options.userAgent,
      'x-terraform-version': this.#options.terraformVersion,
      [HOPS_HEADER]: formatHops(hops, this.#options.instanceId),
    }
  }

  #parseUrl(text: string | URL): URL {
    const url = URL.parse(String(text))
    if (url !== null) {
      url.hash = ''
      return url
    }
    const reason = 'it names something that is not a URL'
    const fields = { host: this.#options.hostname, upstreamUrl: '(invalid URL)', reason }
    throw new MirrorError(
      'UPSTREAM_INVALID',
      `A document of ${this.#options.hostname} is not usable: ${reason}`,
      fields,
    )
  }
}

function createRules(options: OriginClientOptions): OriginRules {
  return {
    urlRules: createUrlRules({
      ...options,
      hasAddress: options.address !== undefined,
      allowedHosts: options.allowedHosts,
    }),
    credentials: createCredentials(options.hostname, options.token, options.hosts),
    rateLimits: new RateLimits(options.now ?? Date.now),
    observer: options.observer,
  }
}
