import { join } from 'node:path'
import type { OriginKey } from './origin-key.ts'
import { type ProviderArchive, readyArchive, writeLargeArchive, zipArchive } from './provider-archive.ts'
import { readAll } from './reply.ts'

/** A JSON document as an origin answers it. */
export type JsonDocument = Record<string, unknown>

/** What to publish. Only `provider` and `version` are needed; the rest makes the release odd on purpose. */
export interface Publication {
  /** `acme/widget` at the origin's first host, or `other.example.test/acme/widget`. */
  readonly provider: string
  /** Any spelling; it is listed and asked for as written. */
  readonly version: string
  /** Default `linux_amd64`, `linux_arm64`, `darwin_arm64`, `windows_amd64`. */
  readonly platforms?: readonly string[]
  /** Default `['5.0']`. */
  readonly protocols?: readonly string[]
  /** The content of every platform's zip, instead of a program and a licence that differ by platform and generation. */
  readonly files?: Readonly<Record<string, Buffer>>
  /** Instead of a small zip: one with an incompressible program of this size, kept on disk. */
  readonly archiveBytes?: number
  /** Instead of a zip made here: these bytes, or this file. */
  readonly archive?: (platform: string) => Buffer | { readonly path: string }
  /** Default `terraform-provider-TYPE_VERSION_OS_ARCH.zip`. */
  readonly filename?: (platform: string) => string
  /** Who signs SHA256SUMS; several give several signatures in one file; null: nobody, and no key is listed. */
  readonly key?: OriginKey | readonly OriginKey[] | null
  /** The keys that the download document lists, in this order; default those that sign. */
  readonly listedKeys?: readonly OriginKey[]
  /** Default: now, or a time within the validity of an expired key. */
  readonly signedAt?: Date
  /** Whether the version stands in the list; default true. It can be downloaded either way. */
  readonly list?: boolean
  /** Changes the text of SHA256SUMS before it is signed. */
  readonly sums?: (text: string) => string
  /** Changes the download document of a platform. */
  readonly document?: (document: JsonDocument, platform: string) => JsonDocument
  /** Adds OpenTofu's `packages` object (client-contract C12). */
  readonly packages?: boolean
}

/** The archive of one platform, as published. */
export interface PublishedPackage extends ProviderArchive {
  readonly platform: string
  readonly filename: string
  /** The whole zip in memory. */
  bytes(): Promise<Buffer>
}

/** One version as published. Nothing of it changes afterwards; publishing again makes another generation. */
export interface Release {
  readonly version: string
  /** 1 for the first publication of this version, then 2, 3, … */
  readonly generation: number
  readonly protocols: readonly string[]
  readonly listed: boolean
  readonly packages: readonly PublishedPackage[]
  /** SHA256SUMS, byte for byte. */
  readonly sums: Buffer
  /** Undefined if nobody signed. */
  readonly signature: Buffer | undefined
  /** The package of a platform. @throws Error if it was not published */
  package(platform: string): PublishedPackage
  /** The download document of a platform, or undefined if it was not published. */
  document(platform: string): JsonDocument | undefined
}

/** Where a release is published. */
export interface ReleasePlace {
  readonly host: string
  readonly namespace: string
  readonly type: string
  readonly generation: number
  /** Signs where the publication names no key. */
  readonly defaultKey: OriginKey
  /** Where large archives are kept. */
  readonly tempDir: string
}

const DEFAULT_PLATFORMS = ['linux_amd64', 'linux_arm64', 'darwin_arm64', 'windows_amd64']

/** Makes the archives of a release, its SHA256SUMS and the signature. */
export async function buildRelease(publication: Publication, place: ReleasePlace): Promise<Release> {
  const { version, key = place.defaultKey } = publication
  const packages: PublishedPackage[] = []
  for (const platform of publication.platforms ?? DEFAULT_PLATFORMS) {
    packages.push(await buildPackage(publication, place, platform))
  }
  const lines = packages.map((each) => `${each.sha256}  ${each.filename}\n`).toSorted(byFilename)
  const text = lines.join('')
  const sums = Buffer.from(publication.sums?.(text) ?? text)
  const signers = key === null ? [] : [key].flat()
  const signatures = await Promise.all(signers.map((signer) => signer.sign(sums, publication.signedAt)))
  const signature = signatures.length === 0 ? undefined : Buffer.concat(signatures)
  const listedKeys = publication.listedKeys ?? signers

  const release: Release = {
    version,
    generation: place.generation,
    protocols: publication.protocols ?? ['5.0'],
    listed: publication.list ?? true,
    packages,
    sums,
    signature,
    package(platform) {
      const found = packages.find((each) => each.platform === platform)
      if (found === undefined) throw new Error(`${publication.provider} ${version} has no package for ${platform}`)
      return found
    },
    document(platform) {
      const found = packages.find((each) => each.platform === platform)
      if (found === undefined) return undefined
      const document = {
        ...downloadDocument(release, place, found),
        signing_keys: { gpg_public_keys: listedKeys.map(keyEntry) },
        ...(publication.packages ? { packages: packagesObject(packages) } : {}),
      }
      return publication.document?.(document, platform) ?? document
    },
  }
  return release
}

async function buildPackage(publication: Publication, place: ReleasePlace, platform: string) {
  const { version } = publication
  const filename = publication.filename?.(platform) ?? `terraform-provider-${place.type}_${version}_${platform}.zip`
  const archive = await buildArchive(publication, place, platform)
  return {
    ...archive,
    platform,
    filename,
    bytes: () => readAll(archive.body),
  }
}

async function buildArchive(publication: Publication, place: ReleasePlace, platform: string): Promise<ProviderArchive> {
  if (publication.archive !== undefined) return readyArchive(publication.archive(platform))
  const program = `terraform-provider-${place.type}_v${publication.version}`
  const identity = `${place.host}/${place.namespace}/${place.type} ${publication.version} ${platform} generation ${place.generation}`
  if (publication.archiveBytes !== undefined) {
    const path = join(place.tempDir, `${identity.replaceAll(/[^\w.+-]+/g, '_')}.zip`)
    return writeLargeArchive(path, { filename: program, bytes: publication.archiveBytes, seed: identity })
  }
  return zipArchive(
    publication.files ?? {
      'LICENSE.txt': Buffer.from('Mozilla Public License Version 2.0\n'),
      [program]: Buffer.from(`#!/bin/sh\n# ${identity}\nexit 1\n`),
    },
  )
}

/** The document of client-contract C2. Its URLs are root-relative, so that they work at every virtual host. */
function downloadDocument(release: Release, place: ReleasePlace, archive: PublishedPackage): JsonDocument {
  const [os, arch] = archive.platform.split('_')
  const base = `/releases/${place.host}/${place.namespace}/${place.type}/${release.version}`
  const sumsUrl = `${base}/terraform-provider-${place.type}_${release.version}_SHA256SUMS`
  return {
    protocols: release.protocols,
    os,
    arch,
    filename: archive.filename,
    download_url: `${base}/${archive.platform}/${encodeURIComponent(archive.filename)}`,
    shasums_url: sumsUrl,
    ...(release.signature === undefined ? {} : { shasums_signature_url: `${sumsUrl}.sig` }),
    shasum: archive.sha256,
  }
}

function keyEntry(key: OriginKey): JsonDocument {
  return { key_id: key.keyId, ascii_armor: key.asciiArmor, trust_signature: '', source: '', source_url: null }
}

function packagesObject(packages: readonly PublishedPackage[]): JsonDocument {
  return Object.fromEntries(
    packages.map(({ platform, sha256, h1, body }) => [
      platform,
      { hashes: [`zh:${sha256}`, ...(h1 === undefined ? [] : [h1])], package_size: body.size },
    ]),
  )
}

function byFilename(a: string, b: string): number {
  return a.slice(66) < b.slice(66) ? -1 : 1
}
