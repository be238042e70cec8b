import { existsSync, readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { describe } from 'vitest'

/** The folder of the vectors, with the slash at its end. */
export const VECTORS_ROOT = new URL('../../../shared/vectors/', import.meta.url)
const held = existsSync(VECTORS_ROOT)
if (!held) console.error('SKIPPED: ../shared/vectors is not there')

/** A suite over real public data; skipped, loudly, where the data is not there. */
export const describeVectors: typeof describe.skip = held ? describe : describe.skip

/** One vector as text; `.gz` is unpacked. */
export function readVector(path: string): string {
  const bytes = readFileSync(new URL(path, VECTORS_ROOT))
  return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
}

/** One vector as JSON. */
export function readJsonVector(path: string): unknown {
  return JSON.parse(readVector(path))
}
