import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { z } from 'zod'
import type { JobEvent } from '../../src/admin/schema/jobs.ts'
import { createTestAuthority } from '../tls-fixture.ts'

/** A request as it came. */
export interface SeenRequest {
  readonly method: string
  /** Below `/admin/api/v1/`, percent-decoded. */
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  /** Parsed JSON; undefined without a body. */
  readonly body: unknown
}

/** What a route answers. */
export interface StandInAnswer {
  readonly status?: number
  readonly body: unknown
}

type Handler = (request: SeenRequest) => StandInAnswer | Promise<StandInAnswer> | AsyncIterable<JobEvent>

/** Everything but `routes` is known when it runs. */
export interface StandInOptions {
  /** Names of the certificate; default those of this machine. */
  readonly names?: string[]
  readonly validity?: { notBefore: Date; notAfter: Date }
  /** Listens on this Unix socket, without TLS, instead of a port. */
  readonly socket?: string
  /** Leaves its certificate and key in this folder, as `cert.pem` and `key.pem`. */
  readonly keepIn?: string
}

/** The only token that is right. */
export const TOKEN = 'stand-in-token'

/**
 * A server that answers as the admin API does, by the routes that a test gives it: what a command sends and makes of
 * the answers can be seen without a mirror. Over real TLS, or a Unix socket.
 */
export class AdminStandIn implements AsyncDisposable {
  readonly folder: string
  readonly url: string
  /** The authority behind its certificate. */
  readonly caFile: string
  readonly tokenFile: string
  readonly seen: SeenRequest[] = []
  readonly #server: Server
  readonly #routes = new Map<string, Handler>()

  private constructor(folder: string, server: Server, url: string) {
    this.folder = folder
    this.#server = server
    this.url = url
    this.caFile = join(folder, 'ca.pem')
    this.tokenFile = join(folder, 'token')
    server.on('request', (request, response) => void this.#answer(request, response))
  }

  static async start(options: StandInOptions = {}): Promise<AdminStandIn> {
    const { names = ['localhost', '127.0.0.1'], validity, socket, keepIn } = options
    const folder = await mkdtemp(join(tmpdir(), 'admin-stand-in-'))
    const authority = await createTestAuthority()
    await writeFile(join(folder, 'ca.pem'), authority.caPem)
    await writeFile(join(folder, 'token'), `${TOKEN}\n`)
    const identity = await authority.issue(names, validity)
    if (keepIn !== undefined) {
      await writeFile(join(keepIn, 'cert.pem'), identity.cert)
      await writeFile(join(keepIn, 'key.pem'), identity.key)
    }
    const server = socket === undefined ? createHttpsServer(identity) : createHttpServer()
    await new Promise<void>((resolve) => server.listen(socket ?? 0, resolve))
    const url = socket === undefined ? `https://localhost:${(server.address() as AddressInfo).port}/` : `unix:${socket}`
    return new AdminStandIn(folder, server, url)
  }

  /** Options by which a command finds and trusts it. */
  get options(): string[] {
    return ['--server', this.url, '--ca-file', this.caFile, '--token-file', this.tokenFile]
  }

  /** Answers `GET packages` and the like with one document, which must be what the schema says. */
  answer<Schema extends z.ZodType>(route: string, schema: Schema, body: z.input<Schema>, status = 200): void {
    const document = schema.parse(body)
    this.route(route, () => ({ status, body: document }))
  }

  /** Answers by a function; one that gives an async iterable streams events. */
  route(route: string, handler: Handler): void {
    this.#routes.set(route, handler)
  }

  /** Breaks every connection, as a process that is killed does. */
  breakConnections(): void {
    this.#server.closeAllConnections()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
    await rm(this.folder, { recursive: true, force: true })
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const seen = await readRequest(request)
      if (request.headers.authorization !== `Bearer ${TOKEN}`) return sendProblem(response, 401, 'UNAUTHORIZED')
      if (seen === undefined) return sendProblem(response, 404, 'ROUTE_NOT_FOUND')
      this.seen.push(seen)
      const handler = this.#routes.get(`${seen.method} ${seen.path}`)
      if (handler === undefined) return sendProblem(response, 404, 'ROUTE_NOT_FOUND')
      const answer = handler(seen)
      if (Symbol.asyncIterator in answer) return await sendEvents(response, answer)
      const { status = 200, body } = await answer
      sendJson(response, status, body)
    } catch (error) {
      response.destroy(error as Error)
    }
  }
}

/** A problem as the API tells it. */
export function problem(code: string, error: string): StandInAnswer['body'] {
  return { error, code, request_id: 'req-1' }
}

async function readRequest(request: IncomingMessage): Promise<SeenRequest | undefined> {
  const url = new URL(request.url ?? '/', 'https://localhost/')
  const body = await text(request)
  const [, path] = /^\/admin\/api\/v1\/(.*)$/.exec(url.pathname) ?? []
  if (path === undefined) return undefined
  return {
    method: request.method ?? '',
    path: path.split('/').map(decodeURIComponent).join('/'),
    query: Object.fromEntries(url.searchParams),
    body: body === '' ? undefined : JSON.parse(body),
  }
}

async function sendEvents(response: ServerResponse, events: AsyncIterable<JobEvent>): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.flushHeaders()
  for await (const { event, data } of events) response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
  response.end()
}

function sendProblem(response: ServerResponse, status: number, code: string): void {
  sendJson(response, status, problem(code, `refused: ${code}`))
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
