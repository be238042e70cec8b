import type { Key, KeyID, SignaturePacket, Subkey } from 'openpgp'
import { MirrorError } from '../errors.ts'
import type { Signer } from '../protocol/authentication.ts'
import type { SigningKey } from '../protocol/release-claim.ts'
import { loadOpenPgp } from './openpgp-config.ts'
import { readSigningKeys } from './signing-keys.ts'

/** How to judge a signature. */
export interface SignatureRules {
  readonly now: Date
  /** What to do with a key that was valid when it signed and has expired since (field-reports B29). */
  readonly expiredKeys: 'accept' | 'refuse'
  /** Where the signature came from, already redacted, for the error. */
  readonly upstreamUrl?: string | undefined
}

const MAX_SIGNATURE_BYTES = 256 * 1024
const MAX_SIGNATURE_PACKETS = 16
const MAX_REASON_LENGTH = 600
/** A signer's clock may be a little ahead of ours. */
const CLOCK_TOLERANCE_MS = 86_400_000
const WEAK_BITS = 2048

/**
 * Verifies a binary detached OpenPGP signature (RFC 9580, section 5.2) over `data` against the keys that the origin
 * lists. Any key may have made any of the signatures. Keys and sub-keys are judged at the time of signing, with one
 * exception: a revoked one is refused whenever it signed, as the real clients do (client-contract C8, C9).
 *
 * A key that cannot be read does no harm beside one that made the signature.
 *
 * @throws MirrorError `SIGNATURE_INVALID`; `KEY_UNREADABLE` if no readable key has the signature's key id and some
 *   listed key could not be read
 */
export async function verifySignature(
  data: Uint8Array,
  signature: Uint8Array,
  keys: readonly SigningKey[],
  rules: SignatureRules,
): Promise<Signer> {
  const packets = await readSignature(signature, rules)
  const { readable, unreadable } = await readSigningKeys(keys)
  const reasons = new Set<string>()
  let expired: Signer | undefined
  let issuerIsReadable = false
  for (const packet of packets) {
    for (const key of readable) {
      const [issuer] = key.getKeys(packet.issuerKeyID)
      if (issuer === undefined) continue
      issuerIsReadable = true
      try {
        const signer = await judge(data, { packet, key, issuer }, rules)
        // The same key may be listed again, renewed: look on before reporting an expired one.
        if (!signer.keyExpired) return signer
        expired ??= signer
      } catch (error) {
        reasons.add(`${hexOf(key.getKeyID())}: ${messageOf(error)}`)
      }
    }
  }
  if (expired !== undefined) return expired
  if (!issuerIsReadable)
    reasons.add(`no readable key has id ${packets.map((packet) => hexOf(packet.issuerKeyID)).join(', ')}`)
  if (!issuerIsReadable && unreadable.length > 0) throw keyUnreadable([...reasons, ...unreadable], rules)
  throw invalid([...reasons], rules)
}

async function readSignature(bytes: Uint8Array, rules: SignatureRules): Promise<SignaturePacket[]> {
  const { openpgp, config } = await loadOpenPgp()
  const refusal = refusalOfForm(bytes)
  if (refusal !== undefined) throw invalid([refusal], rules)
  try {
    const { packets } = await openpgp.readSignature({ binarySignature: bytes, config })
    // Packets of an unsupported version come as another class, without an issuer.
    const known = packets.filter((packet) => packet instanceof openpgp.SignaturePacket)
    if (known.length > 0) return known.slice(0, MAX_SIGNATURE_PACKETS)
  } catch (error) {
    throw invalid([`not a readable OpenPGP signature: ${messageOf(error)}`], rules, error)
  }
  throw invalid(['the file holds no signature of a supported version'], rules)
}

function refusalOfForm(bytes: Uint8Array): string | undefined {
  const [first = 0] = bytes
  if (bytes.length > MAX_SIGNATURE_BYTES) return `a signature larger than ${MAX_SIGNATURE_BYTES} bytes`
  if (first >= 0x80) return undefined
  const armored = Buffer.from(bytes.subarray(0, 100)).toString('latin1').includes('-----BEGIN PGP')
  return armored ? 'the signature is armored, and clients read binary ones only' : 'not an OpenPGP signature'
}

interface Candidate {
  readonly packet: SignaturePacket
  readonly key: Key
  /** The primary key or the sub-key whose id the packet names. */
  readonly issuer: Key | Subkey
}

/** Throws an Error with the reason unless this key validly made this one signature. */
async function judge(data: Uint8Array, { packet, key, issuer }: Candidate, rules: SignatureRules): Promise<Signer> {
  const { openpgp, config } = await loadOpenPgp()
  await assertMadeBy(data, packet, key)
  // With no date, binding and flags are checked and every revocation counts, also "retired" and "superseded".
  await key.getSigningKey(packet.issuerKeyID, null, undefined, config)
  const signedAt = packet.created
  if (signedAt === null) throw new Error('the signature has no creation time')
  const expiresAt = await expiryOf(key, issuer)
  const now = rules.now.getTime()
  if (signedAt.getTime() > now + CLOCK_TOLERANCE_MS) throw new Error('the signature is from the future')
  if (now >= Number(packet.getExpirationTime())) throw new Error('the signature has expired')
  if (signedAt < issuer.getCreationTime()) throw new Error('the key was made after the signature')
  if (signedAt.getTime() >= expiresAt) throw new Error('the key had expired when it signed')
  const keyExpired = now >= expiresAt
  if (keyExpired && rules.expiredKeys === 'refuse') {
    throw new Error(`the key expired on ${new Date(expiresAt).toISOString()}, and expired keys are refused here`)
  }
  return {
    keyId: hexOf(key.getKeyID()),
    fingerprint: key.getFingerprint(),
    userId: key.getUserIDs()[0] ?? '',
    signedAt: signedAt.toISOString(),
    keyExpired,
    weak: packet.hashAlgorithm === openpgp.enums.hash.sha1 || isWeak(key) || isWeak(issuer),
  }
}

/**
 * One packet and one key at a time: the library looks only at the first listed key with a matching id, which may be an
 * old copy of the right one. No date: else a renewed key fails for all that it signed before its renewal.
 */
async function assertMadeBy(data: Uint8Array, packet: SignaturePacket, key: Key): Promise<void> {
  const { openpgp, config } = await loadOpenPgp()
  const packets = new openpgp.PacketList<SignaturePacket>()
  packets.push(packet)
  const { signatures } = await openpgp.verify({
    message: await openpgp.createMessage({ binary: data }),
    signature: new openpgp.Signature(packets),
    verificationKeys: [key],
    format: 'binary',
    date: null,
    config,
  })
  const [result] = signatures
  if (result === undefined) throw new Error('not a signature over a document')
  await result.verified
}

/** When the primary key or the sub-key ends, whichever is first, in milliseconds; may be Infinity. */
async function expiryOf(key: Key, issuer: Key | Subkey): Promise<number> {
  const { openpgp, config } = await loadOpenPgp()
  const ends = [await key.getExpirationTime(undefined, config)]
  // @ts-expect-error The declaration leaves out the null that means "no date".
  if (issuer instanceof openpgp.Subkey) ends.push(await issuer.getExpirationTime(null, config))
  if (ends.includes(null)) throw new Error('the key has no valid self-signature')
  return Math.min(...ends.map(Number))
}

function isWeak(key: Key | Subkey): boolean {
  const { algorithm, bits } = key.getAlgorithmInfo()
  return bits !== undefined && bits < WEAK_BITS && (algorithm.startsWith('rsa') || algorithm === 'dsa')
}

function hexOf(keyId: KeyID): string {
  return keyId.toHex().toUpperCase()
}

function invalid(reasons: readonly string[], { upstreamUrl }: SignatureRules, cause?: unknown): MirrorError {
  const reason = reasons.join('; ').slice(0, MAX_REASON_LENGTH)
  const message = `the signature of SHA256SUMS${from(upstreamUrl)} is not valid: ${reason}`
  return new MirrorError('SIGNATURE_INVALID', message, { reason, ...(upstreamUrl && { upstreamUrl }) }, cause)
}

function keyUnreadable(reasons: readonly string[], { upstreamUrl }: SignatureRules): MirrorError {
  const reason = reasons.join('; ').slice(0, MAX_REASON_LENGTH)
  const message = `the signature of SHA256SUMS${from(upstreamUrl)} cannot be checked, a listed key is unreadable: ${reason}`
  return new MirrorError('KEY_UNREADABLE', message, { reason })
}

function from(upstreamUrl: string | undefined): string {
  return upstreamUrl === undefined ? '' : ` from ${upstreamUrl}`
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 200)
}
