import { randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { isMirrorError, MirrorError, redactUrl } from '../../../errors.ts'
import { AddressRefused } from '../../address-guard.ts'
import { failureOf } from '../../failure.ts'
import { refused, type UrlRules } from '../../url-rules.ts'
import type { Dial } from './dial.ts'

/** What a tunnel proxy lets through. */
export interface TunnelProxyOptions {
  /** Judges every host before a connection is made. */
  readonly urlRules: UrlRules
  readonly dial: Dial
  /** Of everything that comes in, over all tunnels. */
  readonly maxBytes: number
  /** A tunnel in which nothing moves for so long is cut. */
  readonly idleTimeoutMs: number
  /** Told of bytes that came in. */
  readonly received: (host: string, bytes: number) => void
}

/**
 * A proxy on the loopback for the programs of one fetch: every connection that they make is a CONNECT that we judge and
 * dial ourselves, under the rules of the origin. Strangers on the machine lack the password. The caller disposes of it;
 * that cuts all tunnels.
 */
export class TunnelProxy implements AsyncDisposable {
  readonly #options: TunnelProxyOptions
  readonly #server: Server
  readonly #password = randomBytes(24).toString('base64url')
  readonly #sockets = new Set<Duplex>()
  #received = 0
  #failure: MirrorError | undefined

  private constructor(options: TunnelProxyOptions) {
    this.#options = options
    this.#server = createServer((_request, response) => void response.writeHead(405).end())
    this.#server.on('connect', (request, socket, head) => void this.#connect(request, socket, head))
  }

  /** Listens on a free port of 127.0.0.1. */
  static async start(options: TunnelProxyOptions): Promise<TunnelProxy> {
    const proxy = new TunnelProxy(options)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    proxy.#server.once('error', reject)
    proxy.#server.listen(0, '127.0.0.1', resolve)
    await promise
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** `user:password`, for those who may use it. */
  get credentials(): string {
    return `terramirror:${this.#password}`
  }

  /** Why a connection was refused or broken off: better than what a program makes of it. */
  get failure(): MirrorError | undefined {
    return this.#failure
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#server.close(() => resolve())
    this.#server.closeAllConnections()
    await promise
  }

  async #connect(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    this.#keep(client)
    if (!this.#isAuthorized(request)) return void client.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
    const url = URL.parse(`https://${request.url ?? ''}/`)
    if (url === null) return void client.end('HTTP/1.1 400 Bad Request\r\n\r\n')
    try {
      this.#options.urlRules(url)
      const server = await this.#options.dial(url)
      this.#keep(server)
      if (client.destroyed) return void server.destroy()
      this.#join(client, server, { url, head })
    } catch (error) {
      this.#failure ??= describe(error, url)
      client.end('HTTP/1.1 403 Forbidden\r\n\r\n')
    }
  }

  #join(client: Duplex, server: Socket, { url, head }: { url: URL; head: Buffer }): void {
    client.write('HTTP/1.1 200 Connection Established\r\n\r\n')
    server.write(head)
    client.pipe(server)
    server.pipe(client)
    // A pipe hands on the end of a side, not its death: the other would wait for ever.
    client.once('close', () => server.destroy())
    server.once('close', (hadError: boolean) => hadError && client.destroy())
    server.setTimeout(this.#options.idleTimeoutMs, () => this.#giveUp(url))
    server.on('data', (bytes: Buffer) => {
      this.#received += bytes.length
      this.#options.received(url.host, bytes.length)
      if (this.#received > this.#options.maxBytes) this.#cut(tooLarge(url, this.#options.maxBytes))
    })
  }

  #giveUp(url: URL): void {
    const message = `${url.host} sent nothing for ${this.#options.idleTimeoutMs} ms`
    this.#cut(new MirrorError('UPSTREAM_TIMEOUT', message, { host: url.host, upstreamUrl: redactUrl(url) }))
  }

  #cut(failure: MirrorError): void {
    this.#failure ??= failure
    for (const socket of this.#sockets) socket.destroy()
  }

  #keep(socket: Duplex): void {
    this.#sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.once('close', () => this.#sockets.delete(socket))
  }

  #isAuthorized(request: IncomingMessage): boolean {
    const given = Buffer.from(request.headers['proxy-authorization'] ?? '')
    const wanted = Buffer.from(`Basic ${Buffer.from(this.credentials).toString('base64')}`)
    return given.length === wanted.length && timingSafeEqual(given, wanted)
  }
}

function tooLarge(url: URL, maxBytes: number): MirrorError {
  const message = `${url.host} sends more than the limit of ${maxBytes} bytes for one module`
  return new MirrorError('UPSTREAM_TOO_LARGE', message, { host: url.host, upstreamUrl: redactUrl(url), maxBytes })
}

function describe(error: unknown, url: URL): MirrorError {
  if (error instanceof AddressRefused) return refused(url, error.reason, error)
  const failure = failureOf(error, { url, signal: new AbortController().signal })
  return isMirrorError(failure) ? failure : failure.failure
}
