import { z } from 'zod'
import { createSections, UNAVAILABLE_KEYS } from '../../src/config/schema.ts'
import { listKeyPaths, recordValue, schemaBranches, schemaKeys, unwrapSchema } from '../../src/config/schema-path.ts'

/*
 * docs/configuration.md from the schema. `npm run docs` writes it; a test fails when it is out of date.
 */

const INTRODUCTION = `# Configuration

<!-- Written by \`npm run docs\` from src/config/schema.ts: change that, not this page. -->

No file is needed. \`--config FILE\`, else \`config.yaml\` in the current folder; \`--set KEY=VALUE\` wins over the file.
[config.example.yaml](../config.example.yaml) has every key in its place, ready to be copied.

- Sizes: \`500kB\`, \`20MB\`, \`2GB\` (powers of 1000), \`20MiB\` (powers of 1024). Times: \`500ms\`, \`30s\`, \`5m\`, \`24h\`, \`7d\`.
- Inside text, \`\${env:NAME}\` is an environment variable and \`\${file:PATH}\` the content of a file, without its last line
  break; \`$\${\` stands for the characters \`\${\`. Keep secrets out of the file with them.
- Relative paths start at the folder of the configuration file; without one, at the current folder.
- A key that does not exist ends the start with its place and the nearest key that does.
- \`HOST\` below stands for a host name of yours. All keys are there since 0.1.0.
`

/** One key, as the page has it. */
export interface KeyReference {
  readonly path: readonly string[]
  readonly description: string | undefined
  /** What a value looks like. */
  readonly kind: string
  /** As it would be written in the file; undefined if there is none. */
  readonly default: unknown
  readonly example: unknown
}

/** Every key of the configuration, sections included, in the order of the schema. */
export function listKeys(): KeyReference[] {
  const sections = createSections('/')
  return listKeyPaths(sections).map((path) => {
    const schema = schemaAt(sections, path)
    const { description, example } = metaOf(schema)
    return { path, description, kind: kindOf(schema), default: defaultOf(schema), example }
  })
}

/** The whole page. */
export function renderConfigurationPage(): string {
  const keys = listKeys()
  const top = keys.filter(({ path }) => path.length === 1)
  const isSection = ({ path: [name] }: KeyReference) => keys.filter(({ path }) => path[0] === name).length > 1
  const general = table(top.filter((key) => !isSection(key)))
  const sections = top.filter(isSection).map((section) => {
    const below = keys.filter(({ path, kind }) => path[0] === section.path[0] && path.length > 1 && kind !== 'section')
    return `## ${section.path[0]}\n\n${section.description}\n\n${table(below)}`
  })
  const missing = UNAVAILABLE_KEYS.map((key) => `\`${key.replace('*', 'HOST')}\``).join(', ')
  const last = `## Keys that this version does not have\n\nPlanned, and refused until they work: ${missing}.\n`
  return [INTRODUCTION, `## General\n\n${general}`, ...sections, last].join('\n')
}

function table(keys: readonly KeyReference[]): string {
  const rows = keys.map((key) => {
    const example = key.example === undefined ? '' : ` Example: \`${write(key.example)}\``
    const fallback = key.default === undefined ? '–' : `\`${write(key.default)}\``
    const cells = [`\`${nameOf(key.path)}\``, key.kind, fallback, `${key.description}${example}`]
    return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`
  })
  return `| key | value | default | meaning |\n|---|---|---|---|\n${rows.join('')}`
}

/** `origins.HOST.token`. */
function nameOf(path: readonly string[]): string {
  return path.map((name) => (name === '*' ? 'HOST' : name)).join('.')
}

function write(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function schemaAt(schema: z.core.$ZodType, path: readonly string[]): z.core.$ZodType {
  return path.reduce((parent, key) => {
    const next = key === '*' ? recordValue(parent) : schemaKeys(parent).get(key)
    if (next === undefined) throw new Error(`the schema has no ${path.join('.')}`)
    return next
  }, schema)
}

function metaOf(schema: z.core.$ZodType) {
  const { kind, description, example }: Record<string, unknown> = z.globalRegistry.get(schema) ?? {}
  const text = (value: unknown) => (typeof value === 'string' ? value : undefined)
  return { kind: text(kind), description: text(description), example }
}

/** The kind that the schema or anything inside its wrappers names, else what its form tells. */
function kindOf(schema: z.core.$ZodType): string {
  for (let inner: z.core.$ZodType | undefined = schema; inner !== undefined; inner = innerOf(inner)) {
    const { kind } = metaOf(inner)
    if (kind !== undefined) return kind
  }
  const core = unwrapSchema(schema)
  if (core instanceof z.ZodEnum) return core.options.map((option) => `\`${option}\``).join(', ')
  if (core instanceof z.ZodArray) return `list of ${kindOf(core.element)}`
  if (core instanceof z.ZodLiteral) return `\`${String(core.value)}\``
  if (core instanceof z.ZodObject || core instanceof z.ZodRecord) return 'section'
  const [first] = schemaBranches(core)
  return first === core || first === undefined ? 'text' : kindOf(first)
}

function innerOf(schema: z.core.$ZodType): z.core.$ZodType | undefined {
  if (schema instanceof z.ZodPrefault || schema instanceof z.ZodDefault) return schema.unwrap()
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodExactOptional) return schema.unwrap()
  return undefined
}

function defaultOf(schema: z.core.$ZodType): unknown {
  return schema instanceof z.ZodPrefault ? schema.def.defaultValue : undefined
}
