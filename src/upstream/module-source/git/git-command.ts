import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { refusedSource } from '../../../protocol/module-source.ts'

/** A `git` that ran and failed. */
export class GitFailed extends Error {
  override readonly name = 'GitFailed'
  readonly stderr: string

  constructor(stderr: string) {
    super(`git failed: ${stderr}`)
    this.stderr = stderr
  }
}

/** The variables of a process; nothing of ours is handed down. */
export type Environment = Readonly<Record<string, string>>

/** A running `git` that takes requests on its input. */
export type GitProcess = ChildProcessByStdio<Writable, Readable, Readable>

const MAX_STDERR = 16_384
const MAX_OUTPUT = 64 * 1024 * 1024

/**
 * Runs `git` in `cwd`; returns its output. When `signal` fires, it and all that it started are killed.
 * @throws GitFailed; the reason of `signal`; MirrorError `MODULE_SOURCE_REFUSED` if there is no git
 */
export async function runGit(
  args: readonly string[],
  { cwd, env, signal }: { cwd: string; env: Environment; signal: AbortSignal },
): Promise<Buffer> {
  signal.throwIfAborted()
  const child = startGit(args, { cwd, env })
  child.stdin.end()
  const onAbort = (): void => killGroup(child)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    const [code, output, stderr] = await Promise.all([ended(child), readAll(child.stdout), readTail(child.stderr)])
    signal.throwIfAborted()
    if (code !== 0) throw new GitFailed(stderr)
    return output
  } finally {
    signal.removeEventListener('abort', onAbort)
    killGroup(child)
  }
}

/** Starts a `git` in a process group of its own. Whoever starts it ends it by `killGroup`. */
export function startGit(args: readonly string[], { cwd, env }: { cwd: string; env: Environment }): GitProcess {
  const child = spawn('git', args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'], detached: true })
  // A process that is gone takes no more input; how it ended is told by `ended`.
  child.stdin.on('error', () => undefined)
  return child
}

/** Kills a process and all that it started. */
export function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // Nobody is left.
  }
}

/** The exit code. @throws MirrorError `MODULE_SOURCE_REFUSED` if there is no git on this machine */
export function ended(child: ChildProcess): Promise<number | null> {
  const { promise, resolve, reject } = Promise.withResolvers<number | null>()
  child.once('close', (code) => resolve(code))
  child.once('error', (error) => reject('code' in error && error.code === 'ENOENT' ? missingGit(error) : error))
  return promise
}

/** What a program complains of, the last part of it. */
export async function readTail(stderr: Readable): Promise<string> {
  let text = ''
  for await (const bytes of stderr) text = (text + String(bytes)).slice(-MAX_STDERR)
  return text
}

async function readAll(stdout: Readable): Promise<Buffer> {
  const pieces: Buffer[] = []
  let length = 0
  for await (const bytes of stdout as AsyncIterable<Buffer>) {
    length += bytes.length
    if (length > MAX_OUTPUT) throw new GitFailed('its output is too long')
    pieces.push(bytes)
  }
  return Buffer.concat(pieces)
}

function missingGit(cause: unknown): Error {
  return refusedSource('git', 'there is no `git` on the machine of this mirror; install it', cause)
}
