import { type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { bufferBody, jsonReply, type Reply } from './reply.ts'

/** A repository as the origin serves it below `/git/NAME.git`. */
export interface ServedRepository {
  /** The folder of the repository, or of its `.git`. */
  readonly path: string
  /** `user:password` that the repository wants; without it, it is public. */
  readonly login?: string
  /**
   * `smart` speaks protocol version 2 if asked to, `v0` the old one, `dumb` shows files alone: no shallow fetch, and
   * alternates count. Default `smart`.
   */
  readonly style?: 'smart' | 'v0' | 'dumb'
}

/** Path of the program that serves repositories by http, or undefined with a loud line if it is missing. */
export function gitHttpBackend(): string | undefined {
  try {
    const folder = execFileSync('git', ['--exec-path'], { encoding: 'utf8' }).trim()
    const path = join(folder, 'git-http-backend')
    if (existsSync(path)) return path
  } catch {
    // No git at all.
  }
  console.warn('SKIPPED: git or git-http-backend is missing; nothing is tested against a real git host')
  return undefined
}

/** Git repositories behind a web server, by git's own CGI program. */
export class GitHost {
  readonly #repositories = new Map<string, ServedRepository>()
  readonly #children = new Set<ChildProcessByStdio<Writable, Readable, null>>()
  #fetches = 0

  /** Requests for objects: what a clone makes one of (protocol version 2 only). */
  get fetches(): number {
    return this.#fetches
  }

  serve(name: string, repository: ServedRepository): void {
    this.#repositories.set(name, repository)
  }

  reset(): void {
    this.#fetches = 0
  }

  /** Ends the programs that still answer. */
  stop(): void {
    for (const child of this.#children) child.kill('SIGKILL')
  }

  /** The refusal of a request that must not reach the repository; undefined if it may. */
  refusal(name: string, request: IncomingMessage): Reply | undefined {
    const repository = this.#repositories.get(name)
    if (repository === undefined) return jsonReply(404, { errors: ['Not Found'] })
    const { login } = repository
    if (login === undefined || request.headers.authorization === `Basic ${Buffer.from(login).toString('base64')}`)
      return undefined
    const headers = { 'content-type': 'text/plain', 'www-authenticate': 'Basic realm="git"' }
    return { status: 401, headers, body: bufferBody('no\n') }
  }

  /** Streams the answer of the repository. `rest` is the path below it, with the query. */
  async pipe(
    name: string,
    rest: string,
    { request, response }: { request: IncomingMessage; response: ServerResponse },
  ) {
    const child = this.#start(name, rest, request)
    const { status, headers, head } = await readCgiHead(child.stdout)
    response.writeHead(status, headers)
    response.write(head)
    response.once('close', () => child.kill('SIGKILL'))
    await pipeline(child.stdout, response)
  }

  /** The whole answer in memory, for faults to spoil it. */
  async reply(name: string, rest: string, request: IncomingMessage): Promise<Reply> {
    const child = this.#start(name, rest, request)
    const { status, headers, head } = await readCgiHead(child.stdout)
    return { status, headers, body: bufferBody(Buffer.concat([head, await buffer(child.stdout)])) }
  }

  #start(name: string, rest: string, request: IncomingMessage): ChildProcessByStdio<Writable, Readable, null> {
    const { path, style = 'smart' } = this.#repositories.get(name) ?? { path: '/nowhere' }
    const [file = '', query = ''] = rest.split('?', 2)
    const header = (key: string): string => String(request.headers[key] ?? '')
    const child = spawn('git', ['http-backend'], {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: {
        PATH: process.env.PATH,
        GIT_CONFIG_NOSYSTEM: '1',
        GIT_CONFIG_GLOBAL: '/dev/null',
        GIT_HTTP_EXPORT_ALL: '1',
        GIT_PROJECT_ROOT: existsSync(join(path, '.git')) ? join(path, '.git') : path,
        PATH_INFO: `/${file}`,
        REQUEST_METHOD: request.method,
        // A server of plain files does not look at it.
        QUERY_STRING: style === 'dumb' ? '' : query,
        CONTENT_TYPE: header('content-type'),
        CONTENT_LENGTH: header('content-length'),
        HTTP_CONTENT_ENCODING: header('content-encoding'),
        ...(style === 'smart' ? { GIT_PROTOCOL: header('git-protocol') } : {}),
      },
    })
    this.#children.add(child)
    child.once('close', () => this.#children.delete(child))
    child.stdin.on('error', () => undefined)
    request.on('data', (bytes: Buffer) => {
      if (bytes.includes('command=fetch')) this.#fetches += 1
    })
    request.pipe(child.stdin)
    return child
  }
}

async function readCgiHead(
  output: Readable,
): Promise<{ status: number; headers: Record<string, string>; head: Buffer }> {
  let bytes: Buffer = Buffer.alloc(0)
  while (!bytes.includes('\r\n\r\n')) {
    const more: Buffer | null = output.read()
    if (more !== null) bytes = Buffer.concat([bytes, more])
    else if (output.readableEnded) throw new Error('git http-backend gave no answer')
    else await new Promise((resolve) => output.once('readable', resolve).once('end', resolve))
  }
  const end = bytes.indexOf('\r\n\r\n')
  const lines = bytes.subarray(0, end).toString('latin1').split('\r\n')
  const headers = Object.fromEntries(lines.map((line) => line.split(/: */, 2) as [string, string]))
  const { Status: status = '200', ...rest } = headers
  return { status: Number.parseInt(status, 10), headers: rest, head: bytes.subarray(end + 4) }
}
