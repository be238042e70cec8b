import { createHash } from 'node:crypto'
import { MirrorError } from '../errors.ts'
import type { JsonValue } from '../protocol/json.ts'
import { assertSha256, type Sha256 } from '../protocol/package-hash.ts'
import { formatPlatform } from '../protocol/platform.ts'
import { formatProviderAddress, type ProviderAddress } from '../protocol/provider-address.ts'
import type { ListedVersion } from '../protocol/provider-versions.ts'
import type { AuthenticatedPackage, AuthenticatedRelease } from '../verify/authenticate-release.ts'
import type { HeldVersion } from './provider-records.ts'
import { allChecksums, checksumsOf, type Release, type ReleasePlatform } from './release-record.ts'

/** So many outdated files are still found by clients that read a document before a change. */
const MAX_OUTDATED = 32

/** Authenticated evidence that may become the record of a version. */
export interface Candidate {
  readonly address: ProviderAddress
  readonly listed: ListedVersion
  readonly authenticated: AuthenticatedRelease
  /** What is held of the version so far. */
  readonly held: HeldVersion
  /** Platforms that were asked for and not accepted, as `OS_ARCH`. */
  readonly missing: readonly string[]
  /** Now, ISO 8601. */
  readonly at: string
}

/** Bytes that a release points to, by digest. */
export type Evidence = ReadonlyMap<Sha256, Uint8Array>

/** A release record and the blobs that it points to, each once; blobs are stored first. */
export interface ReleaseWithEvidence {
  readonly release: Release
  readonly evidence: Evidence
}

/** A known file whose digest an origin changed. */
export interface ChangedFile {
  readonly filename: string
  readonly held: Sha256
  /** Undefined if it is not listed any more. */
  readonly offered: Sha256 | undefined
}

/** Every known file whose digest the new evidence changes or drops, by name. A release may grow, never change (design, rule 5). */
export function findChangedFiles({ held, authenticated }: Candidate): ChangedFile[] {
  const offered = offeredFiles(authenticated)
  // Where SHA256SUMS is missing, or one of several, the answer is silent about files; silence is no change.
  const { filenames, refused, unanswered } = authenticated
  const whole = filenames.size > 0 && refused.length === 0 && unanswered.length === 0
  const changed = new Map<string, ChangedFile>()
  // The archives count too: their release record may have been damaged since.
  for (const { filename, digest } of [...(held.release?.files ?? []), ...held.archives.values()]) {
    const now = offered.get(filename)
    if (now === digest || (now === undefined && !whole)) continue
    changed.set(filename, { filename, held: digest, offered: now })
  }
  return [...changed.values()]
}

/** The first changed file, as an error that names both digests; undefined if every known file keeps its digest. */
export function findChangedFile(candidate: Candidate): MirrorError<'RELEASE_CHANGED'> | undefined {
  const [first] = findChangedFiles(candidate)
  if (first === undefined) return undefined
  const address = formatProviderAddress(candidate.address)
  const { version } = candidate.listed
  const { filename, held, offered = 'not listed' } = first
  return new MirrorError(
    'RELEASE_CHANGED',
    `${address} ${version} was released anew with other bytes: ${filename} was ${held}, and is now ${offered}`,
    { address, version, filename, held, offered },
  )
}

/** The record for a candidate: the previous one grown by what is new, or a new generation if files changed. */
export function createRelease(candidate: Candidate): ReleaseWithEvidence {
  const { authenticated, held, listed, at, missing } = candidate
  const previous = held.release
  const evidence = new Map(authenticated.evidence)
  const unchanged = findChangedFiles(candidate).length === 0
  const grown = unchanged ? previous : undefined
  const platforms: Record<string, ReleasePlatform> = { ...grown?.platforms }
  for (const authenticatedPackage of authenticated.packages) {
    const name = formatPlatform(authenticatedPackage.published.platform)
    platforms[name] = keepSignature(createPlatform(authenticatedPackage, evidence), grown?.platforms[name])
  }
  const files = new Map(grown?.files.map(({ filename, digest }) => [filename, digest]))
  for (const [filename, digest] of offeredFiles(authenticated)) files.set(filename, digest)
  const release: Release = {
    format: 1,
    address: formatProviderAddress(candidate.address),
    version: listed.version,
    spelling: listed.spelling,
    generation: unchanged ? Math.max(1, lastGeneration(held)) : lastGeneration(held) + 1,
    firstSeenAt: grown?.firstSeenAt ?? at,
    recordedAt: at,
    complete: missing.every((name) => platforms[name] !== undefined),
    files: [...files].map(([filename, digest]) => ({ filename, digest })),
    platforms,
  }
  const outdated = outdatedChecksums(previous, release)
  if (outdated.length > 0) release.outdatedChecksums = outdated
  return { release, evidence }
}

/** The last one that anything held is of: the release record may have been lost, and its archives not. 0 if there is none. */
function lastGeneration({ release, pin, archives }: HeldVersion): number {
  const generations = [...archives.values()].map(({ generation }) => generation)
  return Math.max(release?.generation ?? 0, pin?.generation ?? 0, ...generations)
}

function outdatedChecksums(previous: Release | undefined, next: Release): Sha256[] {
  if (previous === undefined) return []
  const current = allChecksums(next)
  const before = new Set([...(previous.outdatedChecksums ?? []), ...allChecksums(previous)])
  return [...before].filter((digest) => !current.has(digest)).slice(-MAX_OUTDATED)
}

/**
 * True if the document of a platform, and what it leads to, tell nothing that the record does not hold. Links are not
 * compared: signed ones differ in every answer.
 */
export function isSameEvidence(then: ReleasePlatform | undefined, offered: AuthenticatedPackage): boolean {
  if (then === undefined) return false
  const now = keepSignature(createPlatform(offered, new Map()), then)
  const told = (platform: ReleasePlatform): string => {
    const { authentication, signingKeys, packages, protocols } = platform
    const { digest, rule } = authentication
    return JSON.stringify([digest, rule, checksumsOf(platform), signingKeys, packages, protocols])
  }
  return told(then) === told(now)
}

/** An unsigned release counts without its signature file; that it did not come this time is no reason to lose it. */
function keepSignature(now: ReleasePlatform, then: ReleasePlatform | undefined): ReleasePlatform {
  if (then === undefined || now.authentication.rule !== 'unsigned-checksums') return now
  const held = checksumsOf(then)
  const current = checksumsOf(now)
  if (current.signature !== undefined || held.sums !== current.sums || held.signature === undefined) return now
  return { ...now, authentication: { ...now.authentication, signature: held.signature } }
}

/** True if recording `next` over `previous` would tell nothing new. */
export function isSameRelease(previous: Release | undefined, next: Release): boolean {
  const comparable = (release: Release | undefined): string => JSON.stringify({ ...release, recordedAt: '' })
  return comparable(previous) === comparable(next)
}

/** Keys and `packages` are the same in every platform's document and large: they become blobs of their own. */
function createPlatform(authenticated: AuthenticatedPackage, evidence: Map<Sha256, Uint8Array>): ReleasePlatform {
  const { published, digest, authentication, statedHashes } = authenticated
  const { signing_keys: signingKeys, packages, ...document } = published.document
  const addBlob = (value: JsonValue | undefined): Sha256 | undefined => {
    if (value === undefined) return undefined
    const bytes = Buffer.from(JSON.stringify(value))
    const digest = assertSha256(createHash('sha256').update(bytes).digest('hex'))
    evidence.set(digest, bytes)
    return digest
  }
  const signingKeysBlob = addBlob(signingKeys)
  const packagesBlob = addBlob(packages)
  return {
    filename: published.filename,
    digest,
    archiveUrl: published.archiveUrl,
    protocols: [...published.protocols],
    statedHashes: [...statedHashes],
    authentication,
    document,
    documentUrl: published.documentUrl,
    ...(signingKeysBlob === undefined ? {} : { signingKeys: signingKeysBlob }),
    ...(packagesBlob === undefined ? {} : { packages: packagesBlob }),
  }
}

function offeredFiles(authenticated: AuthenticatedRelease): Map<string, Sha256> {
  const files = new Map(authenticated.filenames)
  for (const { published, digest } of authenticated.packages) files.set(published.filename, digest)
  return files
}
