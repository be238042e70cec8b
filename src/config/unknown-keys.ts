import { distance } from 'fastest-levenshtein'
import type { z } from 'zod'
import { UNAVAILABLE_KEYS } from './schema.ts'
import { findSchema, formatKeyPath, type KeyPath, recordValue, schemaKeys } from './schema-path.ts'

/**
 * What to say about a key that the schema does not have: that it belongs to a later version, or the nearest key that
 * exists at the same place.
 */
export function describeUnknownKey(schema: z.core.$ZodType, path: KeyPath): string {
  const name = formatKeyPath(path)
  if (UNAVAILABLE_KEYS.includes(formatPattern(schema, path))) return `key ${name} is not available in this version`
  const parent = findSchema(schema, path.slice(0, -1))
  const nearest = findNearest(String(path.at(-1)), parent === undefined ? [] : [...schemaKeys(parent).keys()])
  return `unknown key ${name}${nearest === undefined ? '' : `; did you mean ${JSON.stringify(nearest)}?`}`
}

function findNearest(key: string, candidates: readonly string[]): string | undefined {
  const ranked = candidates
    .map((candidate) => ({ candidate, steps: distance(key.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.steps - b.steps)
  const [best] = ranked
  return best !== undefined && best.steps <= Math.max(2, key.length / 3) ? best.candidate : undefined
}

/** The path with `*` for the keys of records. */
function formatPattern(schema: z.core.$ZodType, path: KeyPath): string {
  return path
    .map((key, index) => {
      const parent = findSchema(schema, path.slice(0, index))
      return parent !== undefined && recordValue(parent) !== undefined ? '*' : String(key)
    })
    .join('.')
}
