import { isMirrorError } from '../errors.ts'
import { displayHostname } from '../protocol/hostname.ts'
import { formatProviderAddress, type ProviderAddress } from '../protocol/provider-address.ts'
import { parseVersion, type Version } from '../protocol/version.ts'
import { formatVersionConstraint, parseVersionConstraint } from '../protocol/version-constraint.ts'
import { FileFault } from './file-fault.ts'
import { type HclAttribute, type HclBlock, type HclBody, HclExpression, type HclValue } from './hcl-body.ts'
import { isBuiltin, parseProviderSource } from './provider-source.ts'

/** One provider of a `.terraform.lock.hcl`. */
export interface LockedProvider {
  readonly address: ProviderAddress
  readonly version: Version
  /** As written: what the configuration wanted when the version was chosen. */
  readonly constraints: string | undefined
  /** `zh:`, `h1:` and schemes that nobody knows yet, as written. */
  readonly hashes: readonly string[]
  /** Where its block begins, from 1. */
  readonly line: number
}

/** A folder of hundreds of modules has some dozens. */
const MAX_PROVIDERS = 2_000
const ARGUMENTS: ReadonlySet<string> = new Set(['version', 'constraints', 'hashes'])

/**
 * The providers of a lock file, in its order. It must be as strict as Terraform loads it: what a client would refuse
 * must not be warmed as if all were well.
 * @throws FileFault for the first thing that Terraform refuses
 */
export function readLockedProviders(body: HclBody): LockedProvider[] {
  for (const [name, { nameLine }] of body.attributes) {
    throw new FileFault(`Unsupported argument: ${name} is not expected here`, nameLine)
  }
  const providers = new Map<string, LockedProvider>()
  for (const block of body.blocks) {
    if (block.type !== 'provider' && block.type !== 'module') throw unsupportedBlock(block)
    const [label, ...extra] = block.labels
    if (label === undefined) throw new FileFault(`Missing name for ${block.type}`, block.line)
    if (extra.length > 0) throw new FileFault(`Extraneous label for ${block.type}`, block.line)
    // Terraform keeps `module` for later, and ignores what is in it.
    if (block.type === 'module') continue
    const address = parseAddress(label, block.line)
    const provider = readProvider(address, block)
    const name = formatProviderAddress(address)
    const earlier = providers.get(name)
    if (earlier !== undefined) {
      throw new FileFault(`Duplicate provider lock: ${name} is locked at line ${earlier.line} already`, block.line)
    }
    providers.set(name, provider)
    if (providers.size > MAX_PROVIDERS)
      throw new FileFault(`Too large: more than ${MAX_PROVIDERS} providers`, block.line)
  }
  return [...providers.values()]
}

function unsupportedBlock({ type, line }: HclBlock): FileFault {
  return new FileFault(`Unsupported block type: blocks of type ${type} are not expected here`, line)
}

function parseAddress(text: string, line: number): ProviderAddress {
  const invalid = (reason: string) => new FileFault(`Invalid provider source address: ${reason}`, line)
  let address: ProviderAddress
  try {
    address = parseProviderSource(text)
  } catch (error) {
    if (isMirrorError(error)) throw invalid(error.message)
    throw error
  }
  if (isBuiltin(address)) throw invalid(`${text} is a part of Terraform and has no version of its own`)
  const canonical = `${displayHostname(address.hostname)}/${address.namespace}/${address.type}`
  if (text === canonical) return address
  throw new FileFault(`Non-normalized provider source address: it must be written ${JSON.stringify(canonical)}`, line)
}

function readProvider(address: ProviderAddress, { body, line }: HclBlock): LockedProvider {
  for (const block of body.blocks) throw unsupportedBlock(block)
  for (const [name, { nameLine }] of body.attributes) {
    if (!ARGUMENTS.has(name)) {
      throw new FileFault(`Unsupported argument: ${name} is not expected here`, nameLine)
    }
  }
  const version = body.attributes.get('version')
  if (version === undefined || version.value === null) {
    throw new FileFault('Missing required argument: a provider lock has a version', version?.line ?? line)
  }
  return {
    address,
    version: readVersion(version),
    constraints: readConstraints(body.attributes.get('constraints')),
    hashes: readHashes(body.attributes.get('hashes')),
    line,
  }
}

function readVersion(attribute: HclAttribute): Version {
  const text = readText(attribute.value, attribute.line)
  const version = parseVersion(text)
  if (version === text) return version
  const reason =
    version === undefined ? `${quote(text)} is not a version` : `it must be written ${JSON.stringify(version)}`
  throw new FileFault(`Invalid provider version number: ${reason}`, attribute.line)
}

function readConstraints(attribute: HclAttribute | undefined): string | undefined {
  if (attribute === undefined) return undefined
  const text = readText(attribute.value, attribute.line)
  if (text === '') return undefined
  const invalid = (reason: string) => new FileFault(`Invalid provider version constraints: ${reason}`, attribute.line)
  let canonical: string
  try {
    canonical = formatVersionConstraint(parseVersionConstraint(text))
  } catch (error) {
    if (isMirrorError(error)) throw invalid(error.message)
    throw error
  }
  if (text !== canonical) throw invalid(`they must be written ${JSON.stringify(canonical)}`)
  return text
}

function readHashes(attribute: HclAttribute | undefined): readonly string[] {
  if (attribute === undefined) return []
  const { value, line } = attribute
  if (!Array.isArray(value)) throw new FileFault('Invalid expression: a list of hashes is expected', line)
  if (value.length === 0) throw new FileFault('Invalid provider hash set: it is empty; leave it out', line)
  const hashes = new Set<string>()
  for (const item of value) {
    const text = readText(item.value, item.line)
    // `h1:invalid` loads: a hash that nothing has is no fault of the file.
    if (text.indexOf(':') < 1) {
      throw new FileFault(`Invalid provider hash string: ${quote(text)} does not begin with its scheme`, item.line)
    }
    hashes.add(text)
  }
  return [...hashes]
}

/** Terraform turns numbers and truth values into text. */
function readText(value: HclValue, line: number): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (value instanceof HclExpression) throw new FileFault('Variables not allowed: this needs evaluation', line)
  throw new FileFault('Unsuitable value type: a string is expected', line)
}

function quote(text: string): string {
  return JSON.stringify(text.slice(0, 80))
}
