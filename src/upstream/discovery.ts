import { isMirrorError, MirrorError, redactUrl } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Hostname } from '../protocol/hostname.ts'
import { findService, parseDiscoveryDocument, type ServiceName } from '../protocol/service-discovery.ts'
import { DiscoveryMemory, type DiscoveryStore, findUsable, type Remembered } from './discovery-memory.ts'
import type { DocumentAnswer, OriginClient } from './http-client.ts'
import type { UpstreamRequest } from './provider-upstream.ts'

/** What `Discovery` is made of. */
export interface DiscoveryOptions {
  readonly hostname: Hostname
  readonly client: OriginClient
  /** Service URLs from the configuration. A service that is named here is never looked up. */
  readonly overrides: { readonly [service in ServiceName]?: string }
  readonly memory: DiscoveryStore
  /** How long a document is used without asking again. */
  readonly freshForMs: number
  /** How long a request waits for a refresh when an expired document could be used instead. */
  readonly graceMs: number
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly log: Log
}

/** A refresh under way; `slow` resolves if it takes longer than the grace. */
interface Refresh {
  readonly done: Promise<Remembered>
  readonly slow: Promise<undefined>
  readonly abandoned: AbortController
  /** How many have no other answer. */
  waiting: number
}

const REFRESH_TIMEOUT_MS = 8_000
const RETRY_AFTER_MS = 10_000
const MAX_BYTES = 1024 * 1024
const MAX_REDIRECTS = 3

/** The origin's word that it offers nothing; which service is missing, those who asked know. */
class NoDocument extends Error {
  readonly upstreamUrl: string

  constructor(message: string, upstreamUrl: string) {
    super(message)
    this.upstreamUrl = upstreamUrl
  }
}

/**
 * Service discovery of one origin, by the rules of the clients (client-contract D1-D7). The last good document is
 * remembered and outlives restarts and outages: an expired one is used whenever the origin does not give a new one
 * within the grace. However many ask, one refresh runs at a time, under a deadline of its own.
 */
export class Discovery {
  readonly #options: DiscoveryOptions
  readonly #wellKnown: string
  readonly #memory: DiscoveryMemory
  #refresh: Refresh | undefined
  #failedAt = Number.NEGATIVE_INFINITY

  constructor(options: DiscoveryOptions) {
    this.#options = options
    this.#wellKnown = `https://${options.hostname}/.well-known/terraform.json`
    const { hostname, memory: store, log } = options
    this.#memory = new DiscoveryMemory({ hostname, store, log })
  }

  /**
   * The base URL of a service, to resolve paths against.
   * @throws MirrorError `NO_PROVIDER_SERVICE` or `NO_MODULE_SERVICE` on the origin's own word only; `UPSTREAM_*`; `UPSTREAM_TIMEOUT` if the
   *   request's signal fires first (or its reason, if that is an error of ours); `CONFIGURATION` if the override is not a usable URL
   */
  async serviceBase(service: ServiceName, request: UpstreamRequest): Promise<{ url: URL }> {
    const override = this.#options.overrides[service]
    if (override !== undefined) return { url: this.#parseOverride(service, override) }

    await this.#memory.load()
    const url = this.#memory.findService(service)
    if (url !== undefined && (this.#isFresh() || this.#hasJustFailed())) return { url }

    const refresh = this.#ensureRefresh(request.hops)
    if (url === undefined) return this.#getFrom(await this.#wait(refresh, request.signal, service), service)
    const renewed = await Promise.race([refresh.done.catch(() => undefined), refresh.slow])
    return renewed === undefined ? { url } : this.#getFrom(renewed, service)
  }

  #isFresh(): boolean {
    return this.#memory.isYoung(this.#options.now(), this.#options.freshForMs)
  }

  #hasJustFailed(): boolean {
    const ageMs = this.#options.now() - this.#failedAt
    return ageMs >= 0 && ageMs < RETRY_AFTER_MS
  }

  #getFrom({ document }: Remembered, service: ServiceName): { url: URL } {
    const url = findService(document, service)
    if (url !== undefined) return { url }
    const { hostname } = this.#options
    const offered = Object.keys(document.services).slice(0, 12).join(', ').slice(0, 300)
    throw new MirrorError(
      ABSENCE[service],
      `${hostname} offers no usable ${service} service; it offers ${offered === '' ? 'none at all' : offered}`,
      { hostname, upstreamUrl: redactUrl(document.url) },
    )
  }

  #parseOverride(service: ServiceName, value: string): URL {
    const document = { url: this.#wellKnown, services: { [service]: value } }
    const url = findUsable(document, service)
    if (url !== undefined) return url
    const key = `origins.${this.#options.hostname}.services.${service}`
    throw new MirrorError('CONFIGURATION', `${key} is not the URL of a service`, { key })
  }

  async #wait(refresh: Refresh, signal: AbortSignal, service: ServiceName): Promise<Remembered> {
    const { hostname } = this.#options
    refresh.waiting += 1
    const giveUp = () => {
      if (isMirrorError(signal.reason)) return signal.reason
      const message = `${hostname} did not answer service discovery at ${this.#wellKnown} in time`
      return new MirrorError('UPSTREAM_TIMEOUT', message, { host: hostname, upstreamUrl: this.#wellKnown })
    }
    try {
      return await untilAborted(refresh.done, signal, giveUp)
    } catch (error) {
      if (!(error instanceof NoDocument)) throw error
      const { upstreamUrl, message } = error
      throw new MirrorError(ABSENCE[service], message, { hostname, upstreamUrl, upstreamStatus: 404 })
    } finally {
      refresh.waiting -= 1
      // Whose time is over comes again; who gave it up does not.
      if (refresh.waiting === 0 && isMirrorError(signal.reason)) this.#giveUp(refresh, signal.reason)
    }
  }

  #ensureRefresh(hops: readonly string[]): Refresh {
    if (this.#refresh !== undefined) return this.#refresh
    const { promise: slow, resolve } = Promise.withResolvers<undefined>()
    const timer = setTimeout(resolve, this.#options.graceMs, undefined)
    const abandoned = new AbortController()
    const done = this.#fetch(hops, abandoned.signal).finally(() => {
      clearTimeout(timer)
      if (this.#refresh === refresh) this.#refresh = undefined
    })
    const refresh: Refresh = { done, slow, abandoned, waiting: 0 }
    // Those who wait see the failure; nobody may be waiting any more.
    done.catch((error: unknown) => abandoned.signal.aborted || this.#noteFailure(error))
    this.#refresh = refresh
    return refresh
  }

  /** Nobody wants it any more; who comes now begins anew. */
  #giveUp(refresh: Refresh, reason: MirrorError): void {
    if (this.#refresh !== refresh) return
    this.#refresh = undefined
    refresh.abandoned.abort(reason)
  }

  #noteFailure(error: unknown): void {
    if (this.#memory.current === undefined) return
    this.#failedAt = this.#options.now()
    this.#options.log.warn(
      { hostname: this.#options.hostname, ...describe(error) },
      'service discovery failed; the remembered document stays in use',
    )
  }

  async #fetch(hops: readonly string[], abandoned: AbortSignal): Promise<Remembered> {
    const { hostname, client, now } = this.#options
    const answer = await client.fetchDocument({
      url: this.#wellKnown,
      signal: AbortSignal.any([AbortSignal.timeout(REFRESH_TIMEOUT_MS), abandoned]),
      hops,
      accept: 'application/json',
      maxBytes: MAX_BYTES,
      maxRedirects: MAX_REDIRECTS,
    })
    if (answer.status !== 200) throw this.#statusError(answer)
    const document = parseDiscoveryDocument(answer.body, { hostname, url: answer.url, mediaType: answer.mediaType })
    // A document that no client could use must not replace a good one.
    findService(document, 'providers.v1')
    if (this.#memory.findService('modules.v1') !== undefined) findService(document, 'modules.v1')
    const remembered = { fetchedAt: now(), document }
    await this.#memory.keep(remembered)
    return remembered
  }

  /** A 404 where a document was before is an outage, not the origin's word (field-reports B38). */
  #statusError(answer: DocumentAnswer): MirrorError | NoDocument {
    const { hostname } = this.#options
    const upstreamUrl = redactUrl(answer.url)
    const upstreamStatus = answer.status
    if (upstreamStatus === 404 && this.#memory.current === undefined) {
      return new NoDocument(`${hostname} offers no Terraform services: ${upstreamUrl} answered 404`, upstreamUrl)
    }
    const message = `service discovery of ${hostname} failed: ${upstreamUrl} answered ${upstreamStatus}${hint(upstreamStatus)}`
    return new MirrorError('UPSTREAM_STATUS', message, { host: answer.url.host, upstreamUrl, upstreamStatus })
  }
}

const ABSENCE = { 'providers.v1': 'NO_PROVIDER_SERVICE', 'modules.v1': 'NO_MODULE_SERVICE' } as const

function hint(status: number): string {
  if (status === 401) return '; check the token of this origin'
  if (status === 403) return '; check the token of this origin, and that no firewall or region block stands before it'
  if (status === 404) return ' although the host offered services before'
  return ''
}

function describe(error: unknown): Record<string, unknown> {
  return isMirrorError(error) ? { code: error.code, reason: error.message, ...error.fields } : { reason: String(error) }
}

/** Waits for shared work as long as one waiter's signal allows; the work itself goes on. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal, createError: () => Error): Promise<T> {
  if (signal.aborted) throw createError()
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(createError())
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
