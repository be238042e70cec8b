import { readFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Agent, request } from 'undici'
import type { VersionDocument } from '../src/protocol/network-mirror.ts'
import { OwnedProcess, unlessAborted } from './owned-process.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** The longest wait for something that the mirror does in the background, in milliseconds. */
const SOON_MS = 20_000

/** A line of the mirror's log about one request; other lines have another `msg`. */
export interface LogEntry {
  readonly msg: string
  readonly requestId?: string
  readonly method?: string
  readonly route?: string
  readonly provider?: string
  readonly version?: string
  readonly platform?: string
  readonly status?: number
  /** Where the answer came from, e.g. `miss`, `hit`, `stale`. */
  readonly outcome?: string
  readonly bytes?: number
  readonly err?: { readonly code: string; readonly message: string; readonly actual?: string }
}

/** The mirror in its own process, started by the `start` script of package.json. */
export class Mirror implements AsyncDisposable {
  /** Base URL for clients; ends in `/`. */
  readonly url: string
  readonly caFile: string
  readonly caBundleFile: string
  readonly #process: OwnedProcess
  readonly #log: string[]
  readonly #signal: AbortSignal
  readonly #agent: Agent
  #told = 0

  private constructor(parts: {
    process: OwnedProcess
    url: string
    tlsDir: string
    caPem: string
    log: string[]
    signal: AbortSignal
  }) {
    this.#process = parts.process
    this.url = parts.url
    this.caFile = join(parts.tlsDir, 'ca.pem')
    this.caBundleFile = join(parts.tlsDir, 'ca-bundle.pem')
    this.#log = parts.log
    this.#signal = parts.signal
    this.#agent = new Agent({ connect: { ca: parts.caPem } })
  }

  /**
   * Runs what `npm start -- --config FILE` runs once it has built.
   * @throws Error if it cannot start, with its log; the signal's reason if that fires
   */
  static async start(
    { configFile, dataDir, env }: { configFile: string; dataDir: string; env: NodeJS.ProcessEnv },
    signal: AbortSignal,
  ): Promise<Mirror> {
    await using stack = new AsyncDisposableStack()
    const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { scripts: { start: string } }
    const child = stack.use(
      new OwnedProcess('sh', ['-c', `${scripts.start} "$@"`, 'sh', '--config', configFile], {
        cwd: ROOT,
        env: { ...env, PATH: [dirname(process.execPath), env.PATH].join(delimiter) },
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    )
    const log: string[] = []
    child.readLines(child.child.stderr, (line) => log.push(line))
    const ready = new Promise<string>((resolve) => {
      child.readLines(child.child.stdout, (line) => line.startsWith('at https://') && resolve(line.slice(3)))
    })
    const died = child.ended.then((how) => {
      throw new Error(`the mirror ended with ${how} before it served:\n${log.join('\n')}`)
    })
    const url = await unlessAborted(Promise.race([ready, died]), signal)
    died.catch(() => undefined)
    const tlsDir = join(dataDir, 'state', 'tls')
    const caPem = await readFile(join(tlsDir, 'ca.pem'), 'utf8')
    stack.move()
    return new Mirror({ process: child, url, tlsDir, caPem, log, signal })
  }

  get pid(): number {
    return this.#process.pid
  }

  /** Asks for a path below the base URL, as a client does. @throws Error if no answer comes */
  async ask(path: string): Promise<{ url: string; status: number; requestId: string; body: Buffer }> {
    const url = new URL(path, this.url).href
    const { statusCode, headers, body } = await request(url, { dispatcher: this.#agent, signal: this.#signal })
    return {
      url,
      status: statusCode,
      requestId: String(headers['x-request-id']),
      body: Buffer.from(await body.arrayBuffer()),
    }
  }

  /** `VERSION.json` of a version; waits a little for the `h1:` hash of a platform, which is computed in the background. */
  async versionDocument(provider: string, version: string, platform: string): Promise<VersionDocument> {
    const path = `${provider}/${version}.json`
    const read = async () => JSON.parse((await this.ask(path)).body.toString()) as VersionDocument
    const complete = ({ archives }: VersionDocument): boolean =>
      archives[platform]?.hashes.some((hash) => hash.startsWith('h1:')) === true
    return this.#soon(read, complete)
  }

  /** Waits until the mirror lists a version, or a few seconds are over; tells whether it does. */
  async lists(provider: string, version: string): Promise<boolean> {
    const read = async () => JSON.parse((await this.ask(`${provider}/index.json`)).body.toString())
    const document = await this.#soon(read, ({ versions }) => versions[version] !== undefined)
    return document.versions[version] !== undefined
  }

  /**
   * What the mirror has logged since the last time this was asked. Every request that had its answer before is in it:
   * the log is in order, and a request of our own, which is left out, marks the place.
   */
  async newEntries(): Promise<LogEntry[]> {
    const { requestId } = await this.ask('/healthz')
    const isMark = (line: string): boolean => line.includes(requestId)
    await this.#soon(
      async () => this.#log,
      (log) => log.some(isMark),
    )
    const mark = this.#log.findIndex(isMark)
    const fresh = this.#log.slice(this.#told, mark < 0 ? undefined : mark)
    this.#told = mark < 0 ? this.#log.length : mark + 1
    return fresh.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as LogEntry)
  }

  /** Stops in good order; tells how it ended. */
  stop(): Promise<number | string> {
    return this.#process.end()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy()
    await this.#process[Symbol.asyncDispose]()
  }

  /** Reads again and again until the result is as wanted, or it has taken too long; the last result. */
  async #soon<T>(read: () => Promise<T>, wanted: (result: T) => boolean): Promise<T> {
    const end = performance.now() + SOON_MS
    for (;;) {
      const result = await read()
      if (wanted(result) || performance.now() > end) return result
      await sleep(50, undefined, { signal: this.#signal })
    }
  }
}
