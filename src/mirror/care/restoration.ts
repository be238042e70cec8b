import { isMirrorError, isNotFound, type MirrorError } from '../../errors.ts'
import type { BlobStore } from '../../store/blob-store.ts'
import type { Archives } from '../archives.ts'
import type { Call } from '../call.ts'
import { createDeadline } from '../deadline.ts'
import type { Modules } from '../modules.ts'
import type { Releases } from '../releases.ts'
import type { ItemRemoval } from '../stock/item-removal.ts'
import type { View } from '../view.ts'
import type { FileUse, HeldFile } from './held-files.ts'

/** How long an origin may take for documents, and a module for everything. */
const DOCUMENTS_MS = 8_000
const MODULE_MS = 15 * 60_000

/** What `Restoration` is made of. */
export interface RestorationParts {
  /** Then no origin is asked. */
  readonly isSealed: boolean
  readonly view: View
  readonly archives: Pick<Archives, 'open'>
  readonly modules: Pick<Modules, 'locate'>
  readonly releases: Pick<Releases, 'refresh'>
  readonly blobs: Pick<BlobStore, 'stat'>
  readonly removal: Pick<ItemRemoval, 'remove'>
}

/** How it ended for a file that was lost. */
export type Restored =
  | { readonly restored: true }
  /** `isGone`: the origin does not give these bytes any more, so the item was removed. */
  | { readonly restored: false; readonly isGone: boolean; readonly reason: string; readonly code?: string }

/** Gets lost files from their origins again, verified as ever. */
export class Restoration {
  readonly #parts: RestorationParts

  constructor(parts: RestorationParts) {
    this.#parts = parts
  }

  /**
   * Fetches a file again. If the origin cannot be asked, the record stays, as there may be another copy of the file
   * somewhere; if it has nothing or something else now, the item is removed: it is not held.
   * @throws MirrorError `STORAGE_*`; the reason of `signal`
   */
  async restore({ digest, use }: HeldFile, signal: AbortSignal): Promise<Restored> {
    const { isSealed, blobs, removal } = this.#parts
    if (isSealed) {
      return { restored: false, isGone: false, reason: 'this mirror is sealed: copy the file from where it is whole' }
    }
    try {
      await this.fetch(use.id, signal)
    } catch (error) {
      signal.throwIfAborted()
      if (!isMirrorError(error)) throw error
      const isGone = saysOtherwise(error) && use.kind === 'item'
      if (isGone) await removal.remove(use.item)
      return { restored: false, isGone, reason: error.message, code: error.code }
    }
    if ((await blobs.stat(digest)) !== undefined) return { restored: true }
    return { restored: false, isGone: false, reason: 'the origin gives something else now' }
  }

  /** Asks for what belongs to an item, or to the evidence of a version. @throws MirrorError as `Archives.open`, `Modules.locate` */
  async fetch(id: FileUse['id'], leaving: AbortSignal): Promise<void> {
    const { view, archives, modules, releases } = this.#parts
    const call = (ms: number): Call => ({ deadline: createDeadline(ms), hops: [], leaving })
    if (!('kind' in id)) {
      const { reason } = await releases.refresh(id.address, id.version, call(DOCUMENTS_MS))
      if (reason !== undefined) throw reason
    } else if (id.kind === 'package') {
      const { value } = await archives.open(view, id, call(DOCUMENTS_MS))
      await value[Symbol.asyncDispose]()
    } else {
      await modules.locate(view, id, call(MODULE_MS))
    }
  }
}

/** The origin's word that these bytes are not to be had, as opposed to no word at all. */
function saysOtherwise(error: MirrorError): boolean {
  return isNotFound(error) || error.is('RELEASE_CHANGED', 'CHECKSUM_MISMATCH')
}
