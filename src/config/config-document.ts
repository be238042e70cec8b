import { isMap, isNode, isPair, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml'
import { MirrorError } from '../errors.ts'
import type { KeyPath } from './schema-path.ts'

/** A configuration file that was read, with the places of its keys. */
export interface ConfigDocument {
  /** Maps, lists and scalars. An empty file is an empty map. */
  readonly settings: unknown
  /** `config.yaml:3:5`, the place of the key, or of the nearest key above it that the file has. */
  place(path: KeyPath): string
}

/**
 * Parses a configuration file. `name` is how messages call it.
 * @throws MirrorError `CONFIGURATION` for bad YAML, doubled keys and a top level that is no map; no message quotes the
 *   text, which may be a secret
 */
export function parseConfigDocument(text: string, name: string): ConfigDocument {
  const lineCounter = new LineCounter()
  const document = parseDocument(text, { lineCounter, uniqueKeys: true, prettyErrors: false })
  const placeOf = (offset: number) => {
    const { line, col } = lineCounter.linePos(offset)
    return `${name}:${line}:${col}`
  }
  const problems = [...document.errors, ...document.warnings]
  if (problems.length > 0) {
    const lines = problems.map((problem) => `${placeOf(problem.pos[0])}: not valid YAML: ${formatCode(problem.code)}`)
    // The library may report one place twice.
    throw new MirrorError('CONFIGURATION', [...new Set(lines)].join('\n'), {})
  }
  const settings = toSettings(document, name)
  return { settings, place: (path) => placeOf(findOffset(document, path)) }
}

/** The library's own message may quote the text, its code does not. */
function formatCode(code: string): string {
  return code.toLowerCase().replaceAll('_', ' ')
}

type YamlDocument = ReturnType<typeof parseDocument>

function toSettings(document: YamlDocument, name: string): unknown {
  const settings = toJs(document, name) ?? {}
  if (typeof settings === 'object' && !Array.isArray(settings)) return settings
  throw new MirrorError('CONFIGURATION', `${name}: expected a map of keys at the top`, {})
}

function toJs(document: YamlDocument, name: string): unknown {
  try {
    return document.toJS({ maxAliasCount: 20 })
  } catch {
    throw new MirrorError('CONFIGURATION', `${name}: not valid YAML: an alias without its anchor, or too many`, {})
  }
}

function findOffset(document: YamlDocument, path: KeyPath): number {
  let node: unknown = document.contents
  let offset = isNode(node) ? startOf(node) : 0
  for (const key of path) {
    const target = isNode(node) && 'resolve' in node ? node.resolve(document) : node
    const child = findChild(target, key)
    if (child === undefined) return offset
    offset = child.offset ?? offset
    node = child.node
  }
  return offset
}

function findChild(node: unknown, key: PropertyKey): { offset: number | undefined; node: unknown } | undefined {
  if (isMap(node)) {
    const pair = node.items.find((item) => isPair(item) && isScalar(item.key) && String(item.key.value) === String(key))
    return pair && { offset: isNode(pair.key) ? startOf(pair.key) : undefined, node: pair.value }
  }
  if (!isSeq(node)) return undefined
  const item: unknown = node.items[Number(key)]
  return item === undefined ? undefined : { offset: isNode(item) ? startOf(item) : undefined, node: item }
}

function startOf(node: Node): number {
  return node.range?.[0] ?? 0
}
