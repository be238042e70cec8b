import type * as openpgp from 'openpgp'
import type { OriginKey } from '../origin/origin-key.ts'
import { type ForgeOptions, forge, type MadeKey, makeKey, sign } from './key-fixture.ts'

/** A made release: who signs it how, and what the real client says. */
export interface SignatureCase {
  /** What is special about it. */
  readonly name: string
  /** These sign, in this order, into one file. */
  readonly signers: readonly OriginKey[]
  /** What the origin lists; default those that sign. */
  readonly listed?: readonly OriginKey[]
  readonly client: 'accepts' | 'refuses'
  /** Why we judge otherwise on purpose. */
  readonly weDifferBecause?: string
  /** Our code where we refuse; default `SIGNATURE_INVALID`. */
  readonly code?: string
  /** Accepted, and reported as weak. */
  readonly weak?: true
}

export const DAY_S = 86_400

/** Whole seconds, which is all that OpenPGP keeps. The real client reads the clock of the machine. */
const startMs = Math.floor(Date.now() / 1000) * 1000
/** Keys and signatures whose age does not matter are so old, in days from now. */
const MADE = -1000
const SIGNED = -100

/** `days` before (negative) or after the start of the tests. */
export function day(days: number): Date {
  return new Date(startMs + days * DAY_S * 1000)
}

/** A key whose age does not matter. */
export function made(options: Partial<openpgp.KeyOptions> = {}): Promise<MadeKey> {
  return makeKey({ date: day(MADE), ...options })
}

/** An entry of the origin's list with this text, which signs in this way. */
export function entry(asciiArmor: string, signature: (sums: Buffer) => Uint8Array | Promise<Uint8Array>): OriginKey {
  const unused = 'read by nobody'
  const signer = async (data: Uint8Array) => Buffer.from(await signature(Buffer.from(data)))
  return { asciiArmor, keyId: unused, fingerprint: unused, sign: signer }
}

/** Listed and signing as an honest publisher does it. */
export function honest({ privateKey, publicKey }: MadeKey, config: openpgp.PartialConfig = {}): OriginKey {
  return entry(publicKey.armor(), (sums) => sign(sums, privateKey, day(SIGNED), config))
}

/** Listed as it is told, by default as its public key, and signing whatever it is told. */
export function forging(
  { privateKey, publicKey }: MadeKey,
  { listed = publicKey, ...options }: Partial<ForgeOptions> & { readonly listed?: openpgp.Key } = {},
): OriginKey {
  return entry(listed.armor(), (sums) => forge(sums, privateKey, { date: day(SIGNED), ...options }))
}

/** An honest signature, changed before it is published. */
export function changing(
  { privateKey, publicKey }: MadeKey,
  change: (signature: Buffer) => Uint8Array | Promise<Uint8Array>,
): OriginKey {
  return entry(publicKey.armor(), async (sums) => change(Buffer.from(await sign(sums, privateKey, day(SIGNED)))))
}
