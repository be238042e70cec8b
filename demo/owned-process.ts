import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { setTimeout as sleep } from 'node:timers/promises'

/** How long a process may take to end by itself once it is asked to, in milliseconds. */
const PATIENCE_MS = 15_000

/**
 * A process that this one started and surely ends: with everything that it started itself, when it is disposed of.
 * It has a process group of its own, so that a Ctrl-C on the terminal reaches the demo alone, which then ends all in
 * good order.
 */
export class OwnedProcess implements AsyncDisposable {
  readonly child: ChildProcess
  /** Exit code, or the name of the signal that ended it; or why it could not start. Never rejects. */
  readonly ended: Promise<number | string>

  constructor(command: string, args: readonly string[], options: SpawnOptions) {
    this.child = spawn(command, args, { ...options, detached: true })
    this.ended = new Promise((resolve) => {
      this.child.once('error', (error) => resolve(error.message))
      this.child.once('close', (code, signal) => resolve(code ?? signal ?? 'an unknown end'))
    })
  }

  get pid(): number {
    return this.child.pid ?? 0
  }

  /** Calls `onLine` for every whole line of an output stream of the process, and for the last one without its end. */
  readLines(stream: Readable | null, onLine: (line: string) => void): void {
    const decoder = new StringDecoder('utf8')
    let rest = ''
    stream?.on('data', (chunk: Buffer) => {
      const lines = (rest + decoder.write(chunk)).split('\n')
      rest = lines.pop() ?? ''
      lines.forEach(onLine)
    })
    stream?.on('end', () => rest !== '' && onLine(rest))
  }

  /** SIGTERM, and SIGKILL to whoever is left of its group after some seconds. Tells how it ended. */
  async end(): Promise<number | string> {
    this.#kill('SIGTERM')
    const timer = new AbortController()
    const late = sleep(PATIENCE_MS, undefined, { signal: timer.signal }).then(
      () => this.#kill('SIGKILL'),
      () => undefined,
    )
    const outcome = await this.ended
    timer.abort()
    await late
    // What it started and left behind.
    this.#kill('SIGKILL')
    return outcome
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end()
  }

  #kill(signal: NodeJS.Signals): void {
    if (this.child.pid === undefined) return
    try {
      process.kill(-this.child.pid, signal)
    } catch {
      // The whole group is gone.
    }
  }
}

/** Waits for `promise`, but no longer than until the signal fires. @throws the signal's reason */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  // Who stops waiting does not want to hear how it ended.
  promise.catch(() => undefined)
  signal.throwIfAborted()
  const aborted = Promise.withResolvers<never>()
  const onAbort = (): void => aborted.reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([promise, aborted.promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
