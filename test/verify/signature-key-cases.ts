import * as openpgp from 'openpgp'
import type { OriginKey } from '../origin/origin-key.ts'
import type { Gpg } from './gpg-fixture.ts'
import { sign } from './key-fixture.ts'
import { DAY_S, day, entry, forging, honest, made, type SignatureCase } from './signature-case.ts'

const { curve, hash, reasonForRevocation } = openpgp.enums
const EVERYTHING = { rejectCurves: new Set<openpgp.enums.curve>(), minRSABits: 1024 }
const UNKNOWN_ALGORITHM = 'RFC 9580 has it and the signature is good; only this client cannot read such keys'
/** Between the signatures of the cases and now. */
const LIFE_S = 950 * DAY_S

/** Every curve, every digest, and short keys. */
export async function algorithmCases(): Promise<SignatureCase[]> {
  const curves = [
    ...[curve.ed25519Legacy, curve.nistP256, curve.nistP384, curve.nistP521, curve.secp256k1],
    ...[curve.brainpoolP256r1, curve.brainpoolP384r1, curve.brainpoolP512r1],
  ] as const
  const byCurve = curves.map(async (name): Promise<SignatureCase> => {
    const key = await made({ type: 'ecc', curve: name, config: EVERYTHING })
    return { name: `the curve ${name}`, signers: [honest(key, EVERYTHING)], client: 'accepts' }
  })
  const rsa = await made({ type: 'rsa', rsaBits: 2048 })
  const short = await made({ type: 'rsa', rsaBits: 1024, config: EVERYTHING })
  const digests = [hash.sha224, hash.sha256, hash.sha384, hash.sha512].map(
    (digest): SignatureCase => ({
      name: `the digest ${openpgp.enums.read(hash, digest)}`,
      signers: [forging(rsa, { hash: digest })],
      client: 'accepts',
    }),
  )
  return [
    ...(await Promise.all(byCurve)),
    ...digests,
    { name: 'the digest sha1', signers: [forging(rsa, { hash: hash.sha1 })], client: 'accepts', weak: true },
    { name: 'the digest md5', signers: [forging(rsa, { hash: hash.md5 })], client: 'refuses' },
    { name: 'RSA of 1024 bits', signers: [honest(short, EVERYTHING)], client: 'accepts', weak: true },
    {
      name: 'Ed25519 in the form of 2024',
      signers: [honest(await made({ type: 'curve25519' }))],
      client: 'refuses',
      weDifferBecause: UNKNOWN_ALGORITHM,
    },
    {
      name: 'Ed448',
      signers: [honest(await made({ type: 'curve448' }))],
      client: 'refuses',
      weDifferBecause: UNKNOWN_ALGORITHM,
    },
  ]
}

/** Revoked keys: refused whatever the reason, and whether it was before or after the signature. */
export async function revocationCases(): Promise<SignatureCase[]> {
  const acme = await made()
  const { keyCompromised, keyRetired, keySuperseded, noReason } = reasonForRevocation
  const reasons = { compromised: keyCompromised, retired: keyRetired, superseded: keySuperseded, revoked: noReason }
  const cases: SignatureCase[] = []
  for (const [reason, flag] of Object.entries(reasons)) {
    for (const [when, days] of [
      ['before', -200],
      ['after', -50],
    ] as const) {
      const options = { reasonForRevocation: { flag }, date: day(days), format: 'object' } as const
      const { publicKey: listed } = await openpgp.revokeKey({ key: acme.privateKey, ...options })
      const name = `a key that was ${reason} ${when} it signed`
      cases.push({ name, signers: [forging(acme, { listed })], client: 'refuses' })
    }
  }
  return [...cases, { name: 'a sub-key that was revoked', signers: [await withRevokedSubkey()], client: 'refuses' }]
}

/** Keys and signatures that came or ended at odd times, and sub-keys. */
export async function timeCases(): Promise<SignatureCase[]> {
  const acme = await made()
  const mortal = await made({ keyExpirationTime: LIFE_S })
  const withMortalSubkey = await made({ subkeys: [{ sign: true, keyExpirationTime: LIFE_S }] })
  const { publicKey: renewed } = await openpgp.reformatKey({
    privateKey: mortal.privateKey,
    userIDs: { name: 'Acme' },
    keyExpirationTime: 3000 * DAY_S,
    date: day(-60),
    format: 'object',
  })
  const late = 'who holds an old key can still sign with it: keys are judged at the time of signing'
  return [
    { name: 'a sub-key', signers: [honest(await made({ subkeys: [{ sign: true }] }))], client: 'accepts' },
    { name: 'a key that expired after it signed', signers: [honest(mortal)], client: 'accepts' },
    { name: 'a sub-key that expired after it signed', signers: [honest(withMortalSubkey)], client: 'accepts' },
    { name: 'a key renewed since', signers: [forging(mortal, { listed: renewed })], client: 'accepts' },
    {
      name: 'a key that had expired when it signed',
      signers: [forging(mortal, { date: day(-10) })],
      client: 'accepts',
      weDifferBecause: late,
    },
    {
      name: 'a key made after the signature',
      signers: [forging(acme, { date: day(-1001) })],
      client: 'accepts',
      weDifferBecause: 'no honest signer does that: keys are judged at the time of signing',
    },
    {
      name: 'a signature of half a day ahead',
      signers: [forging(acme, { date: day(0.5) })],
      client: 'refuses',
      weDifferBecause: "a signer's clock may be a little ahead of ours",
    },
    { name: 'a signature from the future', signers: [forging(acme, { date: day(3) })], client: 'refuses' },
    { name: 'a signature that has expired', signers: [forging(acme, { lifeSeconds: DAY_S })], client: 'refuses' },
  ]
}

/** What only GnuPG can make. */
export function gpgCases(gpg: Gpg): SignatureCase[] {
  const by = (algorithm: string, args: readonly string[] = []): OriginKey[] => {
    const user = gpg.makeKey(algorithm)
    return [entry(gpg.exportKey(user), (sums) => gpg.sign(sums, [user], args))]
  }
  return [
    { name: 'DSA of 2048 bits by gpg', signers: by('dsa2048'), client: 'accepts' },
    { name: 'DSA of 1024 bits by gpg', signers: by('dsa1024'), client: 'accepts', weak: true },
    { name: 'text mode by gpg', signers: by('ed25519', ['--textmode']), client: 'accepts' },
    { name: 'SHA-1 by gpg', signers: by('rsa2048', ['--digest-algo', 'SHA1']), client: 'accepts', weak: true },
  ]
}

async function withRevokedSubkey(): Promise<OriginKey> {
  const { privateKey } = await made({ subkeys: [{ sign: true }] })
  const signer = await openpgp.readPrivateKey({ binaryKey: privateKey.write() })
  const [subkey] = privateKey.subkeys
  if (subkey === undefined || !(privateKey.keyPacket instanceof openpgp.SecretKeyPacket)) throw new Error('no sub-key')
  const reason = { flag: reasonForRevocation.keySuperseded }
  privateKey.subkeys[0] = await subkey.revoke(privateKey.keyPacket, reason, day(-50))
  return entry(privateKey.toPublic().armor(), (sums) => sign(sums, signer, day(-100)))
}
