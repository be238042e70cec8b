import { isJsonObject, type JsonObject, type JsonValue } from '../protocol/json.ts'
import { type PackageHash, parsePackageHash, type Sha256, zipHash } from '../protocol/package-hash.ts'

/** What is established about one platform's archive. */
export interface KnownPackage {
  readonly digest: Sha256
  /** In bytes; undefined while the archive is not held. */
  readonly size: number | undefined
  /** As computed from the archive; undefined or empty while that is not done, or not possible. */
  readonly h1: readonly PackageHash[] | undefined
}

/** What the `packages` object of a download document is held against. */
export interface PackagesTrial {
  /** The platform that the document is for, as `OS_ARCH`. */
  readonly platform: string
  /** By `OS_ARCH`. */
  readonly known: ReadonlyMap<string, KnownPackage>
  /** The digest of every file that the accepted SHA256SUMS name. */
  readonly files: ReadonlySet<Sha256>
  /** Whether claims that nothing contradicts may pass, or only what is proven. */
  readonly unproven: 'pass' | 'refuse'
}

/**
 * Why OpenTofu's `packages` object must not be passed on, or undefined if it may (design, rule 11; client-contract C12).
 * Clients write all of it into their lock files, and refuse a document in which it is not whole: so it passes whole or
 * not at all. It must speak of the document's own platform, in a form that clients read, and nothing in it may
 * contradict what is known.
 */
export function findFault(packages: JsonValue, trial: PackagesTrial): string | undefined {
  if (!isJsonObject(packages)) return 'it is not an object'
  if (!Object.hasOwn(packages, trial.platform)) return `it lacks ${trial.platform}`
  for (const [platform, entry] of Object.entries(packages)) {
    const fault = isJsonObject(entry) ? findEntryFault(entry, platform, trial) : 'not an object'
    if (fault !== undefined) return `${platform.slice(0, 80)}: ${fault}`
  }
  return undefined
}

function findEntryFault(entry: JsonObject, platform: string, trial: PackagesTrial): string | undefined {
  const { hashes, package_size: size } = entry
  const known = trial.known.get(platform)
  if (!Array.isArray(hashes) || !hashes.every((hash) => typeof hash === 'string'))
    return 'its hashes are no list of text'
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size <= 0) return 'it has no size'
  if (known?.size !== undefined && known.size !== size) return `its size is ${size}, but the archive has ${known.size}`
  if (known !== undefined && !hashes.includes(zipHash(known.digest))) return `it lacks ${zipHash(known.digest)}`
  const foreign = hashes.find((hash) => isContradicted(hash, known, trial.files))
  if (foreign !== undefined) return `${foreign.slice(0, 80)} is not what is published`
  if (trial.unproven === 'refuse' && !isProven(hashes, known)) return 'not all of it is proven'
  return undefined
}

/** Schemes that nobody knows contradict nothing. */
function isContradicted(text: string, known: KnownPackage | undefined, files: ReadonlySet<Sha256>): boolean {
  const hash = parsePackageHash(text)
  if (text.startsWith('zh:')) {
    if (hash === undefined || hash !== text) return true
    return known === undefined ? !files.has(hash.slice('zh:'.length) as Sha256) : hash !== zipHash(known.digest)
  }
  if (!text.startsWith('h1:') || known?.h1 === undefined || known.h1.length === 0) return false
  return hash === undefined || !known.h1.includes(hash)
}

function isProven(hashes: readonly string[], known: KnownPackage | undefined): boolean {
  if (known?.size === undefined || known.h1 === undefined) return false
  const proven: readonly string[] = [zipHash(known.digest), ...known.h1]
  return hashes.every((hash) => proven.includes(hash))
}
