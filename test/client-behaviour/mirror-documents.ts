import { expect } from 'vitest'
import { z } from 'zod'
import type { Answer } from '../e2e/mirror-fixture.ts'

/*
 * What `index.json` and `VERSION.json` of a network mirror must be so that no client stumbles over them. Derived from
 * client-contract A15 to A27 alone; nothing of `src/protocol` is used, because this is what it is held against. Where
 * clients tolerate several forms, the one form is taken that every client reads alike.
 */

/**
 * A18: clients ask for VERSION.json under the canonical form of a key, whatever its spelling, and skip keys that are no
 * versions. So a key is three numbers without leading zeros, then pre-release and build metadata.
 */
const CANONICAL_VERSION =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$/

/**
 * A16: an array in the place of `versions` and text in the place of a version's value are fatal. Null is tolerated in
 * both places, other keys and other letter cases are ignored: so exactly this key, and an empty object for each version.
 */
export const IndexDocument = z.strictObject({
  versions: z.record(z.string().regex(CANONICAL_VERSION), z.strictObject({})),
})

/** A25: only lower-case digits match, and what stands behind `h1:` is base64 of 32 bytes. A24, A25: no other scheme. */
const ZH = /^zh:[0-9a-f]{64}$/
const H1 = /^h1:[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/

/**
 * A23: without a hash the package installs unauthenticated, so the list is there and never empty. A24: any one match is
 * enough, so the digest of another archive must not stand in it: exactly one `zh:`. A26: `zh:` is there always. It comes
 * first, since clients check in the order given and `h1:` makes them unpack before they check (design, rule 2).
 */
const Hashes = z
  .tuple([z.string().regex(ZH)], z.string().regex(H1))
  .refine((hashes) => new Set(hashes).size === hashes.length, { error: 'a hash is listed twice' })

/**
 * A15: every form of reference is resolved, but an empty one fetches the document itself, an absolute one breaks behind
 * another name, a root-relative one behind a path prefix, and either loses the user-info of the base URL (A20). Field
 * report B53: queries and reserved characters do not survive every tool. So segments of unreserved characters and
 * percent encoding, below the document, each in its one spelling.
 */
export const RelativeUrl = z.string().refine((url) => url.split('/').every(isPlainSegment), {
  error: 'not a relative URL of unreserved characters',
})

function isPlainSegment(segment: string): boolean {
  if (!/^(?:[A-Za-z0-9._~-]|%[0-9A-F]{2})+$/.test(segment) || /^\.{1,2}$/.test(segment)) return false
  try {
    const name = decodeURIComponent(segment)
    return encodeURIComponent(name) === segment && !/[\p{Cc}/\\]/u.test(name)
  } catch {
    return false
  }
}

/**
 * A17: null as an entry crashes the client. A6: a platform without a key is "not supported", so keys are what clients
 * look for: Go's names in lower case, one underscore between. No archives at all is a form too (A29).
 */
export const VersionDocument = z.strictObject({
  archives: z.record(
    z.string().regex(/^[a-z0-9]{1,32}_[a-z0-9]{1,32}$/),
    z.strictObject({ url: RelativeUrl, hashes: Hashes }),
  ),
})

/**
 * The document that an answer carries. A4: exactly 200. A3: exactly `application/json`. A12: its exact length. A21: as
 * it is, without a coding. A16: valid UTF-8 without a byte order mark, one JSON value, no key twice.
 */
export function readDocument<Schema extends z.ZodType>(answer: Answer, schema: Schema): z.output<Schema> {
  expect(answer.status, answer.body.toString()).toBe(200)
  expect(answer.headers['content-type']).toBe('application/json')
  expect(answer.headers['content-length']).toBe(String(answer.body.length))
  expect(answer.headers['content-encoding']).toBeUndefined()
  expect(answer.headers).not.toHaveProperty('location')
  expect(answer.headers).not.toHaveProperty('link')
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(answer.body)
  const document: unknown = JSON.parse(text)
  expect(JSON.stringify(document)).toBe(text)
  return schema.parse(document)
}
