import { MirrorError } from '../errors.ts'

declare const versionBrand: unique symbol

/**
 * A version in canonical form: `1.2.3`, `1.2.3-beta.1`, `1.2.3+build.5`. The text itself is the value and the map key;
 * build metadata is part of it (`0.2.1+1` and `0.2.1+2` are two versions with two archives).
 */
export type Version = string & { readonly [versionBrand]: true }

const MAX_LENGTH = 128
const PATTERN =
  /^(?<major>\d+)(?:\.(?<minor>\d+))?(?:\.(?<patch>\d+))?(?:-(?<pre>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+(?<build>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?$/

/**
 * Parses as leniently as the clients do (client-contract A18): `1.1` is `1.1.0`, `01.2.3` is `1.2.3`; `v1.0.0`,
 * `latest` and the empty text are no versions.
 */
export function parseVersion(text: string): Version | undefined {
  if (text.length > MAX_LENGTH) return undefined
  const groups = PATTERN.exec(text)?.groups
  if (groups === undefined) return undefined
  const core = [groups.major, groups.minor, groups.patch].map(canonicalNumber).join('.')
  const pre = groups.pre === undefined ? '' : `-${groups.pre}`
  const build = groups.build === undefined ? '' : `+${groups.build}`
  return `${core}${pre}${build}` as Version
}

/** As `parseVersion`, for text that must be a version. @throws MirrorError `INVALID_ADDRESS` */
export function assertVersion(text: string): Version {
  const version = parseVersion(text)
  if (version !== undefined) return version
  const input = text.slice(0, 80)
  throw new MirrorError('INVALID_ADDRESS', `not a version: ${JSON.stringify(input)}; expected the form 1.2.3`, {
    input,
    reason: 'expected the form 1.2.3',
  })
}

function canonicalNumber(digits: string | undefined): string {
  return (digits ?? '0').replace(/^0+(?=\d)/, '')
}

/**
 * Semver precedence, then build metadata by text, then the whole text (`1.0.0-01` and `1.0.0-1` have one precedence),
 * so that the order is total and 0 only for equal versions. Numbers of any length compare exactly.
 */
export function compareVersions(a: Version, b: Version): number {
  return compareKeys(sortKey(a), sortKey(b))
}

/** The items in ascending order of their versions, taking each version apart only once. */
export function sortByVersion<T>(items: Iterable<T>, versionOf: (item: T) => Version): T[] {
  return Array.from(items, (item) => ({ item, key: sortKey(versionOf(item)) }))
    .sort((a, b) => compareKeys(a.key, b.key))
    .map(({ item }) => item)
}

interface SortKey {
  readonly version: Version
  readonly core: readonly Identifier[]
  readonly pre: readonly Identifier[]
  readonly build: string
}

interface Identifier {
  readonly numeric: boolean
  /** Without leading zeros if numeric. */
  readonly text: string
}

function sortKey(version: Version): SortKey {
  const [main = '', build = ''] = version.split('+', 2)
  const dash = main.indexOf('-')
  return {
    version,
    core: (dash < 0 ? main : main.slice(0, dash)).split('.').map(parseIdentifier),
    pre:
      dash < 0
        ? []
        : main
            .slice(dash + 1)
            .split('.')
            .map(parseIdentifier),
    build,
  }
}

function parseIdentifier(text: string): Identifier {
  const numeric = /^\d+$/.test(text)
  return { numeric, text: numeric ? canonicalNumber(text) : text }
}

function compareKeys(a: SortKey, b: SortKey): number {
  return (
    compareIdentifiers(a.core, b.core) ||
    Number(a.pre.length === 0) - Number(b.pre.length === 0) ||
    compareIdentifiers(a.pre, b.pre) ||
    compareText(a.build, b.build) ||
    compareText(a.version, b.version)
  )
}

function compareIdentifiers(a: readonly Identifier[], b: readonly Identifier[]): number {
  for (let i = 0; ; i++) {
    const left = a[i]
    const right = b[i]
    if (left === undefined || right === undefined) return a.length - b.length
    const order = compareIdentifier(left, right)
    if (order !== 0) return order
  }
}

function compareIdentifier(a: Identifier, b: Identifier): number {
  if (a.numeric !== b.numeric) return a.numeric ? -1 : 1
  return (a.numeric ? a.text.length - b.text.length : 0) || compareText(a.text, b.text)
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
