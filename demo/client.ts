import { createHash } from 'node:crypto'
import { accessSync, constants } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { listPaths } from './paths.ts'

/** A provider that is required: its address, and a version constraint. */
export interface Requirement {
  readonly name: string
  readonly source: string
  readonly version: string
}

/** How an installation ended, and what the client said. */
export interface Installation {
  readonly ok: boolean
  /** Its own words, or the requests that it sent and their answers. */
  readonly transcript: readonly string[]
}

/** Whoever installs providers through the mirror: the real CLI, or this program in its place. */
export interface Client {
  /** One word for pictures: `terraform`, `tofu`, or `demo` for this program. */
  readonly program: string
  /** E.g. `Terraform 1.13.1`. */
  readonly name: string
  /** What a user would type into a fresh shell first. */
  readonly setUp: string
  /** What a user would type then, in the folder of the configuration, to do as `install` does. */
  command(options: InstallOptions): string | undefined
  /** Installs what `folder` requires. A refusal is a result, not an error. @throws the signal's reason */
  install(folder: string, options: InstallOptions): Promise<Installation>
}

/** `upgrade`: look for newer versions than the lock file has. */
export interface InstallOptions {
  readonly upgrade: boolean
}

/** Folder below that of the configuration where clients put providers, as HOST/NAMESPACE/TYPE/VERSION/PLATFORM. */
export const INSTALL_DIR = '.terraform/providers'

/** The names of the CLI's lock file and of the configuration. */
export const LOCK_FILE = '.terraform.lock.hcl'
export const CONFIGURATION_FILE = 'main.tf'

/** Path of the first of these programs that is on the path. */
export function findProgram(names: readonly string[], path = process.env.PATH ?? ''): string | undefined {
  const places = names.flatMap((name) => path.split(delimiter).map((folder) => join(folder, name)))
  return places.find((place) => {
    try {
      accessSync(place, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** What is installed below a folder: `HOST/NAMESPACE/TYPE/VERSION/PLATFORM` to a digest of its files. */
export async function installedIn(folder: string): Promise<Map<string, string>> {
  const cwd = join(folder, INSTALL_DIR)
  const packages = new Map<string, string>()
  for (const place of await listPaths('*/*/*/*/*', cwd)) {
    const hash = createHash('sha256')
    for (const path of await listPaths('**', join(cwd, place))) {
      const file = join(cwd, place, path)
      if ((await stat(file)).isFile()) hash.update(`${path}\n`).update(await readFile(file))
    }
    packages.set(place, hash.digest('hex'))
  }
  return packages
}

/** All hashes of a lock file, as they stand there. */
export async function hashesLockedIn(folder: string): Promise<string[]> {
  const text = await readFile(join(folder, LOCK_FILE), 'utf8').catch(() => '')
  return [...text.matchAll(/"((?:h1|zh):[^"]+)"/g)].map(([, hash = '']) => hash)
}
