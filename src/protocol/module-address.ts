import { isMirrorError, MirrorError, redactInput } from '../errors.ts'
import { type Hostname, parseHostname } from './hostname.ts'

/**
 * The address of a module: the origin registry's host, a namespace, a name and a target system. The letter case of
 * namespace and name is the origin's affair and is kept: two spellings are two addresses, so that nothing is ever mixed.
 */
export interface ModuleAddress {
  readonly hostname: Hostname
  readonly namespace: string
  readonly name: string
  /** Lower-case letters and digits, e.g. `aws`. */
  readonly targetSystem: string
}

/** The parts as a path gives them, percent-decoded. */
export type ModuleAddressParts = { readonly [K in keyof ModuleAddress]: string }

const MAX_PART_LENGTH = 64
/** Terraform's grammar for a namespace or name of a registry module (`terraform-registry-address`). */
const NAME = /^[0-9A-Za-z](?:[0-9A-Za-z_-]{0,62}[0-9A-Za-z])?$/
const TARGET_SYSTEM = /^[0-9a-z]{1,64}$/

/**
 * Parses the four parts of a module's address by terraform's grammar.
 * @throws MirrorError `HOSTILE_INPUT` (also for every bad host), `INVALID_ADDRESS`
 */
export function parseModuleAddress(parts: ModuleAddressParts): ModuleAddress {
  const hostname = parseHostname(parts.hostname)
  return {
    hostname,
    namespace: parsePart('namespace', parts.namespace, NAME),
    name: parsePart('name', parts.name, NAME),
    targetSystem: parsePart('target system', parts.targetSystem, TARGET_SYSTEM),
  }
}

/**
 * Parses `registry.terraform.io/hashicorp/consul/aws`; the inverse of `formatModuleAddress`. The host is never left out.
 * @throws MirrorError `HOSTILE_INPUT`, `INVALID_ADDRESS`
 */
export function parseModuleAddressText(text: string): ModuleAddress {
  const [hostname, namespace, name, targetSystem, ...rest] = text.split('/', 5)
  if (!hostname || !namespace || !name || !targetSystem || rest.length > 0) {
    throw invalid(text, 'expected HOST/NAMESPACE/NAME/SYSTEM')
  }
  return parseModuleAddress({ hostname, namespace, name, targetSystem })
}

/** The address of parts as records name them; undefined for any that `parseModuleAddress` would not give back so. */
export function findModuleAddress(parts: ModuleAddressParts): ModuleAddress | undefined {
  try {
    const address = parseModuleAddress(parts)
    return address.hostname === parts.hostname ? address : undefined
  } catch (error) {
    if (isMirrorError(error)) return undefined
    throw error
  }
}

/** Prints `registry.terraform.io/hashicorp/consul/aws`: the form for people, logs and map keys. */
export function formatModuleAddress({ hostname, namespace, name, targetSystem }: ModuleAddress): string {
  return `${hostname}/${namespace}/${name}/${targetSystem}`
}

function parsePart(what: string, text: string, grammar: RegExp): string {
  if (grammar.test(text)) return text
  const hostile = text.length > 2 * MAX_PART_LENGTH || text === '.' || text === '..' || /[\p{Cc}/\\]/u.test(text)
  if (hostile) throw refused(text, `a module's ${what} is a short word`)
  throw invalid(
    text,
    what === 'target system'
      ? 'a target system is made of lower-case letters and digits'
      : `a module's ${what} is made of letters, digits, dashes and underscores, and begins and ends with a letter or digit`,
  )
}

function refused(text: string, reason: string): MirrorError<'HOSTILE_INPUT'> {
  const input = redactInput(text)
  return new MirrorError('HOSTILE_INPUT', `not a module address: ${JSON.stringify(input)}: ${reason}`, {
    input,
    reason,
  })
}

function invalid(text: string, reason: string): MirrorError<'INVALID_ADDRESS'> {
  const input = redactInput(text)
  return new MirrorError('INVALID_ADDRESS', `not a module address: ${JSON.stringify(input)}: ${reason}`, {
    input,
    reason,
  })
}
