import type { Config } from 'openpgp'

/** The library with the settings under which we judge keys and signatures. */
export interface OpenPgp {
  readonly openpgp: typeof import('openpgp')
  /**
   * Always passed, and always whole: the methods of a key do not merge a partial configuration with the defaults but
   * swallow the error that follows, and then call a revoked key good.
   */
  readonly config: Config
}

let loading: Promise<OpenPgp> | undefined

/**
 * Loads OpenPGP.js at first use, since it takes 50 ms. The settings accept what the real clients accept: DSA, RSA from
 * 1024 bits, every curve, SHA-1 over documents (all reported as weak by the caller), and keys whose self-signature was
 * renewed after they signed. MD5 and RIPEMD stay refused.
 */
export function loadOpenPgp(): Promise<OpenPgp> {
  loading ??= import('openpgp').then((openpgp) => ({ openpgp, config: clientLikeConfig(openpgp) }))
  return loading
}

function clientLikeConfig({ config, enums }: typeof import('openpgp')): Config {
  return {
    ...config,
    rejectPublicKeyAlgorithms: new Set([enums.publicKey.elgamal]),
    // One less than 1024: the top bit of a modulus may be clear.
    minRSABits: 1023,
    rejectCurves: new Set(),
    allowMissingKeyFlags: true,
    rejectMessageHashAlgorithms: new Set([enums.hash.md5, enums.hash.ripemd]),
    // A renewed key has a self-signature younger than its older signatures. We check the times ourselves.
    allowInsecureVerificationWithReformattedKeys: true,
  }
}
