import { MirrorError } from '../errors.ts'

declare const sha256Brand: unique symbol
declare const packageHashBrand: unique symbol

/** A SHA-256 digest as 64 lower-case hexadecimal digits. Only `parseSha256` makes one. */
export type Sha256 = string & { readonly [sha256Brand]: true }

/** A package hash as lock files and mirror documents write it: `zh:<hex sha256 of the zip>` or `h1:<base64>`. */
export type PackageHash = (`zh:${string}` | `h1:${string}`) & { readonly [packageHashBrand]: true }

const HEX = /^[0-9a-fA-F]{64}$/
const H1 = /^h1:[A-Za-z0-9+/]{43}=$/

/** The digest in lower case, or undefined if the text is not one. Upper case is accepted (field-reports B27). */
export function parseSha256(text: string): Sha256 | undefined {
  return HEX.test(text) ? (text.toLowerCase() as Sha256) : undefined
}

/** As `parseSha256`, for text that must be a digest. @throws MirrorError `INVALID_ADDRESS` */
export function assertSha256(text: string): Sha256 {
  const digest = parseSha256(text)
  if (digest !== undefined) return digest
  throw new MirrorError('INVALID_ADDRESS', 'not a SHA-256 digest in hexadecimal', {
    input: text.slice(0, 80),
    reason: 'expected 64 hexadecimal digits',
  })
}

/** `zh:` and the digest of the zip. */
export function zipHash(digest: Sha256): PackageHash {
  return `zh:${digest}` as PackageHash
}

/** A `zh:` or `h1:` hash, or undefined for any other scheme or a malformed value. */
export function parsePackageHash(text: string): PackageHash | undefined {
  if (text.startsWith('zh:')) {
    const digest = parseSha256(text.slice(3))
    return digest === undefined ? undefined : zipHash(digest)
  }
  return H1.test(text) ? (text as PackageHash) : undefined
}
