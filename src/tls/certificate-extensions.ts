import type { X509Certificate } from 'node:crypto'
import type { PermittedNames } from './certificate-names.ts'

/** Object identifiers of extensions (RFC 5280, 4.2.1). */
export const NAME_CONSTRAINTS = '2.5.29.30'
const SUBJECT_ALTERNATIVE_NAME = '2.5.29.17'

/*
 * What node:crypto does not show of a certificate. Read at every start, so without the library that makes certificates:
 * that one takes four times as long to load.
 */

/** The names that an authority may sign for; undefined if it is free to. @throws Error of the ASN.1 library */
export async function readPermittedNames(certificate: X509Certificate): Promise<PermittedNames | undefined> {
  const { AsnConvert, asn1X509 } = await loadAsn1()
  const extension = await findExtension(certificate, NAME_CONSTRAINTS)
  if (extension === undefined) return undefined
  const { permittedSubtrees = [] } = AsnConvert.parse(extension, asn1X509.NameConstraints)
  const bases = [...permittedSubtrees].map(({ base }) => base)
  return {
    domains: bases.flatMap(({ dNSName }) => dNSName ?? []),
    networks: bases.flatMap(({ iPAddress }) => iPAddress ?? []),
  }
}

/** DNS names and IP addresses that a certificate is for, as they stand in it. @throws Error of the ASN.1 library */
export async function readAlternativeNames(certificate: X509Certificate): Promise<string[]> {
  const { AsnConvert, asn1X509 } = await loadAsn1()
  const extension = await findExtension(certificate, SUBJECT_ALTERNATIVE_NAME)
  if (extension === undefined) return []
  const names = AsnConvert.parse(extension, asn1X509.SubjectAlternativeName)
  return [...names].flatMap(({ dNSName, iPAddress }) => dNSName ?? iPAddress ?? [])
}

async function findExtension(certificate: X509Certificate, id: string) {
  const { AsnConvert, asn1X509 } = await loadAsn1()
  const { extensions = [] } = AsnConvert.parse(certificate.raw, asn1X509.Certificate).tbsCertificate
  return [...extensions].find(({ extnID }) => extnID === id)?.extnValue.buffer
}

async function loadAsn1() {
  const { AsnConvert } = await import('@peculiar/asn1-schema')
  return { AsnConvert, asn1X509: await import('@peculiar/asn1-x509') }
}
