import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Where each program that the benchmark needs comes from. */
const SOURCES = {
  nginx: 'apt-get install nginx-light',
  wrk: 'apt-get install wrk',
  curl: 'apt-get install curl',
  taskset: 'apt-get install util-linux',
  openssl: 'apt-get install openssl',
  unzip: 'apt-get install unzip',
  terraform: 'https://developer.hashicorp.com/terraform/install',
} as const

/** A program that the benchmark drives. */
export type Tool = keyof typeof SOURCES

/** Path of a program. Debian keeps servers where users do not look. @throws Error that says how to install it */
export function pathOf(tool: Tool): string {
  const found = find(tool)
  if (found === undefined) throw missing([tool])
  return found
}

/** @throws Error that names all that is missing, and how to install it */
export function assertTools(tools: Iterable<Tool>): void {
  const absent = [...new Set(tools)].filter((tool) => find(tool) === undefined)
  if (absent.length > 0) throw missing(absent)
}

function find(tool: Tool): string | undefined {
  for (const folder of [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']) {
    const path = join(folder, tool)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // Not in this folder.
    }
  }
  return undefined
}

function missing(tools: readonly Tool[]): Error {
  return new Error(tools.map((tool) => `${tool} is not installed: ${SOURCES[tool]}`).join('\n'))
}
