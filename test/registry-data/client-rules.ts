import type { ProviderData, Target } from './data-set.ts'

/*
 * What a real client could use of a registry's data. Written from client-contract A18, C4 and C6 alone; nothing of
 * `src/protocol` is used, because this is what it is held against.
 */

/** A version that a client could choose. */
export interface UsableVersion {
  /** As the data writes it. */
  readonly spelling: string
  readonly protocols: readonly string[]
  /** By `OS_ARCH`. */
  readonly targets: ReadonlyMap<string, Target>
}

/** A version of the data that no client could choose, and why. */
export interface LeftOutVersion {
  readonly spelling: string
  readonly reason: 'no version by the rules of clients' | 'the same version is listed twice'
}

/** A platform of a version of the data that no client could get, and why. */
export interface LeftOutPlatform {
  readonly spelling: string
  readonly platform: string
  readonly reason:
    | 'of a string that is no version'
    | 'a later entry for the same version and platform has replaced it'
    | 'no file name or no digest that clients could compare'
}

/** What there is of one provider. */
export interface UsableProvider {
  /** By canonical version, which is what clients ask for. */
  readonly versions: ReadonlyMap<string, UsableVersion>
  readonly leftOutVersions: readonly LeftOutVersion[]
  readonly leftOutPlatforms: readonly LeftOutPlatform[]
}

/**
 * The usable versions of a provider. A version has one download document for each platform: of two entries for one
 * version, the later one's.
 */
export function usableProvider({ versions: entries }: ProviderData): UsableProvider {
  const versions = new Map<string, UsableVersion & { targets: Map<string, Target> }>()
  const leftOutVersions: LeftOutVersion[] = []
  const leftOutPlatforms: LeftOutPlatform[] = []
  for (const { version: spelling, protocols, targets } of entries) {
    const canonical = canonicalVersion(spelling)
    const before = versions.get(canonical ?? '')
    const usable = before ?? { spelling, protocols, targets: new Map() }
    if (canonical === undefined) leftOutVersions.push({ spelling, reason: 'no version by the rules of clients' })
    else if (before !== undefined) leftOutVersions.push({ spelling, reason: 'the same version is listed twice' })
    else versions.set(canonical, usable)
    for (const target of targets) {
      const reason = add(target, canonical === undefined ? undefined : usable.targets)
      if (reason !== undefined) leftOutPlatforms.push({ spelling, platform: platformOf(target), reason })
    }
  }
  return { versions, leftOutVersions, leftOutPlatforms }
}

/** Adds a platform, or says why it, or the one that it replaces, is left out. */
function add(target: Target, targets: Map<string, Target> | undefined): LeftOutPlatform['reason'] | undefined {
  if (targets === undefined) return 'of a string that is no version'
  if (!isUsable(target)) return 'no file name or no digest that clients could compare'
  const replaces = targets.has(platformOf(target))
  targets.set(platformOf(target), target)
  return replaces ? 'a later entry for the same version and platform has replaced it' : undefined
}

/** True if a client that is offered these protocols would take the version (C5); none stated is no objection. */
export function speaksKnownProtocol(protocols: readonly string[]): boolean {
  return protocols.length === 0 || protocols.some((protocol) => ['5', '6'].includes(protocol.split('.')[0] ?? ''))
}

/** The canonical form that clients print: three numbers without leading zeros; undefined if clients read no version. */
export function canonicalVersion(text: string): string | undefined {
  const [beforePlus = '', ...builds] = text.split('+')
  const dash = beforePlus.indexOf('-')
  const core = dash < 0 ? beforePlus : beforePlus.slice(0, dash)
  const pre = dash < 0 ? undefined : beforePlus.slice(dash + 1)
  const numbers = core.split('.')
  if (numbers.length > 3 || !numbers.every(isNumber) || builds.length > 1) return undefined
  if (pre !== undefined && !pre.split('.').every(isIdentifier)) return undefined
  if (!builds.every((build) => build.split('.').every(isIdentifier))) return undefined
  while (numbers.length < 3) numbers.push('0')
  return [
    numbers.map((number) => BigInt(number).toString()).join('.'),
    ...(pre === undefined ? [] : ['-', pre]),
    ...builds.map((build) => `+${build}`),
  ].join('')
}

/** True if the platform and the digest are such as clients compare them. */
function isUsable({ os, arch, filename, shasum }: Target): boolean {
  return os !== '' && arch !== '' && filename !== '' && shasum.length === 64 && isHex(shasum)
}

function platformOf({ os, arch }: Target): string {
  return `${os}_${arch}`
}

function isNumber(text: string): boolean {
  return text !== '' && [...text].every((character) => '0123456789'.includes(character))
}

function isIdentifier(text: string): boolean {
  return text !== '' && [...text].every((character) => isNumber(character) || /[a-z-]/i.test(character))
}

function isHex(text: string): boolean {
  return Buffer.from(text, 'hex').length * 2 === text.length
}
