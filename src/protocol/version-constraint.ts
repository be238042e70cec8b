import { MirrorError } from '../errors.ts'
import { compareVersions, parseVersion, type Version } from './version.ts'

/**
 * Which versions are wanted: `~> 5.0`, `>= 1.0, < 2`. Terraform reads and applies constraints of providers and of
 * modules by two libraries (apparentlymart/go-versions and hashicorp/go-version), which do not quite agree:
 *
 * | | providers | modules |
 * |---|---|---|
 * | `v1.2.3`, several spaces after the operator | refused | taken |
 * | `1.2.3` and a version `1.2.3+build` | another version | that version |
 * | `~> 1` | before 2.0.0 | without end |
 * | `~> 1.2.3-rc.1` | 1.2.3-rc.1 and later within 1.2, of releases | pre-releases only |
 * | a pre-release that one exact constraint names, beside `>= 1.0` | taken | refused |
 *
 * So a constraint knows whose it is. To Terraform 1.11 a pre-release of a module is named by its bare version
 * alone; here by `= 1.2.3-rc.1` too, as later clients have it.
 */
export interface VersionConstraint {
  /** All must hold. */
  readonly [termsOfConstraint]: readonly Term[]
}

/** Out of reach, so that a constraint is made here alone. */
const termsOfConstraint = Symbol('terms')

type Owner = 'provider' | 'module'
type Operator = '=' | '!=' | '>' | '>=' | '<' | '<=' | '~>'

interface Term {
  readonly operator: Operator
  readonly boundary: Version
  /** The first version that `~>` leaves out; undefined if it has no end. */
  readonly limit: Version | undefined
  readonly owner: Owner
}

const MAX_LENGTH = 2_048
/** Operators and versions as both libraries split them; what stands between is judged after. */
const TERM = /^(?<operator>[=!<>~]*)(?<space>[\t\n\f\r ]*)(?<prefix>v?)(?<version>[0-9][0-9A-Za-z.+-]*)$/
const OPERATORS: ReadonlySet<string> = new Set<Operator>(['=', '!=', '>', '>=', '<', '<=', '~>'])
const MEANT: ReadonlyMap<string, Operator> = new Map([
  ['=>', '>='],
  ['=<', '<='],
  ['==', '='],
  ['~', '~>'],
  ['!', '!='],
])
/** Both libraries hold a number in 63 bits. */
const MAX_NUMBER = 2n ** 63n - 1n

/** Lets every release in: what no `version` at all means. */
export const ANY_VERSION: VersionConstraint = { [termsOfConstraint]: [] }

/**
 * Parses the constraint of a provider, as Terraform does: operators `=`, `!=`, `>`, `>=`, `<`, `<=`, `~>` or none, one
 * to three numbers, a list by commas.
 * @throws MirrorError `CONSTRAINT_INVALID`, with the part that is wrong
 */
export function parseVersionConstraint(text: string): VersionConstraint {
  return parseList(text, 'provider')
}

/**
 * The same for the constraint of a module from a registry, with the differences named at {@link VersionConstraint}.
 * @throws MirrorError `CONSTRAINT_INVALID`
 */
export function parseModuleVersionConstraint(text: string): VersionConstraint {
  return parseList(text, 'module')
}

/** Whether the version is wanted. A pre-release is wanted only by an exact constraint. */
export function satisfies(version: Version, constraint: VersionConstraint): boolean {
  const terms = constraint[termsOfConstraint]
  if (isPrerelease(version) && !terms.some((term) => term.operator === '=' && meets(version, term))) return false
  return terms.every((term) => meets(version, term))
}

/** What both want. */
export function intersect(a: VersionConstraint, b: VersionConstraint): VersionConstraint {
  const terms = [...a[termsOfConstraint], ...b[termsOfConstraint]]
  return { [termsOfConstraint]: [...new Map(terms.map((term) => [`${term.owner} ${format(term)}`, term])).values()] }
}

/** The version that Terraform would choose of these. */
export function newestMatching(versions: Iterable<Version>, constraint: VersionConstraint): Version | undefined {
  let newest: Version | undefined
  for (const version of versions) {
    if (newest !== undefined && compareVersions(version, newest) <= 0) continue
    if (satisfies(version, constraint)) newest = version
  }
  return newest
}

/**
 * Prints the form that lock files have: numbers in full, each part once, in the order of their versions. Parsing it
 * again gives the same constraint. Empty for {@link ANY_VERSION}.
 */
export function formatVersionConstraint(constraint: VersionConstraint): string {
  const terms = [...constraint[termsOfConstraint]].sort(
    (a, b) => compareVersions(a.boundary, b.boundary) || PRINT_ORDER.indexOf(rank(a)) - PRINT_ORDER.indexOf(rank(b)),
  )
  return [...new Set(terms.map(format))].join(', ')
}

/** Terraform's own order of parts that name one version; `~>` by what it holds fast. */
const PRINT_ORDER: readonly string[] = ['>', '>=', '=', '~> patch', '~> minor', '<=', '<', '!=']

function rank(term: Term): string {
  if (term.operator !== '~>') return term.operator
  return isMinorOnly(term) ? '~> minor' : '~> patch'
}

function parseList(text: string, owner: Owner): VersionConstraint {
  if (text.length > MAX_LENGTH) throw invalid(text, `it is longer than ${MAX_LENGTH} characters`)
  const parts = text.split(',')
  const terms = parts.map((part, index) => {
    const reason = parts.length === 1 ? '' : ` (part ${index + 1} of ${parts.length})`
    const term = parseTerm(part.replace(/^[\t\n\f\r ]+|[\t\n\f\r ]+$/g, ''), owner)
    if (typeof term === 'string') throw invalid(text, `${term}${reason}`)
    return term
  })
  return { [termsOfConstraint]: terms }
}

/** The part, or why it is none. */
function parseTerm(text: string, owner: Owner): Term | string {
  if (text === '') return 'a part is empty'
  const groups = TERM.exec(text)?.groups
  if (groups === undefined) return `${quote(text)} is not an operator and a version such as ~> 1.2`
  const { operator = '', space = '', prefix = '', version = '' } = groups
  if (operator !== '' && !OPERATORS.has(operator)) {
    const meant = MEANT.get(operator)
    return `${quote(operator)} is no operator${meant === undefined ? '' : `; did you mean ${quote(meant)}?`}`
  }
  if (owner === 'provider' && prefix !== '') return `the version in ${quote(text)} must not begin with v`
  if (owner === 'provider' && !['', ' '].includes(space)) return `in ${quote(text)}, one space follows the operator`
  const boundary = parseVersion(version)
  if (boundary === undefined) return `${quote(version)} is not a version of one to three numbers`
  const core = coreOf(boundary)
  if (core.some((number) => number > MAX_NUMBER)) return `${quote(version)} has a number that is too large`
  if (operator !== '~>') return { operator: (operator || '=') as Operator, boundary, limit: undefined, owner }
  const count = version.split(/[-+]/, 1)[0]?.split('.').length ?? 0
  // To go-version `~> 1` holds no number fast.
  if (owner === 'module' && count === 1) return { operator: '>=', boundary, limit: undefined, owner }
  return { operator: '~>', boundary, limit: limitOf(core, count), owner }
}

/** `~> 1.2` and `~> 1` go up to the next major version, `~> 1.2.3` to the next minor one. */
function limitOf([major = 0n, minor = 0n]: readonly bigint[], count: number): Version {
  return (count === 3 ? `${major}.${minor + 1n}.0` : `${major + 1n}.0.0`) as Version
}

function meets(version: Version, term: Term): boolean {
  return term.owner === 'provider' ? meetsAsProvider(version, term) : meetsAsModule(version, term)
}

function meetsAsProvider(version: Version, term: Term): boolean {
  // Build metadata is part of what an exact constraint names, and of nothing else.
  if (term.operator === '=') return version === term.boundary
  if (term.operator === '!=') return version !== term.boundary
  return isInRange(version, term)
}

function meetsAsModule(version: Version, term: Term): boolean {
  const order = comparePrecedence(version, term.boundary)
  if (term.operator === '=') return order === 0
  if (term.operator === '!=') return order !== 0
  const boundaryIsPrerelease = isPrerelease(term.boundary)
  if (isPrerelease(version)) {
    const sameCore = String(coreOf(version)) === String(coreOf(term.boundary))
    if (!boundaryIsPrerelease || !sameCore) return false
  } else if (boundaryIsPrerelease && term.operator === '~>') return false
  return isInRange(version, term)
}

function isInRange(version: Version, { operator, boundary, limit }: Term): boolean {
  const order = comparePrecedence(version, boundary)
  if (limit !== undefined) return order >= 0 && comparePrecedence(version, limit) < 0
  if (order === 0) return operator === '>=' || operator === '<='
  return operator.startsWith(order > 0 ? '>' : '<')
}

function comparePrecedence(a: Version, b: Version): number {
  return compareVersions(withoutBuild(a), withoutBuild(b))
}

function withoutBuild(version: Version): Version {
  return (version.split('+', 1)[0] ?? '') as Version
}

function isPrerelease(version: Version): boolean {
  return withoutBuild(version).includes('-')
}

function coreOf(version: Version): bigint[] {
  return (version.split(/[-+]/, 1)[0] ?? '').split('.').map(BigInt)
}

function format(term: Term): string {
  const { operator, boundary } = term
  if (operator === '=') return boundary
  // The form with two numbers is what tells `~> 1.2` from `~> 1.2.0`.
  return `${operator} ${isMinorOnly(term) ? boundary.replace(/^(\d+\.\d+)\.\d+/, '$1') : boundary}`
}

function isMinorOnly({ limit, boundary }: Term): boolean {
  return limit !== undefined && coreOf(limit)[0] !== coreOf(boundary)[0]
}

function quote(text: string): string {
  return JSON.stringify(text.slice(0, 80))
}

function invalid(text: string, reason: string): MirrorError<'CONSTRAINT_INVALID'> {
  const input = text.slice(0, 80)
  return new MirrorError('CONSTRAINT_INVALID', `not a version constraint: ${JSON.stringify(input)}: ${reason}`, {
    input,
    reason,
  })
}
