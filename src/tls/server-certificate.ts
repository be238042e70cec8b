import { createPrivateKey, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import type { CertificateAuthority } from './certificate-authority.ts'
import { readAlternativeNames } from './certificate-extensions.ts'
import { canonicalName } from './certificate-names.ts'
import { DAY_MS, exportKeyPem, generateKeys, importSigningKey, issuingParameters, loadX509 } from './x509-library.ts'

/** The longest that clients of the Web PKI take. */
const LIFETIME_MS = 397 * DAY_MS
/** A certificate with less than this left is replaced. */
export const RENEWAL_MS = 30 * DAY_MS

/** A certificate and its key, both PEM. */
export interface KeyPair {
  readonly certificate: string
  readonly key: string
}

/** Issues a server certificate for DNS names, `*.domain` and IP addresses. It ends with its authority at the latest. */
export async function issueServerCertificate(
  authority: CertificateAuthority,
  names: readonly string[],
  now: Date,
): Promise<KeyPair> {
  const library = await loadX509()
  const keys = await generateKeys()
  const signingKey = await importSigningKey(authority.signingKey)
  const issuer = new library.X509Certificate(authority.certificate.raw)
  const end = Math.min(now.getTime() + LIFETIME_MS, issuer.notAfter.getTime())
  const certificate = await library.X509CertificateGenerator.create({
    ...issuingParameters(now, new Date(end)),
    // Not a host name: clients look at the alternative names alone.
    subject: 'CN=Terramirror server',
    issuer: issuer.subject,
    publicKey: keys.publicKey,
    signingKey,
    extensions: [
      new library.BasicConstraintsExtension(false, undefined, true),
      new library.KeyUsagesExtension(library.KeyUsageFlags.digitalSignature, true),
      new library.ExtendedKeyUsageExtension([library.ExtendedKeyUsage.serverAuth]),
      new library.SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) === 0 ? ('dns' as const) : ('ip' as const), value })),
      ),
      await library.AuthorityKeyIdentifierExtension.create(issuer, false),
      await library.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { certificate: `${certificate.toString('pem')}\n`, key: await exportKeyPem(keys.privateKey) }
}

/** What a server certificate is held against. */
export interface Requirements {
  readonly authority: CertificateAuthority
  readonly names: readonly string[]
  readonly now: Date
}

/** Why a new server certificate is needed, in words for the log; undefined if the held one serves on. */
export async function findRenewalReason(held: Partial<KeyPair>, required: Requirements): Promise<string | undefined> {
  if (held.certificate === undefined || held.key === undefined) return 'there is none'
  try {
    return await compare(new X509Certificate(held.certificate), held.key, required)
  } catch {
    return 'the old one cannot be read'
  }
}

async function compare(
  certificate: X509Certificate,
  key: string,
  { authority, names, now }: Requirements,
): Promise<string | undefined> {
  const { certificate: issuer } = authority
  if (!certificate.checkPrivateKey(createPrivateKey(key))) return 'its key does not belong to it'
  if (!certificate.checkIssued(issuer) || !certificate.verify(issuer.publicKey)) return 'the authority is a new one'
  if (Date.parse(certificate.validFrom) > now.getTime()) return 'the old one is not valid yet'
  if (Date.parse(certificate.validTo) - now.getTime() < RENEWAL_MS) return 'the old one is about to expire'
  const held = (await readAlternativeNames(certificate)).map(canonicalName).sort()
  if (held.join() !== [...names].sort().join()) return 'the names have changed'
  return undefined
}
