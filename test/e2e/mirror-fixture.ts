import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import { createLog } from '../../src/log.ts'
import { type RunningServer, type ServerParts, startServer } from '../../src/server.ts'
import type { TestOrigin } from '../origin/origin.ts'
import { PROGRAM } from '../programs.ts'

/** What a mirror needs to know of an origin. */
export type MirroredOrigin = Pick<TestOrigin, 'hosts' | 'address' | 'caPem'>

/** For processes of the mirror: nothing of the outer environment, and code that is compiled once for all of them. */
export const PROCESS_ENV = { PATH: process.env.PATH, NODE_COMPILE_CACHE: join(tmpdir(), 'terramirror-test-cache') }

/** How to set a mirror up. */
export interface MirrorOptions<Origin extends MirroredOrigin = TestOrigin> {
  /** Every host of this origin becomes an allowed origin that is reached at its address. */
  readonly origin: Origin
  /** More of the configuration, by its keys; `origins` entries are merged with those of `origin`. */
  readonly config?: Record<string, unknown> & { origins?: Record<string, Record<string, unknown>> }
  /** An existing folder to use; default a fresh one, removed with the mirror. */
  readonly folder?: string
  /** Who issued the certificate that the configuration names (`listen.tls`); default the mirror's own authority. */
  readonly caPem?: string
  readonly now?: () => number
  readonly wrapBlobs?: ServerParts['wrapBlobs']
  /** What a process of its own runs, before `serve`; default the sources. */
  readonly program?: readonly [string, ...string[]]
}

/** An answer with its whole body. */
export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** The body as JSON; throws if it is none. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into documents whose shape is what they test
  json(): any
}

/** How to ask. */
export interface Ask {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
}

/** A running mirror, in this process or as one of its own, with a client that trusts it. */
export interface TestMirror extends AsyncDisposable {
  /** `https://localhost:PORT/`; `http:` if the configuration turns TLS off. */
  readonly url: string
  /** Base URL of the network mirror. */
  readonly baseUrl: string
  readonly caPem: string
  /** Where the admin API is; ends with `/`, `unix:PATH` for a socket. Empty for `admin: off`. */
  readonly adminUrl: string
  /** Configuration and data live here; `data` is the data folder. */
  readonly folder: string
  readonly dataDir: string
  /** Everything logged so far, one JSON line an entry. */
  readonly logText: string
  readonly logLines: Record<string, unknown>[]
  /** Asks for a path from the root, sent exactly as given; rejects when the connection breaks. */
  ask(path: string, options?: Ask): Promise<Answer>
  /** `index.json` of e.g. `registry.example.test/acme/widget` (or `acme/widget` at the first host). */
  index(provider: string, options?: Ask): Promise<Answer>
  /** `VERSION.json`. */
  version(provider: string, version: string, options?: Ask): Promise<Answer>
  /** The archive that `VERSION.json` names for the platform. */
  archive(provider: string, version: string, platform: string, options?: Ask): Promise<Answer>
  /** Path of that archive, from the root, without asking anything. */
  archivePath(provider: string, version: string, platform: string): string
  metrics(): Promise<string>
  /** Stops in good order and starts anew over the same folder (another port). */
  restart(): Promise<void>
}

/** The process behind a mirror of its own. */
export interface SpawnedMirror extends TestMirror {
  readonly child: ChildProcess
  readonly stdout: string
  /** SIGKILL, waits for the end. */
  kill(): Promise<void>
  /** Starts again over the same folder. */
  start(): Promise<void>
}

/** Starts a mirror inside this process. */
export async function startMirror(options: MirrorOptions<MirroredOrigin>): Promise<TestMirror> {
  const mirror = new InProcessMirror(options, await prepareFolder(options))
  await mirror.start()
  return mirror
}

/** Starts a mirror as a process of its own, for tests that kill it. */
export async function spawnMirror(options: MirrorOptions<MirroredOrigin>): Promise<SpawnedMirror> {
  const mirror = new ProcessMirror(options, await prepareFolder(options))
  await mirror.start()
  return mirror
}

/** Makes the folder of a mirror with its `config.yaml`. */
export async function prepareFolder(options: MirrorOptions<MirroredOrigin>): Promise<string> {
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), 'test-mirror-')))
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'origin-ca.pem'), options.origin.caPem)
  await writeFile(join(folder, 'config.yaml'), stringify(configFor(options)))
  return folder
}

function configFor({ origin, config = {} }: MirrorOptions<MirroredOrigin>): unknown {
  const { origins: more = {}, ...rest } = config
  const origins: Record<string, Record<string, unknown>> = {}
  for (const host of origin.hosts) origins[host] = { address: origin.address, caFile: './origin-ca.pem' }
  for (const [host, settings] of Object.entries(more)) origins[host] = { ...origins[host], ...settings }
  return { listen: { port: 0 }, dataDir: './data', log: { format: 'json', level: 'debug' }, ...rest, origins }
}

abstract class MirrorClient {
  readonly folder: string
  protected readonly options: MirrorOptions<MirroredOrigin>
  protected log: string[] = []
  url = ''
  adminUrl = ''
  caPem = ''

  constructor(options: MirrorOptions<MirroredOrigin>, folder: string) {
    this.options = options
    this.folder = folder
  }

  get baseUrl(): string {
    return `${this.url}providers/`
  }

  get dataDir(): string {
    return join(this.folder, 'data')
  }

  get logText(): string {
    return this.log.join('')
  }

  get logLines(): Record<string, unknown>[] {
    return this.logText
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line))
  }

  ask(path: string, { method = 'GET', headers = {}, signal }: Ask = {}): Promise<Answer> {
    const { port, protocol } = new URL(this.url)
    const send = protocol === 'https:' ? httpsRequest : httpRequest
    return new Promise((resolve, reject) => {
      const request = send(
        {
          host: '127.0.0.1',
          servername: 'localhost',
          port,
          path,
          method,
          ca: this.caPem,
          agent: false,
          signal,
          headers: { host: `localhost:${port}`, ...headers },
        },
        (response) => {
          const chunks: Buffer[] = []
          response.on('data', (chunk: Buffer) => chunks.push(chunk))
          response.on('error', reject)
          response.on('end', () => {
            const body = Buffer.concat(chunks)
            const { statusCode: status = 0, headers } = response
            resolve({ status, headers, body, json: () => JSON.parse(body.toString()) })
          })
        },
      )
      request.on('error', reject)
      request.end()
    })
  }

  index(provider: string, options?: Ask): Promise<Answer> {
    return this.ask(`/providers/${this.#full(provider)}/index.json`, options)
  }

  version(provider: string, version: string, options?: Ask): Promise<Answer> {
    return this.ask(`/providers/${this.#full(provider)}/${encodeURIComponent(version)}.json`, options)
  }

  async archive(provider: string, version: string, platform: string, options?: Ask): Promise<Answer> {
    return this.ask(this.archivePath(provider, version, platform), options)
  }

  archivePath(provider: string, version: string, platform: string): string {
    const spelled = encodeURIComponent(version)
    return `/providers/${this.#full(provider)}/${spelled}/${platform}/archive.zip`
  }

  async metrics(): Promise<string> {
    return (await this.ask('/metrics')).body.toString()
  }

  #full(provider: string): string {
    return provider.split('/').length === 2 ? `${this.options.origin.hosts[0]}/${provider}` : provider
  }
}

class InProcessMirror extends MirrorClient implements TestMirror {
  #server: RunningServer | undefined

  async start(): Promise<void> {
    const { now, wrapBlobs } = this.options
    const config = await loadConfig({ file: join(this.folder, 'config.yaml'), set: [], cwd: this.folder, env: {} })
    const log = createLog(config.log, { write: (line) => this.log.push(line) })
    this.#server = await startServer({
      config,
      log,
      version: '0.0.0-test',
      ...(now === undefined ? {} : { now }),
      ...(wrapBlobs === undefined ? {} : { wrapBlobs }),
    })
    this.url = this.#server.url
    this.adminUrl = this.#server.adminUrl ?? ''
    const { caFile } = this.#server
    this.caPem = this.options.caPem ?? (caFile === undefined ? '' : await readFile(caFile, 'utf8'))
  }

  async restart(): Promise<void> {
    await this.#server?.close(5_000)
    await this.start()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.close(0)
    if (this.options.folder === undefined) await rm(this.folder, { recursive: true, force: true })
  }
}

class ProcessMirror extends MirrorClient implements SpawnedMirror {
  child!: ChildProcess
  stdout = ''

  async start(): Promise<void> {
    const [command, ...args] = this.options.program ?? PROGRAM
    this.stdout = ''
    this.child = spawn(command, [...args, 'serve', '--config', join(this.folder, 'config.yaml')], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: PROCESS_ENV,
    })
    this.child.stderr?.on('data', (chunk: Buffer) => this.log.push(chunk.toString()))
    const exited = once(this.child, 'exit')
    this.url = await new Promise<string>((resolve, reject) => {
      exited.then(([code]) => reject(new Error(`the mirror ended with ${code}: ${this.logText}`)), reject)
      this.child.stdout?.on('data', (chunk: Buffer) => {
        this.stdout += chunk
        const [, found] = /^at (https?:\/\/\S+\/)providers\/$/m.exec(this.stdout) ?? []
        if (found === undefined || !this.stdout.endsWith('\n')) return
        this.adminUrl = /admin API at (\S+);/.exec(this.stdout)?.[1] ?? ''
        resolve(found)
      })
    })
    const caFile = join(this.dataDir, 'state', 'tls', 'ca.pem')
    this.caPem = this.options.caPem ?? (existsSync(caFile) ? await readFile(caFile, 'utf8') : '')
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  async restart(): Promise<void> {
    await this.#end('SIGTERM')
    await this.start()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end('SIGKILL')
    if (this.options.folder === undefined) await rm(this.folder, { recursive: true, force: true })
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    const exited = once(this.child, 'exit')
    this.child.kill(signal)
    await exited
  }
}
