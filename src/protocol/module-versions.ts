import { isJsonObject, type JsonValue } from './json.ts'
import { parseVersion, sortByVersion, type Version } from './version.ts'
import { notAVersionList, quoteSpelling, shortenProblems, type VersionListSource } from './version-list.ts'

/** One version of a module in an origin's list. */
export interface ListedModuleVersion {
  readonly version: Version
  /** As the origin writes it; this is what the origin must be asked for. */
  readonly spelling: string
}

/** An origin's list of a module's versions, canonical, each version once, in ascending order. */
export interface ModuleVersions {
  readonly versions: readonly ListedModuleVersion[]
  /** What was left out, and why, in words for the log. */
  readonly problems: readonly string[]
}

const NOT_A_LIST = 'not a list of module versions (no "modules" with "versions")'

/**
 * Reads a version of a module as leniently as clients do (client-contract E2): as `parseVersion`, and one leading `v`
 * is fine (`v1.1.0` is 1.1.0). Undefined for everything else.
 */
export function parseModuleVersion(text: string): Version | undefined {
  return parseVersion(text.startsWith('v') ? text.slice(1) : text)
}

/**
 * Reads the `versions` document of the module registry protocol, parsed as JSON already. Only the first element of
 * `modules` counts, as for the clients. Of several spellings of one version the canonical one is taken, else the one
 * that differs by a `v` alone, else the first; the others are reported in `problems` (at most 20, then a count).
 * @throws MirrorError `UPSTREAM_INVALID` if the body is not such a document at all
 */
export function parseModuleVersions(body: unknown, source: VersionListSource): ModuleVersions {
  const items = findVersions(body)
  if (items === undefined) throw notAVersionList(source, NOT_A_LIST)
  const listed = new Map<Version, ListedModuleVersion>()
  const problems: string[] = []
  for (const item of items) {
    const problem = addEntry(listed, item)
    if (problem !== undefined) problems.push(problem)
  }
  return { versions: sortByVersion(listed.values(), (entry) => entry.version), problems: shortenProblems(problems) }
}

/** An empty list of modules is fatal for clients, as is every other shape. */
function findVersions(body: unknown): JsonValue[] | undefined {
  if (!isJsonObject(body) || !Array.isArray(body.modules)) return undefined
  const [first] = body.modules
  if (!isJsonObject(first)) return undefined
  if (first.versions === undefined || first.versions === null) return []
  return Array.isArray(first.versions) ? first.versions : undefined
}

/** Returns what had to be left out, if anything. */
function addEntry(listed: Map<Version, ListedModuleVersion>, item: JsonValue): string | undefined {
  if (!isJsonObject(item) || typeof item.version !== 'string') {
    return 'left out an entry that is not an object with a version'
  }
  const entry = { version: parseModuleVersion(item.version), spelling: item.version }
  if (entry.version === undefined)
    return `left out ${quoteSpelling(entry.spelling)}: not a version as clients accept it`
  const { version, spelling } = entry
  const earlier = listed.get(version)
  if (earlier !== undefined && rank(version, spelling) >= rank(version, earlier.spelling)) {
    return spelling === earlier.spelling
      ? `left out ${quoteSpelling(spelling)}: listed twice`
      : `left out ${quoteSpelling(spelling)}: the same version as ${quoteSpelling(earlier.spelling)}`
  }
  listed.set(version, { version, spelling })
  if (earlier === undefined) return undefined
  return `left out ${quoteSpelling(earlier.spelling)}: the same version as ${quoteSpelling(spelling)}`
}

function rank(version: Version, spelling: string): number {
  return spelling === version ? 0 : spelling === `v${version}` ? 1 : 2
}
