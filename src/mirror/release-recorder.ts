import { isMirrorError, type MirrorError } from '../errors.ts'
import type { Log } from '../log.ts'
import { formatProviderAddress, type ProviderAddress } from '../protocol/provider-address.ts'
import type { BlobStore } from '../store/blob-store.ts'
import type { Catalogue } from './catalogue.ts'
import type { Evidence, ReleaseWithEvidence } from './release-adoption.ts'
import type { BlobClaims } from './stock/blob-claims.ts'

/** Why a record and its evidence could not be written, and the evidence, from which documents are answered meanwhile. */
export interface Unsaved {
  readonly error: MirrorError
  readonly evidence: Evidence
}

/** What `ReleaseRecorder` is made of. */
export interface ReleaseRecorderParts {
  readonly catalogue: Catalogue
  readonly claims: BlobClaims
  readonly blobs: BlobStore
  readonly log: Log
}

/** Makes the evidence of releases durable. */
export class ReleaseRecorder {
  readonly #parts: ReleaseRecorderParts

  constructor(parts: ReleaseRecorderParts) {
    this.#parts = parts
  }

  /** Writes in the order that a crash may interrupt. What a full disk does not take is given back. */
  async save(
    { address, at }: { readonly address: ProviderAddress; readonly at: string },
    { release, evidence }: ReleaseWithEvidence,
  ): Promise<Unsaved | undefined> {
    const { catalogue, claims, blobs, log } = this.#parts
    using _claim = await claims.claim(evidence.keys())
    try {
      for (const bytes of evidence.values()) await blobs.put(bytes)
      const signed = Object.values(release.platforms).find(
        ({ authentication: { rule } }) => rule === 'signed-checksums',
      )
      if (signed?.authentication.rule === 'signed-checksums' && (await catalogue.trust(address)) === undefined) {
        const { keyId, fingerprint } = signed.authentication.signer
        await catalogue.saveTrust(address, { format: 1, signedSince: at, version: release.version, keyId, fingerprint })
      }
      await catalogue.saveRelease(address, release)
      return undefined
    } catch (error) {
      if (!isMirrorError(error) || !error.is('STORAGE_FULL', 'STORAGE_FAILED')) throw error
      const name = `${formatProviderAddress(address)} ${release.version}`
      log.error({ release: name, err: error }, 'could not record a release')
      return { error, evidence }
    }
  }

  /** True if no blob of the evidence is lost. @throws MirrorError `STORAGE_FAILED` */
  async holds(evidence: Evidence): Promise<boolean> {
    for (const digest of evidence.keys()) if ((await this.#parts.blobs.stat(digest)) === undefined) return false
    return true
  }
}
