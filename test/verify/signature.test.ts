import * as openpgp from 'openpgp'
import { describe, expect, it } from 'vitest'
import type { SigningKey } from '../../src/protocol/release-claim.ts'
import { verifySignature } from '../../src/verify/signature.ts'
import { day, forge, listed, makeKey, now, sign } from './key-fixture.ts'

const sums = Buffer.from(`${'a'.repeat(64)}  terraform-provider-acme_1.0.0_linux_amd64.zip\n`)
const acme = await makeKey()
const other = await makeKey()
const good = await sign(sums, acme.privateKey, day(-100))
const upstreamUrl = 'https://acme.example/SHA256SUMS.sig'

function verify(signature: Uint8Array, keys: readonly SigningKey[], expiredKeys: 'accept' | 'refuse' = 'accept') {
  return verifySignature(sums, signature, keys, { now, expiredKeys, upstreamUrl })
}

function refusal(code: string, message: string | RegExp = '') {
  const text = message instanceof RegExp ? expect.stringMatching(message) : expect.stringContaining(message)
  return { name: 'MirrorError', code, message: text }
}

describe('verifySignature', () => {
  it('accepts a signature by the listed key and says who made it and when', async () => {
    expect(await verify(good, [listed(acme.publicKey)])).toEqual({
      keyId: acme.publicKey.getKeyID().toHex().toUpperCase(),
      fingerprint: acme.publicKey.getFingerprint(),
      userId: 'Acme <providers@acme.example>',
      signedAt: day(-100).toISOString(),
      keyExpired: false,
      weak: false,
    })
  })

  it('refuses a signature over other bytes, and names the URL', async () => {
    const tampered = verifySignature(Buffer.from(`${sums}\n`), good, [listed(acme.publicKey)], {
      now,
      expiredKeys: 'accept',
      upstreamUrl,
    })
    await expect(tampered).rejects.toMatchObject({
      ...refusal('SIGNATURE_INVALID', upstreamUrl),
      fields: { upstreamUrl },
    })
  })

  it('refuses a signature by a key that is not listed', async () => {
    await expect(verify(good, [listed(other.publicKey)])).rejects.toMatchObject(
      refusal('SIGNATURE_INVALID', `no readable key has id ${acme.publicKey.getKeyID().toHex().toUpperCase()}`),
    )
    await expect(verify(good, [])).rejects.toMatchObject(refusal('SIGNATURE_INVALID'))
  })

  it('accepts two listed keys of which the second signed, and two signatures of which the second counts', async () => {
    const { keyId } = await verify(good, [listed(other.publicKey), listed(acme.publicKey)])
    expect(keyId).toBe(acme.publicKey.getKeyID().toHex().toUpperCase())
    const stranger = await sign(sums, other.privateKey, day(-100))
    const wrong = await sign(Buffer.from('other bytes'), acme.privateKey, day(-100))
    await verify(Buffer.concat([stranger, good]), [listed(acme.publicKey)])
    await verify(Buffer.concat([wrong, good]), [listed(acme.publicKey)])
  })

  it('looks at no more than 16 signatures', async () => {
    const stranger = await sign(sums, other.privateKey, day(-100))
    const many = (count: number) => Buffer.concat([...new Array<Uint8Array>(count).fill(stranger), good])
    await verify(many(15), [listed(acme.publicKey)])
    await expect(verify(many(16), [listed(acme.publicKey)])).rejects.toMatchObject(refusal('SIGNATURE_INVALID'))
  })
})

describe('the form of a signature', () => {
  it('refuses an armored one, as the clients do', async () => {
    const armored = (await openpgp.readSignature({ binarySignature: good })).armor()
    const signature = Buffer.from(armored)
    await expect(verify(signature, [listed(acme.publicKey)])).rejects.toMatchObject(
      refusal('SIGNATURE_INVALID', 'armored'),
    )
  })

  it.each([
    ['nothing', Buffer.alloc(0)],
    ['an HTML page', Buffer.from('<html></html>')],
    ['cosign text', Buffer.from('MEUCIQDx0000000000000000000000000000')],
    ['a torn packet', Buffer.from(good.subarray(0, good.length - 9))],
    ['random high bytes', Buffer.alloc(300, 0xff)],
    ['a huge file', Buffer.alloc(300_000, 0x88)],
    ['a public key', Buffer.from(acme.publicKey.write())],
  ])('refuses %s', async (_, signature) => {
    await expect(verify(signature, [listed(acme.publicKey)])).rejects.toMatchObject(refusal('SIGNATURE_INVALID'))
  })

  it('refuses a signature by the right key that is not over a document', async () => {
    const certification = acme.publicKey.users[0]?.selfCertifications[0]
    if (certification === undefined) throw new Error('the key has a self-certification')
    const packets = new openpgp.PacketList<openpgp.SignaturePacket>()
    packets.push(certification)
    await expect(verify(packets.write(), [listed(acme.publicKey)])).rejects.toMatchObject(
      refusal('SIGNATURE_INVALID', 'not a signature over a document'),
    )
  })

  it('keeps the reason short, however many keys fail', async () => {
    const wrong = await sign(Buffer.from('other'), acme.privateKey, day(-100))
    const many = Buffer.concat(new Array<Uint8Array>(16).fill(wrong))
    const keys = new Array<SigningKey>(40).fill(listed(acme.publicKey))
    const error = await verify(many, keys).catch((caught) => caught)
    expect(error.message.length).toBeLessThan(800)
  })
})

describe('keys judged at signing time', () => {
  const retired = openpgp.enums.reasonForRevocation.keyRetired
  const superseded = openpgp.enums.reasonForRevocation.keySuperseded
  const compromised = openpgp.enums.reasonForRevocation.keyCompromised

  it.each([
    ['compromised, before it signed', compromised, -200],
    ['compromised, after it signed', compromised, -50],
    ['retired, after it signed', retired, -50],
    ['superseded, after it signed', superseded, -50],
    ['retired, before it signed', retired, -200],
  ])('refuses a key that was %s', async (_, flag, days) => {
    const { publicKey } = await openpgp.revokeKey({
      key: acme.privateKey,
      reasonForRevocation: { flag },
      date: day(days),
      format: 'object',
    })
    await expect(verify(good, [listed(publicKey)])).rejects.toMatchObject(refusal('SIGNATURE_INVALID', 'revoked'))
  })

  it('refuses a revoked sub-key', async () => {
    const { privateKey } = await makeKey({ subkeys: [{ sign: true }] })
    const signature = await sign(sums, privateKey, day(-100))
    const [subkey] = privateKey.subkeys
    if (subkey === undefined || !(privateKey.keyPacket instanceof openpgp.SecretKeyPacket))
      throw new Error('no sub-key')
    await verify(signature, [listed(privateKey.toPublic())])
    privateKey.subkeys[0] = await subkey.revoke(privateKey.keyPacket, { flag: superseded }, day(-50))
    await expect(verify(signature, [listed(privateKey.toPublic())])).rejects.toMatchObject(
      refusal('SIGNATURE_INVALID', 'revoked'),
    )
  })

  it('refuses a key made after the signature', async () => {
    const signature = await forge(sums, acme.privateKey, { date: day(-1001) })
    await expect(verify(signature, [listed(acme.publicKey)])).rejects.toMatchObject(
      refusal('SIGNATURE_INVALID', /newer than the signature|made after the signature/),
    )
  })

  it('refuses a signature from the future, and allows a clock that is a little ahead', async () => {
    const keys = [listed(acme.publicKey)]
    await verify(await forge(sums, acme.privateKey, { date: day(0.5) }), keys)
    const future = await forge(sums, acme.privateKey, { date: day(3) })
    await expect(verify(future, keys)).rejects.toMatchObject(refusal('SIGNATURE_INVALID', 'from the future'))
  })

  it('refuses a signature that has expired itself', async () => {
    const signature = await forge(sums, acme.privateKey, { date: day(-100), lifeSeconds: 86_400 })
    await expect(verify(signature, [listed(acme.publicKey)])).rejects.toMatchObject(
      refusal('SIGNATURE_INVALID', 'the signature has expired'),
    )
  })

  it('accepts a key that expired after it signed, says so, and refuses it where told to', async () => {
    const { privateKey, publicKey } = await makeKey({ keyExpirationTime: 950 * 86_400 })
    const signature = await sign(sums, privateKey, day(-100))
    expect(await verify(signature, [listed(publicKey)])).toMatchObject({ keyExpired: true })
    await expect(verify(signature, [listed(publicKey)], 'refuse')).rejects.toMatchObject(
      refusal('SIGNATURE_INVALID', 'expired keys are refused here'),
    )
    const late = await forge(sums, privateKey, { date: day(-10) })
    await expect(verify(late, [listed(publicKey)])).rejects.toMatchObject(refusal('SIGNATURE_INVALID', 'expired'))
  })

  it('accepts a sub-key that expired after it signed under a primary key without end', async () => {
    const { privateKey, publicKey } = await makeKey({ subkeys: [{ sign: true, keyExpirationTime: 950 * 86_400 }] })
    const signature = await sign(sums, privateKey, day(-100))
    const signer = await verify(signature, [listed(publicKey)])
    expect(signer).toMatchObject({ keyExpired: true, fingerprint: publicKey.getFingerprint() })
    await expect(verify(signature, [listed(publicKey)], 'refuse')).rejects.toMatchObject(refusal('SIGNATURE_INVALID'))
  })

  it('accepts a key renewed after it signed, and prefers it to an expired copy listed before', async () => {
    const { privateKey, publicKey } = await makeKey({ keyExpirationTime: 950 * 86_400 })
    const signature = await sign(sums, privateKey, day(-100))
    const renewed = await openpgp.reformatKey({
      privateKey,
      userIDs: { name: 'Acme', email: 'providers@acme.example' },
      keyExpirationTime: 3000 * 86_400,
      date: day(-60),
      format: 'object',
    })
    for (const keys of [[renewed.publicKey], [publicKey, renewed.publicKey], [renewed.publicKey, publicKey]]) {
      for (const rule of ['accept', 'refuse'] as const) {
        expect(await verify(signature, keys.map(listed), rule)).toMatchObject({ keyExpired: false })
      }
    }
  })

  it('refuses a key that had expired when it signed, though its self-signature was renewed later', async () => {
    const { privateKey } = await makeKey()
    const late = await forge(sums, privateKey, { date: day(-10) })
    const { publicKey } = await openpgp.reformatKey({
      privateKey,
      userIDs: { name: 'Acme', email: 'providers@acme.example' },
      keyExpirationTime: 950 * 86_400,
      date: day(-5),
      format: 'object',
    })
    await expect(verify(late, [listed(publicKey)])).rejects.toMatchObject(
      refusal('SIGNATURE_INVALID', 'the key had expired when it signed'),
    )
  })
})

describe('weak algorithms', () => {
  it('accepts SHA-1 as the clients do, and flags it', async () => {
    const key = await makeKey({ type: 'rsa', rsaBits: 2048 })
    const sha1 = await forge(sums, key.privateKey, { date: day(-100), hash: openpgp.enums.hash.sha1 })
    expect(await verify(sha1, [listed(key.publicKey)])).toMatchObject({ weak: true })
    const sha256 = await forge(sums, key.privateKey, { date: day(-100) })
    expect(await verify(sha256, [listed(key.publicKey)])).toMatchObject({ weak: false })
  })

  it('accepts RSA of 1024 bits as the clients do, and flags it', async () => {
    const config = { minRSABits: 1024 }
    const { privateKey, publicKey } = await makeKey({ type: 'rsa', rsaBits: 1024, config })
    const signature = await sign(sums, privateKey, day(-100), config)
    expect(await verify(signature, [listed(publicKey)])).toMatchObject({ weak: true })
  })

  it('refuses MD5', async () => {
    const { privateKey, publicKey } = await makeKey({ type: 'rsa', rsaBits: 2048 })
    const signature = await forge(sums, privateKey, { date: day(-100), hash: openpgp.enums.hash.md5 })
    await expect(verify(signature, [listed(publicKey)])).rejects.toMatchObject(refusal('SIGNATURE_INVALID', 'MD5'))
  })
})

describe('unreadable keys', () => {
  const unreadable = [
    ['empty', ''],
    ['text', 'no key here'],
    ['a torn block', acme.publicKey.armor().slice(0, 300)],
    ['garbage in armor', '-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----\n'],
    ['a private key', other.privateKey.armor()],
    ['binary garbage', '\u0099\u0001\u0002'],
  ] as const

  it.each(unreadable)('reports KEY_UNREADABLE with the reason if that is the only key: %s', async (_, text) => {
    await expect(verify(good, [listed(text)])).rejects.toMatchObject(
      refusal('KEY_UNREADABLE', /unreadable: .*key 1: ./),
    )
  })

  it.each(unreadable)('does not mind one beside the good key: %s', async (_, text) => {
    await verify(good, [listed(text), listed(acme.publicKey)])
    await verify(good, [listed(acme.publicKey), listed(text)])
  })

  it('reports KEY_UNREADABLE beside a readable key that is not the issuer, SIGNATURE_INVALID beside the issuer', async () => {
    const broken = listed('broken')
    await expect(verify(good, [listed(other.publicKey), broken])).rejects.toMatchObject(refusal('KEY_UNREADABLE'))
    const wrong = await sign(Buffer.from('other'), acme.privateKey, day(-100))
    await expect(verify(wrong, [listed(acme.publicKey), broken])).rejects.toMatchObject(refusal('SIGNATURE_INVALID'))
  })
})

describe('odd keys', () => {
  const armor = acme.publicKey.armor()
  const binary = Buffer.from(acme.publicKey.write()).toString('latin1')
  it.each([
    ['garbage after END', `${armor}\ngit st\n`],
    ['text before BEGIN', `Key of Acme:\n${armor}`],
    ['two blocks, the second signed', other.publicKey.armor() + armor],
    ['a torn block before the good one', `-----BEGIN PGP PUBLIC KEY BLOCK-----\n${armor}`],
    ['a blank line of no-break spaces', armor.replace(/\r?\n\r?\n/, '\n\u00a0\n')],
    ['CRLF', armor.replace(/\r?\n/g, '\r\n')],
    ['LF', armor.replace(/\r\n/g, '\n')],
    ['CR', armor.replace(/\r?\n/g, '\r')],
    ['a binary key', binary],
  ])('reads a key with %s', async (_, text) => {
    expect(await verify(good, [listed(text)])).toMatchObject({ fingerprint: acme.publicKey.getFingerprint() })
  })

  it('reads no more than 64 keys', async () => {
    const many = (count: number) => new Array<SigningKey>(count).fill(listed(other.publicKey))
    await verify(good, [...many(63), listed(acme.publicKey)])
    await expect(verify(good, [...many(64), listed(acme.publicKey)])).rejects.toMatchObject(
      refusal('KEY_UNREADABLE', 'more than 64 keys'),
    )
  })

  it('reads no more than 1 MB of key text, in linear time', async () => {
    const start = performance.now()
    const begins = '-----BEGIN PGP PUBLIC KEY BLOCK-----\n'.repeat(27_000)
    await expect(verify(good, [listed(begins)])).rejects.toMatchObject(refusal('KEY_UNREADABLE'))
    await expect(verify(good, [listed(`${begins}${begins}`), listed(acme.publicKey)])).rejects.toMatchObject(
      refusal('KEY_UNREADABLE', 'more than 64 keys or'),
    )
    await expect(verify(good, [listed('-----END PGP PUBLIC KEY BLOCK-----\n'.repeat(27_000))])).rejects.toMatchObject(
      refusal('KEY_UNREADABLE'),
    )
    await expect(verify(good, [listed(' '.repeat(1_000_000))])).rejects.toMatchObject(refusal('KEY_UNREADABLE'))
    expect(performance.now() - start).toBeLessThan(3000)
  })
})
