import * as openpgp from 'openpgp'

/** What kind of signing key to make. Without options: an Ed25519 key, one year old, that never expires. */
export interface OriginKeyOptions {
  /** First user id; default `Acme Providers <providers@acme.example>`. */
  readonly userId?: string
  /** When the key came into being; default one year ago. */
  readonly createdAt?: Date
  /** When it stops being valid; default never. */
  readonly expiresAt?: Date
  /** Shorthand: created two years ago, expired one year ago, signs the day after it was made. */
  readonly expired?: boolean
  /** The listed public key carries a revocation, made now. The key still signs. */
  readonly revoked?: boolean
  /** `ed25519` (default; the form that the real clients read), the rare `secp256k1`, or the weak `rsa1024`. */
  readonly algorithm?: 'ed25519' | 'secp256k1' | 'rsa1024'
}

/** An OpenPGP key that an origin signs SHA256SUMS with. */
export interface OriginKey {
  /** Long id, 16 upper-case hexadecimal digits. */
  readonly keyId: string
  /** Lower-case hexadecimal. */
  readonly fingerprint: string
  /** The public key as `signing_keys.gpg_public_keys[].ascii_armor` gives it. */
  readonly asciiArmor: string
  /** A detached binary signature, as if made `at` that time; default now, or within the validity of an expired key. */
  sign(data: Uint8Array, at?: Date): Promise<Buffer>
}

const DAY_MS = 86_400_000
const YEAR_MS = 365 * DAY_MS

/** Makes a key. Takes a few milliseconds for Ed25519. */
export async function createOriginKey(options: OriginKeyOptions = {}): Promise<OriginKey> {
  const now = wholeSeconds(Date.now())
  const createdAt = options.createdAt ?? new Date(now - (options.expired ? 2 * YEAR_MS : YEAR_MS))
  const expiresAt = options.expiresAt ?? (options.expired ? new Date(now - YEAR_MS) : undefined)
  const { privateKey, publicKey, revocationCertificate } = await openpgp.generateKey({
    ...algorithm(options.algorithm ?? 'ed25519'),
    userIDs: parseUserId(options.userId ?? 'Acme Providers <providers@acme.example>'),
    date: createdAt,
    ...(expiresAt === undefined ? {} : { keyExpirationTime: (expiresAt.getTime() - createdAt.getTime()) / 1000 }),
    format: 'object',
  })
  const listed = options.revoked
    ? (await openpgp.revokeKey({ key: publicKey, revocationCertificate, format: 'object' })).publicKey
    : publicKey
  const defaultTime = expiresAt === undefined ? undefined : new Date(createdAt.getTime() + DAY_MS)

  return {
    keyId: publicKey.getKeyID().toHex().toUpperCase(),
    fingerprint: publicKey.getFingerprint(),
    asciiArmor: listed.armor(),
    async sign(data, at = defaultTime ?? new Date()) {
      const signature = await openpgp.sign({
        message: await openpgp.createMessage({ binary: data }),
        signingKeys: privateKey,
        detached: true,
        format: 'binary',
        date: at,
        config: { minRSABits: 1024, rejectCurves: new Set() },
      })
      return Buffer.from(signature)
    },
  }
}

function algorithm(name: 'ed25519' | 'secp256k1' | 'rsa1024') {
  if (name === 'rsa1024') return { type: 'rsa', rsaBits: 1024, config: { minRSABits: 1024 } } as const
  if (name === 'ed25519') return { type: 'ecc', curve: 'ed25519Legacy' } as const
  return { type: 'ecc', curve: 'secp256k1', config: { rejectCurves: new Set<openpgp.enums.curve>() } } as const
}

function parseUserId(text: string): openpgp.UserID {
  const [, name, email] = /^(.*?) *<(.*)>$/.exec(text) ?? []
  return name === undefined || email === undefined ? { name: text } : { name, email }
}

/** OpenPGP counts in seconds; a time between two of them would lie before the key's own creation. */
function wholeSeconds(timeMs: number): number {
  return Math.floor(timeMs / 1000) * 1000
}
