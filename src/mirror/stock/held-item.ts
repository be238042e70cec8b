import type { Sha256 } from '../../protocol/package-hash.ts'
import type { ModuleRecord } from '../module-record.ts'
import type { ArchiveRecord } from '../release-record.ts'
import type { ItemKind } from './item-name.ts'

/** A package or a version of a module that is held: as much as is kept in memory of each. */
export interface HeldItem {
  /** See `item-name.ts`. */
  readonly name: string
  readonly kind: ItemKind
  /** The blob that clients get. */
  readonly digest: Sha256
  /** Of that blob, in bytes. */
  readonly size: number
  /** Milliseconds since 1970. */
  readonly cachedAt: number
  /** Modules that follow a branch: the blobs of before, newest first. */
  readonly earlier?: readonly Sha256[]
}

/** The item of a package's record. */
export function packageItem(name: string, { digest, size, cachedAt }: ArchiveRecord): HeldItem {
  return { name, kind: 'package', digest, size, cachedAt: Date.parse(cachedAt) }
}

/** The item of a module's record. */
export function moduleItem(name: string, { state: { digest, size, cachedAt }, earlier }: ModuleRecord): HeldItem {
  const item = { name, kind: 'module', digest, size, cachedAt: Date.parse(cachedAt) } as const
  return earlier.length === 0 ? item : { ...item, earlier: earlier.map((state) => state.digest) }
}

/** The blobs that an item keeps, each once. */
export function blobsOf({ digest, earlier = [] }: HeldItem): Set<Sha256> {
  return new Set([digest, ...earlier])
}

/** True if both say the same. */
export function isSameItem(a: HeldItem, b: HeldItem): boolean {
  return (
    a.name === b.name &&
    a.digest === b.digest &&
    a.size === b.size &&
    a.cachedAt === b.cachedAt &&
    String(a.earlier) === String(b.earlier)
  )
}
