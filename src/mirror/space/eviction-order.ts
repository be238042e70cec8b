import { setImmediate } from 'node:timers/promises'
import type { Sha256 } from '../../protocol/package-hash.ts'
import type { HeldItem } from '../stock/held-item.ts'

/** A blob that may be evicted. */
export interface Candidate {
  readonly digest: Sha256
  /** When the last of the items that keep it was used. Milliseconds since 1970. */
  readonly usedAt: number
}

/** What of the stock may be evicted, and what not. Bytes. */
export interface Survey {
  /** The least recently used first; not all of them. */
  readonly candidates: Candidate[]
  /** Something is in use. */
  readonly busy: boolean
  readonly pinned: number
}

/** How a survey looks at a blob and the items that keep it. */
export interface Judge {
  /** All that keep the blob of this one. */
  ownersOf(item: HeldItem): readonly HeldItem[]
  lastUsed(item: HeldItem): number
  isPinned(item: HeldItem): boolean
  isBusy(item: HeldItem): boolean
}

/** So many are found at a time: what is evicted next is known for a while. */
const MAX_CANDIDATES = 512
/** Others work after so many items. */
const ITEMS_AT_ONCE = 1_000

/**
 * Finds the blobs that were not used for the longest time. A blob that several items keep counts once, is as young as
 * the youngest of them, and pinned if one is.
 */
export async function survey(items: readonly HeldItem[], judge: Judge): Promise<Survey> {
  let candidates: Candidate[] = []
  let busy = false
  let pinned = 0
  for (const [index, item] of items.entries()) {
    if (index % ITEMS_AT_ONCE === ITEMS_AT_ONCE - 1) await setImmediate()
    const { digest, size } = item
    const owners = judge.ownersOf(item)
    // Once for each blob; what is not held any more has none.
    if (owners[0]?.name !== item.name) continue
    if (owners.some((owner) => judge.isPinned(owner))) {
      pinned += size
    } else if (owners.some((owner) => judge.isBusy(owner))) {
      busy = true
    } else {
      candidates.push({ digest, usedAt: Math.max(...owners.map((owner) => judge.lastUsed(owner))) })
      if (candidates.length >= 2 * MAX_CANDIDATES) candidates = oldest(candidates)
    }
  }
  return { candidates: oldest(candidates), busy, pinned }
}

function oldest(candidates: Candidate[]): Candidate[] {
  return candidates.sort((a, b) => a.usedAt - b.usedAt).slice(0, MAX_CANDIDATES)
}
