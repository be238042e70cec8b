import { z } from 'zod'
import { type PackageHash, parsePackageHash, parseSha256, type Sha256 } from '../protocol/package-hash.ts'
import { parseVersion, type Version } from '../protocol/version.ts'

/*
 * Values of the protocol as durable records hold them: text on disk, parsed when it is read.
 */

/** A digest of ours, branded. */
export const sha256 = z.string().transform((text, context): Sha256 => {
  const digest = parseSha256(text)
  if (digest !== undefined) return digest
  context.addIssue({ code: 'custom', message: 'not a SHA-256 digest' })
  return z.NEVER
})

/** `h1:` or `zh:`. */
export const packageHash = z.string().transform((text, context): PackageHash => {
  const hash = parsePackageHash(text)
  if (hash !== undefined) return hash
  context.addIssue({ code: 'custom', message: 'not a package hash' })
  return z.NEVER
})

/** A canonical version. */
export const version = z.string().transform((text, context): Version => {
  const parsed = parseVersion(text)
  if (parsed !== undefined) return parsed
  context.addIssue({ code: 'custom', message: 'not a version' })
  return z.NEVER
})
