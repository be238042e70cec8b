import { createPrivateKey, KeyObject, X509Certificate } from 'node:crypto'
import type * as x509 from '@peculiar/x509'
import { NAME_CONSTRAINTS, readPermittedNames } from './certificate-extensions.ts'
import { isPermitted, type PermittedNames, permitNames } from './certificate-names.ts'
import { DAY_MS, exportKeyPem, generateKeys, issuingParameters, loadX509 } from './x509-library.ts'

const LIFETIME_MS = 3650 * DAY_MS

/** A private certificate authority, ready to sign. */
export interface CertificateAuthority {
  readonly certificate: X509Certificate
  readonly signingKey: KeyObject
  /** Undefined for an authority that may sign for every name. */
  readonly permitted: PermittedNames | undefined
}

/**
 * Makes an authority for ten years that can vouch for the given names and nothing else: its name constraints (RFC 5280,
 * 4.2.1.10) are critical, so a client that trusts it trusts it for no other server, even if the key is stolen.
 * `keyPem` is the key with the certificate after it: one file, so that the two can only change together.
 */
export async function createCertificateAuthority(
  names: readonly string[],
  now: Date,
): Promise<{ authority: CertificateAuthority; keyPem: string }> {
  const { BasicConstraintsExtension, KeyUsageFlags, KeyUsagesExtension, ...library } = await loadX509()
  const keys = await generateKeys()
  const permitted = permitNames(names)
  const parameters = issuingParameters(now, new Date(now.getTime() + LIFETIME_MS))
  const certificate = await library.X509CertificateGenerator.createSelfSigned({
    ...parameters,
    // No two authorities share a name: clients that trust the old and the new one tell them apart.
    name: `CN=Terramirror private CA ${parameters.serialNumber.slice(-8)}`,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await library.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await createNameConstraints(permitted),
    ],
  })
  const authority = {
    certificate: new X509Certificate(certificate.toString('pem')),
    signingKey: KeyObject.from(keys.privateKey),
    permitted,
  }
  return { authority, keyPem: `${await exportKeyPem(keys.privateKey)}${authority.certificate}` }
}

/**
 * Reads an authority from its key and its certificate, both PEM.
 * @throws Error of the library, or one that says that the two do not belong together
 */
export async function parseCertificateAuthority(keyPem: string, pem: string): Promise<CertificateAuthority> {
  const signingKey = createPrivateKey(keyPem)
  const certificate = new X509Certificate(pem)
  if (!certificate.checkPrivateKey(signingKey)) throw new Error('the key does not belong to the certificate')
  return { certificate, signingKey, permitted: await readPermittedNames(certificate) }
}

/** True if the authority may sign for the name. */
export function mayIssueFor(authority: CertificateAuthority, name: string): boolean {
  return authority.permitted === undefined || isPermitted(name, authority.permitted)
}

async function createNameConstraints({ domains, networks }: PermittedNames): Promise<x509.Extension> {
  const { Extension } = await loadX509()
  const { AsnConvert } = await import('@peculiar/asn1-schema')
  const { GeneralName, GeneralSubtree, GeneralSubtrees, NameConstraints } = await import('@peculiar/asn1-x509')
  const bases = [
    ...domains.map((dNSName) => new GeneralName({ dNSName })),
    // Written with a mask the library encodes an address and its mask, as constraints want it.
    ...networks.map((iPAddress) => new GeneralName({ iPAddress })),
  ]
  const permittedSubtrees = new GeneralSubtrees(bases.map((base) => new GeneralSubtree({ base })))
  return new Extension(NAME_CONSTRAINTS, true, AsnConvert.serialize(new NameConstraints({ permittedSubtrees })))
}
