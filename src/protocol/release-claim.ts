import type { MirrorError } from '../errors.ts'
import type { JsonObject } from './json.ts'
import type { PackageHash, Sha256 } from './package-hash.ts'
import type { Platform } from './platform.ts'

/*
 * What an upstream says about one version of a provider, before anything of it is verified. `verify/` turns it into
 * authenticated packages; only those are ever recorded or served.
 */

/** One entry of `signing_keys.gpg_public_keys`, exactly as the origin gave it. */
export interface SigningKey {
  readonly asciiArmor: string
  /** The whole entry, unknown fields included, for the provider registry door. */
  readonly document: JsonObject
}

/** The origin publishes the platform, and says this about it. */
export interface PublishedPlatform {
  readonly kind: 'published'
  readonly platform: Platform
  /** The exact name in SHA256SUMS; never derived from type, version or platform (field-reports B27). */
  readonly filename: string
  /** `shasum` of the document; undefined if absent or not a digest. */
  readonly shasum: Sha256 | undefined
  /** Absolute URL of the archive, resolved against the document's final URL. May carry a secret query. */
  readonly archiveUrl: string
  /** `protocols` as given; empty if absent. */
  readonly protocols: readonly string[]
  readonly signingKeys: readonly SigningKey[]
  /** Index into `ReleaseClaim.checksums`; undefined if the document names no SHA256SUMS. */
  readonly checksums: number | undefined
  /** Unsigned hashes of this platform from `packages` (OpenTofu), known schemes only. */
  readonly statedHashes: readonly PackageHash[]
  /** The download document as given, unknown keys included. */
  readonly document: JsonObject
  /** Final URL of the document, after redirects. May carry a secret query. */
  readonly documentUrl: string
}

/** What the origin answered for one platform. */
export type PlatformClaim =
  | PublishedPlatform
  /** A true 404: this platform is not published. `detail` is the origin's own text, shortened. */
  | { readonly kind: 'absent'; readonly platform: Platform; readonly upstreamUrl: string; readonly detail?: string }
  /** No usable answer (in time). Says nothing about whether the platform exists. */
  | { readonly kind: 'failed'; readonly platform: Platform; readonly error: MirrorError }

/** One SHA256SUMS with its signature, byte for byte, or why they could not be had. */
export interface ChecksumsClaim {
  readonly sumsUrl: string
  readonly signatureUrl: string | undefined
  readonly sums: Uint8Array | MirrorError
  /** Undefined if the document names no signature URL. */
  readonly signature: Uint8Array | MirrorError | undefined
}

/** All that an upstream says about one version, as of one moment. */
export interface ReleaseClaim {
  /** One entry for each platform that was asked, in the order asked. */
  readonly platforms: readonly PlatformClaim[]
  /** Each distinct pair of sums and signature URL once. */
  readonly checksums: readonly ChecksumsClaim[]
}
