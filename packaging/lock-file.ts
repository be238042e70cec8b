import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT } from './bundle.ts'

/** What `package-lock.json` tells of one installed package. */
export interface LockedPackage {
  readonly version: string
  /** `sha512-` and base64. */
  readonly integrity: string
  readonly license?: string
  readonly dependencies?: Readonly<Record<string, string>>
}

/** All packages of the lock file, by folder: `node_modules/zod`. */
export function readLockFile(): Readonly<Record<string, LockedPackage>> {
  const text = readFileSync(join(PROJECT, 'package-lock.json'), 'utf8')
  return (JSON.parse(text) as { packages: Record<string, LockedPackage> }).packages
}

/** One of them. @throws Error if the lock file has none */
export function findLocked(folder: string): LockedPackage {
  const found = readLockFile()[folder]
  if (found === undefined) throw new Error(`package-lock.json has no ${folder}; run npm install`)
  return found
}

/** `@hono/node-server` of `node_modules/@hono/node-server`, also where it is nested. */
export function nameOf(folder: string): string {
  return folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length)
}
