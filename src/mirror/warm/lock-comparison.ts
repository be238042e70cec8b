import { type PackageHash, type Sha256, zipHash } from '../../protocol/package-hash.ts'
import type { Refusal } from './outcomes.ts'

/** Hashes that a lock file holds for one version of a provider, as written. */
export type LockedHashes = readonly string[]

/** How many hashes a message shows; a provider for many platforms is locked with dozens. */
const MAX_SHOWN = 3

/**
 * Why an archive is not what one of the locks holds; undefined if a client would take it with every one of them. As
 * Terraform decides: one hash in common is enough, and a lock without hashes takes everything. `hashAll` gives all hashes
 * of the archive; it is asked only if its digest alone cannot tell. Without it, what only an `h1:` could tell is no
 * conflict.
 * @throws what `hashAll` throws
 */
export async function findLockConflict(
  locks: readonly LockedHashes[],
  digest: Sha256,
  hashAll?: () => Promise<readonly PackageHash[]>,
): Promise<Refusal | undefined> {
  const zip = [zipHash(digest)]
  const doubtful = locks.filter((locked) => !agrees(locked, zip))
  if (doubtful.length === 0) return undefined
  const hashes = (await hashAll?.()) ?? zip
  const conflict = doubtful.find((locked) => !agrees(locked, hashes) && (hashAll !== undefined || !hasH1(locked)))
  return conflict && describeConflict(conflict, hashes)
}

function agrees(locked: LockedHashes, hashes: readonly PackageHash[]): boolean {
  const known = understood(locked)
  return known.length === 0 || hashes.some((hash) => known.includes(hash))
}

/** Both sides, for people. */
function describeConflict(locked: LockedHashes, hashes: readonly PackageHash[]): Refusal {
  const known = understood(locked)
  const more = known.length > MAX_SHOWN ? ` and ${known.length - MAX_SHOWN} more` : ''
  const reason = `the lock file has ${known.slice(0, MAX_SHOWN).join(', ')}${more}; the archive has ${hashes.join(', ')}${adviceFor(known)}`
  return { outcome: 'failed', reason, code: 'CHECKSUM_MISMATCH' }
}

/** Through a network mirror, `init` writes `h1:` for its own platform alone: then nothing is wrong with the archive. */
function adviceFor(known: readonly string[]): string {
  if (known.some((hash) => hash.startsWith('zh:'))) return ''
  return '; a lock file with h1: alone may lack this platform: add it with "terraform providers lock -platform=…" and warm again'
}

/** Schemes that nobody knows yet are passed over, as clients do; what is malformed is a hash that nothing has. */
function understood(locked: LockedHashes): string[] {
  return locked.filter((hash) => hash.startsWith('zh:') || hash.startsWith('h1:'))
}

function hasH1(locked: LockedHashes): boolean {
  return locked.some((hash) => hash.startsWith('h1:'))
}
