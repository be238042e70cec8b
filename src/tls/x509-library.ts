import { type KeyObject, randomBytes } from 'node:crypto'

/** ECDSA with P-256: what every TLS client of the last decade takes, and a key in a millisecond. */
export const KEY_ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

export const DAY_MS = 86_400_000

/** Loads @peculiar/x509, which makes certificates. It takes a tenth of a second, so it is done only to make one. */
export async function loadX509() {
  // Before x509, whose container throws without it.
  await import('reflect-metadata')
  const x509 = await import('@peculiar/x509')
  x509.cryptoProvider.set(crypto)
  return x509
}

/** A new key pair whose private part can be exported. */
export function generateKeys() {
  return crypto.subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify'])
}

/** The private key in the form in which the library signs with it. */
export function importSigningKey(key: KeyObject) {
  return crypto.subtle.importKey('pkcs8', key.export({ type: 'pkcs8', format: 'der' }), KEY_ALGORITHM, false, ['sign'])
}

/** PKCS #8 as PEM. */
export async function exportKeyPem(key: CryptoKey): Promise<string> {
  const { PemConverter } = await loadX509()
  return `${PemConverter.encode(await crypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY')}\n`
}

/** Serial number and validity of a new certificate. It begins a day early, for clients whose clock is behind. */
export function issuingParameters(now: Date, notAfter: Date) {
  const serial = randomBytes(16)
  // A positive integer of full length in DER.
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40
  return {
    serialNumber: serial.toString('hex'),
    notBefore: new Date(now.getTime() - DAY_MS),
    notAfter,
    signingAlgorithm: KEY_ALGORITHM,
  }
}
