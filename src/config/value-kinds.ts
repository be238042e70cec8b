import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { z } from 'zod'
import type { HostKey } from './host-key.ts'
import { parseSize, parseTime } from './units.ts'

const DAY = 86_400_000

/*
 * The kinds of values that the configuration has, as zod schemas. No message shows the value itself: it may be a secret
 * that was put into the wrong key.
 */

/** A section that may be left out, or left empty after its key. */
export function section<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return entry(z.strictObject(shape)).prefault({})
}

/** `key:` with nothing after it means the same as `key: {}`. */
export function entry<Schema extends z.ZodType>(schema: Schema) {
  return z.preprocess((value) => value ?? {}, schema)
}

/** A path, made absolute against `folder`. */
export function file(folder: string) {
  return z
    .string()
    .min(1, { error: 'expected a path' })
    .transform((path) => resolve(folder, path))
    .meta({ kind: 'path' })
}

/** The schema of a path. */
export type Path = ReturnType<typeof file>

/** Any text. */
export function text() {
  return z.string().meta({ kind: 'text' })
}

/** Digits in quotes count too: `${env:PORT}` gives text. */
export function wholeNumber(minimum: number, maximum: number) {
  const error = `expected a whole number from ${minimum} to ${maximum}`
  const fromText = (value: unknown) => (typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value)
  return z
    .preprocess(fromText, z.int({ error }).min(minimum, { error }).max(maximum, { error }))
    .meta({ kind: `number, ${minimum} to ${maximum}` })
}

/** True or false, in quotes too. */
export function flag() {
  const fromText = (value: unknown) => (value === 'true' ? true : value === 'false' ? false : value)
  return z.preprocess(fromText, z.boolean({ error: 'expected true or false' })).meta({ kind: '`true` or `false`' })
}

/** Milliseconds from text such as `5m`. */
export function time(minimum: number, maximum: number) {
  return quantity(parseTime, { minimum, maximum }, 'a time such as 500ms, 30s, 5m, 24h or 7d').meta({ kind: 'time' })
}

/** Bytes from text such as `20GB`. */
export function size(minimum: number) {
  const limits = { minimum, maximum: Number.MAX_SAFE_INTEGER }
  return quantity(parseSize, limits, 'a size such as 500kB, 20MB or 2GiB').meta({ kind: 'size' })
}

function quantity(
  parse: (text: string) => number | undefined,
  limits: { minimum: number; maximum: number },
  expected: string,
) {
  return z.string({ error: `expected ${expected}` }).transform((text, context) => {
    const value = parse(text)
    if (value !== undefined && value >= limits.minimum && value <= limits.maximum) return value
    const limit = value !== undefined && value > limits.maximum ? `, at most ${formatLimit(limits.maximum)}` : ''
    const least = value !== undefined && value < limits.minimum ? ', more than zero' : ''
    context.addIssue({ code: 'custom', message: `expected ${expected}${limit}${least}` })
    return z.NEVER
  })
}

function formatLimit(milliseconds: number): string {
  return milliseconds >= DAY ? `${milliseconds / DAY}d` : `${milliseconds / 1000}s`
}

/** A bearer token that a header can carry. */
export function token() {
  return z
    .string({ error: 'expected a token as text; put it in quotes' })
    .regex(/^[\x21-\x7e]+$/, { error: 'expected a token of printable ASCII characters without spaces' })
    .meta({ kind: 'text' })
}

/** User and password of HTTP basic authentication. */
export function basic() {
  return z
    .string({ error: "expected 'user:password'" })
    .regex(/^[^:\p{Cc}]+:[^\p{Cc}]*$/u, { error: "expected 'user:password'" })
    .meta({ kind: '`user:password`' })
}

/** A host in its one spelling. */
export function host(read: (text: string) => HostKey) {
  return z
    .string()
    .transform((text, context) => {
      const key = read(text)
      if ('host' in key) return key.host
      context.addIssue({ code: 'custom', message: key.problem })
      return z.NEVER
    })
    .meta({ kind: 'host' })
}

/** A record whose keys are hosts, each in one spelling only. */
export function hostRecord<Value extends z.ZodType>(read: (text: string) => HostKey, value: Value) {
  const schema = z.record(host(read), entry(value))
  return z.preprocess((input, context) => {
    const seen = new Map<string, string>()
    for (const key of Object.keys(Object(input ?? {}))) {
      const known = read(key)
      if (!('host' in known)) continue
      const other = seen.get(known.host)
      const message = `the same host as ${other}; name it once`
      if (other !== undefined) context.addIssue({ code: 'custom', path: [key], message })
      seen.set(known.host, key)
    }
    return input ?? {}
  }, schema)
}

/** A name or address to listen on; an IPv6 address without its brackets. */
export function listenHost() {
  const error = 'expected a host name or an IP address, without a port'
  return z
    .string({ error })
    .transform((text) => text.replace(/^\[(.*)\]$/, '$1'))
    .refine((text) => isIP(text) !== 0 || isLookupName(text), { error })
    .meta({ kind: 'host or address' })
}

/** A name or address that a certificate can carry. */
export function certificateName() {
  const error = 'expected a host name, *.domain or an IP address'
  return z
    .string({ error })
    .refine((text) => isIP(text) !== 0 || isDnsName(text.replace(/^\*\./, '')), { error })
    .meta({ kind: 'host or address' })
}

function isDnsName(text: string): boolean {
  return text.length <= 253 && text.split('.').every((label) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i.test(label))
}

/** Names of containers have underscores too. */
function isLookupName(text: string): boolean {
  return isDnsName(text.replaceAll('_', '-'))
}

/** Where to connect: a name or address, and a port. */
export function hostAndPort() {
  const error = "expected 'host:port'"
  return z
    .string({ error })
    .refine(
      (text) => {
        const [, ipv6, name = '', port = ''] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? []
        if (Number(port) < 1 || Number(port) > 65_535) return false
        return ipv6 === undefined ? isLookupName(name) : isIP(ipv6) === 6
      },
      { error },
    )
    .meta({ kind: '`host:port`' })
}

/** A URL that others are resolved against: it gets the slash at its end that RFC 3986 resolution needs. */
export function baseUrl(schemes: readonly string[]) {
  const error = `expected an absolute ${schemes.map((scheme) => scheme.slice(0, -1)).join(' or ')} URL`
  return z
    .string({ error })
    .transform((text, context) => {
      const url = URL.parse(text)
      if (url === null || !schemes.includes(url.protocol) || url.username || url.password || url.search || url.hash) {
        context.addIssue({ code: 'custom', message: `${error} without user, query and fragment` })
        return z.NEVER
      }
      // A URL's host may hold quotes and dollar signs, which the configurations that are printed of it could not.
      if (!/^[\w.:[\]-]+$/.test(url.host)) {
        context.addIssue({ code: 'custom', message: `${error} whose host is a name or an address` })
        return z.NEVER
      }
      return url.pathname.endsWith('/') ? url.href : `${url.href}/`
    })
    .meta({ kind: 'URL' })
}

/** `off` beats a proxy that the environment names. */
export function proxy() {
  const error = 'expected an http or https URL, with user and password if the proxy asks for them, or off'
  return z
    .string({ error })
    .refine((text) => text === 'off' || isProxyUrl(text), { error })
    .meta({ kind: 'URL or `off`' })
}

/** True for a URL that names an HTTP proxy: scheme and host, user-info if any, and nothing more. */
export function isProxyUrl(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:') && url.pathname === '/' && !url.search
}

/** A time, or `off`. */
export function timeOrOff(minimum: number, maximum: number) {
  return z
    .union([z.literal('off'), time(minimum, maximum)], { error: 'expected off, or a time such as 24h or 7d' })
    .meta({ kind: 'time, or `off`' })
}
