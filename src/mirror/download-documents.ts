import { LRUCache } from 'lru-cache'
import { isMirrorError, MirrorError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { JsonObject, JsonValue } from '../protocol/json.ts'
import type { Sha256 } from '../protocol/package-hash.ts'
import { formatPlatform } from '../protocol/platform.ts'
import { formatProviderAddress, type ProviderAddress } from '../protocol/provider-address.ts'
import { isNamed } from '../protocol/provider-registry.ts'
import type { Version } from '../protocol/version.ts'
import { findFault, type KnownPackage } from '../verify/stated-packages.ts'
import type { Answer, Call } from './call.ts'
import type { Catalogue } from './catalogue.ts'
import type { PackageHashes } from './package-hashes.ts'
import { type Checksums, checksumsOf, type Release } from './release-record.ts'
import type { PlatformEvidence, Releases } from './releases.ts'
import type { PackageId } from './stock/item-name.ts'
import type { UpstreamFor } from './upstreams.ts'
import { assertOriginAllowed, type View } from './view.ts'

/** What the origin said about one platform, all of it from one release record. */
export interface DownloadFacts {
  /** The origin's document as given, without `signing_keys` and `packages`. */
  readonly document: JsonObject
  /** As given; undefined if the document has none. */
  readonly signingKeys: JsonValue | undefined
  /** As given; undefined if the document has none, or if it must not be passed on. */
  readonly packages: JsonValue | undefined
  /** Both are readable by `DownloadDocuments.readChecksums`. */
  readonly checksums: Checksums
}

/** What `DownloadDocuments` is made of. */
export interface DownloadDocumentsParts {
  readonly catalogue: Catalogue
  readonly releases: Releases
  readonly hashes: PackageHashes
  readonly upstreamFor: UpstreamFor
  readonly log: Log
}

/** What clients need to authenticate a release themselves: the origin's documents, SHA256SUMS and signatures, as given. */
export class DownloadDocuments {
  readonly #parts: DownloadDocumentsParts
  /** Releases whose record was as complete as the origin can make it, the last time that this process asked. */
  readonly #asked = new LRUCache<string, true>({ max: 5_000 })
  readonly #reported = new LRUCache<string, string>({ max: 5_000 })

  constructor(parts: DownloadDocumentsParts) {
    this.#parts = parts
  }

  /**
   * The document of one platform, held archive or not. What of it was lost is asked for again, if there is an origin.
   * @throws MirrorError `ORIGIN_NOT_ALLOWED`; what `Releases.getPlatform` throws; `STORAGE_FAILED` if it is lost
   */
  async get(view: View, id: PackageId, call: Call): Promise<Answer<DownloadFacts>> {
    const { address, version, platform } = id
    const { releases, upstreamFor } = this.#parts
    assertOriginAllowed(view, address.hostname)
    const answer = await releases.getEvidence(address, version, platform, call)
    const facts = await this.#read(id, answer.value)
    if (facts !== undefined && this.#isComplete(id, facts)) return { ...answer, value: facts }
    if (upstreamFor(address.hostname) === undefined) {
      if (facts === undefined) throw lostEvidence(id)
      return { ...answer, value: facts }
    }
    try {
      const { reason } = await releases.refresh(address, version, call)
      const again = await releases.getEvidence(address, version, platform, call)
      const found = await this.#read(id, again.value)
      if (found !== undefined) return { ...again, value: found }
      throw reason ?? lostEvidence(id)
    } catch (error) {
      if (facts === undefined || !isMirrorError(error)) throw error
      return { ...answer, value: facts }
    }
  }

  /**
   * A SHA256SUMS or a signature that a document of this version names, or named before the release changed.
   * @throws MirrorError `ORIGIN_NOT_ALLOWED`; `NOT_CACHED` if no document names it; the outage, or `STORAGE_FAILED`, if
   *   it is lost
   */
  async readChecksums(
    view: View,
    { address, version, digest }: { address: ProviderAddress; version: Version; digest: Sha256 },
    call: Call,
  ): Promise<Answer<Uint8Array>> {
    const { releases, upstreamFor } = this.#parts
    assertOriginAllowed(view, address.hostname)
    const held = await releases.readEvidence(address, version, digest)
    if (typeof held === 'object') return { value: held, outcome: 'hit' }
    if (held === 'unknown') throw unknownChecksums({ address, version }, digest)
    const sealed = upstreamFor(address.hostname) === undefined
    const refreshed = sealed ? undefined : await releases.refresh(address, version, call)
    const found = await releases.readEvidence(address, version, digest)
    if (typeof found === 'object') return { value: found, outcome: 'miss' }
    throw refreshed?.reason ?? lostEvidence({ address, version })
  }

  /** Undefined if a part of it is lost. */
  async #read(id: PackageId, evidence: PlatformEvidence): Promise<DownloadFacts | undefined> {
    const { document, signingKeys } = evidence.platform
    const checksums = checksumsOf(evidence.platform)
    for (const digest of Object.values(checksums)) {
      if ((await this.#readBytes(id, digest)) === undefined) return undefined
    }
    const keys = signingKeys && (await this.#readBytes(id, signingKeys))
    if (signingKeys !== undefined && keys === undefined) return undefined
    const packages = await this.#readPackages(id, evidence)
    return { document, signingKeys: keys && parseJson(keys), packages, checksums }
  }

  async #readBytes({ address, version }: PackageId, digest: Sha256): Promise<Uint8Array | undefined> {
    const bytes = await this.#parts.releases.readEvidence(address, version, digest)
    return typeof bytes === 'object' ? bytes : undefined
  }

  /** Records from before signatures of unsigned releases were kept lack one that the document names. */
  #isComplete(id: PackageId, { document, checksums }: DownloadFacts): boolean {
    if (checksums.signature !== undefined || !isNamed(document.shasums_signature_url)) return true
    const name = nameOf(id)
    const asked = this.#asked.has(name)
    this.#asked.set(name, true)
    return asked
  }

  async #readPackages(id: PackageId, { release, platform }: PlatformEvidence): Promise<JsonValue | undefined> {
    const bytes = platform.packages && (await this.#readBytes(id, platform.packages))
    if (bytes === undefined || platform.packages === undefined) return undefined
    const packages = parseJson(bytes)
    const fault = findFault(packages, {
      platform: formatPlatform(id.platform),
      known: await this.#knownPackages(id, release),
      files: new Set(release.files.map(({ digest }) => digest)),
      unproven: this.#parts.upstreamFor(id.address.hostname) === undefined ? 'refuse' : 'pass',
    })
    if (fault === undefined) return packages
    const name = nameOf(id)
    if (this.#reported.get(name) !== fault) {
      this.#reported.set(name, fault)
      this.#parts.log.warn({ release: name, reason: fault }, 'left "packages" of an origin out of a document')
    }
    return undefined
  }

  async #knownPackages({ address, version }: PackageId, release: Release): Promise<Map<string, KnownPackage>> {
    const { catalogue, hashes } = this.#parts
    const { archives } = await catalogue.version(address, version)
    const known = new Map<string, KnownPackage>()
    for (const [name, { digest, statedHashes }] of Object.entries(release.platforms)) {
      const archive = archives.get(name)
      const held = archive?.digest === digest
      const h1 = held ? await hashes.find(digest) : undefined
      if (held && h1 === undefined) hashes.ensure(digest, statedHashes, `${nameOf({ address, version })} ${name}`)
      known.set(name, { digest, size: held ? archive.size : undefined, h1 })
    }
    return known
  }
}

function parseJson(bytes: Uint8Array): JsonValue {
  return JSON.parse(Buffer.from(bytes).toString('utf8'))
}

type ReleaseId = Pick<PackageId, 'address' | 'version'>

function lostEvidence(id: ReleaseId): MirrorError {
  const message = `${nameOf(id)}: evidence of this release was lost or damaged on disk, and the origin did not give it again`
  return new MirrorError('STORAGE_FAILED', message, { operation: 'read' })
}

function unknownChecksums(id: ReleaseId, digest: Sha256): MirrorError {
  const message =
    `${nameOf(id)}: no document of this release names checksums ${digest}; ` +
    'if it has changed since its document was read, run the command again'
  return new MirrorError('NOT_CACHED', message, { item: nameOf(id) })
}

function nameOf({ address, version }: ReleaseId): string {
  return `${formatProviderAddress(address)} ${version}`
}
