import 'reflect-metadata'
import { randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import * as x509 from '@peculiar/x509'

const DAY_MS = 86_400_000
const ECDSA = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

/** RSA of so many bits, signing with this hash. */
export function rsa(modulusLength: number, hash: 'SHA-1' | 'SHA-256' = 'SHA-256') {
  return { name: 'RSASSA-PKCS1-v1_5', modulusLength, publicExponent: new Uint8Array([1, 0, 1]), hash } as const
}

/** How a certificate differs from one that every client takes. */
export interface Oddity {
  /** Default `mirror.example.test`; none at all if empty. */
  readonly names?: readonly string[]
  readonly days?: { readonly from: number; readonly to: number }
  readonly usage?: x509.ExtendedKeyUsage
  /** Of its own key. */
  readonly key?: typeof ECDSA | ReturnType<typeof rsa>
  readonly isAuthority?: boolean
}

/** A certificate with its key, both PEM, that can issue others. */
export interface OddCertificate {
  readonly pem: string
  readonly keyPem: string
  issue(oddity: Oddity): Promise<OddCertificate>
}

/** A certificate authority that nobody trusts; `key` is how it signs. */
export async function createOddAuthority(key: Oddity['key'] = ECDSA): Promise<OddCertificate> {
  x509.cryptoProvider.set(crypto)
  return make({ isAuthority: true, key, names: [] }, undefined)
}

interface Issuer {
  readonly certificate: x509.X509Certificate
  readonly privateKey: CryptoKey
  readonly algorithm: NonNullable<Oddity['key']>
}

async function make(oddity: Oddity, issuer: Issuer | undefined): Promise<OddCertificate> {
  const { names = ['mirror.example.test'], days = { from: -1, to: 90 }, key = ECDSA, isAuthority = false } = oddity
  const keys = (await crypto.subtle.generateKey(key, true, ['sign', 'verify'])) as CryptoKeyPair
  const usage = oddity.usage ?? x509.ExtendedKeyUsage.serverAuth
  const subject = `CN=${isAuthority ? `Odd authority ${randomBytes(4).toString('hex')}` : 'mirror.example.test'}`
  const flags = isAuthority ? x509.KeyUsageFlags.keyCertSign : x509.KeyUsageFlags.digitalSignature
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: `40${randomBytes(8).toString('hex')}`,
    subject,
    issuer: issuer?.certificate.subject ?? subject,
    notBefore: new Date(Date.now() + days.from * DAY_MS),
    notAfter: new Date(Date.now() + days.to * DAY_MS),
    publicKey: keys.publicKey,
    signingKey: issuer?.privateKey ?? keys.privateKey,
    signingAlgorithm: issuer?.algorithm ?? key,
    extensions: [
      new x509.BasicConstraintsExtension(isAuthority, undefined, true),
      new x509.KeyUsagesExtension(flags, true),
      ...(isAuthority ? [] : [new x509.ExtendedKeyUsageExtension([usage])]),
      ...(names.length === 0 ? [] : [alternativeNames(names)]),
    ],
  })
  const keyPem = x509.PemConverter.encode(await crypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY')
  const self: Issuer = { certificate, privateKey: keys.privateKey, algorithm: key }
  return { pem: `${certificate.toString('pem')}\n`, keyPem, issue: (next) => make(next, self) }
}

function alternativeNames(names: readonly string[]): x509.Extension {
  return new x509.SubjectAlternativeNameExtension(
    names.map((value) => ({ type: isIP(value) === 0 ? ('dns' as const) : ('ip' as const), value })),
  )
}
