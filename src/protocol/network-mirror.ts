import type { PackageHash } from './package-hash.ts'
import { formatPlatform, type Platform } from './platform.ts'
import { sortByVersion, type Version } from './version.ts'

/** `index.json` of the provider network mirror protocol: the versions, as keys. */
export interface IndexDocument {
  readonly versions: Readonly<Record<string, Readonly<Record<string, never>>>>
}

/** One platform's entry in `VERSION.json`. */
export interface ArchiveEntry {
  /** May be relative to the document. */
  readonly url: string
  /** Never empty; `zh:` before `h1:`. */
  readonly hashes: readonly PackageHash[]
}

/** `VERSION.json` of the provider network mirror protocol: the archives by platform. */
export interface VersionDocument {
  readonly archives: Readonly<Record<string, ArchiveEntry>>
}

/** Builds `index.json`: each version once, in ascending order. */
export function indexDocument(versions: Iterable<Version>): IndexDocument {
  const sorted = sortByVersion(versions, (version) => version)
  return { versions: Object.fromEntries(sorted.map((version) => [version, {}])) }
}

/**
 * Builds `VERSION.json`, platforms in alphabetical order, hashes without duplicates and `zh:` first: a client that
 * finds `h1:` first unpacks the archive before it checks it (design, rule 2). No archives give `{"archives":{}}`, which
 * sends a client on to its next source (client-contract A29).
 * @throws Error if an archive has no hash or no URL, or a platform comes twice: clients would install it unchecked (A23)
 */
export function versionDocument(
  archives: Iterable<{ readonly platform: Platform; readonly url: string; readonly hashes: readonly PackageHash[] }>,
): VersionDocument {
  const entries = new Map<string, ArchiveEntry>()
  for (const { platform, url, hashes } of archives) {
    const key = formatPlatform(platform)
    if (url === '') throw new Error(`archive for ${key} without a URL`)
    if (hashes.length === 0) throw new Error(`archive for ${key} without a hash`)
    if (entries.has(key)) throw new Error(`two archives for ${key}`)
    entries.set(key, { url, hashes: zipHashesFirst(hashes) })
  }
  return { archives: Object.fromEntries([...entries].sort(([a], [b]) => (a < b ? -1 : 1))) }
}

function zipHashesFirst(hashes: readonly PackageHash[]): PackageHash[] {
  const unique = [...new Set(hashes)]
  return [...unique.filter((hash) => hash.startsWith('zh:')), ...unique.filter((hash) => !hash.startsWith('zh:'))]
}
