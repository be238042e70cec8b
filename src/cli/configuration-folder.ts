import { opendir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { wrongUse } from './command-error.ts'

/** The API takes no more than this. */
const MAX_FILES = 1_000
const MAX_FILE_BYTES = 1_000_000
const MAX_DEPTH = 30
/** A folder with more in it is a disk, not a configuration. */
const MAX_ENTRIES = 200_000

const CONFIGURATION_FILE = /\.(?:tf|tofu)(?:\.json)?$/
const LOCK_FILE = '.terraform.lock.hcl'

/** What a folder with a Terraform configuration holds. */
export interface ConfigurationFolder {
  /** Path below the folder, with slashes, to text. */
  readonly files: Readonly<Record<string, string>>
  /** Text of its lock file; those in the folders below belong to other configurations. */
  readonly lockFile: string | undefined
}

/**
 * Reads the configuration files in a folder and below it, and its lock file. Hidden folders (`.terraform`, `.git`),
 * `node_modules` and symbolic links are left out.
 * @throws CommandError wrong use, for a folder that cannot be read, has no such file, or too much of them
 */
export async function readConfigurationFolder(folder: string): Promise<ConfigurationFolder> {
  const files: Record<string, string> = {}
  let lockFile: string | undefined
  let count = 0
  for await (const path of findFiles(folder)) {
    count += 1
    if (count > MAX_FILES)
      throw wrongUse(`${folder} has more than ${MAX_FILES} configuration files; name a smaller one`)
    const text = await readBounded(join(folder, path))
    if (path === LOCK_FILE) lockFile = text
    else files[path] = text
  }
  if (count === 0) throw wrongUse(`${folder} has no Terraform configuration: no .tf, .tf.json or ${LOCK_FILE} in it`)
  return { files, lockFile }
}

/** Paths below the folder, sorted folder by folder, so that the same folder always gives the same request. */
async function* findFiles(root: string): AsyncGenerator<string, void, undefined> {
  let entries = 0
  async function* walk(folder: string, depth: number): AsyncGenerator<string, void, undefined> {
    if (depth > MAX_DEPTH) throw wrongUse(`${join(root, folder)} is more than ${MAX_DEPTH} folders deep`)
    const folders: string[] = []
    const found: string[] = []
    for await (const entry of await openFolder(join(root, folder))) {
      entries += 1
      if (entries > MAX_ENTRIES) throw wrongUse(`${root} has more than ${MAX_ENTRIES} files; name a smaller folder`)
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`
      if (entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules') folders.push(path)
      if (entry.isFile() && (CONFIGURATION_FILE.test(entry.name) || path === LOCK_FILE)) found.push(path)
    }
    yield* found.sort()
    for (const path of folders.sort()) yield* walk(path, depth + 1)
  }
  yield* walk('', 0)
}

async function openFolder(path: string) {
  try {
    return await opendir(path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const reason =
      code === 'ENOENT' ? 'does not exist' : code === 'ENOTDIR' ? 'is no folder' : `cannot be read (${code})`
    throw wrongUse(`${path} ${reason}`)
  }
}

async function readBounded(path: string): Promise<string> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    throw wrongUse(`${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`)
  }
  if (text.length > MAX_FILE_BYTES) throw wrongUse(`${path} is larger than ${MAX_FILE_BYTES} bytes`)
  return text
}
