import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'
import type { TestOrigin } from '../origin/origin.ts'
import { type Answer, type Ask, Client } from './client.ts'
import type { DiskFault } from './disk-fault.ts'
import { LENIENT_HOST } from './edition.ts'
import type { Order, Usage } from './mirror-process.ts'
import { beginPeriod, endPeriod, type Period, type Span, touches } from './timeline.ts'

const LOG_LINES = 4_000
/** How long a process may take to start, and to end when it was told to. */
const LIFE_CHANGE_MS = 30_000

/** How a question met the mirror. */
export interface Circumstances {
  /** In which the question was asked. */
  readonly life: number
  /** The mirror was starting, stopping or dead during the question. */
  readonly disturbed: boolean
  readonly sealed: boolean
  readonly unreadable: boolean
  /** Something could not be written during the question, or shortly before it. */
  readonly unwritable: boolean
}

/** A mirror as a process, through all of its lives over one data folder. */
export class ChaosMirror implements AsyncDisposable {
  readonly folder: string
  /** Counts the starts, from 1. */
  life = 0
  sealed = false
  /** Set when the process has ended although nobody told it to. */
  crash: string | undefined
  readonly #log: string[] = []
  readonly #origin: TestOrigin
  readonly #changes: Period[] = []
  readonly #diskTroubles: { readonly kind: DiskFault['kind']; readonly period: Period }[] = []
  readonly #waiting = new Map<number, (result: unknown) => void>()
  readonly #lifeSpans: { readonly life: number; readonly sealed: boolean; readonly from: number }[] = []
  #orders = 0
  #child: ChildProcess | undefined
  #client: Client | undefined
  #expectsEnd = false
  #dead: Period | undefined

  private constructor(folder: string, origin: TestOrigin) {
    this.folder = folder
    this.#origin = origin
  }

  /** Prepares a folder; `start` comes next. */
  static async create(origin: TestOrigin): Promise<ChaosMirror> {
    const folder = await mkdtemp(join(tmpdir(), 'chaos-mirror-'))
    await writeFile(join(folder, 'origin-ca.pem'), origin.caPem)
    return new ChaosMirror(folder, origin)
  }

  get dataDir(): string {
    return join(this.folder, 'data')
  }

  get running(): boolean {
    return this.#child !== undefined
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  /** The last lines of its log, all lives together. */
  get logTail(): readonly string[] {
    return this.#log
  }

  /** Starts the process. @throws Error with the log if it does not come up */
  async start({ sealed = false, aheadMs }: { sealed?: boolean; aheadMs: number }): Promise<void> {
    const configFile = join(this.folder, 'config.yaml')
    await writeFile(configFile, stringify(this.#config(sealed)))
    this.life += 1
    this.sealed = sealed
    this.#lifeSpans.push({ life: this.life, sealed, from: performance.now() })
    this.#expectsEnd = false
    const program = fileURLToPath(new URL('mirror-process.ts', import.meta.url))
    const child = spawn(process.execPath, ['--expose-gc', program, configFile, String(aheadMs)], {
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
      env: { PATH: process.env.PATH },
    })
    this.#child = child
    child.stderr?.on('data', (chunk: Buffer) => this.#keepLog(chunk))
    child.once('exit', (code, signal) => this.#noteEnd(child, `code ${code}, signal ${signal}`))
    const started = Promise.withResolvers<{ url: string; caFile: string }>()
    child.on('message', (message: { id?: number; result?: unknown; url?: string; caFile?: string }) => {
      const { id, url, caFile } = message
      if (url !== undefined && caFile !== undefined) started.resolve({ url, caFile })
      if (id === undefined) return
      this.#waiting.get(id)?.(message.result)
      this.#waiting.delete(id)
    })
    const { url, caFile } = await this.#within(started.promise, child, 'start')
    this.#client = new Client(url, await readFile(caFile, 'utf8'))
    if (this.#dead !== undefined) await endPeriod(this.#dead, () => undefined)
    this.#dead = undefined
  }

  /** Stops the process in good order, with a disk that can be read. It must end by itself, with code 0. */
  async stop(): Promise<void> {
    const trouble = this.#diskTroubles.at(-1)
    if (trouble?.kind === 'unreadable' && trouble.period.to === Number.POSITIVE_INFINITY) {
      await this.setDisk({ kind: 'none' })
    }
    await this.#endWith('stop', async (child) => {
      this.#tell({ order: 'stop', graceMs: 3_000 }).catch(() => undefined)
      const [code] = await this.#within(once(child, 'exit'), child, 'end')
      if (code !== 0) throw new Error(`the mirror ended with code ${code} when it was stopped`)
    })
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    await this.#endWith('kill', async (child) => {
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    })
  }

  setClock(aheadMs: number): Promise<unknown> {
    return this.#tell({ order: 'clock', aheadMs })
  }

  /** The disk behaves like this until the next call, or the end of the process. */
  async setDisk(fault: DiskFault): Promise<void> {
    const running = this.#diskTroubles.at(-1)
    const tell = (): Promise<unknown> => this.#tell({ order: 'disk', fault })
    if (fault.kind === 'none') await this.#endDiskTrouble(tell)
    else if (running?.period.to !== Number.POSITIVE_INFINITY) {
      this.#diskTroubles.push({ kind: fault.kind, period: await beginPeriod(tell) })
    }
  }

  async usage(): Promise<Usage> {
    return (await this.#tell({ order: 'usage' })) as Usage
  }

  /** Where the file descriptors of the process lead. */
  async openFiles(): Promise<string[]> {
    const folder = `/proc/${this.pid}/fd`
    const names = await readdir(folder)
    return Promise.all(names.map((name) => readlink(join(folder, name)).catch(() => 'gone')))
  }

  async ask(path: string, ask?: Ask): Promise<Answer> {
    const client = this.#client
    if (client !== undefined) return client.ask(path, ask)
    const now = performance.now()
    const nothing = { status: 0, headers: {}, body: Buffer.alloc(0), whole: false, left: false }
    return { ...nothing, span: { from: now, to: now }, trouble: 'the mirror does not run' }
  }

  /** Closes idle client connections, so that what is left belongs to the mirror. */
  closeClient(): void {
    this.#client?.close()
  }

  circumstances(span: Span): Circumstances {
    const slackMs = 4_000
    const felt = (kinds: readonly DiskFault['kind'][], slack: number): boolean =>
      this.#diskTroubles.some(
        ({ kind, period }) => kinds.includes(kind) && touches({ from: period.from, to: period.to + slack }, [span]),
      )
    const began = this.#lifeSpans.findLast(({ from }) => from <= span.from)
    return {
      life: began?.life ?? 0,
      disturbed: this.#changes.some((change) => touches(change, [span])),
      sealed: began?.sealed ?? false,
      unreadable: felt(['unreadable'], slackMs),
      unwritable: felt(['full', 'unwritable', 'unreadable'], slackMs),
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child?.exitCode === null && this.#child.signalCode === null) await this.kill()
    this.closeClient()
    await rm(this.folder, { recursive: true, force: true })
  }

  async #endWith(how: string, end: (child: ChildProcess) => Promise<void>): Promise<void> {
    const child = this.#child
    if (child === undefined) throw new Error(`cannot ${how} a mirror that does not run`)
    if (child.exitCode !== null || child.signalCode !== null) throw new Error('the mirror has ended by itself')
    this.#expectsEnd = true
    this.#dead = await beginPeriod(() => undefined)
    this.#changes.push(this.#dead)
    await end(child)
    this.#child = undefined
    this.#client?.close()
    this.#client = undefined
    await this.#endDiskTrouble(async () => undefined)
  }

  async #endDiskTrouble(tell: () => Promise<unknown>): Promise<void> {
    const running = this.#diskTroubles.at(-1)
    if (running?.period.to === Number.POSITIVE_INFINITY) await endPeriod(running.period, tell)
  }

  #tell(order: Order): Promise<unknown> {
    const child = this.#child
    if (child === undefined) return Promise.resolve(undefined)
    this.#orders += 1
    const id = this.#orders
    return this.#within(
      new Promise((resolve) => {
        this.#waiting.set(id, resolve)
        child.send({ id, ...order })
      }),
      child,
      `obey ${order.order}`,
    )
  }

  async #within<T>(work: Promise<T>, child: ChildProcess, what: string): Promise<T> {
    const late = Promise.withResolvers<never>()
    const fail = (why: string) => (): void => {
      late.reject(new Error(`the mirror did not ${what}: ${why}\n${this.#log.slice(-10).join('\n')}`))
    }
    const timer = setTimeout(fail(`${LIFE_CHANGE_MS} ms passed`), LIFE_CHANGE_MS)
    const ended = fail('it ended')
    // An end with a code is what `stop` waits for.
    if (what !== 'end') child.once('exit', ended)
    try {
      return await Promise.race([work, late.promise])
    } finally {
      clearTimeout(timer)
      child.off('exit', ended)
    }
  }

  #noteEnd(child: ChildProcess, how: string): void {
    if (this.#child === child && !this.#expectsEnd) this.crash = how
  }

  #keepLog(chunk: Buffer): void {
    this.#log.push(...chunk.toString().split('\n').filter(Boolean))
    if (this.#log.length > 2 * LOG_LINES) this.#log.splice(0, this.#log.length - LOG_LINES)
  }

  #config(sealed: boolean): unknown {
    const { hosts, address } = this.#origin
    const origin = { address, caFile: './origin-ca.pem' }
    const origins = Object.fromEntries(
      hosts.map((host) => [
        host,
        host === LENIENT_HOST ? { ...origin, verification: { signatures: 'whenListed' } } : origin,
      ]),
    )
    return {
      listen: { port: 0 },
      dataDir: './data',
      mode: sealed ? 'sealed' : 'online',
      // Real timers, not the clock: silence is found out soon, so that thousands of steps fit in a few minutes.
      upstream: { retries: 1, idleTimeout: '1500ms' },
      log: { format: 'json', level: 'info' },
      origins,
    }
  }
}
