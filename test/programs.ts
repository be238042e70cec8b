import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The variable that names the folder in which `built-programs.ts` put the programs. */
export const BUILT_PROGRAMS = 'TERRAMIRROR_BUILT_PROGRAMS'

const built = process.env[BUILT_PROGRAMS]

/** The file of the mirror and its commands: as built, or its source outside of Vitest. */
export const MAIN =
  built === undefined ? fileURLToPath(new URL('../src/main.ts', import.meta.url)) : join(built, 'terramirror.js')

/** The file of a mirror that the chaos test leads. */
export const CHAOS_MIRROR =
  built === undefined
    ? fileURLToPath(new URL('chaos/mirror-process.ts', import.meta.url))
    : join(built, 'mirror-process.js')

/** The mirror and its commands, as a command line. */
export const PROGRAM: readonly [string, ...string[]] = [process.execPath, MAIN]
