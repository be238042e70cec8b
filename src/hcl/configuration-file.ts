import { FileFault } from './file-fault.ts'
import { type HclBlock, type HclBody, HclExpression, type HclItem, isHclObject } from './hcl-body.ts'

/** A text that must be known without evaluating anything, and where it stands. */
export interface StaticText {
  readonly text: string
  readonly line: number
}

/** What one configuration file declares about providers and modules, unjudged. Lines count from 1. */
export interface Declarations {
  readonly requirements: RequirementDeclaration[]
  readonly providerBlocks: ProviderDeclaration[]
  /** Of resources, data sources and imports: what needs a provider without saying so elsewhere. */
  readonly uses: ProviderUse[]
  readonly calls: CallDeclaration[]
  /** What could not be understood; all else still holds. */
  readonly faults: FileFault[]
}

/** An entry of `required_providers`. */
export interface RequirementDeclaration {
  /** The name by which this module calls the provider. */
  readonly name: string
  readonly source: StaticText | undefined
  readonly version: StaticText | undefined
  readonly line: number
  /** Something of it needs evaluation, or is not what it should be: it says nothing that could be relied on. */
  readonly faulty: boolean
}

/** A `provider` block. */
export interface ProviderDeclaration {
  readonly name: string
  readonly alias: string
  readonly version: StaticText | undefined
  readonly line: number
}

/** A block whose type or `provider` argument names a provider. */
export interface ProviderUse {
  /** Of the block in its module, e.g. `resource aws_instance web`: override files name it again. */
  readonly key: string
  readonly provider: string
  /** By the `provider` argument, not by the type alone. */
  readonly explicit: boolean
  readonly line: number
}

/** A `module` block. Undefined is what is not set, which is fine in an override file. */
export interface CallDeclaration {
  readonly name: string
  readonly source: StaticText | undefined
  readonly version: StaticText | undefined
  readonly line: number
  /** As with requirements: the fault is told once, and the call is left out. */
  readonly faulty: boolean
}

const REQUIREMENT_KEYS: ReadonlySet<string> = new Set(['source', 'version', 'configuration_aliases'])
const TYPED_BLOCKS: ReadonlySet<string> = new Set(['resource', 'data', 'ephemeral', 'action'])

/** Collects the declarations of a file. Blocks that have to do with neither providers nor modules are passed over. */
export function readDeclarations(body: HclBody): Declarations {
  const file = new DeclarationReader()
  for (const block of body.blocks) file.read(block)
  return file
}

class DeclarationReader implements Declarations {
  readonly requirements: RequirementDeclaration[] = []
  readonly providerBlocks: ProviderDeclaration[] = []
  readonly uses: ProviderUse[] = []
  readonly calls: CallDeclaration[] = []
  readonly faults: FileFault[] = []

  read(block: HclBlock): void {
    const inner = (type: string) => block.body.blocks.filter((each) => each.type === type)
    if (TYPED_BLOCKS.has(block.type)) this.#readTyped(block)
    else if (block.type === 'terraform') for (const each of inner('required_providers')) this.#readRequirements(each)
    else if (block.type === 'provider') this.#readProvider(block)
    else if (block.type === 'module') this.#readCall(block)
    else if (block.type === 'check') for (const each of inner('data')) this.#readTyped(each)
    else if (block.type === 'import') this.#readImport(block)
  }

  #readRequirements(block: HclBlock): void {
    for (const [name, item] of block.body.attributes) this.#readRequirement(name, item)
  }

  #readRequirement(name: string, { value, line }: HclItem): void {
    const faults = this.faults.length
    const add = (source: StaticText | undefined, version: StaticText | undefined) =>
      this.requirements.push({ name, source, version, line, faulty: this.faults.length > faults })
    // The form of Terraform 0.12: the version alone.
    if (typeof value === 'string') {
      add(undefined, { text: value, line })
      return
    }
    if (!isHclObject(value)) {
      this.#fault(`Invalid required_providers object: ${name} must be a string or an object`, line)
      add(undefined, undefined)
      return
    }
    for (const [key, item] of value) {
      if (REQUIREMENT_KEYS.has(key)) continue
      this.#fault(`Invalid required_providers object: ${name} has a source and a version, not ${key}`, item.line)
    }
    add(
      this.#staticText(value.get('source'), `the source of the provider ${name}`),
      this.#staticText(value.get('version'), `the version of the provider ${name}`),
    )
  }

  #readProvider(block: HclBlock): void {
    const [name] = this.#labels(block, 1)
    if (name === undefined) return
    const alias = block.body.attributes.get('alias')?.value
    const version = this.#staticText(block.body.attributes.get('version'), `the version of the provider ${name}`)
    this.providerBlocks.push({ name, alias: typeof alias === 'string' ? alias : '', version, line: block.line })
  }

  #readTyped(block: HclBlock): void {
    const [type, name] = this.#labels(block, 2)
    if (type === undefined || name === undefined) return
    this.#addUse(`${block.type} ${type} ${name}`, type, block)
  }

  #readImport(block: HclBlock): void {
    const to = block.body.attributes.get('to')
    const type = to && rootName(to)
    // Of a resource inside a module, that module says which provider it is.
    if (type !== undefined && type !== 'module') this.#addUse(`import ${block.line}`, type, block)
  }

  #addUse(key: string, type: string, { body, line }: HclBlock): void {
    const argument = body.attributes.get('provider')
    const named = argument && rootName(argument)
    if (argument !== undefined && named === undefined) {
      this.#fault('Invalid provider reference: expected a name such as aws or aws.west', argument.line)
    } else {
      this.uses.push({ key, provider: named ?? impliedProvider(type), explicit: named !== undefined, line })
    }
  }

  #readCall(block: HclBlock): void {
    const [name] = this.#labels(block, 1)
    if (name === undefined) return
    const faults = this.faults.length
    const { attributes } = block.body
    const source = this.#staticText(attributes.get('source'), `the source of the module ${name}`)
    const version = this.#staticText(attributes.get('version'), `the version of the module ${name}`)
    this.calls.push({ name, source, version, line: block.line, faulty: this.faults.length > faults })
  }

  #labels({ type, labels, line }: HclBlock, count: number): readonly string[] {
    if (labels.length === count) return labels
    const problem = labels.length < count ? 'Missing name' : 'Extraneous label'
    this.#fault(`${problem} for ${type}: it has ${count === 1 ? 'one label' : `${count} labels`}`, line)
    return []
  }

  /** `null` is as if it were not there. */
  #staticText(item: HclItem | undefined, what: string): StaticText | undefined {
    if (item === undefined || item.value === null) return undefined
    if (typeof item.value === 'string') return { text: item.value, line: item.line }
    const reason = item.value instanceof HclExpression ? 'needs evaluation' : 'is not a string'
    this.#fault(`Unsuitable value: ${what} ${reason}, so it cannot be known here`, item.line)
    return undefined
  }

  #fault(reason: string, line: number): void {
    this.faults.push(new FileFault(reason, line))
  }
}

/** `aws` of the reference `aws.west`, also where it is written as a string, as JSON and old configurations do. */
function rootName({ value }: HclItem): string | undefined {
  if (value instanceof HclExpression) return value.root
  if (typeof value !== 'string') return undefined
  return /^(?<root>[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Nd}\p{M}_-]*)(?:$|[.[])/u.exec(value)?.groups?.root
}

/** `aws` of `aws_instance`: all before the first underscore. */
function impliedProvider(type: string): string {
  return type.split('_', 1)[0] ?? type
}
