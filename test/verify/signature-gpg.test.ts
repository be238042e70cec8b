import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifySignature } from '../../src/verify/signature.ts'
import { listed, now } from './key-fixture.ts'

const hasGpg = canRun('gpg')
if (!hasGpg) console.warn('SKIPPED: gpg is not installed; no signature of GnuPG was checked')

const sums = Buffer.from(`${'a'.repeat(64)}  terraform-provider-acme_1.0.0_linux_amd64.zip\n`)
let home = ''

function canRun(command: string): boolean {
  try {
    execFileSync(command, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Runs gpg at a made-up time, so that keys can be old. */
function gpg(at: string, args: readonly string[], input: Buffer = Buffer.alloc(0)): Buffer {
  const common = ['--homedir', home, '--batch', '--quiet', '--yes', '--pinentry-mode', 'loopback', '--passphrase', '']
  const time = ['--faked-system-time', `${at}T120000`]
  return execFileSync('gpg', [...common, ...time, ...args], { input, stdio: ['pipe', 'pipe', 'ignore'] })
}

function makeKey(algorithm: string, expires = 'never'): string {
  const user = `${algorithm}-${expires}@acme.example`
  gpg('20240101', ['--quick-generate-key', user, algorithm, 'sign', expires])
  return user
}

function verify(user: string, signature: Buffer) {
  const key = listed(gpg('20240101', ['--armor', '--export', user]).toString())
  return verifySignature(sums, signature, [key], { now, expiredKeys: 'accept' })
}

describe.skipIf(!hasGpg)('signatures of GnuPG', () => {
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'terramirror-gpg-'))
  })

  afterAll(async () => {
    execFileSync('gpgconf', ['--homedir', home, '--kill', 'all'], { stdio: 'ignore' })
    await rm(home, { recursive: true, force: true })
  })

  it.each(['ed25519', 'nistp256', 'secp256k1', 'brainpoolP256r1', 'rsa3072', 'dsa2048'])(
    'accepts %s',
    async (algorithm) => {
      const user = makeKey(algorithm)
      const signature = gpg('20240601', ['--detach-sign', '--local-user', user], sums)
      expect(await verify(user, signature)).toMatchObject({ weak: false, keyExpired: false, userId: user })
    },
  )

  it.each(['rsa1024', 'dsa1024'])('accepts %s and flags it as weak', async (algorithm) => {
    const user = makeKey(algorithm)
    const signature = gpg('20240601', ['--detach-sign', '--local-user', user], sums)
    expect(await verify(user, signature)).toMatchObject({ weak: true })
  })

  it('accepts text mode, two signatures, and SHA-1 flagged as weak', async () => {
    const [one, two] = [makeKey('ed25519', '10y'), makeKey('rsa2048', '10y')]
    const sign = ['--detach-sign', '--local-user']
    expect(await verify(one, gpg('20240601', ['--textmode', ...sign, one], sums))).toMatchObject({ weak: false })
    const both = gpg('20240601', [...sign, one, '--local-user', two], sums)
    expect(await verify(one, both)).toMatchObject({ userId: one })
    expect(await verify(two, both)).toMatchObject({ userId: two })
    const sha1 = gpg('20240601', ['--digest-algo', 'SHA1', ...sign, two], sums)
    expect(await verify(two, sha1)).toMatchObject({ weak: true })
  })

  it('accepts a key that expired since, and refuses an armored signature', async () => {
    const user = makeKey('ed25519', '1y')
    const signature = gpg('20240601', ['--detach-sign', '--local-user', user], sums)
    expect(await verify(user, signature)).toMatchObject({ keyExpired: true, signedAt: '2024-06-01T12:00:00.000Z' })
    const armored = gpg('20240601', ['--armor', '--detach-sign', '--local-user', user], sums)
    await expect(verify(user, armored)).rejects.toMatchObject({ code: 'SIGNATURE_INVALID' })
  })
})
