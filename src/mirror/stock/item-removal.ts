import type { Sha256 } from '../../protocol/package-hash.ts'
import type { BlobStore } from '../../store/blob-store.ts'
import type { Catalogue } from '../catalogue.ts'
import type { ModuleCatalogue } from '../module-catalogue.ts'
import { blobsOf, type HeldItem } from './held-item.ts'
import type { Inventory } from './inventory.ts'
import { parseItemName } from './item-name.ts'

/** What `ItemRemoval` is made of. */
export interface ItemRemovalParts {
  readonly catalogue: Catalogue
  readonly modules: ModuleCatalogue
  readonly inventory: Inventory
  readonly blobs: BlobStore
  /** Forgets what is known of a content; called after its blob was removed. */
  readonly forget?: (digest: Sha256) => Promise<void>
}

/** Removes what is held: the record first, so that a crash leaves at worst a blob that nobody names. */
export class ItemRemoval {
  readonly #parts: ItemRemovalParts

  constructor(parts: ItemRemovalParts) {
    this.#parts = parts
  }

  /**
   * Removes an item, and its blobs unless another item or the evidence of a release needs them, or somebody is about to
   * record that it does. Evidence and pin of the version stay. Returns the bytes of the blobs that were removed; readers
   * that have one open read on. While the inventory is not complete, blobs stay, and nobody names them any more.
   * @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED`
   */
  async remove(item: HeldItem): Promise<number> {
    await this.#deleteRecord(item.name)
    let freed = 0
    for (const digest of blobsOf(item)) freed += await this.removeBlob(digest)
    return freed
  }

  /**
   * Removes a blob that a record has named until now, unless something needs it, as in `remove`; returns its bytes.
   * @throws MirrorError `STORAGE_FAILED`
   */
  async removeBlob(digest: Sha256): Promise<number> {
    const { inventory, blobs, forget } = this.#parts
    const removed = await inventory.claims.removing(digest, async () => {
      if (!inventory.isComplete || inventory.needs(digest)) return 0
      const stat = await blobs.stat(digest)
      await blobs.delete(digest)
      await forget?.(digest)
      return stat?.size ?? 0
    })
    return removed ?? 0
  }

  async #deleteRecord(name: string): Promise<void> {
    const { catalogue, modules } = this.#parts
    const id = parseItemName(name)
    if (id?.kind === 'package') await catalogue.deleteArchive(id.address, id.version, id.platform)
    if (id?.kind === 'module') await modules.delete(id.address, id.version)
  }
}
