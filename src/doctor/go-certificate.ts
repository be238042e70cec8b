import type { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { readAlternativeNames, readPermittedNames } from '../tls/certificate-extensions.ts'
import { canonicalName, isPermitted } from '../tls/certificate-names.ts'
import type { Finding, FindingsAbout } from './finding.ts'

const SERVER_AUTH = '1.3.6.1.5.5.7.3.1'
const ANY_USAGE = '2.5.29.37.0'
const WEAK_HASH = /sha1|md5/i
const DAY_MS = 86_400_000
const SOON_MS = 14 * DAY_MS
/** Go refuses shorter keys (crypto/rsa, from 1.24 on) and warns of nothing; 2048 is what everybody else asks for. */
const MIN_RSA_BITS = 1024
const WISE_RSA_BITS = 2048
const MAX_RSA_BITS = 8192
const MAX_DEPTH = 8

/** What a certificate chain is held against. */
export interface ChainDemands {
  /** Names and addresses that clients use. */
  readonly names: readonly string[]
  /** What clients trust. */
  readonly roots: readonly X509Certificate[]
  readonly now: Date
  /** What to do so that a name comes into the certificate. */
  readonly nameRemedy: string
  /** What to do so that clients trust the issuer. */
  readonly trustRemedy: string
}

/**
 * What Terraform and OpenTofu would have against a chain as a server sends it, its own certificate first: they verify by
 * Go's rules, which know no common names, complete no chain and take no SHA-1. Empty if they would accept it.
 */
export async function judgeChain(
  chain: readonly X509Certificate[],
  demands: ChainDemands,
  about: FindingsAbout,
): Promise<Finding[]> {
  const [leaf] = chain
  if (leaf === undefined)
    return [about.problem('there is no certificate', 'Name a file with a certificate chain in PEM.')]
  const { path, end } = findPath(chain, demands.roots)
  return [
    ...(await judgeNames(leaf, demands, about)),
    ...judgeUsage(leaf, about),
    ...path.flatMap((certificate) => judgeStrength(certificate, demands.roots, about)),
    ...path.flatMap((certificate) => judgeValidity(certificate, demands.now, about)),
    ...(await judgeConstraints(leaf, path.slice(1), about)),
    ...judgeEnd(end, demands, about),
  ]
}

async function judgeNames(leaf: X509Certificate, { names, nameRemedy }: ChainDemands, about: FindingsAbout) {
  const held = await readAlternativeNames(leaf)
  if (held.length === 0) {
    const common = /^CN=(.*)$/m.exec(leaf.subject)?.[1] ?? ''
    const text = `the certificate has no subject alternative names; Go does not look at its common name (${common})`
    return [about.problem(text, 'Have it issued again with the names as subjectAltName.')]
  }
  const missing = names.filter((name) => !held.some((pattern) => covers(pattern, name)))
  if (missing.length === 0) return []
  return [about.problem(`the certificate is for ${held.join(', ')}, and clients use ${missing.join(', ')}`, nameRemedy)]
}

/** As Go matches: a star is the whole first label and stands for one; addresses match exactly. */
function covers(pattern: string, name: string): boolean {
  const [held, asked] = [canonicalName(pattern), canonicalName(name)]
  if (held === asked) return true
  if (!held.startsWith('*.') || isIP(asked) !== 0) return false
  const dot = asked.indexOf('.')
  return dot > 0 && asked.slice(dot) === held.slice(1)
}

function judgeUsage(leaf: X509Certificate, about: FindingsAbout): Finding[] {
  const usages: readonly string[] | undefined = leaf.keyUsage
  if (usages === undefined || usages.length === 0 || usages.includes(SERVER_AUTH) || usages.includes(ANY_USAGE))
    return []
  const text = `the certificate may not be used for servers (extended key usage ${usages.join(', ')})`
  return [about.problem(text, 'Have it issued again with the extended key usage serverAuth.')]
}

function judgeStrength(
  certificate: X509Certificate,
  roots: readonly X509Certificate[],
  about: FindingsAbout,
): Finding[] {
  const name = nameOf(certificate)
  const findings: Finding[] = []
  // Nobody verifies the signature of what is trusted as it is.
  const isRoot = roots.some(({ raw }) => raw.equals(certificate.raw)) || certificate.checkIssued(certificate)
  const algorithm = certificate.signatureAlgorithm ?? ''
  if (!isRoot && WEAK_HASH.test(algorithm)) {
    findings.push(
      about.problem(`${name} is signed with ${algorithm}, which Go refuses`, 'Have it issued again with SHA-256.'),
    )
  }
  const { asymmetricKeyType, asymmetricKeyDetails } = certificate.publicKey
  const bits = asymmetricKeyType === 'rsa' ? asymmetricKeyDetails?.modulusLength : undefined
  if (bits === undefined) return findings
  const remedy = 'Make a new key: RSA of 2048 bits, or ECDSA P-256.'
  if (bits < MIN_RSA_BITS || bits > MAX_RSA_BITS) {
    findings.push(about.problem(`the RSA key of ${name} has ${bits} bits, which Go refuses`, remedy))
  } else if (bits < WISE_RSA_BITS) {
    findings.push(about.warning(`the RSA key of ${name} has only ${bits} bits`, remedy))
  }
  return findings
}

function judgeValidity(certificate: X509Certificate, now: Date, about: FindingsAbout): Finding[] {
  const { validFromDate: from, validToDate: to } = certificate
  const name = nameOf(certificate)
  if (from > now) {
    const text = `${name} is not valid before ${from.toISOString()}, and the clock here says ${now.toISOString()}`
    return [about.problem(text, 'Compare this machine with a good clock; if it is right, wait or have it issued anew.')]
  }
  if (to < now) {
    return [
      about.problem(`${name} expired on ${to.toISOString()}`, 'Renew it; the files are read again without a restart.'),
    ]
  }
  if (to.getTime() - now.getTime() > SOON_MS) return []
  const days = Math.floor((to.getTime() - now.getTime()) / DAY_MS)
  return [about.warning(`${name} expires in ${days} days, on ${to.toISOString()}`, 'Renew it in time.')]
}

/** Go holds every name of the certificate against the constraints of each authority, not only the one that is used. */
async function judgeConstraints(leaf: X509Certificate, issuers: readonly X509Certificate[], about: FindingsAbout) {
  const findings: Finding[] = []
  const names = await readAlternativeNames(leaf)
  for (const issuer of issuers) {
    const permitted = await readPermittedNames(issuer)
    const refused =
      permitted === undefined
        ? []
        : names.filter((name) => !isPermitted(canonicalName(name).replace(/^\*\./, ''), permitted))
    if (refused.length === 0) continue
    const text = `${nameOf(issuer)} may not sign for ${refused.join(', ')} (its name constraints), so Go refuses the whole certificate`
    findings.push(about.problem(text, 'Have it issued without these names, or by an authority that may sign for them.'))
  }
  return findings
}

/** How a path ends: at something trusted, at a root that is not, or at an issuer that nobody has. */
type PathEnd = { readonly kind: 'trusted' } | { readonly kind: 'untrusted' | 'open'; readonly last: X509Certificate }

function findPath(chain: readonly X509Certificate[], roots: readonly X509Certificate[]) {
  const path: X509Certificate[] = []
  let current = chain[0]
  while (current !== undefined && path.length < MAX_DEPTH) {
    const at: X509Certificate = current
    path.push(at)
    if (roots.some(({ raw }) => raw.equals(at.raw))) return { path, end: { kind: 'trusted' } as PathEnd }
    const root = roots.find((each) => hasIssued(each, at))
    if (root !== undefined) return { path: [...path, root], end: { kind: 'trusted' } as PathEnd }
    if (hasIssued(at, at)) return { path, end: { kind: 'untrusted', last: at } as PathEnd }
    current = chain.find((each) => !path.includes(each) && hasIssued(each, at))
    if (current === undefined) return { path, end: { kind: 'open', last: at } as PathEnd }
  }
  return { path, end: { kind: 'trusted' } as PathEnd }
}

function judgeEnd(end: PathEnd, { trustRemedy }: ChainDemands, about: FindingsAbout): Finding[] {
  if (end.kind === 'trusted') return []
  const issuer = oneLine(end.last.issuer)
  if (end.kind === 'untrusted') {
    return [about.warning(`the authority ${issuer} is not trusted on this machine`, trustRemedy)]
  }
  const text = `the chain is not complete: ${issuer}, who issued ${nameOf(end.last)}, is neither in it nor trusted on this machine`
  const remedy = `If that is an intermediate authority, append its certificate to the file (Go fetches none); if it is a root, clients must be given it. ${trustRemedy}`
  return [about.problem(text, remedy)]
}

function hasIssued(issuer: X509Certificate, certificate: X509Certificate): boolean {
  try {
    return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)
  } catch {
    return false
  }
}

/** Who a certificate is for, as messages name it. */
function nameOf({ subject, subjectAltName }: X509Certificate): string {
  return `the certificate "${oneLine(subject ?? '') || subjectAltName}"`
}

function oneLine(name: string): string {
  return name.replaceAll('\n', ', ')
}
