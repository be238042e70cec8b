import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import type { TestOrigin } from '../origin/origin.ts'
import { CHAOS_MIRROR } from '../programs.ts'
import { type Answer, type Ask, Client } from './client.ts'
import type { DiskFault } from './disk-fault.ts'
import { LENIENT_HOST } from './edition.ts'
import type { MachineWatch } from './machine-watch.ts'
import { type Circumstances, MirrorHistory } from './mirror-history.ts'
import type { Order, Usage } from './mirror-process.ts'
import type { Span } from './timeline.ts'
import type { World } from './world.ts'

const LOG_LINES = 4_000
/** How long a process may take to start, and to end when it was told to. */
const LIFE_CHANGE_MS = 120_000

/** A mirror as a process, through all of its lives over one data folder. */
export class ChaosMirror implements AsyncDisposable {
  readonly folder: string
  /** Set when the process has ended although nobody told it to. */
  crash: string | undefined
  readonly #log: string[] = []
  readonly #origin: TestOrigin
  readonly #machine: MachineWatch
  readonly #history = new MirrorHistory()
  readonly #waiting = new Map<number, (result: unknown) => void>()
  #orders = 0
  #child: ChildProcess | undefined
  #client: Client | undefined
  #expectsEnd = false

  private constructor(folder: string, { origin, machine }: World) {
    this.folder = folder
    this.#origin = origin
    this.#machine = machine
  }

  /** Prepares a folder; `start` comes next. */
  static async create(world: World): Promise<ChaosMirror> {
    const folder = await mkdtemp(join(tmpdir(), 'chaos-mirror-'))
    await writeFile(join(folder, 'origin-ca.pem'), world.origin.caPem)
    return new ChaosMirror(folder, world)
  }

  get dataDir(): string {
    return join(this.folder, 'data')
  }

  /** Counts the starts, from 1. */
  get life(): number {
    return this.#history.life
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
    this.#history.noteStart({ sealed })
    this.#expectsEnd = false
    const child = spawn(process.execPath, ['--expose-gc', CHAOS_MIRROR, configFile, String(aheadMs)], {
      // Nothing is inherited: what is open must be the mirror's own.
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      // Compiled once for all lives.
      env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: join(tmpdir(), 'terramirror-test-cache') },
    })
    this.#child = child
    this.#machine.follow(this.pid)
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
    await this.#history.noteUp()
  }

  /** Stops the process in good order, with a disk that can be read. It must end by itself, with code 0. */
  async stop(): Promise<void> {
    if (this.#history.diskTrouble === 'unreadable') await this.setDisk({ kind: 'none' })
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
    const tell = (): Promise<unknown> => this.#tell({ order: 'disk', fault })
    if (fault.kind === 'none') await this.#history.endDiskTrouble(tell)
    else if (this.#history.diskTrouble === undefined) await this.#history.beginDiskTrouble(fault.kind, tell)
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

  /** How a question met it that was asked and answered in that span. */
  circumstances(span: Span): Circumstances {
    return this.#history.circumstances(span)
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
    await this.#history.noteEnd()
    await end(child)
    this.#child = undefined
    this.#client?.close()
    this.#client = undefined
    await this.#history.endDiskTrouble(async () => undefined)
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
