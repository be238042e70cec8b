import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { pathOf } from './tools.ts'

/** Servers get one core and their clients the other one, so that neither takes from the other. */
export const SERVER_CPU = '0'
export const CLIENT_CPU = '1'
/** `/proc` counts in hundredths of a second on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100

/** How to start a server. */
export interface ServiceOptions {
  readonly command: readonly [string, ...string[]]
  /** The cores that it may use; default all. */
  readonly cpu?: string
  readonly cwd?: string
  readonly env?: NodeJS.ProcessEnv
  /** Takes what it writes to stderr. */
  readonly logFile: string
}

/** A server as a process of its own, whose use of the machine can be read. Disposing of it ends it. */
export class Service implements AsyncDisposable {
  readonly child: ChildProcess
  readonly #exited: Promise<unknown>

  constructor({ command, cpu, cwd, env, logFile }: ServiceOptions) {
    const [program, ...args] = cpu === undefined ? command : [pathOf('taskset'), '-c', cpu, ...command]
    const log = openSync(logFile, 'a')
    this.child = spawn(program, args, { stdio: ['ignore', 'pipe', log], cwd, env })
    closeSync(log)
    this.#exited = once(this.child, 'exit')
  }

  /** Waits for a line on stdout. @throws Error if the process ends, or after 30 s */
  async line(pattern: RegExp): Promise<RegExpExecArray> {
    const late = AbortSignal.timeout(30_000)
    const ended = this.#exited.then(() => Promise.reject(new Error(`${this.child.spawnfile} ended at once`)))
    const found = new Promise<RegExpExecArray>((resolve) => {
      let text = ''
      this.child.stdout?.on('data', (chunk: Buffer) => {
        text += chunk
        const match = pattern.exec(text)
        if (match !== null) resolve(match)
      })
    })
    const tooLate = once(late, 'abort').then(() => Promise.reject(new Error(`${this.child.spawnfile} says nothing`)))
    tooLate.catch(() => undefined)
    ended.catch(() => undefined)
    return Promise.race([found, ended, tooLate])
  }

  /** Processor time of the process and its children, user and system, in seconds. */
  cpuSeconds(): number {
    return sum(this.#pids().map((pid) => cpuTicks(pid))) / TICKS_PER_SECOND
  }

  /** Resident memory now, of the process and its children, in MB. */
  residentMB(): number {
    return sum(this.#pids().map((pid) => memoryMB(pid, 'VmRSS')))
  }

  /** The most resident memory since `resetPeak`, in MB. */
  peakMB(): number {
    return sum(this.#pids().map((pid) => memoryMB(pid, 'VmHWM')))
  }

  resetPeak(): void {
    for (const pid of this.#pids()) writeFileSync(`/proc/${pid}/clear_refs`, '5')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    // Not SIGKILL at once: nginx would leave its worker behind.
    this.child.kill('SIGTERM')
    const limit = setTimeout(() => this.child.kill('SIGKILL'), 5_000)
    await this.#exited
    clearTimeout(limit)
  }

  #pids(): number[] {
    const { pid } = this.child
    if (pid === undefined) return []
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    return [pid, ...children.split(' ').filter(Boolean).map(Number)]
  }
}

function cpuTicks(pid: number): number {
  // The name of the program stands in parentheses and may hold anything; the numbers come after it.
  const [, numbers = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(/\) (?=\w )/)
  const fields = numbers.split(' ')
  return Number(fields[11]) + Number(fields[12])
}

function memoryMB(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const [, kB] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kB) / 1024
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
