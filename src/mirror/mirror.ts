import { type PackageHash, type Sha256, zipHash } from '../protocol/package-hash.ts'
import { type Platform, parsePlatform } from '../protocol/platform.ts'
import { formatProviderAddress, type ProviderAddress } from '../protocol/provider-address.ts'
import type { Version } from '../protocol/version.ts'
import type { OpenBlob } from '../store/blob-store.ts'
import type { Arrived, ArrivingArchive } from './archive-tail.ts'
import type { ArchiveFacts, Archives } from './archives.ts'
import type { Answer, Call } from './call.ts'
import type { Catalogue } from './catalogue.ts'
import type { DownloadDocuments, DownloadFacts } from './download-documents.ts'
import type { Edition } from './editions.ts'
import type { PackageHashes } from './package-hashes.ts'
import type { ArchiveRecord, ReleasePlatform } from './release-record.ts'
import type { Releases } from './releases.ts'
import type { PackageId } from './stock/item-name.ts'
import { formatPackageName } from './stock/item-name.ts'
import type { UseObserver } from './stock/usage.ts'
import type { UpstreamFor } from './upstreams.ts'
import type { DescribedVersions, Versions } from './versions.ts'
import { assertOriginAllowed, type View } from './view.ts'

/** One installable package of a version, as a client may be told. */
export interface ListedPackage {
  readonly platform: Platform
  /** `zh:` always and first; then `h1:` where it is known. */
  readonly hashes: readonly PackageHash[]
}

/** What `Mirror` is made of. */
export interface MirrorParts {
  readonly catalogue: Catalogue
  readonly versions: Versions
  readonly releases: Releases
  readonly archives: Archives
  readonly hashes: PackageHashes
  readonly downloads: DownloadDocuments
  readonly usage: UseObserver
  readonly upstreamFor: UpstreamFor
}

/** The use cases of Terramirror for providers, whatever protocol the client speaks. */
export class Mirror {
  readonly #parts: MirrorParts

  constructor(parts: MirrorParts) {
    this.#parts = parts
  }

  /** The versions that a client may choose. @throws MirrorError as `Versions.list` */
  async listVersions(view: View, address: ProviderAddress, call: Call): Promise<Answer<readonly Version[]>> {
    const edition = this.#parts.catalogue.editions.of(formatProviderAddress(address))
    return within(edition, await this.#parts.versions.list(view, address, call))
  }

  /** The same with protocols, platforms and warnings. @throws MirrorError as `Versions.describe` */
  describeVersions(view: View, address: ProviderAddress, call: Call): Promise<Answer<DescribedVersions>> {
    return this.#parts.versions.describe(view, address, call)
  }

  /** What the origin said about one package, for clients that authenticate it themselves. @throws MirrorError as `DownloadDocuments.get` */
  getDownload(view: View, id: PackageId, call: Call): Promise<Answer<DownloadFacts>> {
    return this.#parts.downloads.get(view, id, call)
  }

  /** SHA256SUMS or a signature, byte for byte. @throws MirrorError as `DownloadDocuments.readChecksums` */
  readChecksums(
    view: View,
    file: { address: ProviderAddress; version: Version; digest: Sha256 },
    call: Call,
  ): Promise<Answer<Uint8Array>> {
    return this.#parts.downloads.readChecksums(view, file, call)
  }

  /**
   * The packages of one version for every platform, held or not: never waits for an archive. Sealed: only those held.
   * @throws MirrorError `ORIGIN_NOT_ALLOWED`; what `Releases.get` throws; the outage if a platform that the origin did
   *   not answer for cannot be told from what is known
   */
  async listPackages(
    view: View,
    address: ProviderAddress,
    version: Version,
    call: Call,
  ): Promise<Answer<readonly ListedPackage[]>> {
    assertOriginAllowed(view, address.hostname)
    const edition = this.#parts.catalogue.editions.of(formatProviderAddress(address))
    const answer = await this.#parts.releases.get(address, version, call)
    const { release, inferred, unanswered } = answer.value
    if (unanswered !== undefined) throw unanswered
    const { archives } = await this.#parts.catalogue.version(address, version)
    const sealed = this.#parts.upstreamFor(address.hostname) === undefined
    const packages: ListedPackage[] = []
    let settled = true
    for (const [name, evidence] of Object.entries(release.platforms)) {
      const held = archives.has(name)
      if (sealed && !held) continue
      const computed = held ? await this.#parts.hashes.find(evidence.digest) : undefined
      if (held && computed === undefined) {
        settled = false
        const label = `${formatProviderAddress(address)} ${version} ${name}`
        this.#parts.hashes.ensure(evidence.digest, evidence.statedHashes, label)
      }
      packages.push({ platform: parsePlatform(name), hashes: hashesOf(evidence, computed) })
    }
    for (const [name, { digest }] of sealed ? [] : inferred) {
      packages.push({ platform: parsePlatform(name), hashes: [zipHash(digest)] })
    }
    const { isCurrent, ...rest } = answer
    return within(edition, { ...rest, value: packages, ...(settled && isCurrent ? { isCurrent } : {}) })
  }

  /** Opens one archive, downloading it first if need be. The caller disposes of it. @throws MirrorError as `Archives.open` */
  async openArchive(view: View, id: PackageId, call: Call): Promise<Answer<OpenBlob>> {
    const answer = await this.#parts.archives.open(view, id, call)
    this.#parts.usage.touch(formatPackageName(id))
    return answer
  }

  /** As `openArchive`, but what may be handed on is not waited for. @throws MirrorError as `Archives.follow` */
  async followArchive(
    view: View,
    id: PackageId,
    call: Call,
    options: { sized: boolean },
  ): Promise<Answer<OpenBlob | ArrivingArchive>> {
    const answer = await this.#parts.archives.follow(view, id, call, options)
    this.#parts.usage.touch(formatPackageName(id))
    return answer
  }

  /** Sees to it that one archive is held; nobody reads it now. @throws MirrorError as `Archives.obtain` */
  obtainArchive(
    view: View,
    id: PackageId,
    options: { call: Call; onProgress?: (arrived: Arrived) => void },
  ): Promise<Answer<ArchiveRecord>> {
    return this.#parts.archives.obtain(view, id, options)
  }

  /** The record of one archive if it is held. @throws MirrorError as `Archives.find` */
  findArchive(view: View, id: PackageId): Promise<ArchiveRecord | undefined> {
    return this.#parts.archives.find(view, id)
  }

  /** The digest that one archive must have. @throws MirrorError as `Archives.expect` */
  expectArchive(view: View, id: PackageId, call: Call): Promise<Sha256> {
    return this.#parts.archives.expect(view, id, call)
  }

  /** All hashes of a held archive, `zh:` first; waits until `h1:` is computed. @throws MirrorError `STORAGE_FAILED` */
  async hashArchive({ digest, address, version, platform }: ArchiveRecord): Promise<readonly PackageHash[]> {
    return [zipHash(digest), ...(await this.#parts.hashes.get(digest, `${address} ${version} ${platform}`))]
  }

  /** What `openArchive` would give, at once. @throws MirrorError as `Archives.describe` */
  describeArchive(view: View, id: PackageId, call: Call): Promise<Answer<ArchiveFacts>> {
    return this.#parts.archives.describe(view, id, call)
  }

  /** Waits until nothing is on its way from any origin, and gives up computing hashes. */
  async close(): Promise<void> {
    await this.#parts.archives.idle()
    await this.#parts.releases.idle()
    await this.#parts.versions.idle()
    await this.#parts.hashes.close()
  }
}

/** With what is computed from the archive, else with what the origin says of it. */
function hashesOf(evidence: ReleasePlatform, computed: readonly PackageHash[] | undefined): PackageHash[] {
  const h1 = computed ?? evidence.statedHashes.filter((hash) => hash.startsWith('h1:'))
  return [zipHash(evidence.digest), ...h1]
}

/** The answer, current at most as long as the edition that was read for it. */
function within<T>(edition: Edition, answer: Answer<T>): Answer<T> {
  const { isCurrent } = answer
  return isCurrent === undefined ? answer : { ...answer, isCurrent: bothCurrent(edition, isCurrent) }
}

/** Top-level, so that it does not keep the answer in memory. */
function bothCurrent(edition: Edition, isCurrent: () => boolean): () => boolean {
  return () => edition.isCurrent && isCurrent()
}
