import 'reflect-metadata'
import { randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import * as x509 from '@peculiar/x509'

/** A certificate authority that lives as long as a test. */
export interface TestAuthority {
  readonly caPem: string
  /**
   * A server certificate for these DNS names and IP addresses; `cert` and `key` are PEM for `tls.createServer`. Valid
   * since yesterday, for a quarter of a year, unless `validity` says otherwise.
   */
  issue(names: string[], validity?: Validity): Promise<{ cert: string; key: string }>
}

/** When a certificate counts. */
export interface Validity {
  readonly notBefore: Date
  readonly notAfter: Date
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const dayMs = 86_400_000

/** Makes a fresh certificate authority that nobody trusts yet. */
export async function createTestAuthority(): Promise<TestAuthority> {
  x509.cryptoProvider.set(crypto)
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    ...serialAndAlgorithm(),
    ...nowValid(),
    name: `CN=Test authority ${randomBytes(4).toString('hex')}`,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { caPem: ca.toString('pem'), issue: (...wanted) => issue(ca, keys.privateKey, ...wanted) }
}

async function issue(
  ca: x509.X509Certificate,
  signingKey: CryptoKey,
  names: string[],
  validity: Validity = nowValid(),
) {
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const cert = await x509.X509CertificateGenerator.create({
    ...serialAndAlgorithm(),
    ...validity,
    subject: `CN=${names[0]}`,
    issuer: ca.subject,
    publicKey: keys.publicKey,
    signingKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) === 0 ? ('dns' as const) : ('ip' as const), value })),
      ),
      await x509.AuthorityKeyIdentifierExtension.create(ca, false),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  const key = x509.PemConverter.encode(await crypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY')
  return { cert: cert.toString('pem'), key }
}

function nowValid(): Validity {
  return { notBefore: new Date(Date.now() - dayMs), notAfter: new Date(Date.now() + 90 * dayMs) }
}

function serialAndAlgorithm() {
  const serial = randomBytes(16)
  // A positive, non-zero integer in every encoding.
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40
  return {
    serialNumber: serial.toString('hex'),
    signingAlgorithm: algorithm,
  }
}
