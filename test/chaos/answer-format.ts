import type { Answer } from './client.ts'
import type { Question } from './question.ts'
import type { TrueVersion } from './truth.ts'

/** Something that a mirror must never answer. */
export class Violation extends Error {
  override readonly name = 'Violation'
}

/** One archive of a VERSION.json. */
export interface Entry {
  readonly url: string
  readonly digest: string
  readonly h1: readonly string[]
}

/** Reads an entry: a link and hashes, `zh:` first. @throws Violation */
export function readEntry(platform: string, entry: unknown): Entry {
  if (!isRecord(entry) || typeof entry.url !== 'string' || !Array.isArray(entry.hashes)) {
    throw new Violation(`the entry of ${platform} is ${JSON.stringify(entry)}`)
  }
  const [first, ...rest] = entry.hashes.map(String)
  const digest = /^zh:([0-9a-f]{64})$/.exec(first ?? '')?.[1]
  if (digest === undefined) throw new Violation(`the first hash of ${platform} is ${first}`)
  if (!rest.every((hash) => /^h1:[A-Za-z0-9+/]{43}=$/.test(hash))) throw new Violation(`hashes of ${platform}: ${rest}`)
  return { url: entry.url, digest, h1: rest }
}

/** @throws Violation unless the link is relative and leads to that archive */
export function assertLink(url: string, { provider, version }: TrueVersion, platform: string): void {
  const place = `/providers/${provider.name}/`
  const base = new URL(`https://mirror.test${place}${version}.json`)
  const resolved = new URL(url, base)
  const relative = !/^[a-z][a-z0-9+.-]*:|^\//i.test(url) && !/[?#@]/.test(url)
  const start = `${place}${version}/${platform}/`
  if (relative && resolved.origin === base.origin && decodeURIComponent(resolved.pathname).startsWith(start)) return
  throw new Violation(`the link for ${platform} is ${url}`)
}

/** First byte, and the one behind the last, of an answer with a part. @throws Violation */
export function rangeOf(header: string | undefined, bytes: Buffer): [number, number] {
  const [, first, last, size] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(header ?? '') ?? []
  if (Number(size) !== bytes.length || Number(last) >= bytes.length) throw new Violation(`Content-Range is ${header}`)
  return [Number(first), Number(last) + 1]
}

/** The JSON object of a whole answer. @throws Violation */
export function parseObject({ status, headers, body, whole }: Answer): Record<string, unknown> {
  if (!whole || headers['content-length'] !== String(body.length)) throw new Violation('a body without its length')
  if (headers['content-type'] !== 'application/json') throw new Violation(`Content-Type ${headers['content-type']}`)
  try {
    const document: unknown = JSON.parse(body.toString())
    if (isRecord(document)) return document
  } catch {
    // Told below.
  }
  throw new Violation(`the body of a ${status} is no JSON object: ${body.toString().slice(0, 200)}`)
}

/** True for an object that is no array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** True for `{}`. */
export function isEmptyRecord(value: unknown): boolean {
  return isRecord(value) && Object.keys(value).length === 0
}

/** @throws Violation if the mirror may not serve that host */
export function assertNotForeign({ foreign }: Question): void {
  if (foreign) throw new Violation('a host that is not served got an answer')
}
