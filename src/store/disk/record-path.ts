import { join } from 'node:path'
import { assertRecordKey, assertRecordName } from '../record-name.ts'

/** File names may have 255 bytes; this leaves room for `.json`. */
const MAX_PIECE = 200

const PLAIN = /^[a-z0-9._~+=@-]$/
const ALL_PLAIN = /^[a-z0-9._~+=@-]+$/
const PLAIN_WITHOUT_DOT = /^[a-z0-9_~+=@-]$/
const ENCODED = /^(?:[a-z0-9._~+=@-]|%[0-9a-f]{2})+$/

/**
 * A name as it stands in file names: bytes outside `a-z0-9._~+=@-` become `%` and two digits. Upper-case letters are
 * among them, so that names that differ in case stay apart on file systems that ignore it. So is a leading dot, and
 * the dot of a final `.json`: a folder of that name would meet the file of the record next to it.
 */
export function encodeName(name: string): string {
  assertRecordName(name)
  const encoded = ALL_PLAIN.test(name) ? name : encode(name, PLAIN)
  if (encoded.length > MAX_PIECE) return encode(name, PLAIN_WITHOUT_DOT)
  return encoded.replace(/^\./, '%2e').replace(/\.json$/, '%2ejson')
}

/** The name that is encoded so; undefined if `encodeName` would never write this. */
export function decodeName(encoded: string): string | undefined {
  if (!ENCODED.test(encoded)) return undefined
  const name = Buffer.from(encoded.replace(/%(..)/g, toByte), 'latin1').toString('utf8')
  try {
    return encodeName(name) === encoded ? name : undefined
  } catch {
    return undefined
  }
}

/** The file of a record, e.g. `a/b.json`, relative to the folder of all records. */
export function recordFile(key: readonly string[]): string {
  assertRecordKey(key)
  return `${recordFolder(key)}.json`
}

/** The folder of what lies below a record. A name that is too long for one folder goes on in the next: `aaa%/bbb`. */
export function recordFolder(prefix: readonly string[]): string {
  return join(...prefix.flatMap((name) => pieces(encodeName(name))))
}

function encode(name: string, plain: RegExp): string {
  let encoded = ''
  for (const byte of Buffer.from(name)) {
    const character = String.fromCharCode(byte)
    encoded += plain.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`
  }
  return encoded
}

function toByte(_match: string, digits: string): string {
  return String.fromCharCode(Number.parseInt(digits, 16))
}

function pieces(encoded: string): string[] {
  const all: string[] = []
  let rest = encoded
  for (; rest.length > MAX_PIECE; rest = rest.slice(MAX_PIECE)) all.push(`${rest.slice(0, MAX_PIECE)}%`)
  all.push(rest)
  return all
}
