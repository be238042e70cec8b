import { opendir, readFile } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { wrongUse } from './command-error.ts'

/** The API takes no more than this. */
const MAX_FILES = 1_000
const MAX_FILE_BYTES = 1_000_000
/** Folders that local sources name, there or not. */
const MAX_FOLDERS = 10_000

const CONFIGURATION_FILE = /\.(?:tf|tofu)(?:\.json)?$/
const LOCK_FILE = '.terraform.lock.hcl'
/** A module that is called by its place, in both syntaxes. What stands in a comment too: it does no harm. */
const LOCAL_SOURCE = /\bsource"?\s*[=:]\s*"(\.{1,2}\/[^"$%]*)"/g

/** What a folder with a Terraform configuration holds. */
export interface ConfigurationFolder {
  /** Path from the folder, with slashes, to text. Local modules beside it begin with `../`. */
  readonly files: Readonly<Record<string, string>>
  readonly lockFile: string | undefined
}

/**
 * Reads the configuration files of a folder and of the local modules that it leads to, wherever they are, and its lock
 * file. Files that are symbolic links are left out, and so is whatever no call leads to.
 * @throws CommandError wrong use, for a folder that cannot be read, has no such file, or too much of them
 */
export async function readConfigurationFolder(root: string): Promise<ConfigurationFolder> {
  const files: Record<string, string> = {}
  const reached = new Set([''])
  let count = 0
  // What is added meanwhile is visited too: a folder once, so that a circle ends.
  for (const folder of reached) {
    for (const name of await listFiles(join(root, folder), folder === '')) {
      count += 1
      if (count > MAX_FILES) throw wrongUse(`${root} leads to more than ${MAX_FILES} configuration files`)
      const text = await readBounded(join(root, folder, name))
      files[posix.join(folder, name)] = text
      for (const [, source = ''] of text.matchAll(LOCAL_SOURCE)) reached.add(inFolder(folder, source))
      if (reached.size > MAX_FOLDERS) throw wrongUse(`${root} leads to more than ${MAX_FOLDERS} folders`)
    }
  }
  const lockFile = await readBounded(join(root, LOCK_FILE), { mayLack: true })
  if (count === 0 && lockFile === undefined) {
    throw wrongUse(`${root} has no Terraform configuration: no .tf, .tf.json or ${LOCK_FILE} in it`)
  }
  return { files, lockFile }
}

function inFolder(folder: string, source: string): string {
  const joined = posix.join(folder, source).replace(/\/+$/, '')
  return joined === '.' ? '' : joined
}

/** Names of the configuration files right in a folder, sorted; none of a called one that is not there: the mirror says so. */
async function listFiles(path: string, isRoot: boolean): Promise<string[]> {
  try {
    const names: string[] = []
    for await (const entry of await opendir(path)) {
      if (entry.isFile() && CONFIGURATION_FILE.test(entry.name)) names.push(entry.name)
    }
    return names.sort()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (!isRoot && (code === 'ENOENT' || code === 'ENOTDIR')) return []
    const reason =
      code === 'ENOENT' ? 'does not exist' : code === 'ENOTDIR' ? 'is no folder' : `cannot be read (${code})`
    throw wrongUse(`${path} ${reason}`)
  }
}

async function readBounded(path: string): Promise<string>
async function readBounded(path: string, options: { readonly mayLack: true }): Promise<string | undefined>
async function readBounded(path: string, { mayLack = false } = {}): Promise<string | undefined> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (mayLack && code === 'ENOENT') return undefined
    throw wrongUse(`${path} cannot be read (${code})`)
  }
  if (text.length > MAX_FILE_BYTES) throw wrongUse(`${path} is larger than ${MAX_FILE_BYTES} bytes`)
  return text
}
