import { existsSync, readFileSync } from 'node:fs'

const root = new URL('../../../shared/vectors/', import.meta.url)

/** True if the folder of real public data stands beside the project; says so loudly if not. */
export const hasVectors = existsSync(root)
if (!hasVectors) console.warn('SKIPPED: ../shared/vectors is not there')

/** A path of the vectors as a URL. */
export function vector(path: string): URL {
  return new URL(path, root)
}

/** The bytes of a file of the vectors. */
export function readVector(path: string): Buffer {
  return readFileSync(vector(path))
}
