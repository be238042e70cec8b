import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifySignature } from '../../src/verify/signature.ts'
import { type Gpg, hasGpg, openGpg } from './gpg-fixture.ts'
import { listed, now } from './key-fixture.ts'

const sums = Buffer.from(`${'a'.repeat(64)}  terraform-provider-acme_1.0.0_linux_amd64.zip\n`)

describe.skipIf(!hasGpg)('signatures of GnuPG', () => {
  let gpg: Gpg

  beforeAll(async () => {
    gpg = await openGpg()
  })

  afterAll(() => gpg[Symbol.asyncDispose]())

  function verify(user: string, signature: Buffer) {
    return verifySignature(sums, signature, [listed(gpg.exportKey(user))], { now, expiredKeys: 'accept' })
  }

  it.each(['ed25519', 'nistp256', 'secp256k1', 'brainpoolP256r1', 'rsa3072', 'dsa2048'])(
    'accepts %s',
    async (algorithm) => {
      const user = gpg.makeKey(algorithm)
      const signer = await verify(user, gpg.sign(sums, [user]))
      expect(signer).toMatchObject({ weak: false, keyExpired: false, userId: user })
    },
  )

  it.each(['rsa1024', 'dsa1024'])('accepts %s and flags it as weak', async (algorithm) => {
    const user = gpg.makeKey(algorithm)
    expect(await verify(user, gpg.sign(sums, [user]))).toMatchObject({ weak: true })
  })

  it('accepts text mode, two signatures, and SHA-1 flagged as weak', async () => {
    const [one, two] = [gpg.makeKey('ed25519', '10y'), gpg.makeKey('rsa2048', '10y')]
    expect(await verify(one, gpg.sign(sums, [one], ['--textmode']))).toMatchObject({ weak: false })
    const both = gpg.sign(sums, [one, two])
    expect(await verify(one, both)).toMatchObject({ userId: one })
    expect(await verify(two, both)).toMatchObject({ userId: two })
    const sha1 = gpg.sign(sums, [two], ['--digest-algo', 'SHA1'])
    expect(await verify(two, sha1)).toMatchObject({ weak: true })
  })

  it('accepts a key that expired since, and refuses an armored signature', async () => {
    const user = gpg.makeKey('ed25519', '1y')
    const signer = await verify(user, gpg.sign(sums, [user]))
    expect(signer).toMatchObject({ keyExpired: true, signedAt: '2024-06-01T12:00:00.000Z' })
    const armored = gpg.sign(sums, [user], ['--armor'])
    await expect(verify(user, armored)).rejects.toMatchObject({ code: 'SIGNATURE_INVALID' })
  })
})
