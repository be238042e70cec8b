import { FileFault, MAX_FILE_LENGTH } from './file-fault.ts'
import {
  type HclAttribute,
  type HclBlock,
  type HclBody,
  HclExpression,
  type HclItem,
  type HclValue,
} from './hcl-body.ts'

/** Which names are blocks is for the schema to say: JSON itself does not tell them from arguments. */
interface BlockSchema {
  readonly labels: number
  readonly blocks?: Readonly<Record<string, BlockSchema>>
}

const TYPED: BlockSchema = { labels: 2 }
const TOP_LEVEL: Readonly<Record<string, BlockSchema>> = {
  terraform: { labels: 0, blocks: { required_providers: { labels: 0 } } },
  provider: { labels: 1 },
  module: { labels: 1 },
  resource: TYPED,
  data: TYPED,
  ephemeral: TYPED,
  action: TYPED,
  import: { labels: 0 },
  check: { labels: 1, blocks: { data: TYPED } },
}

type JsonNode = { readonly line: number; readonly value: JsonValue }
type JsonValue = string | number | boolean | null | JsonList | JsonObject
class JsonList {
  readonly items: JsonNode[] = []
}
/** In the order of the text; a name may come twice, as two blocks of one type do. */
class JsonObject {
  readonly entries: { readonly name: string; readonly node: JsonNode }[] = []
}

/**
 * Reads a `.tf.json` file: the blocks that have to do with providers and modules. Labels are nested objects, or lists of
 * them; texts are templates.
 * @throws FileFault for what is not JSON, or not an object
 */
export function parseJsonConfiguration(text: string): HclBody {
  if (text.length > MAX_FILE_LENGTH) throw new FileFault(`File too large: more than ${MAX_FILE_LENGTH} characters`)
  try {
    return readBody(objectsOf(parseJson(text)), TOP_LEVEL)
  } catch (error) {
    if (error instanceof RangeError) throw new FileFault('Too deeply nested')
    throw error
  }
}

/** `JSON.parse` judges; this gives the lines, and keeps names that come twice. */
function parseJson(text: string): JsonNode {
  try {
    JSON.parse(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    const [, position] = /at position (\d+)/.exec(error.message) ?? []
    // V8 names no place for a text that ends too early.
    const line = text.slice(0, position === undefined ? undefined : Number(position)).split('\n').length
    throw new FileFault('Invalid JSON', line)
  }
  return buildTree(text)
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{},:\n]|[^\s[\]{},:"]+/g

function buildTree(text: string): JsonNode {
  const root = new JsonList()
  const open: (JsonList | JsonObject)[] = [root]
  let name: string | undefined
  let line = 1
  for (const [token] of text.matchAll(TOKEN)) {
    const container = open.at(-1)
    if (token === '\n') line++
    else if (token === ']' || token === '}') open.pop()
    else if (token === ',' || token === ':') continue
    else if (container instanceof JsonObject && name === undefined) name = JSON.parse(token) as string
    else {
      const value = token === '{' ? new JsonObject() : token === '[' ? new JsonList() : (JSON.parse(token) as JsonValue)
      const node = { line, value }
      if (container instanceof JsonObject) container.entries.push({ name: name ?? '', node })
      else container?.items.push(node)
      name = undefined
      if (value instanceof JsonObject || value instanceof JsonList) open.push(value)
    }
  }
  return root.items[0] ?? { line: 1, value: null }
}

/** The bodies that a node stands for: itself, each of a list, none for null. */
function objectsOf({ line, value }: JsonNode): { line: number; object: JsonObject }[] {
  if (value === null) return []
  if (value instanceof JsonObject) return [{ line, object: value }]
  if (value instanceof JsonList) return value.items.flatMap(objectsOf)
  throw new FileFault('Incorrect JSON value type: an object is expected', line)
}

function readBody(objects: readonly { object: JsonObject }[], schema: BlockSchema['blocks'] = {}): HclBody {
  const attributes = new Map<string, HclAttribute>()
  const blocks: HclBlock[] = []
  for (const { name, node } of objects.flatMap(({ object }) => object.entries)) {
    const inner = Object.hasOwn(schema, name) ? schema[name] : undefined
    if (inner !== undefined) blocks.push(...readBlocks(name, node, inner, []))
    // `//` is how JSON has comments.
    else if (name !== '//') attributes.set(name, { value: toHcl(node.value), line: node.line, nameLine: node.line })
  }
  return { attributes, blocks }
}

function readBlocks(type: string, node: JsonNode, schema: BlockSchema, labels: readonly string[]): HclBlock[] {
  return objectsOf(node).flatMap(({ line, object }): HclBlock[] => {
    if (labels.length === schema.labels) return [{ type, labels, line, body: readBody([{ object }], schema.blocks) }]
    return object.entries.flatMap((entry) => readBlocks(type, entry.node, schema, [...labels, entry.name]))
  })
}

function toHcl(value: JsonValue): HclValue {
  if (value instanceof JsonList) return value.items.map(toItem)
  if (value instanceof JsonObject) return new Map(value.entries.map(({ name, node }) => [name, toItem(node)]))
  return typeof value === 'string' ? fromTemplate(value) : value
}

function toItem({ line, value }: JsonNode): HclItem {
  return { line, value: toHcl(value) }
}

function fromTemplate(text: string): string | HclExpression {
  if (!/[$%]\{/.test(text)) return text
  if (/(?<![$%])(?:\$\{|%\{)/.test(text)) {
    return new HclExpression(/^\$\{(?<root>[\w-]+)(?:\.[\w-]+)*\}$/.exec(text)?.groups?.root)
  }
  return text.replace(/([$%])\1\{/g, '$1{')
}
