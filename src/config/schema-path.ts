import { z } from 'zod'

/** A way through the configuration: keys of objects and records, indices of lists. */
export type KeyPath = readonly PropertyKey[]

/** `origins["registry.acme.example"].token`, with quotes only where a key needs them. */
export function formatKeyPath(path: KeyPath): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`
    const name = String(key)
    if (!/^[\w-]+$/.test(name)) return `${text}[${JSON.stringify(name)}]`
    return text === '' ? name : `${text}.${name}`
  }, '')
}

/** The schema without defaults, optionality, preparation and transformation around it. */
export function unwrapSchema(schema: z.core.$ZodType): z.core.$ZodType {
  if (schema instanceof z.ZodPipe) return unwrapSchema(schema.in instanceof z.ZodTransform ? schema.out : schema.in)
  if (schema instanceof z.ZodPrefault || schema instanceof z.ZodDefault) return unwrapSchema(schema.unwrap())
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodExactOptional) return unwrapSchema(schema.unwrap())
  return schema
}

/** The schemas that a value may have: the branches of a union, else the one schema. */
export function schemaBranches(schema: z.core.$ZodType): readonly z.core.$ZodType[] {
  const inner = unwrapSchema(schema)
  return inner instanceof z.ZodUnion ? inner.options.flatMap(schemaBranches) : [inner]
}

/** The keys with their schemas that an object here may have; empty for a record, a list or a scalar. */
export function schemaKeys(schema: z.core.$ZodType): ReadonlyMap<string, z.core.$ZodType> {
  return new Map(
    schemaBranches(schema).flatMap((branch) => (branch instanceof z.ZodObject ? Object.entries(branch.shape) : [])),
  )
}

/** The schema of a record's values; undefined if the schema is no record. */
export function recordValue(schema: z.core.$ZodType): z.core.$ZodType | undefined {
  const inner = unwrapSchema(schema)
  return inner instanceof z.ZodRecord ? inner.valueType : undefined
}

/** The schema at a path; undefined where the path leaves the schema. */
export function findSchema(schema: z.core.$ZodType, path: KeyPath): z.core.$ZodType | undefined {
  const [key, ...rest] = path
  if (key === undefined) return schema
  const next = schemaKeys(schema).get(String(key)) ?? recordValue(schema) ?? listElement(schema)
  return next === undefined ? undefined : findSchema(next, rest)
}

function listElement(schema: z.core.$ZodType): z.core.$ZodType | undefined {
  const inner = unwrapSchema(schema)
  return inner instanceof z.ZodArray ? inner.element : undefined
}

/** Every key that the schema knows, `*` for the key of a record: `listen.tls.certFile`, `origins.*.token`. */
export function listKeyPaths(schema: z.core.$ZodType, path: readonly string[] = []): (readonly string[])[] {
  const value = recordValue(schema)
  const children = value === undefined ? [...schemaKeys(schema)] : ([['*', value]] as const)
  return children.flatMap(([key, child]) => [[...path, key], ...listKeyPaths(child, [...path, key])])
}
