import { createHash } from 'node:crypto'
import { type ErrorFields, MirrorError, redactUrl } from '../errors.ts'
import type { Authentication } from '../protocol/authentication.ts'
import { assertSha256, type Sha256 } from '../protocol/package-hash.ts'
import type { ChecksumsClaim, PublishedPlatform } from '../protocol/release-claim.ts'
import { parseSha256Sums, type Sha256Sums } from './sha256sums.ts'
import { verifySignature } from './signature.ts'

/** What the operator and the past demand of a release. */
export interface VerificationRules {
  /** `required`: a provider without listed keys is refused. `whenListed`: its checksums are enough. */
  readonly signatures: 'required' | 'whenListed'
  /** What to do with a signature by a key that has expired since. */
  readonly expiredKeys: 'accept' | 'refuse'
  /** This provider was seen signed before, so it is never accepted unsigned again. */
  readonly everSigned: boolean
}

type WithoutDigest<A> = A extends Authentication ? Omit<A, 'digest'> : never

/** Digests of files that may be believed, and on what evidence. Made once for each distinct evidence. */
export interface AcceptedChecksums {
  /** Everything about the authentication of a file but its digest. */
  readonly basis: WithoutDigest<Authentication>
  readonly entries: ReadonlyMap<string, Sha256>
  /** Where the SHA256SUMS is from, redacted; undefined if there is none and the document's own word stands in. */
  readonly sumsUrl: string | undefined
  /** The bytes that prove it. */
  readonly evidence: ReadonlyMap<Sha256, Uint8Array>
}

/** Statuses by which an origin says that it does not have a file. Object stores say 403 for a missing key. */
const ABSENT_STATUSES: readonly number[] = [403, 404, 410]

/**
 * Decides which checksums of one release may be believed. Each distinct set of SHA256SUMS, signature and keys is
 * parsed and verified once, however many platforms and URLs lead to it.
 */
export class ChecksumsJudge {
  readonly #claims: readonly ChecksumsClaim[]
  readonly #rules: VerificationRules
  readonly #now: Date
  readonly #sums = new Map<Sha256, Sha256Sums>()
  readonly #accepted = new Map<string, Promise<AcceptedChecksums>>()

  constructor(claims: readonly ChecksumsClaim[], rules: VerificationRules, now: Date) {
    this.#claims = claims
    this.#rules = rules
    this.#now = now
  }

  /**
   * The checksums to hold the platform's file against, by the keys that its own document lists.
   *
   * @throws MirrorError `CHECKSUMS_INVALID`, `CHECKSUM_MISSING`, `SIGNATURE_*`, `KEY_UNREADABLE`, and the `UPSTREAM_*`
   *   error of an origin that could not be asked for SHA256SUMS or the signature
   */
  async accept(published: PublishedPlatform): Promise<AcceptedChecksums> {
    const checksums = published.checksums === undefined ? undefined : this.#claims[published.checksums]
    if (published.signingKeys.length > 0) return this.#acceptSigned(published, checksums)
    this.#assertUnsignedAllowed(published)
    return checksums === undefined ? statedChecksum(published) : this.#acceptUnsigned(checksums)
  }

  async #acceptSigned(published: PublishedPlatform, checksums: ChecksumsClaim | undefined): Promise<AcceptedChecksums> {
    if (checksums === undefined) throw noSumsNamed(published)
    const sums = sumsOf(checksums)
    const signature = signatureOf(checksums)
    const keys = published.signingKeys.map(({ asciiArmor }) => asciiArmor)
    const identity = [sha256(sums), sha256(signature), JSON.stringify(keys)]
    return this.#once(identity.join(), async () => {
      // First, so that an error page in place of the file is called that.
      const { entries } = this.#parse(sums, checksums)
      const rules = { now: this.#now, expiredKeys: this.#rules.expiredKeys, upstreamUrl: signatureUrlOf(checksums) }
      const signer = await verifySignature(sums, signature, published.signingKeys, rules)
      return {
        basis: { rule: 'signed-checksums', sums: sha256(sums), signature: sha256(signature), signer },
        entries,
        sumsUrl: redactUrl(checksums.sumsUrl),
        evidence: new Map([sums, signature].map((bytes) => [sha256(bytes), bytes])),
      }
    })
  }

  async #acceptUnsigned(checksums: ChecksumsClaim): Promise<AcceptedChecksums> {
    const sums = sumsOf(checksums)
    const signature = checksums.signature instanceof MirrorError ? undefined : checksums.signature
    const files = signature === undefined ? [sums] : [sums, signature]
    return this.#once(files.map(sha256).join(), async () => ({
      basis: {
        rule: 'unsigned-checksums',
        sums: sha256(sums),
        ...(signature === undefined ? {} : { signature: sha256(signature) }),
      },
      entries: this.#parse(sums, checksums).entries,
      sumsUrl: redactUrl(checksums.sumsUrl),
      evidence: new Map(files.map((bytes) => [sha256(bytes), bytes])),
    }))
  }

  #assertUnsignedAllowed(published: PublishedPlatform): void {
    const who = `the origin lists no signing key for ${published.filename} (${redactUrl(published.documentUrl)})`
    if (this.#rules.everSigned) {
      const reason = 'this provider was signed before, so it is not accepted unsigned'
      throw new MirrorError('SIGNATURE_REQUIRED', `${who}, but ${reason}; ask the publisher why the keys are gone`, {
        reason,
      })
    }
    if (this.#rules.signatures === 'required') {
      const reason = 'signatures are required of this origin'
      const advice = 'to accept its providers by checksum only, set verification.signatures: whenListed for this origin'
      throw new MirrorError('SIGNATURE_REQUIRED', `${who}, and ${reason}; ${advice}`, { reason })
    }
  }

  #parse(bytes: Uint8Array, { sumsUrl }: ChecksumsClaim): Sha256Sums {
    const digest = sha256(bytes)
    const sums = this.#sums.get(digest) ?? parseSha256Sums(bytes, redactUrl(sumsUrl))
    this.#sums.set(digest, sums)
    return sums
  }

  #once(identity: string, accept: () => Promise<AcceptedChecksums>): Promise<AcceptedChecksums> {
    const accepted = this.#accepted.get(identity) ?? accept()
    this.#accepted.set(identity, accepted)
    return accepted
  }
}

/** No key, no SHA256SUMS: the document's own `shasum` is all there is (field-reports B28). */
function statedChecksum({ filename, shasum, documentUrl }: PublishedPlatform): AcceptedChecksums {
  if (shasum !== undefined) {
    const entries = new Map([[filename, shasum]])
    return { basis: { rule: 'stated-checksum' }, entries, sumsUrl: undefined, evidence: new Map() }
  }
  const upstreamUrl = redactUrl(documentUrl)
  const message = `no checksum for ${filename}: ${upstreamUrl} names no SHA256SUMS and states no shasum`
  throw new MirrorError('CHECKSUM_MISSING', message, { filename, upstreamUrl })
}

function noSumsNamed({ filename, documentUrl }: PublishedPlatform): MirrorError {
  const upstreamUrl = redactUrl(documentUrl)
  const reason = 'the origin lists signing keys but names no SHA256SUMS'
  const message = `${filename} cannot be verified: ${reason} (${upstreamUrl})`
  return new MirrorError('CHECKSUMS_INVALID', message, { reason, upstreamUrl })
}

/** @throws MirrorError `CHECKSUMS_INVALID` if the origin does not have it, else the error of the fetch as it is */
function sumsOf({ sums, sumsUrl }: ChecksumsClaim): Uint8Array {
  if (!(sums instanceof MirrorError)) return sums
  const status = absentStatusOf(sums)
  if (status === undefined) throw sums
  const upstreamUrl = redactUrl(sumsUrl)
  const message = `the origin has no SHA256SUMS for this version: checksums ${status} from ${upstreamUrl}`
  throw new MirrorError('CHECKSUMS_INVALID', message, { reason: `checksums ${status}`, upstreamUrl }, sums)
}

/** @throws MirrorError `SIGNATURE_MISSING` if the origin does not have it, else the error of the fetch as it is */
function signatureOf(checksums: ChecksumsClaim): Uint8Array {
  const { signature, sumsUrl } = checksums
  if (signature === undefined) {
    const upstreamUrl = redactUrl(sumsUrl)
    const message = `the origin lists signing keys but names no signature of ${upstreamUrl}`
    throw new MirrorError('SIGNATURE_MISSING', message, { upstreamUrl })
  }
  if (!(signature instanceof MirrorError)) return signature
  const status = absentStatusOf(signature)
  if (status === undefined) throw signature
  const upstreamUrl = signatureUrlOf(checksums)
  const fields: ErrorFields['SIGNATURE_MISSING'] = upstreamUrl === undefined ? {} : { upstreamUrl }
  const message = `the origin lists signing keys but has no signature: signature ${status} from ${upstreamUrl}`
  throw new MirrorError('SIGNATURE_MISSING', message, fields, signature)
}

function signatureUrlOf({ signatureUrl }: ChecksumsClaim): string | undefined {
  return signatureUrl === undefined ? undefined : redactUrl(signatureUrl)
}

function absentStatusOf(error: MirrorError): number | undefined {
  if (!error.is('UPSTREAM_STATUS')) return undefined
  const { upstreamStatus } = error.fields
  return ABSENT_STATUSES.includes(upstreamStatus) ? upstreamStatus : undefined
}

function sha256(bytes: Uint8Array): Sha256 {
  return assertSha256(createHash('sha256').update(bytes).digest('hex'))
}
