import type { Sha256 } from './package-hash.ts'

/** Who signed, judged at the time of signing. */
export interface Signer {
  /** Long id of the primary key, 16 upper-case hexadecimal digits. */
  readonly keyId: string
  /** Fingerprint of the primary key, lower-case hexadecimal. */
  readonly fingerprint: string
  /** First user id of the key, e.g. `HashiCorp Security <…>`; empty if it has none. */
  readonly userId: string
  /** ISO 8601. */
  readonly signedAt: string
  /** The key was valid when it signed, and has expired since. */
  readonly keyExpired: boolean
  /** SHA-1 signature or a key under 2048 bits RSA/DSA: accepted as the real clients do, and reported. */
  readonly weak: boolean
}

/** Which rule let a package in, and on what evidence. */
export type Authentication =
  /** The digest stands in a SHA256SUMS that a listed key signed. */
  | {
      readonly rule: 'signed-checksums'
      readonly digest: Sha256
      readonly sums: Sha256
      readonly signature: Sha256
      readonly signer: Signer
    }
  /** The origin lists no key; the digest stands in its SHA256SUMS. */
  | {
      readonly rule: 'unsigned-checksums'
      readonly digest: Sha256
      readonly sums: Sha256
      /** The signature file as the origin gave it, if it did. It proves nothing: there is no key to check it with. */
      readonly signature?: Sha256
    }
  /** The origin lists no key and no SHA256SUMS; the digest is the `shasum` of the download document. */
  | { readonly rule: 'stated-checksum'; readonly digest: Sha256 }
