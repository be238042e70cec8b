import type { Key } from 'openpgp'
import type { SigningKey } from '../protocol/release-claim.ts'
import { loadOpenPgp } from './openpgp-config.ts'

/** The keys that an origin lists, as far as they could be read. */
export interface SigningKeys {
  /** In the order listed. One entry may hold several keys. */
  readonly readable: readonly Key[]
  /** One reason for each entry, or each armored block, that could not be read. */
  readonly unreadable: readonly string[]
}

const MAX_KEYS = 64
const MAX_TEXT_LENGTH = 1024 * 1024
const BEGIN = '-----BEGIN PGP PUBLIC KEY BLOCK-----'
const END = '-----END PGP PUBLIC KEY BLOCK-----'

/**
 * Reads every public key of the listed entries. Tolerates what real entries hold: CRLF, blank lines of no-break
 * spaces, text around the armor, several blocks in one entry, and a binary key in a Latin-1 string. Never throws for a
 * bad key. At most 64 keys and 1 MB of text are read; what is beyond counts as unreadable.
 */
export async function readSigningKeys(entries: readonly SigningKey[]): Promise<SigningKeys> {
  const readable: Key[] = []
  const unreadable: string[] = []
  let budget = MAX_TEXT_LENGTH
  for (const [index, { asciiArmor }] of entries.entries()) {
    budget -= asciiArmor.length
    if (budget < 0 || readable.length >= MAX_KEYS) {
      unreadable.push(`key ${index + 1} and later: more than ${MAX_KEYS} keys or ${MAX_TEXT_LENGTH} bytes of keys`)
      break
    }
    const results = await Promise.allSettled(readEntry(asciiArmor))
    for (const result of results) {
      if (result.status === 'fulfilled') readable.push(...result.value)
      else unreadable.push(`key ${index + 1}: ${messageOf(result.reason)}`)
    }
  }
  return { readable: readable.slice(0, MAX_KEYS), unreadable }
}

function readEntry(text: string): Promise<Key[]>[] {
  const blocks = armoredBlocks(text.replace(/\r\n?/g, '\n').replace(/^[\u00a0 \t]+$/gm, ''))
  if (blocks.length > 0) return blocks.map((block) => readArmored(block))
  return [isBinaryKey(text) ? readBinary(Buffer.from(text, 'latin1')) : refuse('no armored public key block')]
}

async function readArmored(armoredKeys: string): Promise<Key[]> {
  const { openpgp, config } = await loadOpenPgp()
  return openpgp.readKeys({ armoredKeys, config })
}

async function readBinary(binaryKeys: Uint8Array): Promise<Key[]> {
  const { openpgp, config } = await loadOpenPgp()
  return openpgp.readKeys({ binaryKeys, config })
}

async function refuse(reason: string): Promise<never> {
  throw new Error(reason)
}

/** By splitting, not by one pattern: a text of many BEGIN lines and no END must not take quadratic time. */
function armoredBlocks(text: string): string[] {
  const pieces = text.split(END).slice(0, -1)
  const starts = pieces.map((piece) => piece.lastIndexOf(BEGIN))
  const blocks = pieces.map((piece, i) => `${piece.slice(starts[i])}${END}`)
  return blocks.filter((_, i) => starts[i] !== -1).slice(0, MAX_KEYS)
}

/** Every OpenPGP packet begins with a byte above 127, which no armored text does. */
function isBinaryKey(text: string): boolean {
  return text.charCodeAt(0) >= 0x80 && !/[\u0100-\uffff]/.test(text)
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 200)
}
