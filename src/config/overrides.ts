import { parse } from 'yaml'
import { z } from 'zod'
import { MirrorError } from '../errors.ts'
import { type KeyPath, recordValue, schemaBranches, schemaKeys } from './schema-path.ts'
import { describeUnknownKey } from './unknown-keys.ts'

/** One `--set KEY=VALUE`. */
export interface Override {
  readonly path: readonly string[]
  readonly value: unknown
}

/**
 * Reads `--set KEY=VALUE`. Keys are joined by dots and need no quotes, although hosts have dots too: where a record
 * stands, its key is the longest one that `settings` has, else the longest after which the rest is a key of the schema
 * (`origins.registry.acme.example.token`). Where the schema wants text, VALUE is taken as it is; elsewhere it is YAML
 * (`--set 'listen.tls={auto: true, names: [a.example]}'`).
 * @throws MirrorError `CONFIGURATION`; never with the value
 */
export function parseOverride(text: string, schema: z.core.$ZodType, settings: unknown): Override {
  const equals = text.indexOf('=')
  const key = equals < 0 ? '' : text.slice(0, equals).trim()
  if (key === '') {
    throw new MirrorError('CONFIGURATION', '--set: expected KEY=VALUE, for example --set listen.port=9443', {})
  }
  const labels = key.split('.')
  const found = resolvePath(labels, schema, settings)
  const value = found && parseValue(text.slice(equals + 1), found.schema, key)
  if (found !== undefined && (!found.isNewEntry || isObject(value))) return { path: found.path, value }
  throw new MirrorError('CONFIGURATION', `--set: ${describeUnknownKey(schema, guessPath(labels, schema))}`, { key })
}

/** The settings with one more value in them; objects on the way are made as needed. */
export function applyOverride(settings: unknown, { path, value }: Override): unknown {
  const [key, ...rest] = path
  if (key === undefined) return value
  const entries = isObject(settings) ? Object.entries(settings) : []
  const inner = applyOverride(entries.find(([name]) => name === key)?.[1], { path: rest, value })
  return Object.fromEntries([...entries.filter(([name]) => name !== key), [key, inner]])
}

interface Found {
  readonly path: readonly string[]
  readonly schema: z.core.$ZodType
  /** The path ends in a record, at a key that is not there yet: it takes a whole entry only, else it is a typing error. */
  readonly isNewEntry: boolean
}

function resolvePath(labels: readonly string[], schema: z.core.$ZodType, settings: unknown): Found | undefined {
  if (labels.length === 0) return { path: [], schema, isNewEntry: false }
  for (const { key, rest, child } of listSteps(labels, schema, settings)) {
    const inner = isObject(settings) ? settings[key] : undefined
    const found = resolvePath(rest, child, inner)
    const isNewEntry = rest.length === 0 && inner === undefined && recordValue(schema) !== undefined
    if (found !== undefined) return { ...found, path: [key, ...found.path], isNewEntry: found.isNewEntry || isNewEntry }
  }
  return undefined
}

interface Step {
  readonly key: string
  readonly rest: readonly string[]
  readonly child: z.core.$ZodType
}

/** The ways to read the first key, the best first. */
function listSteps(labels: readonly string[], schema: z.core.$ZodType, settings: unknown): readonly Step[] {
  const value = recordValue(schema)
  const keys = schemaKeys(schema)
  const known = isObject(settings) ? Object.keys(settings) : []
  const steps = labels.flatMap((_, index): Step[] => {
    const key = labels.slice(0, index + 1).join('.')
    const child = value ?? keys.get(key)
    return child === undefined ? [] : [{ key, rest: labels.slice(index + 1), child }]
  })
  // Known keys first, then those that leave a rest, then the longest.
  const rank = (step: Step) => (known.includes(step.key) ? 0 : step.rest.length > 0 ? 1 : 2)
  return steps.sort((a, b) => rank(a) - rank(b) || b.key.length - a.key.length)
}

/** The most likely path of a key that does not exist: for the message. */
function guessPath(labels: readonly string[], schema: z.core.$ZodType): KeyPath {
  const [label = '', ...rest] = labels
  if (recordValue(schema) !== undefined && rest.length > 0) return [labels.slice(0, -1).join('.'), ...labels.slice(-1)]
  const child = schemaKeys(schema).get(label)
  return child === undefined || rest.length === 0 ? labels : [label, ...guessPath(rest, child)]
}

function parseValue(text: string, schema: z.core.$ZodType, key: string): unknown {
  if (schemaBranches(schema).every((branch) => branch instanceof z.ZodString)) return text
  try {
    const value: unknown = parse(text, { prettyErrors: false, maxAliasCount: 0 })
    return value
  } catch {
    // The library's message may quote the value.
    throw new MirrorError('CONFIGURATION', `--set ${key}: the value is not valid YAML`, { key })
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
