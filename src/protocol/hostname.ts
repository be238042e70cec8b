import { domainToASCII, domainToUnicode } from 'node:url'
import { MirrorError, redactInput } from '../errors.ts'

declare const hostnameBrand: unique symbol

/**
 * The host of a registry as the mirror protocol's paths spell it: lower case, IDN as punycode, the port kept unless it
 * is 443 (`registry.terraform.io`, `xn--bcher-kva.example`, `registry.acme.example:8443`). One host, one spelling.
 */
export type Hostname = string & { readonly [hostnameBrand]: true }

/** Longer than any host name that can be looked up, in Unicode as in punycode, with a port. */
const MAX_INPUT_LENGTH = 300
const MAX_NAME_LENGTH = 253
const MAX_LABEL_LENGTH = 63
/** Every ASCII character but letters, digits, hyphen and dot: they would be decoded, dropped or cut off by the URL parser. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control bytes are what it looks for
const FOREIGN_ASCII = /[\u0000-,/:-@[-`{-\u007f]/
/** The URL parser reads a name that ends in such a label as an IPv4 address, whatever stands before. */
const NUMERIC_LABEL = /^(?:[0-9]+|0x[0-9a-f]*)$/
const PORT = /^0*([1-9][0-9]{0,4})$/

/**
 * Parses a registry host as clients write or send it: any letter case, Unicode or punycode, with or without a port.
 * The rules are those of terraform-svchost `ForComparison`, but punycode is accepted (clients send it in paths), and
 * whatever names an IP address or would change its meaning in a URL is refused.
 * @throws MirrorError `HOSTILE_INPUT`
 */
export function parseHostname(text: string): Hostname {
  if (text.length > MAX_INPUT_LENGTH) throw hostile(text, `longer than ${MAX_INPUT_LENGTH} characters`)
  const colon = text.indexOf(':')
  const name = colon < 0 ? text : text.slice(0, colon)
  const port = colon < 0 ? undefined : parsePort(text.slice(colon + 1), text)
  const canonical = canonicalName(name, text)
  return (port === undefined || port === 443 ? canonical : `${canonical}:${port}`) as Hostname
}

/** The form for people: punycode as Unicode, the port kept. */
export function displayHostname(hostname: Hostname): string {
  const { host, port } = splitHostname(hostname)
  const shown = domainToUnicode(host)
  return port === undefined ? shown : `${shown}:${port}`
}

/** Host and port apart; the port is undefined where it is the default, 443. */
export function splitHostname(hostname: Hostname): { host: string; port: number | undefined } {
  const colon = hostname.indexOf(':')
  if (colon < 0) return { host: hostname, port: undefined }
  return { host: hostname.slice(0, colon), port: Number(hostname.slice(colon + 1)) }
}

function parsePort(digits: string, text: string): number {
  const port = Number(PORT.exec(digits)?.[1])
  if (port <= 65535) return port
  throw hostile(text, 'the port is not a number from 1 to 65535')
}

function canonicalName(name: string, text: string): string {
  if (FOREIGN_ASCII.test(name)) {
    throw hostile(text, 'only letters, digits, hyphens and dots make a host name; IP addresses and user names do not')
  }
  const written = name.split('.')
  if (written.includes('')) throw hostile(text, 'empty, or with an empty part between dots')

  const ascii = domainToASCII(name)
  const unicode = domainToUnicode(ascii)
  const labels = ascii.split('.')
  const shown = unicode.split('.')
  // A round trip that changes the name is one that other software may take differently.
  if (ascii === '' || labels.length !== written.length || domainToASCII(unicode) !== ascii) {
    throw hostile(text, 'not a valid internationalised name, or an IP address')
  }
  if (NUMERIC_LABEL.test(labels.at(-1) ?? '')) throw hostile(text, 'the last part is a number, as in an IP address')
  if (ascii.length > MAX_NAME_LENGTH) throw hostile(text, `longer than ${MAX_NAME_LENGTH} characters`)
  for (const [index, label] of labels.entries()) {
    const reason = findFault({ written: written[index] ?? '', ascii: label, shown: shown[index] ?? '' })
    if (reason !== undefined) throw hostile(text, reason)
  }
  return ascii
}

/** Why one label is refused, or undefined if it is fine. `shown` is the Unicode form of `ascii`. */
function findFault(label: { written: string; ascii: string; shown: string }): string | undefined {
  const punycode = label.ascii.startsWith('xn--')
  if (label.ascii.length > MAX_LABEL_LENGTH) return `a part is longer than ${MAX_LABEL_LENGTH} characters`
  if (label.shown.startsWith('-') || label.shown.endsWith('-')) return 'a part begins or ends with a hyphen'
  // Punycode that cannot be decoded is shown as it is.
  if (label.shown.slice(2, 4) === '--') return 'a part is not valid punycode, though its third and fourth place say so'
  // Full-width digits, ligatures, soft hyphens and the like are mapped away: the name would not be the one that was read.
  const folded = foldCase(label.written)
  const same = folded === label.shown || (punycode && folded === label.ascii)
  return same && isAscii(folded) === isAscii(label.written) ? undefined : 'characters that stand for others'
}

/** Lower case and composed. Each character by itself: the final sigma of `toLowerCase` is another letter in IDN. */
function foldCase(text: string): string {
  return Array.from(text, (character) => character.toLowerCase())
    .join('')
    .normalize('NFC')
}

function isAscii(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the range of ASCII
  return /^[\u0000-\u007f]*$/.test(text)
}

function hostile(text: string, reason: string): MirrorError<'HOSTILE_INPUT'> {
  const input = redactInput(text.slice(0, MAX_INPUT_LENGTH))
  return new MirrorError('HOSTILE_INPUT', `not a host name: ${JSON.stringify(input)}: ${reason}`, { input, reason })
}
