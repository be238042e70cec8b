import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** True if GnuPG is installed; says so loudly if not. */
export const hasGpg = canRun('gpg')
if (!hasGpg) console.warn('SKIPPED: gpg is not installed; no signature of GnuPG was checked')

/** A key ring of its own, gone when disposed of. */
export interface Gpg extends AsyncDisposable {
  /** Makes a signing key on 2024-01-01 and returns its user id. `expires` as gpg takes it: `never`, `1y`. */
  makeKey(algorithm: string, expires?: string): string
  /** The armored public key. */
  exportKey(user: string): string
  /** `gpg --detach-sign` on 2024-06-01, with these further arguments, by these users. */
  sign(data: Buffer, users: readonly string[], args?: readonly string[]): Buffer
}

/** Opens an empty key ring. Every command runs at a made-up time, so that keys can be old. */
export async function openGpg(): Promise<Gpg> {
  const home = await mkdtemp(join(tmpdir(), 'terramirror-gpg-'))
  const run = (day: string, args: readonly string[], input: Buffer = Buffer.alloc(0)): Buffer => {
    const common = ['--homedir', home, '--batch', '--quiet', '--yes', '--pinentry-mode', 'loopback', '--passphrase', '']
    const time = ['--faked-system-time', `${day}T120000`]
    return execFileSync('gpg', [...common, ...time, ...args], { input, stdio: ['pipe', 'pipe', 'ignore'] })
  }
  return {
    makeKey(algorithm, expires = 'never') {
      const user = `${algorithm}-${expires}@acme.example`
      run('20240101', ['--quick-generate-key', user, algorithm, 'sign', expires])
      return user
    },
    exportKey: (user) => run('20240101', ['--armor', '--export', user]).toString(),
    sign(data, users, args = []) {
      const signers = users.flatMap((user) => ['--local-user', user])
      return run('20240601', [...args, '--detach-sign', ...signers], data)
    },
    async [Symbol.asyncDispose]() {
      execFileSync('gpgconf', ['--homedir', home, '--kill', 'all'], { stdio: 'ignore' })
      await rm(home, { recursive: true, force: true })
    },
  }
}

function canRun(command: string): boolean {
  try {
    execFileSync(command, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
