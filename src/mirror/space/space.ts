import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../log.ts'
import { BlobLeases } from '../../store/blob-leases.ts'
import type { BlobStore } from '../../store/blob-store.ts'
import type { SpaceFigures } from '../stock/statistics.ts'
import { CountedBlobStore } from './counted-blob-store.ts'
import { SpaceLedger } from './space-ledger.ts'
import type { SpaceLimits } from './space-limits.ts'

/** A part of what is stored is counted anew so often: all of it in 45 minutes. The disk is looked at as often. */
const LOOK_MS = 10_000

/** What `Space` is made of. */
export interface SpaceParts {
  /** The blobs as they are on the disk. */
  readonly blobs: BlobStore
  readonly limits: SpaceLimits
  /** As in `SpaceLedgerParts`. */
  readonly diskFree: () => Promise<number>
  readonly shutdown: AbortSignal
  readonly log: Log
  /** Called after every change of what is stored. */
  readonly onChange: () => void
  /** As in `SpaceLedgerParts`. */
  readonly onRefused?: () => void
}

/** The disk space of one mirror: what is used of it, who needs what just now, and the limits. */
export class Space {
  readonly ledger: SpaceLedger
  readonly blobs: CountedBlobStore
  readonly leases = new BlobLeases()
  readonly #parts: SpaceParts

  constructor(parts: SpaceParts) {
    this.#parts = parts
    const { blobs, log, onChange } = parts
    const onFailure = (error: unknown): void => log.error({ err: error }, 'could not make space')
    this.ledger = new SpaceLedger({ ...parts, onFailure })
    this.blobs = new CountedBlobStore(blobs, this.ledger, onChange)
    this.leases.onReleased = () => this.ledger.poke()
  }

  /** How full it is now. @throws MirrorError `STORAGE_FAILED` */
  async figures(): Promise<Omit<SpaceFigures, 'evictions'>> {
    const { used, reserved, limits } = this.ledger
    return {
      used: used ?? null,
      reserved,
      maxSize: limits.maxSize ?? null,
      free: await this.ledger.diskFree(),
      minFree: limits.minFree ?? null,
    }
  }

  /** Adds up what is stored, then looks for what others do to the disk and the files, until the process stops. Never rejects. */
  async watch(): Promise<void> {
    const { shutdown } = this.#parts
    const { stored } = this.blobs
    do {
      await this.#attempt(() => (stored.isMeasured ? stored.remeasure() : stored.measure(shutdown)))
      await this.#attempt(() => this.ledger.look())
    } while (await sleep(LOOK_MS, true, { signal: shutdown, ref: false }).catch(() => false))
  }

  async #attempt(look: () => Promise<void>): Promise<void> {
    try {
      await look()
    } catch (error) {
      this.#parts.log.warn({ err: error }, 'could not look at the disk; trying again shortly')
    }
  }
}
