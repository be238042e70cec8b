import type { Sha256 } from '../../protocol/package-hash.ts'
import type { HeldItem } from './held-item.ts'
import type { ItemKind } from './item-name.ts'

/** What the records of one part of the stock say. */
export interface Recorded {
  readonly items: readonly HeldItem[]
  /** Blobs that a release needs. */
  readonly evidence: Iterable<Sha256>
}

/** The records, which alone are true. */
export interface ItemSource {
  readonly kind: ItemKind
  /** Everything that is recorded, in parts, in any order. @throws MirrorError `STORAGE_FAILED` */
  recorded(): AsyncIterable<Recorded>
  /** What is recorded of one item now. @throws MirrorError `STORAGE_FAILED` */
  readItem(name: string): Promise<HeldItem | undefined>
}
