import { posix } from 'node:path'
import { isMirrorError, MirrorError } from '../../errors.ts'
import type { Hostname } from '../../protocol/hostname.ts'
import { parseModuleSource } from '../../protocol/module-source.ts'
import { notMirrored } from './outcomes.ts'
import { LATEST, parseWantedVersion } from './wanted-version.ts'
import type { ModuleTree, ModuleWish, WishReaders } from './wishes.ts'

/**
 * What a configuration asks for, by its root folder and by the local modules that it leads to; none if there is no
 * configuration.
 * @throws MirrorError `CONFIGURATION_FILE_INVALID` for the first thing that Terraform would refuse
 */
export async function readConfigurationTree(
  texts: Readonly<Record<string, string>>,
  { readConfiguration, defaultOrigin }: WishReaders,
): Promise<ModuleTree[]> {
  const files = new Map(Object.entries(texts).map(([path, text]) => [cleanPath(path), text]))
  if (files.size === 0) return []
  const byFolder = Map.groupBy(files, ([path]) => folderOf(path))
  if (!byFolder.has('')) throw unreadable('the configuration', 1, 'it has no file in its root folder')
  const tree = { whole: true, modules: [] as ModuleWish[], providers: [] as Provider[], refused: [] as Refused[] }
  const reached = new Set([''])
  // What is added meanwhile is visited too: a folder once, so that a circle ends.
  for (const folder of reached) {
    const own = byFolder.get(folder)
    if (own === undefined) {
      const reason = 'its files are not a part of the request'
      tree.refused.push({
        item: folder.startsWith('..') ? folder : `./${folder}`,
        refusal: { outcome: 'failed', reason },
      })
      continue
    }
    const facts = await readConfiguration(new Map(own), folder, { registry: defaultOrigin })
    const problem = facts.problems[0]
    if (problem !== undefined) throw unreadable(problem.file, problem.line, problem.reason)
    for (const { source, constraint } of facts.providers) {
      const wanted = constraint === undefined ? undefined : parseWantedVersion(constraint, 'provider')
      tree.providers.push({ address: source, wanted })
    }
    for (const call of facts.modules) {
      const called = sortCall(call, defaultOrigin)
      if ('local' in called) reached.add(inFolder(folder, called.local))
      else if ('module' in called) tree.modules.push(called.module)
      else tree.refused.push(called.refused)
    }
  }
  return [tree]
}

type Provider = ModuleTree['providers'][number]
type Refused = ModuleTree['refused'][number]
type Called = { readonly local: string } | { readonly module: ModuleWish } | { readonly refused: Refused }

/** Who serves what is called. */
function sortCall(
  { source, version }: { source: string; version: string | undefined },
  defaultOrigin: Hostname,
): Called {
  try {
    const parsed = parseModuleSource(withHost(source, defaultOrigin))
    if (parsed.kind === 'local') return { local: parsed.path }
    if (parsed.kind === 'registry') {
      const wanted = version === undefined ? LATEST : parseWantedVersion(version, 'module')
      return { module: { address: parsed.address, subfolder: parsed.subfolder, wanted } }
    }
    const kind = parsed.kind === 'git' ? 'a git repository' : 'an archive at a URL'
    return { refused: { item: showSource(source), refusal: notMirrored(`${kind}, which clients fetch themselves`) } }
  } catch (error) {
    if (!isMirrorError(error)) throw error
    return { refused: { item: showSource(source), refusal: notMirrored(error.message) } }
  }
}

/** A registry's address of three parts has no host. */
function withHost(source: string, defaultOrigin: Hostname): string {
  const [address = ''] = source.split('//', 1)
  const short = /^[0-9A-Za-z_-]+\/[0-9A-Za-z_-]+\/[0-9a-z]+$/.test(address)
  return short ? `${defaultOrigin}/${source}` : source
}

/** A source may hold a password or a token. */
function showSource(source: string): string {
  return source
    .replace(/\?.*$/s, '')
    .replace(/\/\/[^/@]*@/, '//')
    .slice(0, 300)
}

function inFolder(folder: string, path: string): string {
  const joined = posix.join(folder, path).replace(/\/$/, '')
  return joined === '.' ? '' : joined
}

function folderOf(path: string): string {
  const folder = posix.dirname(path)
  return folder === '.' ? '' : folder
}

/** Local modules may stand beside the root, `../modules/net/main.tf`: paths are names here, and no file is opened by them. */
function cleanPath(path: string): string {
  const clean = posix.normalize(path.replaceAll('\\', '/'))
  if (clean.startsWith('/') || clean.endsWith('/') || clean.endsWith('..') || /\p{Cc}/u.test(clean)) {
    const problem = `configuration: ${JSON.stringify(path.slice(0, 80))} is no path of a file from the configuration's root`
    throw new MirrorError('REQUEST_INVALID', problem, { problems: [problem] })
  }
  return clean
}

function unreadable(file: string, line: number, reason: string): MirrorError<'CONFIGURATION_FILE_INVALID'> {
  return new MirrorError('CONFIGURATION_FILE_INVALID', `${file}:${line}: ${reason}`, { file, line, reason })
}
