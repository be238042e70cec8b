import { z } from 'zod'
import type { Authentication } from '../protocol/authentication.ts'
import type { JsonObject } from '../protocol/json.ts'
import type { Sha256 } from '../protocol/package-hash.ts'
import { packageHash, sha256, version } from './record-values.ts'

/*
 * What is kept for ever about a release and its archives, as durable JSON records. A record is written whole and
 * replaced whole; `format` lets a later version of the program read or refuse an older one.
 */

const signer = z.object({
  keyId: z.string(),
  fingerprint: z.string(),
  userId: z.string(),
  signedAt: z.string(),
  keyExpired: z.boolean(),
  weak: z.boolean(),
})

const authentication: z.ZodType<Authentication> = z.discriminatedUnion('rule', [
  z.object({ rule: z.literal('signed-checksums'), digest: sha256, sums: sha256, signature: sha256, signer }),
  z.object({
    rule: z.literal('unsigned-checksums'),
    digest: sha256,
    sums: sha256,
    /** Missing too in records from before it was kept: the next answer of the origin completes them. */
    signature: sha256.exactOptional(),
  }),
  z.object({ rule: z.literal('stated-checksum'), digest: sha256 }),
])

const jsonObject = z.record(z.string(), z.unknown()) as unknown as z.ZodType<JsonObject>

const releasePlatform = z.object({
  filename: z.string().min(1),
  digest: sha256,
  archiveUrl: z.string(),
  protocols: z.array(z.string()),
  statedHashes: z.array(packageHash),
  authentication,
  /** The download document as given, without `signing_keys` and `packages`, which are blobs. */
  document: jsonObject,
  documentUrl: z.string(),
  /** Blob: `signing_keys` of the document as JSON text; undefined if it had none. */
  signingKeys: sha256.optional(),
  /**
   * Blob: `packages` of the document as JSON text; undefined if it had none. Unsigned, so only what the origin itself
   * said to this mirror stands here: whoever makes a record from other sources leaves it out.
   */
  packages: sha256.optional(),
})

/** The evidence for one platform of a release. */
export type ReleasePlatform = z.infer<typeof releasePlatform>

/**
 * The unit of evidence: what the origin said about one version, for every platform, authenticated. SHA256SUMS,
 * signatures and keys are blobs that it points to.
 */
export const Release = z.object({
  format: z.literal(1),
  address: z.string(),
  version,
  /** The version as the origin writes it. */
  spelling: z.string(),
  /** Counts the sets of files that we have seen under this version, from 1. */
  generation: z.number().int().positive(),
  firstSeenAt: z.string(),
  recordedAt: z.string(),
  /** Every file that the accepted SHA256SUMS name, manifest included, with its digest. */
  files: z.array(z.object({ filename: z.string(), digest: sha256 })),
  /** Every platform that was asked for is among `platforms`. */
  complete: z.boolean(),
  /** By `OS_ARCH`. */
  platforms: z.record(z.string(), releasePlatform),
  /** Blobs: SHA256SUMS and signatures that documents of this version named before, the newest last. */
  outdatedChecksums: z.array(sha256).exactOptional(),
})
export type Release = z.infer<typeof Release>

/** The blobs of SHA256SUMS and of its signature that the document of a platform leads to. */
export interface Checksums {
  readonly sums?: Sha256
  readonly signature?: Sha256
}

/** What a platform was authenticated with; empty where its document named no SHA256SUMS. */
export function checksumsOf({ authentication }: Pick<ReleasePlatform, 'authentication'>): Checksums {
  if (authentication.rule === 'stated-checksum') return {}
  const { sums, signature } = authentication
  return signature === undefined ? { sums } : { sums, signature }
}

/** True for a blob that a release points to, or whose digest it remembers. */
export function namesEvidence(release: Release, digest: Sha256): boolean {
  return evidenceOf(release).has(digest)
}

/** Every blob that a release points to, or whose digest it remembers. */
export function evidenceOf(release: Release): Set<Sha256> {
  const { platforms, outdatedChecksums = [] } = release
  const documents = Object.values(platforms).flatMap(({ signingKeys, packages }) => [signingKeys, packages])
  const named = documents.filter((digest) => digest !== undefined)
  return new Set([...named, ...allChecksums(release), ...outdatedChecksums])
}

/** Every SHA256SUMS and signature that the documents of a release name. */
export function allChecksums(release: Release): Set<Sha256> {
  return new Set(
    Object.values(release.platforms)
      .flatMap((platform) => Object.values(checksumsOf(platform)))
      .filter((digest) => digest !== undefined),
  )
}

/** An archive that is held, and why it was let in. Written after its blob and after its release. */
export const ArchiveRecord = z.object({
  format: z.literal(1),
  address: z.string(),
  version,
  platform: z.string(),
  filename: z.string(),
  digest: sha256,
  size: z.number().int().nonnegative(),
  generation: z.number().int().positive(),
  authentication,
  /** Without query. */
  archiveUrl: z.string(),
  cachedAt: z.string(),
})
export type ArchiveRecord = z.infer<typeof ArchiveRecord>

/** Written before the first archive of a version; from then on no known file may change its digest (design, rule 5). */
export const PinRecord = z.object({ format: z.literal(1), generation: z.number(), pinnedAt: z.string() })
export type PinRecord = z.infer<typeof PinRecord>

/** Written before the first signed release of a provider; from then on unsigned ones are refused (design, rule 1). */
export const TrustRecord = z.object({
  format: z.literal(1),
  signedSince: z.string(),
  version,
  keyId: z.string(),
  fingerprint: z.string(),
})
export type TrustRecord = z.infer<typeof TrustRecord>

/** The `h1:` hashes of an archive, computed from its bytes; empty with a reason where there is none. */
export const HashRecord = z.object({ format: z.literal(1), h1: z.array(packageHash), reason: z.string().optional() })
export type HashRecord = z.infer<typeof HashRecord>
