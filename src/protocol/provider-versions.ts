import { isJsonObject, type JsonValue, stringElements } from './json.ts'
import { type Platform, toPlatform } from './platform.ts'
import { parseVersion, sortByVersion, type Version } from './version.ts'
import { notAVersionList, quoteSpelling, shortenProblems, type VersionListSource } from './version-list.ts'

/** One version of an origin's list. */
export interface ListedVersion {
  readonly version: Version
  /** As the origin writes it; this is what the origin must be asked for. */
  readonly spelling: string
  readonly protocols: readonly string[]
  /** Platforms that the list names; may be incomplete or empty, clients do not read it. */
  readonly platforms: readonly Platform[]
}

/** An origin's list of versions, canonical, each version once, in ascending order. */
export interface ProviderVersions {
  readonly versions: readonly ListedVersion[]
  /** Texts that the origin wants shown to users. */
  readonly warnings: readonly string[]
  /** What was left out, and why, in words for the log. */
  readonly problems: readonly string[]
}

const NOT_A_LIST = 'not a list of provider versions (no array "versions")'

/**
 * Reads the `versions` document of the provider registry protocol, parsed as JSON already. One bad entry never hides
 * the good ones: it is left out, with a line in `problems` (at most 20, then a count). Of two spellings of one version
 * the canonical one is taken, else the first. `"versions": null` is an empty list, as Go reads it.
 * @throws MirrorError `UPSTREAM_INVALID` if the body is not such a document at all
 */
export function parseProviderVersions(body: unknown, source: VersionListSource): ProviderVersions {
  if (!isJsonObject(body) || (body.versions !== null && !Array.isArray(body.versions)))
    throw notAVersionList(source, NOT_A_LIST)
  const listed = new Map<Version, ListedVersion>()
  const problems: string[] = []
  for (const item of body.versions ?? []) {
    const problem = addEntry(listed, item)
    if (problem !== undefined) problems.push(problem)
  }
  return {
    versions: sortByVersion(listed.values(), (entry) => entry.version),
    warnings: stringElements(body.warnings),
    problems: shortenProblems(problems),
  }
}

/** Returns what had to be left out, if anything. */
function addEntry(listed: Map<Version, ListedVersion>, item: JsonValue): string | undefined {
  if (!isJsonObject(item) || typeof item.version !== 'string') {
    return 'left out an entry that is not an object with a version'
  }
  const spelling = item.version
  const version = parseVersion(spelling)
  if (version === undefined) return `left out ${quoteSpelling(spelling)}: not a version as clients accept it`

  const entry = { version, spelling, protocols: stringElements(item.protocols), platforms: platforms(item.platforms) }
  const earlier = listed.get(version)
  if (earlier === undefined) {
    listed.set(version, entry)
    return undefined
  }
  if (spelling !== version || earlier.spelling === version) {
    return `left out ${quoteSpelling(spelling)}: the same version as ${quoteSpelling(earlier.spelling)}`
  }
  listed.set(version, entry)
  return `left out ${quoteSpelling(earlier.spelling)}: the same version as ${quoteSpelling(spelling)}`
}

function platforms(value: JsonValue | undefined): Platform[] {
  if (!Array.isArray(value)) return []
  return value.flatMap((item) => (isJsonObject(item) ? (toPlatform(item.os, item.arch) ?? []) : []))
}
