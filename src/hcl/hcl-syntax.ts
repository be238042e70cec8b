import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { Language, type Node, Parser, type ParseState } from 'web-tree-sitter'
import { FileFault, MAX_FILE_LENGTH } from './file-fault.ts'
import {
  type HclAttribute,
  type HclBlock,
  type HclBody,
  HclExpression,
  type HclItem,
  type HclValue,
} from './hcl-body.ts'

/** How much text is read on after a fault, to name its place well. Recovery from garbage takes time and memory. */
const RECOVERY_LENGTH = 65_536
/** How much of it is looked at again for the place. */
const MARGIN_LENGTH = 1_024
/** The parser counts UTF-16 in bytes. */
const CHARACTER_BYTES = 2
const BOM = /^\ufeff/

/** Reads the native syntax (`.tf`, lock files). Blocks its thread for up to some seconds a megabyte: see `hcl-worker.ts`. */
export class HclParser {
  readonly #parser: Parser

  private constructor(parser: Parser) {
    this.#parser = parser
  }

  /** Loads the WebAssembly of parser and grammar, once for the life of the thread. */
  static async load(): Promise<HclParser> {
    const runtime = await readWasm('web-tree-sitter/web-tree-sitter.wasm')
    await Parser.init({ wasmBinary: runtime.buffer })
    const grammar = await readWasm('@tree-sitter-grammars/tree-sitter-hcl/tree-sitter-terraform.wasm')
    return new HclParser(new Parser().setLanguage(await Language.load(grammar)))
  }

  /** @throws FileFault for what is not HCL, larger than {@link MAX_FILE_LENGTH} or nested too deeply */
  parse(text: string): HclBody {
    if (text.length > MAX_FILE_LENGTH) throw new FileFault(`File too large: more than ${MAX_FILE_LENGTH} characters`)
    const source = text.replace(BOM, '')
    const faults = new FaultWatch()
    const tree = this.#parser.parse(source, null, { progressCallback: (state) => faults.isHopeless(state) })
    if (tree === null) {
      this.#parser.reset()
      throw this.#findFirstFault(source.slice(0, faults.firstOffset / CHARACTER_BYTES + MARGIN_LENGTH))
    }
    try {
      const root = tree.rootNode
      if (root.hasError) throw describeFault(findFault(root))
      return readBody(root.namedChildren.find(({ type }) => type === 'body'))
    } catch (error) {
      if (error instanceof RangeError) throw new FileFault('Too deeply nested')
      throw error
    } finally {
      tree.delete()
    }
  }

  /** Of a text that was given up, by its beginning: what comes after the fault took too long. */
  #findFirstFault(beginning: string): FileFault {
    const tree = this.#parser.parse(beginning)
    try {
      const root = tree?.rootNode
      return root?.hasError ? describeFault(findFault(root)) : new FileFault('Invalid syntax')
    } finally {
      tree?.delete()
    }
  }
}

/** In the bundle the file lies beside the code, elsewhere in its package. */
async function readWasm(specifier: string): Promise<Uint8Array<ArrayBuffer>> {
  const beside = new URL(`./${specifier.slice(specifier.lastIndexOf('/') + 1)}`, import.meta.url)
  const path = existsSync(beside) ? beside : fileURLToPath(import.meta.resolve(specifier))
  return new Uint8Array(await readFile(path))
}

class FaultWatch {
  firstOffset = 0
  #found = false

  isHopeless({ hasError, currentOffset }: ParseState): boolean {
    if (!hasError) return false
    if (!this.#found) this.firstOffset = currentOffset
    this.#found = true
    return currentOffset > this.firstOffset + RECOVERY_LENGTH
  }
}

function lineOf(node: Node): number {
  return node.startPosition.row + 1
}

/** The first node that does not belong, from outside in. */
function findFault(root: Node): Node {
  let node = root
  for (;;) {
    if (node.isError || node.isMissing) return node
    const next = node.children.find((child) => child.hasError || child.isMissing)
    if (next === undefined) return node
    node = next
  }
}

function describeFault(node: Node): FileFault {
  const parent = node.parent
  if (node.isMissing && node.type === '}') {
    const block = parent?.type === 'block_end' ? parent.parent : parent
    return new FileFault('Unclosed configuration block: there is no closing brace for it', lineOf(block ?? node))
  }
  if (node.isMissing && node.type === 'quoted_template_end') {
    return new FileFault('Invalid multi-line string: it does not end on its line', lineOf(parent ?? node))
  }
  if (parent === null || ['config_file', 'body', 'block'].includes(parent.type)) {
    return new FileFault('Argument or block definition required: this is neither', lineOf(node))
  }
  return new FileFault('Invalid expression', lineOf(node))
}

function readBody(node: Node | undefined): HclBody {
  const attributes = new Map<string, HclAttribute>()
  const blocks: HclBlock[] = []
  let lastRow = -1
  for (const child of node?.namedChildren ?? []) {
    if (child.type !== 'attribute' && child.type !== 'block') continue
    // The grammar forgives what Terraform does not: two of them on a line.
    if (child.startPosition.row === lastRow) throw new FileFault('Missing newline after argument', lineOf(child))
    lastRow = child.endPosition.row
    if (child.type === 'block') blocks.push(readBlock(child))
    else readAttribute(child, attributes)
  }
  return { attributes, blocks }
}

function readAttribute(node: Node, attributes: Map<string, HclAttribute>): void {
  const [name, expression] = node.namedChildren.filter(({ type }) => type === 'identifier' || type === 'expression')
  if (name === undefined || expression === undefined) throw new FileFault('Invalid expression', lineOf(node))
  if (attributes.has(name.text)) {
    throw new FileFault(`Attribute redefined: ${name.text} was already set in this block`, lineOf(node))
  }
  attributes.set(name.text, { ...readItem(expression), nameLine: lineOf(node) })
}

function readBlock(node: Node): HclBlock {
  const head = node.namedChildren.filter(({ type }) => type === 'identifier' || type === 'string_lit')
  const [type, ...labels] = head
  const brace = node.namedChildren.find((child) => child.type === 'block_start')
  if (type === undefined || brace?.startPosition.row !== head.at(-1)?.endPosition.row) {
    throw new FileFault('Invalid block definition: the opening brace must stand on the same line', lineOf(node))
  }
  return {
    type: type.text,
    labels: labels.map(readLabel),
    line: lineOf(node),
    body: readBody(node.namedChildren.find((child) => child.type === 'body')),
  }
}

function readLabel(node: Node): string {
  const label = node.type === 'identifier' ? node.text : readString(node)
  if (typeof label === 'string') return label
  throw new FileFault('Invalid string literal: a label cannot be evaluated', lineOf(node))
}

function readItem(node: Node): HclItem {
  return { value: readValue(node), line: lineOf(node) }
}

function readValue(node: Node): HclValue {
  const children = node.namedChildren
  const [only] = children
  switch (node.type) {
    case 'expression':
    case 'literal_value':
    case 'collection_value':
    case 'template_expr':
      return only !== undefined && children.length === 1 ? readValue(only) : new HclExpression(rootOf(children))
    case 'variable_expr':
      return new HclExpression(rootOf([node]))
    case 'string_lit':
    case 'quoted_template':
      return readString(node)
    case 'null_lit':
      return null
    case 'bool_lit':
      return node.text === 'true'
    case 'numeric_lit':
      return Number(node.text)
    case 'tuple':
      return children.filter(({ type }) => type === 'expression').map(readItem)
    case 'object':
      return readObject(children)
    default:
      return new HclExpression()
  }
}

/** `aws` of `aws.west`: a variable with nothing but names behind it. */
function rootOf([variable, ...rest]: readonly Node[]): string | undefined {
  if (variable?.type !== 'variable_expr' || rest.some(({ type }) => type !== 'get_attr')) return undefined
  return variable.text
}

function readObject(children: readonly Node[]): ReadonlyMap<string, HclItem> {
  const entries = new Map<string, HclItem>()
  for (const element of children) {
    if (element.type !== 'object_elem') continue
    const [key, value] = element.namedChildren.filter(({ type }) => type === 'expression')
    if (key === undefined || value === undefined) continue
    const name = readValue(key)
    entries.set(typeof name === 'string' ? name : key.text, readItem(value))
  }
  return entries
}

function readString(node: Node): string | HclExpression {
  let text = ''
  for (const child of node.namedChildren) {
    if (child.type === 'template_literal') text += readLiteral(child)
    else if (child.type !== 'quoted_template_start' && child.type !== 'quoted_template_end') return new HclExpression()
  }
  return text
}

const ESCAPE = /\\(?:u(?<four>[0-9a-fA-F]{4})|U(?<eight>[0-9a-fA-F]{8})|(?<plain>[nrt"\\])|)|(?<mark>[$%])\k<mark>\{/g
const PLAIN: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', '"': '"', '\\': '\\' }

function readLiteral(node: Node): string {
  const { text } = node
  if (text.includes('\n')) throw new FileFault('Invalid multi-line string: it does not end on its line', lineOf(node))
  if (!/[\\$%]/.test(text)) return text
  return text.replace(ESCAPE, (...match) => {
    const { four, eight, plain, mark } = match.at(-1) as Record<string, string | undefined>
    if (mark !== undefined) return `${mark}{`
    if (plain !== undefined) return PLAIN[plain] ?? ''
    const code = Number.parseInt(four ?? eight ?? 'x', 16)
    if (code <= 0x10ffff) return String.fromCodePoint(code)
    throw new FileFault('Invalid escape sequence', lineOf(node))
  })
}
