import { EventEmitter, once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTestAuthority, type TestAuthority } from '../tls-fixture.ts'
import { deliver } from './delivery.ts'
import { type Behaviour, type Fault, FaultBook, type FaultMatcher, spoil } from './fault.ts'
import { GitHost, type ServedRepository } from './git-host.ts'
import { type ModulePublication, ModuleRegistry } from './module-registry.ts'
import { createOriginKey, type OriginKey } from './origin-key.ts'
import { parseTarget, type RecordedRequest, requestKey } from './origin-request.ts'
import { Registry } from './registry.ts'
import type { Publication, Release } from './release.ts'
import { cutRange, jsonReply, type Reply } from './reply.ts'

/** How to start an origin. */
export interface OriginOptions {
  /** The virtual hosts, with a port where clients write one; the first is the default one. Default {@link DEFAULT_HOSTS}. */
  readonly hosts?: readonly string[]
  /** Fixed port; default any free one. */
  readonly port?: number
  /** Who issues the certificate; default an authority of its own. Share one to trust several servers by one CA. */
  readonly authority?: TestAuthority
  /** Hosts whose `versions` and `download` want this bearer token (401 without). */
  readonly tokens?: Readonly<Record<string, string>>
  /** Called when a request has ended, for a log on the terminal. */
  readonly onRequest?: (request: RecordedRequest) => void
}

export const DEFAULT_HOSTS = ['registry.example.test', 'other.example.test', 'cdn.example.test'] as const

/**
 * Starts an origin registry for tests: a real HTTPS server on 127.0.0.1 that plays several hosts, publishes signed
 * providers, records what it is asked, and misbehaves on demand. Dispose of it (`await using`) to free everything.
 */
export async function startOrigin(options: OriginOptions = {}): Promise<TestOrigin> {
  const hosts = options.hosts ?? DEFAULT_HOSTS
  const authority = options.authority ?? (await createTestAuthority())
  const names = hosts.map((host) => host.replace(/:\d+$/, ''))
  const certificate = await authority.issue([...new Set([...names, 'localhost', '127.0.0.1'])])
  const key = await createOriginKey()
  const tempDir = await mkdtemp(join(tmpdir(), 'test-origin-'))
  const origin = new TestOrigin({ ...options, hosts, key, tempDir, caPem: authority.caPem, certificate })
  await origin.start()
  return origin
}

interface OriginParts extends OriginOptions {
  readonly hosts: readonly string[]
  readonly key: OriginKey
  readonly tempDir: string
  readonly caPem: string
  readonly certificate: { readonly cert: string; readonly key: string }
}

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Fires when the client leaves. */
  readonly signal: AbortSignal
}

/** A running origin. Made by `startOrigin`. */
export class TestOrigin implements AsyncDisposable {
  /** Certificate of the authority that its clients must trust, PEM. */
  readonly caPem: string
  readonly hosts: readonly string[]
  /** Signs every release that names no other key. */
  readonly key: OriginKey

  readonly #options: OriginParts
  readonly #server: Server
  readonly #registry: Registry
  readonly #modules: ModuleRegistry
  readonly #git = new GitHost()
  readonly #faults = new FaultBook()
  readonly #pages = new Map<string, Reply>()
  readonly #sockets = new Set<Duplex>()
  readonly #pending = new Set<RecordedRequest>()
  readonly #changes = new EventEmitter<{ change: [] }>()
  #requests: RecordedRequest[] = []
  #counts: Record<string, number> = {}
  #connections = 0
  #maxInFlight = 0
  #port: number

  constructor(parts: OriginParts) {
    this.#options = parts
    this.caPem = parts.caPem
    this.hosts = parts.hosts
    this.key = parts.key
    this.#port = parts.port ?? 0
    this.#registry = new Registry(parts.hosts, parts.key, parts.tempDir)
    this.#modules = new ModuleRegistry(parts.hosts)
    this.#server = createServer(parts.certificate, (request, response) => void this.#handle(request, response))
    this.#server.on('connection', (socket) => this.#track(socket))
    this.#changes.setMaxListeners(0)
  }

  get port(): number {
    return this.#port
  }

  /** `127.0.0.1:PORT`: what the mirror's origin option `address` takes. */
  get address(): string {
    return `127.0.0.1:${this.#port}`
  }

  /**
   * Base URL of a host as seen without DNS, e.g. `https://127.0.0.1:41234/at/other.example.test/`. Everything that the
   * host answers below `/` is answered below it.
   */
  url(host = this.hosts[0]): string {
    return `https://${this.address}/at/${host}/`
  }

  /** For a `host` block of the CLI configuration that leads a client straight here (client-contract D7). */
  services(host = this.hosts[0]): Record<string, string> {
    return { 'providers.v1': `${this.url(host)}v1/providers/`, 'modules.v1': `${this.url(host)}v1/modules/` }
  }

  /** Publishes a version; publishing it again replaces it under the same URLs, with other bytes. */
  publish(publication: Publication): Promise<Release> {
    return this.#registry.publish(publication)
  }

  /** Publishes a version of a module; publishing it again replaces it. */
  publishModule(publication: ModulePublication): void {
    this.#modules.publish(publication)
  }

  /** Takes a version of a module away, or the whole module. */
  withdrawModule(module: string, version?: string): void {
    this.#modules.withdraw(module, version)
  }

  /**
   * Serves a git repository below `/git/NAME.git` of every host. Its requests are counted as `git NAME` and
   * `POST git NAME`. The repository stays the caller's.
   */
  serveGit(name: string, repository: ServedRepository): void {
    this.#git.serve(name, repository)
  }

  /** How often objects of a repository were asked for since the last `reset`: once for each clone or fetch. */
  get gitFetches(): number {
    return this.#git.fetches
  }

  /** Answers a path of a host in a fixed way: whatever else an origin serves beside providers. */
  page(host: string, path: string, reply: Reply): void {
    this.#pages.set(`${host} ${path}`, reply)
  }

  /** Takes a version away, or the whole provider if no version is given. Asking for it is a 404 from now on. */
  withdraw(provider: string, version?: string): void {
    this.#registry.withdraw(provider, version)
  }

  /** Makes fitting requests suffer until the fault is cleared (or disposed of, or `reset`). The newest fault wins. */
  fault(matcher: FaultMatcher, behaviour: Behaviour): Fault {
    return this.#faults.add(matcher, behaviour)
  }

  /**
   * Requests since the last `reset` by key, struck and aborted ones included: `discovery registry.example.test`,
   * `versions acme/widget`, `download acme/widget 1.0.0 linux_amd64`, `sums acme/widget 1.0.0`,
   * `signature acme/widget 1.0.0`, `archive acme/widget 1.0.0 linux_amd64`, `module-versions acme/net/aws`,
   * `module-download acme/net/aws v1.0.0`, `git NAME`. A provider of another host than the first
   * has its host in front (`versions other.example.test/acme/widget`); another method than GET stands first
   * (`HEAD archive …`).
   */
  get counts(): Readonly<Record<string, number>> {
    return { ...this.#counts }
  }

  /** Sum over the keys that are `key` or begin with its words: `count('archive')`, `count('archive acme/widget')`. */
  count(key: string): number {
    const fitting = Object.entries(this.#counts).filter(([each]) => each === key || each.startsWith(`${key} `))
    return fitting.reduce((sum, [, count]) => sum + count, 0)
  }

  /** All requests since the last `reset`, oldest first. */
  get requests(): readonly RecordedRequest[] {
    return this.#requests
  }

  /** Requests since the last `reset` whose answer did not reach its end. */
  get aborted(): number {
    return this.#requests.filter((request) => request.outcome === 'aborted').length
  }

  /** TCP connections accepted since the last `reset`. */
  get connections(): number {
    return this.#connections
  }

  /** Requests being answered now. */
  get inFlight(): number {
    return this.#pending.size
  }

  /** The most requests at one time since the last `reset`. */
  get maxInFlight(): number {
    return this.#maxInFlight
  }

  /** Waits until `condition` holds; it is tried whenever a request begins or ends. @throws Error after `timeoutMs` */
  async until(condition: () => boolean, timeoutMs = 10_000): Promise<void> {
    const signal = AbortSignal.timeout(timeoutMs)
    while (!condition()) {
      await once(this.#changes, 'change', { signal }).catch((cause: unknown) => {
        throw new Error(`the origin waited ${timeoutMs} ms in vain; it saw ${JSON.stringify(this.counts)}`, { cause })
      })
    }
  }

  /** Forgets counts, log and faults. What is published stays. */
  reset(): void {
    this.#faults.clear()
    this.#git.reset()
    this.#requests = []
    this.#counts = {}
    this.#connections = 0
    this.#maxInFlight = this.#pending.size
  }

  /** Listens, after `stop` on the same port again. */
  async start(): Promise<void> {
    this.#server.listen(this.#port, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#port = listeningPort(this.#server.address())
  }

  /** Refuses connections from now on; those that exist are destroyed. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    this.#git.stop()
    await closed
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    await rm(this.#options.tempDir, { recursive: true, force: true })
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const record = this.#record(request)
    const left = new AbortController()
    response.on('error', () => {})
    response.once('close', () => {
      left.abort()
      if (response.headersSent) record.status ??= response.statusCode
      this.#end(record, response.writableFinished ? 'answered' : 'aborted')
    })
    if (record.kind !== 'git') request.resume()
    try {
      await this.#answer(record, { request, response, signal: left.signal })
    } catch {
      response.destroy()
    }
  }

  async #answer(record: RecordedRequest, { request, response, signal }: Exchange): Promise<void> {
    const behaviour = this.#faults.strike(record)
    if (behaviour.delayMs !== undefined) await sleep(behaviour.delayMs, undefined, { signal })
    if (behaviour.hang) return
    if (behaviour.drop) {
      response.destroy()
      return
    }
    const honest = await this.#gitReply(record, behaviour, { request, response, signal })
    if (honest === 'sent') return
    const spoilt = await spoil(honest ?? this.#honestReply(record), behaviour, record)
    const reply = cutRange(spoilt, record.headers)
    record.status = reply.status
    await deliver(response, reply, behaviour, signal)
  }

  /** Undefined if it is not about a repository. What nothing spoils is streamed and need not be sent any more. */
  async #gitReply(
    record: RecordedRequest,
    { delayMs: _, ...spoiling }: Behaviour,
    { request, response }: Exchange,
  ): Promise<Reply | 'sent' | undefined> {
    const { repository } = record
    if (repository === undefined) return undefined
    const refusal = this.#git.refusal(repository, request)
    if (refusal !== undefined) return refusal
    const rest = record.url.slice(record.url.indexOf(`${repository}.git`) + repository.length + '.git/'.length)
    if (Object.keys(spoiling).length > 0) return await this.#git.reply(repository, rest, request)
    await this.#git.pipe(repository, rest, { request, response })
    return 'sent'
  }

  #honestReply(record: RecordedRequest): Reply {
    const token = this.#options.tokens?.[record.host]
    const guarded = /^(?:module-)?(?:versions|download)$/.test(record.kind)
    if (guarded && token !== undefined && record.headers.authorization !== `Bearer ${token}`) {
      return jsonReply(401, { errors: ['Unauthorized'] })
    }
    const path = record.url.split('?', 1)[0] ?? ''
    const page = this.#pages.get(`${record.host} ${path.replace(/^\/at\/[^/]+/, '')}`)
    return page ?? this.#modules.answer(record) ?? this.#registry.answer(record)
  }

  #record(request: IncomingMessage): RecordedRequest {
    const { method = 'GET', url = '/', headers } = request
    const target = parseTarget(request, this.hosts)
    const record: RecordedRequest = {
      ...target,
      key: requestKey(target, method, url),
      method,
      url,
      headers,
      outcome: 'pending',
    }
    this.#requests.push(record)
    this.#counts[record.key] = (this.#counts[record.key] ?? 0) + 1
    this.#pending.add(record)
    this.#maxInFlight = Math.max(this.#maxInFlight, this.#pending.size)
    this.#changes.emit('change')
    return record
  }

  #end(record: RecordedRequest, outcome: 'answered' | 'aborted'): void {
    record.outcome = outcome
    this.#pending.delete(record)
    this.#changes.emit('change')
    this.#options.onRequest?.(record)
  }

  #track(socket: Duplex): void {
    this.#connections += 1
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
  }
}

function listeningPort(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new Error('the origin does not listen on a port')
  return address.port
}
