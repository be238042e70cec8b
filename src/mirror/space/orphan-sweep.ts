import type { Log } from '../../log.ts'
import { assertSha256, type Sha256 } from '../../protocol/package-hash.ts'
import type { BlobLeases } from '../../store/blob-leases.ts'
import type { BlobStore } from '../../store/blob-store.ts'
import type { SpaceObserver } from '../observer.ts'
import type { Inventory } from '../stock/inventory.ts'

/** What `OrphanSweep` is made of. */
export interface OrphanSweepParts {
  readonly inventory: Pick<Inventory, 'needs' | 'claims' | 'whenReconciled'>
  readonly blobs: BlobStore
  readonly leases: BlobLeases
  readonly observer: Pick<SpaceObserver, 'evicted'>
  readonly log: Log
}

/**
 * Removes blobs that nobody names: what a crash left between a blob and its record, and what newer states of a module
 * or of a release superseded. A blob that is on its way to its record is claimed, and stays.
 */
export class OrphanSweep {
  readonly #parts: OrphanSweepParts

  constructor(parts: OrphanSweepParts) {
    this.#parts = parts
  }

  /**
   * Looks at every blob, once all records are known; returns the bytes that were freed.
   * @throws MirrorError `STORAGE_FAILED`; the reason of the signal
   */
  async run(signal: AbortSignal): Promise<number> {
    const { inventory, blobs, observer, log } = this.#parts
    await inventory.whenReconciled(signal)
    let files = 0
    let bytes = 0
    for await (const { digest, diskBytes } of blobs.list()) {
      signal.throwIfAborted()
      if (!(await this.#remove(assertSha256(digest)))) continue
      files += 1
      bytes += diskBytes
      observer.evicted({ reason: 'orphan', bytes: diskBytes })
    }
    if (files > 0) log.info({ files, bytes }, 'removed files that nobody names')
    return bytes
  }

  async #remove(digest: Sha256): Promise<boolean> {
    const { inventory, blobs, leases } = this.#parts
    if (inventory.needs(digest) || inventory.claims.isClaimed(digest)) return false
    using claim = leases.claim(digest)
    if (claim === undefined) return false
    const removed = await inventory.claims.removing(digest, async () => {
      if (inventory.needs(digest)) return false
      await blobs.delete(digest)
      return true
    })
    return removed === true
  }
}
