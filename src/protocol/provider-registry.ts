import type { JsonObject, JsonValue } from './json.ts'
import type { Platform } from './platform.ts'
import type { Version } from './version.ts'

/*
 * The documents of the provider registry protocol as this mirror answers them. What clients and origins say in it is
 * read in `provider-versions.ts` and `download-document.ts`.
 */

/** One version in the `versions` document. */
export interface VersionEntry {
  readonly version: Version
  readonly protocols: readonly string[]
  readonly platforms: readonly Platform[]
}

/** Builds the `versions` document: entries in the order given; `warnings` only where there are any. */
export function versionsDocument(
  versions: readonly VersionEntry[],
  warnings: readonly string[],
): { readonly versions: readonly JsonObject[]; readonly warnings?: readonly string[] } {
  const entries = versions.map(({ version, protocols, platforms }) => ({
    version,
    protocols: [...protocols],
    platforms: platforms.map(({ os, arch }) => ({ os, arch })),
  }))
  return { versions: entries, ...(warnings.length === 0 ? {} : { warnings }) }
}

/** Where a download document shall point to, relative to itself. */
export interface DownloadLinks {
  readonly archive: string
  /** Used only where the origin's document names one. */
  readonly sums: string
  readonly signature: string
}

/**
 * The fields that clients read (client-contract C2, C12). No other passes: it may hold a link to another host, and
 * clients take `DOWNLOAD_URL` for `download_url`.
 */
const PASSED = ['protocols', 'os', 'arch', 'filename', 'shasum'] as const

/**
 * Builds a download document from the origin's: the fields that clients read, exactly as given, but for the three links
 * (client-contract C7, C8). A link that the origin does not name is not named here either. `packages` is left out if
 * undefined.
 */
export function downloadDocument(
  given: JsonObject,
  parts: {
    readonly links: DownloadLinks
    readonly signingKeys: JsonValue | undefined
    readonly packages: JsonValue | undefined
  },
): JsonObject {
  const document: JsonObject = {}
  const add = (key: string, value: JsonValue | undefined): void => {
    if (value !== undefined) document[key] = value
  }
  for (const key of PASSED) add(key, given[key])
  document.download_url = parts.links.archive
  if (isNamed(given.shasums_url)) document.shasums_url = parts.links.sums
  if (isNamed(given.shasums_signature_url)) document.shasums_signature_url = parts.links.signature
  add('signing_keys', parts.signingKeys)
  add('packages', parts.packages)
  return document
}

/** Absent, null and blank all name nothing (field-reports B28). */
export function isNamed(reference: JsonValue | undefined): boolean {
  return typeof reference === 'string' && reference.trim() !== ''
}

/** The service discovery document of the mirror's own host; the bases may be relative to it. */
export function discoveryDocument(bases: { readonly providers: string; readonly modules: string }): JsonObject {
  return { 'modules.v1': bases.modules, 'providers.v1': bases.providers }
}
