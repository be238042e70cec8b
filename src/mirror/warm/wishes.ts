import { isMirrorError, MirrorError, redactInput } from '../../errors.ts'
import type { Hostname } from '../../protocol/hostname.ts'
import { parseItemAddress } from '../../protocol/item-address.ts'
import { formatModuleAddress, type ModuleAddress } from '../../protocol/module-address.ts'
import { type Platform, parsePlatform } from '../../protocol/platform.ts'
import { formatProviderAddress, type ProviderAddress } from '../../protocol/provider-address.ts'
import type { Version } from '../../protocol/version.ts'
import { readConfigurationTree } from './configuration-tree.ts'
import type { LockedHashes } from './lock-comparison.ts'
import type { Refusal } from './outcomes.ts'
import { parseWantedVersion, type WantedVersion } from './wanted-version.ts'
import type { WarmRequest } from './warm-request.ts'

/** For which platforms; `all` that are published. */
export type Platforms = readonly Platform[] | 'all'

/** What a mirror's own machine would use, where nobody says. */
const DEFAULT_PLATFORMS: Platforms = [{ os: 'linux', arch: 'amd64' }]

/** A provider of which one version is wanted. */
export interface ProviderWish {
  readonly address: ProviderAddress
  readonly wanted: WantedVersion
  readonly platforms: Platforms
}

/** A provider that a lock file holds. */
export interface LockedWish {
  readonly address: ProviderAddress
  readonly version: Version
  readonly hashes: LockedHashes
}

/** A module of a registry as it is called. */
export interface ModuleWish {
  readonly address: ModuleAddress
  readonly wanted: WantedVersion
  /** The folder of it that is called; undefined: its root and every submodule that it publishes. */
  readonly subfolder: string | undefined
}

/** Modules that belong together: a client uses one version of each provider for all of them. */
export interface ModuleTree {
  /** False for a module by itself: what it needs may be used by different configurations. */
  readonly whole: boolean
  readonly modules: readonly ModuleWish[]
  readonly providers: readonly { readonly address: ProviderAddress; readonly wanted: WantedVersion | undefined }[]
  /** What is called, and cannot come from here. */
  readonly refused: readonly { readonly item: string; readonly refusal: Refusal }[]
}

/** What a request asks for, understood but not looked up. */
export interface Wishes {
  readonly providers: readonly ProviderWish[]
  readonly locked: readonly LockedWish[]
  readonly trees: readonly ModuleTree[]
  /** For everything but `providers`. */
  readonly platforms: Platforms
  readonly followModules: boolean
}

/** How texts are read: the functions of `hcl/`. */
export interface WishReaders {
  readonly readLockFile: (
    text: string,
    file?: string,
    options?: { readonly signal?: AbortSignal },
  ) => Promise<readonly LockedWish[]>
  readonly readConfiguration: ReadConfiguration
  /** Where addresses without a host come from. */
  readonly defaultOrigin: Hostname
}

/** Reads one folder of a configuration. */
export type ReadConfiguration = (
  files: ReadonlyMap<string, string>,
  folder?: string,
  options?: { readonly registry?: Hostname; readonly signal?: AbortSignal },
) => Promise<{
  readonly providers: readonly { readonly source: ProviderAddress; readonly constraint: string | undefined }[]
  readonly modules: readonly { readonly source: string; readonly version: string | undefined }[]
  readonly problems: readonly { readonly file: string; readonly line: number; readonly reason: string }[]
}>

/**
 * Understands a request. `signal` ends it.
 * @throws MirrorError `REQUEST_INVALID` with every address, constraint and platform that is none;
 *   `CONFIGURATION_FILE_INVALID` with file, line and reason for what Terraform would refuse
 */
export async function readWishes(request: WarmRequest, readers: WishReaders, signal: AbortSignal): Promise<Wishes> {
  const problems: string[] = []
  const attempt = <T>(place: string, parse: () => T): T[] => {
    try {
      return [parse()]
    } catch (error) {
      if (!isMirrorError(error)) throw error
      problems.push(`${place}: ${error.message}`)
      return []
    }
  }
  const all = attempt('platforms', () => parsePlatforms(request.platforms))[0] ?? DEFAULT_PLATFORMS
  const providers = request.providers.flatMap((each, n) =>
    attempt(`providers.${n}`, () => parseProvider(each, all, readers.defaultOrigin)),
  )
  const modules = request.modules.flatMap((each, n) =>
    attempt(`modules.${n}`, () => parseModule(each, readers.defaultOrigin)),
  )
  if (problems.length > 0) throw invalid(problems)
  const locked: LockedWish[] = []
  for (const [n, text] of request.lockFiles.entries()) {
    const file = request.lockFiles.length === 1 ? '.terraform.lock.hcl' : `lock file ${n + 1}`
    locked.push(...(await readers.readLockFile(text, file, { signal })))
  }
  const alone = distinctModules(modules).map((module) => ({
    whole: false,
    modules: [module],
    providers: [],
    refused: [],
  }))
  const trees: ModuleTree[] = [...(await readConfigurationTree(request.configuration, readers, signal)), ...alone]
  return { providers, locked, trees, platforms: all, followModules: request.followModules }
}

function parseProvider(
  { source, version, platforms }: WarmRequest['providers'][number],
  all: Platforms,
  defaultOrigin: Hostname,
): ProviderWish {
  const { kind, address } = parseItemAddress(source, defaultOrigin)
  if (kind !== 'provider') throw notA('provider', source)
  return {
    address,
    wanted: parseWantedVersion(version, 'provider'),
    platforms: platforms === undefined || platforms.length === 0 ? all : parsePlatforms(platforms),
  }
}

function parseModule({ source, version }: WarmRequest['modules'][number], defaultOrigin: Hostname): ModuleWish {
  const [name = '', ...folders] = source.split('//')
  const { kind, address } = parseItemAddress(name, defaultOrigin)
  if (kind !== 'module') throw notA('module of a registry', source)
  return {
    address,
    wanted: parseWantedVersion(version, 'module'),
    subfolder: folders.length === 0 ? undefined : folders.join('/'),
  }
}

function parsePlatforms(texts: readonly string[]): Platforms {
  if (texts.length === 0) return DEFAULT_PLATFORMS
  if (texts.includes('*')) return 'all'
  return [...new Set(texts)].map(parsePlatform)
}

/** However often something is asked for, it is done once. */
function distinctModules(modules: readonly ModuleWish[]): ModuleWish[] {
  const key = ({ address, wanted, subfolder }: ModuleWish): string =>
    `${formatModuleAddress(address)} ${wanted.text} ${subfolder ?? '*'}`
  return [...new Map(modules.map((module) => [key(module), module])).values()]
}

function notA(what: string, source: string): MirrorError {
  const input = redactInput(source)
  const reason = `expected a ${what}`
  return new MirrorError('INVALID_ADDRESS', `${reason}: ${JSON.stringify(input)}`, { input, reason })
}

function invalid(problems: readonly string[]): MirrorError<'REQUEST_INVALID'> {
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : ''
  return new MirrorError('REQUEST_INVALID', `${problems[0]}${more}`, { problems: problems.slice(0, 100) })
}

/** As items are named where no version is chosen yet. */
export function nameOfWish({ address, wanted }: { address: ProviderAddress; wanted: WantedVersion }): string {
  return `${formatProviderAddress(address)} ${wanted.text}`
}
