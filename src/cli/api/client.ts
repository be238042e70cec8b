import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from 'node:https'
import { z } from 'zod'
import { Problem } from '../../admin/schema/common.ts'
import { CommandError } from '../command-error.ts'
import type { Endpoint } from './endpoint.ts'
import { readEventStream, type ServerSentEvent } from './event-stream.ts'
import { API_PATH, explainFailure, explainForeignAnswer, Refusal, Unreachable } from './failure.ts'
import type { FoundToken } from './token.ts'
import type { Trust } from './trust.ts'

const ANSWER_LIMIT_MS = 60_000
/** Streams of events say something at least this often, else they are taken for dead. */
const SILENCE_LIMIT_MS = 60_000
const MAX_BODY_BYTES = 64_000_000

/** Values of a query; undefined ones are left out. */
export type Query = Readonly<Record<string, string | number | undefined>>

/** One request to the admin API. */
export interface AdminRequest<Schema extends z.ZodType> {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Parts of the path below `admin/api/v1/`, as they are. */
  readonly path: readonly string[]
  readonly query?: Query
  /** Sent as JSON. */
  readonly body?: unknown
  /** What a good answer looks like. */
  readonly schema: Schema
  /** A status besides 2xx that comes with the same document. */
  readonly alsoStatus?: number
  /** Milliseconds until the answer is complete; default 60 seconds. */
  readonly limitMs?: number
}

/** A page of a list of the API. */
export interface Page<Item> {
  readonly items: readonly Item[]
  readonly next: string | null
}

/** What an admin client is made from. */
export interface AdminClientParts {
  readonly endpoint: Endpoint
  readonly token: FoundToken
  readonly trust: Trust
  /** Of this program. */
  readonly version: string
}

/**
 * Speaks to the admin API of one mirror. Every answer is parsed by its schema.
 * All methods throw CommandError with words for people: `Unreachable` if the connection failed, `Refusal` for a problem
 * that the API tells.
 */
export class AdminClient {
  readonly #parts: AdminClientParts
  readonly #agent: HttpAgent

  constructor(parts: AdminClientParts) {
    this.#parts = parts
    this.#agent = parts.endpoint.isSecure ? new HttpsAgent({ keepAlive: true }) : new HttpAgent({ keepAlive: true })
  }

  /** Where it is, for people. */
  get name(): string {
    return this.#parts.endpoint.name
  }

  /** Asks once. */
  async ask<Schema extends z.ZodType>(request: AdminRequest<Schema>): Promise<z.output<Schema>> {
    const signal = AbortSignal.timeout(request.limitMs ?? ANSWER_LIMIT_MS)
    const response = await this.#send(request, { signal })
    const status = response.statusCode ?? 0
    const body = await this.#readBody(response)
    if ((status >= 200 && status < 300) || status === request.alsoStatus) {
      const parsed = request.schema.safeParse(body)
      if (parsed.success) return parsed.data
      const problem = Problem.safeParse(body)
      if (!problem.success) throw await this.#explainOddAnswer(status, body, parsed.error)
    }
    throw this.#refusal(status, body)
  }

  /** Asks for the pages of a list, one after the other, up to the end. */
  async *pages<Item>(request: AdminRequest<z.ZodType<Page<Item>>>): AsyncGenerator<Page<Item>, void, undefined> {
    const seen = new Set<string>()
    let cursor: string | undefined
    do {
      const query = cursor === undefined ? request.query : { ...request.query, cursor }
      const page = await this.ask({ ...request, ...(query === undefined ? {} : { query }) })
      yield page
      cursor = page.next ?? undefined
      // A list that leads back to itself would never end.
      if (cursor !== undefined && seen.has(cursor)) throw new CommandError(`${this.name} gives the same page again`)
      seen.add(cursor ?? '')
    } while (cursor !== undefined)
  }

  /** Messages of a stream until it ends or breaks; breaks throw `Unreachable`. Ending the loop closes it. */
  async *events(path: readonly string[], signal: AbortSignal): AsyncGenerator<ServerSentEvent, void, undefined> {
    const response = await this.#send(
      { path, schema: z.unknown() },
      { signal, silenceMs: SILENCE_LIMIT_MS, accept: 'text/event-stream' },
    )
    const isStream = /^text\/event-stream\b/.test(response.headers['content-type'] ?? '')
    if (response.statusCode !== 200 || !isStream) {
      throw this.#refusal(response.statusCode ?? 0, await this.#readBody(response))
    }
    try {
      yield* readEventStream(response)
    } catch (error) {
      signal.throwIfAborted()
      throw new Unreachable(`the connection to ${this.name} broke`, { cause: error })
    } finally {
      response.destroy()
    }
  }

  #send(
    { method = 'GET', path, query = {}, body }: AdminRequest<z.ZodType>,
    { signal, silenceMs, accept = 'application/json' }: { signal: AbortSignal; silenceMs?: number; accept?: string },
  ): Promise<IncomingMessage> {
    const { endpoint, token, trust, version } = this.#parts
    const content = body === undefined ? undefined : JSON.stringify(body)
    const options: RequestOptions = {
      ...endpoint.target,
      method,
      path: `${endpoint.basePath}${API_PATH}${path.map(encodeURIComponent).join('/')}${formatQuery(query)}`,
      agent: this.#agent,
      signal,
      headers: {
        host: hostHeader(endpoint),
        accept,
        authorization: `Bearer ${token.token}`,
        'user-agent': `terramirror/${version}`,
        ...(content === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(content) }),
      },
      ...(endpoint.isSecure ? { ...trust.options, servername: endpoint.serverName } : {}),
    }
    return new Promise((resolve, reject) => {
      const send = endpoint.isSecure ? httpsRequest : httpRequest
      const request = send(options, resolve)
      request.on('error', (error) => reject(this.#explain(error)))
      if (silenceMs !== undefined) {
        request.setTimeout(silenceMs, () => request.destroy(new Error(`silent for ${silenceMs} ms`)))
      }
      request.end(content)
    })
  }

  #explain(error: unknown): CommandError {
    const { endpoint, trust } = this.#parts
    return explainFailure(error, { endpoint, trusted: trust.trusted })
  }

  /** The body as JSON, or as text if it is none. */
  async #readBody(response: IncomingMessage): Promise<unknown> {
    const chunks: Buffer[] = []
    let size = 0
    try {
      for await (const chunk of response as AsyncIterable<Buffer>) {
        size += chunk.length
        if (size > MAX_BODY_BYTES) throw new CommandError(`the answer of ${this.name} is too large`)
        chunks.push(chunk)
      }
    } catch (error) {
      throw error instanceof CommandError ? error : this.#explain(error)
    }
    const text = Buffer.concat(chunks).toString()
    try {
      return JSON.parse(text) as unknown
    } catch {
      return text
    }
  }

  #refusal(status: number, body: unknown): CommandError {
    const { endpoint, token } = this.#parts
    const { success, data } = Problem.safeParse(body)
    if (status === 401) {
      return new CommandError(`${this.name} does not accept the token; it came from ${token.source}`)
    }
    const isElsewhere = success && data.code === 'ROUTE_NOT_FOUND'
    return success && !isElsewhere ? new Refusal(status, data) : explainForeignAnswer(endpoint, status, body)
  }

  /** An answer that is good by its status and no document that we know: mostly of another version. */
  async #explainOddAnswer(status: number, body: unknown, cause: z.ZodError): Promise<CommandError> {
    const { endpoint, version } = this.#parts
    if (typeof body !== 'object') return explainForeignAnswer(endpoint, status, body)
    const schema = z.object({ info: z.object({ version: z.string() }) })
    const theirs = await this.ask({ path: ['openapi.json'], schema })
      .then(({ info }) => info.version)
      .catch(() => undefined)
    const place = cause.issues[0]?.path.join('.') ?? ''
    const reason = theirs === undefined || theirs === version ? '' : `: it is version ${theirs}, this is ${version}`
    return new CommandError(
      `an answer of ${this.name} cannot be read (${place})${reason}; use the command of the same version`,
      {
        cause,
      },
    )
  }
}

function formatQuery(query: Query): string {
  const parameters = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) if (value !== undefined) parameters.set(key, String(value))
  return parameters.size === 0 ? '' : `?${parameters}`
}

function hostHeader({ name, target }: Endpoint): string {
  return 'socketPath' in target ? 'localhost' : new URL(name).host
}
