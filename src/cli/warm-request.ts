import { WarmRequest } from '../admin/schema/warm.ts'
import { isMirrorError } from '../errors.ts'
import { parsePlatform } from '../protocol/platform.ts'
import { wrongUse } from './command-error.ts'
import { type ConfigurationFolder, readConfigurationFolder } from './configuration-folder.ts'
import { readTextFile } from './text-files.ts'
import { parseWarmList, parseWarmSource } from './warm-source.ts'

/** What the command line says is to be warmed. */
export interface WarmWishes {
  /** Providers and at most one folder. */
  readonly words: readonly string[]
  readonly module: readonly string[]
  readonly lockFile: readonly string[]
  readonly fromFile: readonly string[]
  /** `OS_ARCH`, or `all`. */
  readonly platform: readonly string[]
  readonly followModules: boolean
  readonly dryRun: boolean
}

/** Makes the request for the API of it. @throws CommandError wrong use */
export async function readWarmRequest(wishes: WarmWishes): Promise<WarmRequest> {
  const { words, module: modules, lockFile, fromFile, followModules, dryRun } = wishes
  const folders = words.filter(isFolder)
  const [folder] = folders
  if (folders.length > 1) throw wrongUse('name one folder at a time: each is a configuration of its own')
  const configuration: ConfigurationFolder =
    folder === undefined ? { files: {}, lockFile: undefined } : await readConfigurationFolder(folder)
  const lists = await Promise.all(fromFile.map(async (file) => parseWarmList(await readTextFile(file), file)))
  const request = {
    providers: [
      ...words.filter((word) => !isFolder(word)).map(parseWarmSource),
      ...lists.flatMap((list) => list.providers),
    ],
    modules: [...modules.map(parseWarmSource), ...lists.flatMap((list) => list.modules)],
    lockFiles: [
      ...(await Promise.all(lockFile.map(readTextFile))),
      ...(configuration.lockFile === undefined ? [] : [configuration.lockFile]),
    ],
    configuration: configuration.files,
    platforms: readPlatforms(wishes.platform),
    followModules,
    dryRun,
  }
  const isEmpty = [request.providers, request.modules, request.lockFiles].every((list) => list.length === 0)
  if (isEmpty && folder === undefined) {
    throw wrongUse('nothing to warm: name providers, a folder (./), --module, --lock-file or --from-file')
  }
  const parsed = WarmRequest.safeParse(request)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw wrongUse(`${issue?.path.join('.')}: ${issue?.message}`)
}

/** As Terraform tells local modules from others. */
function isFolder(word: string): boolean {
  return /^(?:\.{1,2}(?:\/|$)|\/)/.test(word)
}

function readPlatforms(platforms: readonly string[]): string[] {
  if (platforms.includes('all')) {
    if (platforms.length > 1) throw wrongUse('--platform all stands alone')
    return ['*']
  }
  for (const platform of platforms) {
    try {
      parsePlatform(platform)
    } catch (error) {
      throw isMirrorError(error) ? wrongUse(`--platform: ${error.message}, e.g. linux_amd64, or all`) : error
    }
  }
  return [...platforms]
}
