import { isMirrorError, MirrorError, redactInput } from '../errors.ts'
import { type Hostname, parseHostname } from './hostname.ts'

/** The address of a provider: the origin registry's host, a namespace and a type, all lower case. */
export interface ProviderAddress {
  readonly hostname: Hostname
  readonly namespace: string
  readonly type: string
}

const MAX_PART_LENGTH = 128
/** Letters and digits of any script, with single dashes or underscores between them. */
const PART = /^[\p{L}\p{Nd}][\p{L}\p{M}\p{Nd}_-]*$/u
/** The namespace of addresses from before Terraform 0.13. */
const LEGACY_NAMESPACE = '-'

/**
 * Parses the three parts of an address, percent-decoded, in any letter case. Namespace and type follow terraform's
 * `ParseProviderPart`: letters, digits and dashes of any script, no dash first, last or doubled; and underscores, which
 * Terraform 1.16 began to allow. At most 128 characters: real clients take more than the 63 of a host label.
 * @throws MirrorError `HOSTILE_INPUT` (also for every bad host), `INVALID_ADDRESS`
 */
export function parseProviderAddress(parts: { hostname: string; namespace: string; type: string }): ProviderAddress {
  const hostname = parseHostname(parts.hostname)
  assertHarmless('namespace', parts.namespace)
  const type = parsePart('type', parts.type)
  if (parts.namespace === LEGACY_NAMESPACE) throw legacyAddress(hostname, type)
  return { hostname, namespace: parsePart('namespace', parts.namespace), type }
}

/**
 * Parses `registry.terraform.io/hashicorp/aws`; the inverse of `formatProviderAddress`. The host is never left out.
 * @throws MirrorError `HOSTILE_INPUT`, `INVALID_ADDRESS`
 */
export function parseProviderAddressText(text: string): ProviderAddress {
  const [hostname, namespace, type, ...rest] = text.split('/', 4)
  if (hostname === undefined || namespace === undefined || type === undefined || rest.length > 0) {
    throw invalid(text, 'expected HOST/NAMESPACE/TYPE')
  }
  return parseProviderAddress({ hostname, namespace, type })
}

/** The address of parts as records name them; undefined for any that `parseProviderAddress` would not give back so. */
export function findProviderAddress(parts: {
  hostname: string
  namespace: string
  type: string
}): ProviderAddress | undefined {
  try {
    const address = parseProviderAddress(parts)
    const same = address.hostname === parts.hostname && address.namespace === parts.namespace
    return same && address.type === parts.type ? address : undefined
  } catch (error) {
    if (isMirrorError(error)) return undefined
    throw error
  }
}

/** Prints `registry.terraform.io/hashicorp/aws`: the form for people, logs and map keys. */
export function formatProviderAddress(address: ProviderAddress): string {
  return `${address.hostname}/${address.namespace}/${address.type}`
}

function parsePart(name: 'namespace' | 'type', text: string): string {
  assertHarmless(name, text)
  const part = Array.from(text, (character) => character.toLowerCase())
    .join('')
    .normalize('NFC')
  const plain = part.normalize('NFKC') === part
  if (plain && PART.test(part) && !part.includes('--') && !part.endsWith('-') && lengthOf(part) <= MAX_PART_LENGTH) {
    return part
  }
  throw invalid(text, `a provider's ${name} is made of letters, digits, single dashes and underscores`)
}

/** Refuses what no client sends by mistake. Looks at no more text than a part can have. */
function assertHarmless(name: 'namespace' | 'type', text: string): void {
  if (text.length > 2 * MAX_PART_LENGTH || lengthOf(text) > MAX_PART_LENGTH) {
    throw hostile(text, `a provider's ${name} has at most ${MAX_PART_LENGTH} characters`)
  }
  if (/[\p{Cc}/\\]/u.test(text)) throw hostile(text, `a provider's ${name} has no control bytes or slashes`)
  if (text === '.' || text === '..') throw hostile(text, `a provider's ${name} is no path`)
}

function lengthOf(text: string): number {
  return Array.from(text).length
}

function hostile(text: string, reason: string): MirrorError<'HOSTILE_INPUT'> {
  const input = redactInput(text)
  return new MirrorError('HOSTILE_INPUT', `not a provider address: ${JSON.stringify(input)}: ${reason}`, {
    input,
    reason,
  })
}

function invalid(text: string, reason: string): MirrorError<'INVALID_ADDRESS'> {
  const input = redactInput(text)
  return new MirrorError('INVALID_ADDRESS', `not a provider address: ${JSON.stringify(input)}: ${reason}`, {
    input,
    reason,
  })
}

function legacyAddress(hostname: Hostname, type: string): MirrorError<'INVALID_ADDRESS'> {
  const input = `${hostname}/${LEGACY_NAMESPACE}/${type}`
  const reason = 'a legacy address without a namespace, from a state of Terraform 0.12 or older'
  const hint =
    `run \`terraform state replace-provider ${input} ${hostname}/NAMESPACE/${type}\` ` +
    'with the real namespace (hashicorp for the official providers)'
  return new MirrorError('INVALID_ADDRESS', `${input} is ${reason}; ${hint}`, { input, reason, hint })
}
