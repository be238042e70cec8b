import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const SSHD = '/usr/sbin/sshd'

/** Path of the ssh server program, or undefined with a loud line if it is missing. */
export function sshServer(): string | undefined {
  try {
    accessSync(SSHD, constants.X_OK)
    return SSHD
  } catch {
    console.warn('SKIPPED: sshd is missing; nothing is tested against a real ssh server')
    return undefined
  }
}

/** A real ssh server on loopback for one user with one key, who may run git's own commands alone. */
export class SshHost implements AsyncDisposable {
  readonly port: number
  /** Private key of the user. */
  readonly keyFile: string
  /** A `known_hosts` with the server's key. */
  readonly knownHostsFile: string
  readonly #folder: string
  readonly #child: ChildProcess
  #log = ''

  private constructor(parts: { port: number; folder: string; child: ChildProcess }) {
    this.port = parts.port
    this.keyFile = join(parts.folder, 'user')
    this.knownHostsFile = join(parts.folder, 'known_hosts')
    this.#folder = parts.folder
    this.#child = parts.child
    parts.child.stderr?.on('data', (bytes: Buffer) => {
      this.#log += bytes
    })
  }

  /** Starts it as the user that runs the tests. The caller disposes of it. */
  static async start(): Promise<SshHost> {
    const folder = await mkdtemp(join(tmpdir(), 'test-sshd-'))
    for (const name of ['host', 'user'])
      await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', join(folder, name)])
    const port = await freePort()
    const publicKey = await readFile(join(folder, 'user.pub'), 'utf8')
    const command = 'git-shell -c \\"$SSH_ORIGINAL_COMMAND\\"'
    await writeFile(join(folder, 'authorized_keys'), `restrict,command="${command}" ${publicKey}`)
    await writeFile(
      join(folder, 'known_hosts'),
      `[127.0.0.1]:${port} ${await readFile(join(folder, 'host.pub'), 'utf8')}`,
    )
    await writeFile(join(folder, 'sshd_config'), serverConfig(folder, port))
    // sshd of Debian wants it, and systemd makes it only where the service runs.
    if (process.getuid?.() === 0) await mkdir('/run/sshd', { recursive: true, mode: 0o755 })
    const child = spawn(SSHD, ['-D', '-e', '-f', join(folder, 'sshd_config')], { stdio: ['ignore', 'ignore', 'pipe'] })
    const host = new SshHost({ port, folder, child })
    await host.#listening()
    return host
  }

  /** How often somebody logged in. */
  get logins(): number {
    return this.#log.split('Accepted publickey').length - 1
  }

  /** `git::ssh://…` of a repository on this machine. */
  source(path: string, query = ''): string {
    return `git::ssh://${userInfo().username}@127.0.0.1:${this.port}${path}${query}`
  }

  /** Ends it. */
  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGTERM')
    await ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    await rm(this.#folder, { recursive: true, force: true })
  }

  async #listening(): Promise<void> {
    const end = Date.now() + 10_000
    while (!this.#log.includes('Server listening')) {
      if (this.#child.exitCode !== null || Date.now() > end) throw new Error(`sshd did not start: ${this.#log}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

function serverConfig(folder: string, port: number): string {
  return [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${join(folder, 'host')}`,
    `AuthorizedKeysFile ${join(folder, 'authorized_keys')}`,
    'PidFile none',
    'UsePAM no',
    'StrictModes no',
    'PermitRootLogin prohibit-password',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    '',
  ].join('\n')
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  await once(server.close(), 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}
