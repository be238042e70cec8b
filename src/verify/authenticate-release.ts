import { isMirrorError, MirrorError, redactUrl } from '../errors.ts'
import type { Authentication } from '../protocol/authentication.ts'
import { type PackageHash, type Sha256, zipHash } from '../protocol/package-hash.ts'
import { formatPlatform, type Platform } from '../protocol/platform.ts'
import type { PlatformClaim, PublishedPlatform, ReleaseClaim } from '../protocol/release-claim.ts'
import { type AcceptedChecksums, ChecksumsJudge, type VerificationRules } from './checksums-judge.ts'

export type { VerificationRules } from './checksums-judge.ts'

/** A package whose digest is established. Its bytes are still to be held against it. */
export interface AuthenticatedPackage {
  readonly published: PublishedPlatform
  readonly digest: Sha256
  readonly authentication: Authentication
  /** What the origin states beside the digest, empty where it contradicts the digest (design, rule 11). */
  readonly statedHashes: readonly PackageHash[]
}

/** A platform that the origin publishes and that must not be served, and why. */
export interface RefusedPlatform {
  readonly platform: Platform
  readonly error: MirrorError
}

/** A platform that the origin says it does not publish. */
export interface AbsentPlatform {
  readonly platform: Platform
  readonly upstreamUrl: string
  readonly detail?: string
}

/** A package known from SHA256SUMS alone, without a download document. */
export interface InferredPackage {
  readonly filename: string
  readonly digest: Sha256
  readonly authentication: Authentication
}

/** A platform that the origin gave no usable answer about. */
export interface UnansweredPlatform {
  readonly platform: Platform
  readonly error: MirrorError
  /** Its package, if exactly one line of the accepted SHA256SUMS ends in `_OS_ARCH.zip`. */
  readonly inferred?: InferredPackage
}

/** One line for the log. */
export interface VerificationNote {
  readonly level: 'info' | 'warn'
  readonly text: string
}

/** A release claim after the checks. Each asked platform is in exactly one of the first four lists. */
export interface AuthenticatedRelease {
  readonly packages: readonly AuthenticatedPackage[]
  readonly refused: readonly RefusedPlatform[]
  readonly absent: readonly AbsentPlatform[]
  readonly unanswered: readonly UnansweredPlatform[]
  /** Every line of every accepted SHA256SUMS. */
  readonly filenames: ReadonlyMap<string, Sha256>
  /** The bytes of every accepted SHA256SUMS and signature, by digest. */
  readonly evidence: ReadonlyMap<Sha256, Uint8Array>
  /** At least one package is under the rule `signed-checksums`. */
  readonly signed: boolean
  /** Some refusal looks like two generations of a release mixed while fetching; worth one more try (B24). */
  readonly mayBeMixed: boolean
  readonly notes: readonly VerificationNote[]
}

/** A published platform with the checksums that its document leads to, or why there are none. */
interface Judgement {
  readonly published: PublishedPlatform
  readonly checksums: AcceptedChecksums | MirrorError
  /** The error stands for checksums that another accepted one contradicts. */
  readonly contradicted?: true
}

const PLAIN_NAME = /^[^/\\\p{Cc}]{1,255}$/u

/**
 * Decides which packages of a release may be believed (design, rules 1 and 11; field-reports B24 to B30). Each
 * platform is judged by the keys that its own document lists; if any evidence of the release is signed, unsigned
 * packages of it are refused. Two accepted SHA256SUMS that contradict each other are both refused.
 *
 * No input or output. What the origin got wrong is part of the answer, never thrown.
 */
export async function authenticateRelease(
  claim: ReleaseClaim,
  rules: VerificationRules,
  now: Date,
): Promise<AuthenticatedRelease> {
  const judged = await judgeAll(claim, rules, now)
  const judgements = refuseContradictions(refuseUnsignedBesideSigned(judged))
  const accepted = acceptedChecksums(judgements)
  const packages: AuthenticatedPackage[] = []
  const refused: RefusedPlatform[] = []
  let mayBeMixed: boolean = judgements.some(({ contradicted }) => contradicted)
  for (const { published, checksums } of judgements) {
    const result = checksums instanceof MirrorError ? checksums : authenticatePlatform(published, checksums)
    if (!(result instanceof MirrorError)) packages.push(result)
    else refused.push({ platform: published.platform, error: result })
    // A new error means that the document and its SHA256SUMS disagree.
    mayBeMixed ||= result instanceof MirrorError && (result !== checksums || result.is('SIGNATURE_INVALID'))
  }
  return {
    packages,
    refused,
    absent: claim.platforms.filter((platform) => platform.kind === 'absent').map(({ kind: _, ...absent }) => absent),
    unanswered: unansweredPlatforms(claim.platforms, accepted),
    filenames: new Map(accepted.filter(hasSums).flatMap(({ entries }) => [...entries])),
    evidence: new Map(accepted.flatMap(({ evidence }) => [...evidence])),
    signed: packages.some(({ authentication }) => authentication.rule === 'signed-checksums'),
    mayBeMixed,
    notes: [...accepted.flatMap(signerNotes), ...packages.flatMap(droppedClaimNotes)],
  }
}

/** One after the other: most platforms share their evidence, which is verified once. */
async function judgeAll(claim: ReleaseClaim, rules: VerificationRules, now: Date): Promise<Judgement[]> {
  const judge = new ChecksumsJudge(claim.checksums, rules, now)
  const judgements: Judgement[] = []
  for (const published of claim.platforms) {
    if (published.kind !== 'published') continue
    try {
      judgements.push({ published, checksums: await judge.accept(published) })
    } catch (error) {
      if (!isMirrorError(error)) throw error
      judgements.push({ published, checksums: error })
    }
  }
  return judgements
}

/** Else one document without keys, from a broken or a hostile node, would undo the signature of all the others. */
function refuseUnsignedBesideSigned(judgements: readonly Judgement[]): Judgement[] {
  const anySigned = acceptedChecksums(judgements).some(isSigned)
  return judgements.map((judgement) => {
    const { published, checksums } = judgement
    if (!anySigned || checksums instanceof MirrorError || isSigned(checksums)) return judgement
    const reason = 'other platforms of this version are signed'
    const who = `the origin lists no signing key for ${published.filename} (${redactUrl(published.documentUrl)})`
    return { published, checksums: new MirrorError('SIGNATURE_REQUIRED', `${who}, but ${reason}`, { reason }) }
  })
}

/** Two digests for one file: we cannot know which SHA256SUMS is right, so neither is used. */
function refuseContradictions(judgements: readonly Judgement[]): Judgement[] {
  const seen = new Map<string, { digest: Sha256; checksums: AcceptedChecksums }>()
  const contradicted = new Map<AcceptedChecksums, MirrorError>()
  for (const checksums of acceptedChecksums(judgements)) {
    for (const [filename, digest] of checksums.entries) {
      const known = seen.get(filename)
      if (known === undefined) seen.set(filename, { digest, checksums })
      if (known === undefined || known.digest === digest) continue
      const earlier = contradicted.get(known.checksums) ?? contradicted.get(checksums)
      const error = earlier ?? contradiction(filename, [known, { digest, checksums }])
      contradicted.set(known.checksums, error).set(checksums, error)
    }
  }
  return judgements.map((judgement) => {
    const error = judgement.checksums instanceof MirrorError ? undefined : contradicted.get(judgement.checksums)
    return error === undefined ? judgement : { ...judgement, checksums: error, contradicted: true }
  })
}

function contradiction(
  filename: string,
  statements: readonly { digest: Sha256; checksums: AcceptedChecksums }[],
): MirrorError {
  const said = statements.map(({ digest, checksums }) => `${digest} (${checksums.sumsUrl ?? 'its download document'})`)
  const reason = `the origin gives ${filename} two digests: ${said.join(' and ')}`
  return new MirrorError('CHECKSUMS_INVALID', `${reason}; it may be changing, try again`, { reason })
}

/** Each accepted evidence once. */
function acceptedChecksums(judgements: readonly Judgement[]): AcceptedChecksums[] {
  return [...new Set(judgements.map(({ checksums }) => checksums))].filter(isAccepted)
}

/** The file's line is what counts; the document's `shasum` must agree with it (B25, B26). */
function authenticatePlatform(
  published: PublishedPlatform,
  { entries, basis, sumsUrl }: AcceptedChecksums,
): AuthenticatedPackage | MirrorError {
  const { filename, shasum, documentUrl, statedHashes } = published
  const digest = entries.get(filename)
  const upstreamUrl = sumsUrl ?? redactUrl(documentUrl)
  if (digest === undefined) {
    const message = `no checksum entry for ${filename} in ${upstreamUrl}`
    return new MirrorError('CHECKSUM_MISSING', message, { filename, upstreamUrl })
  }
  if (shasum !== undefined && shasum !== digest) {
    const message = `two digests of ${filename}: ${upstreamUrl} says ${digest}, but the download document says ${shasum}`
    return new MirrorError('CHECKSUM_MISMATCH', message, { filename, expected: digest, actual: shasum, upstreamUrl })
  }
  const contradicting = statedHashes.some((hash) => hash.startsWith('zh:') && hash !== zipHash(digest))
  return {
    published,
    digest,
    authentication: { ...basis, digest },
    statedHashes: contradicting ? [] : statedHashes,
  }
}

function unansweredPlatforms(
  platforms: readonly PlatformClaim[],
  accepted: readonly AcceptedChecksums[],
): UnansweredPlatform[] {
  const unanswered = platforms.filter((platform) => platform.kind === 'failed')
  return unanswered.map(({ platform, error }) => {
    const inferred = inferPackage(platform, accepted)
    return { platform, error, ...(inferred && { inferred }) }
  })
}

/** A name is taken from SHA256SUMS, so it is looked at for path separators and control characters before use. */
function inferPackage(platform: Platform, accepted: readonly AcceptedChecksums[]): InferredPackage | undefined {
  const suffix = `_${formatPlatform(platform)}.zip`
  const found = new Map<string, InferredPackage>()
  for (const { entries, basis } of accepted.filter(hasSums)) {
    for (const [filename, digest] of entries) {
      if (!filename.endsWith(suffix)) continue
      found.set(filename, { filename, digest, authentication: { ...basis, digest } })
    }
  }
  const [[filename, inferred] = ['', undefined]] = found
  return found.size === 1 && PLAIN_NAME.test(filename) ? inferred : undefined
}

function signerNotes({ basis, sumsUrl }: AcceptedChecksums): VerificationNote[] {
  if (basis.rule !== 'signed-checksums') return []
  const { keyId, weak, keyExpired, signedAt } = basis.signer
  const notes: VerificationNote[] = []
  if (weak) notes.push({ level: 'info', text: `weak signature (SHA-1 or a short key) by ${keyId} over ${sumsUrl}` })
  if (keyExpired) {
    notes.push({ level: 'warn', text: `key ${keyId} has expired since it signed ${sumsUrl} at ${signedAt}` })
  }
  return notes
}

function droppedClaimNotes({ published, digest, statedHashes }: AuthenticatedPackage): VerificationNote[] {
  const count = published.statedHashes.length - statedHashes.length
  if (count === 0) return []
  const text = `dropped ${count} unsigned hashes of ${published.filename}: their zh: is not the verified ${digest}`
  return [{ level: 'warn', text }]
}

function isAccepted(checksums: Judgement['checksums']): checksums is AcceptedChecksums {
  return !(checksums instanceof MirrorError)
}

function isSigned({ basis }: AcceptedChecksums): boolean {
  return basis.rule === 'signed-checksums'
}

function hasSums({ sumsUrl }: AcceptedChecksums): boolean {
  return sumsUrl !== undefined
}
