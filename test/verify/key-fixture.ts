import * as openpgp from 'openpgp'
import type { SigningKey } from '../../src/protocol/release-claim.ts'

/** Whole seconds, which is all that OpenPGP keeps. All made cases are dated from here. */
export const now = new Date('2026-11-30T12:00:00Z')
const DAY_MS = 86_400_000

/** `days` before (negative) or after `now`. */
export function day(days: number): Date {
  return new Date(now.getTime() + days * DAY_MS)
}

export interface MadeKey {
  readonly privateKey: openpgp.PrivateKey
  readonly publicKey: openpgp.PublicKey
  readonly revocationCertificate: string
}

/** An Ed25519 key (or as told), made 1000 days ago, without end. */
export async function makeKey(options: Partial<openpgp.KeyOptions> = {}): Promise<MadeKey> {
  return openpgp.generateKey({
    type: 'ecc',
    curve: 'ed25519Legacy',
    userIDs: { name: 'Acme', email: 'providers@acme.example' },
    date: day(-1000),
    ...options,
    format: 'object',
  })
}

/** The entry of a download document for this key. */
export function listed(key: openpgp.Key | string): SigningKey {
  const asciiArmor = typeof key === 'string' ? key : key.armor()
  return { asciiArmor, document: { ascii_armor: asciiArmor } }
}

/** A binary detached signature made at `date` by the first signing key of `privateKey`. */
export async function sign(
  data: Uint8Array,
  privateKey: openpgp.PrivateKey,
  date: Date,
  config: openpgp.PartialConfig = {},
): Promise<Uint8Array> {
  const message = await openpgp.createMessage({ binary: data })
  return openpgp.sign({ message, signingKeys: privateKey, detached: true, date, config, format: 'binary' })
}

/** How `forge` makes a signature. */
export interface ForgeOptions {
  readonly date: Date
  readonly hash?: openpgp.enums.hash
  /** The signature's own life time. */
  readonly lifeSeconds?: number
}

/** A signature by the primary key with none of the checks that an honest signer makes first. */
export async function forge(
  data: Uint8Array,
  privateKey: openpgp.PrivateKey,
  { date, hash = openpgp.enums.hash.sha256, lifeSeconds }: ForgeOptions,
): Promise<Uint8Array> {
  const { keyPacket } = privateKey
  if (!(keyPacket instanceof openpgp.SecretKeyPacket)) throw new Error('expected a private key')
  const message = await openpgp.createMessage({ binary: data })
  const [literal] = message.packets
  const packet = new openpgp.SignaturePacket()
  packet.signatureType = openpgp.enums.signature.binary
  packet.publicKeyAlgorithm = keyPacket.algorithm
  packet.hashAlgorithm = hash
  if (lifeSeconds !== undefined) {
    packet.signatureNeverExpires = false
    packet.signatureExpirationTime = lifeSeconds
  }
  // Without the salt, which cannot be made for the old digests.
  const config = { ...openpgp.config, nonDeterministicSignaturesViaNotation: false }
  // @ts-expect-error The declaration leaves out the configuration, and what kind of data is signed.
  await packet.sign(keyPacket, literal, date, true, config)
  const packets = new openpgp.PacketList<openpgp.SignaturePacket>()
  packets.push(packet)
  return packets.write()
}
