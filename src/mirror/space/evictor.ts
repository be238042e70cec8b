import type { Log } from '../../log.ts'
import type { BlobLeases } from '../../store/blob-leases.ts'
import { ConcurrencyLimit } from '../../store/concurrency-limit.ts'
import type { SpaceObserver } from '../observer.ts'
import type { PinnedSets } from '../pins/pinned-sets.ts'
import { blobsOf, type HeldItem } from '../stock/held-item.ts'
import type { Inventory } from '../stock/inventory.ts'
import type { ItemRemoval } from '../stock/item-removal.ts'
import { type Candidate, type Survey, survey } from './eviction-order.ts'
import type { OrphanSweep } from './orphan-sweep.ts'
import type { Eviction } from './space-ledger.ts'

/** Orphans are looked for at the first need, and then so often. */
const SWEEP_EVERY_MS = 6 * 3_600_000
/** A survey that found nothing is not made again before so many times its own duration have passed. */
const REST_FACTOR = 10

/** When items were used last. Milliseconds since 1970. */
export interface UsageTimes {
  of(name: string): { readonly lastUsedAt: number | undefined }
}

/** What an `Evictor` is made of. */
export interface EvictorParts {
  readonly inventory: Pick<Inventory, 'all' | 'ownersOf' | 'isComplete' | 'whenReconciled' | 'claims'>
  readonly usage: UsageTimes
  readonly pins: Pick<PinnedSets, 'isPinned'>
  readonly removal: Pick<ItemRemoval, 'remove'>
  readonly orphans: Pick<OrphanSweep, 'run'>
  readonly leases: BlobLeases
  readonly observer: Pick<SpaceObserver, 'evicted'>
  readonly shutdown: AbortSignal
  readonly log: Log
}

/**
 * Chooses what goes when space is short: in the background, first what nobody names; then what was not used for the
 * longest time. Never what a set of pins holds, what somebody reads, or what is on its way in. Evidence and the pins of
 * releases stay: what comes again must be what it was.
 */
export class Evictor {
  readonly #parts: EvictorParts
  readonly #turn = new ConcurrencyLimit(1)
  #survey: Survey = { candidates: [], busy: false, pinned: 0 }
  #restUntil = Number.NEGATIVE_INFINITY
  #sweptAt = Number.NEGATIVE_INFINITY
  #isReconciled = false

  constructor(parts: EvictorParts) {
    this.#parts = parts
    const { inventory, shutdown } = parts
    inventory.whenReconciled(shutdown).then(
      () => {
        this.#isReconciled = true
      },
      () => undefined,
    )
  }

  /** Takes one archive away, or all orphans. What cannot be removed is told to the log. */
  async evict({ urgent }: { urgent: boolean }): Promise<Eviction> {
    const swept = urgent ? 0 : await this.#sweep()
    if (swept > 0) return { freed: swept, busy: this.#survey.busy, pinned: this.#survey.pinned }
    return await this.#turn.run(() => this.#evictNext())
  }

  async #sweep(): Promise<number> {
    const { orphans, shutdown, log } = this.#parts
    if (!this.#isReconciled || performance.now() - this.#sweptAt < SWEEP_EVERY_MS) return 0
    this.#sweptAt = performance.now()
    try {
      return await orphans.run(shutdown)
    } catch (error) {
      if (!shutdown.aborted) log.warn({ err: error }, 'could not look for files that nobody names')
      return 0
    }
  }

  async #evictNext(): Promise<Eviction> {
    // Who would choose now might choose what was used last.
    if (!this.#parts.inventory.isComplete) return { freed: 0, busy: true, pinned: 0 }
    let freed = await this.#evictFirst()
    if (freed === 0 && performance.now() >= this.#restUntil) {
      await this.#look()
      freed = await this.#evictFirst()
    }
    const { busy, pinned } = this.#survey
    return { freed, busy, pinned }
  }

  async #look(): Promise<void> {
    const { inventory, usage, pins } = this.#parts
    const began = performance.now()
    this.#survey = await survey(inventory.all(), {
      ownersOf: (item) => inventory.ownersOf(item.digest),
      lastUsed: (item) => usage.of(item.name).lastUsedAt ?? item.cachedAt,
      isPinned: (item) => pins.isPinned(item.name),
      isBusy: (item) => this.#isBusy(item),
    })
    const took = performance.now() - began
    if (this.#survey.candidates.length === 0) this.#restUntil = performance.now() + REST_FACTOR * took
  }

  /** Evicts the first candidate that still is one. */
  async #evictFirst(): Promise<number> {
    const { candidates } = this.#survey
    for (let candidate = candidates.shift(); candidate !== undefined; candidate = candidates.shift()) {
      const freed = await this.#remove(candidate)
      if (freed > 0) return freed
    }
    return 0
  }

  async #remove({ digest, usedAt }: Candidate): Promise<number> {
    const { inventory, usage, pins, leases, removal, observer, log } = this.#parts
    const owners = inventory.ownersOf(digest)
    const isUsedSince = owners.some(({ name, cachedAt }) => (usage.of(name).lastUsedAt ?? cachedAt) > usedAt)
    if (isUsedSince || owners.some((item) => pins.isPinned(item.name) || this.#isBusy(item))) return 0
    using claims = new DisposableStack()
    for (const blob of new Set(owners.flatMap((item) => [...blobsOf(item)]))) {
      const claim = leases.claim(blob)
      if (claim === undefined) return 0
      claims.use(claim)
    }
    let freed = 0
    try {
      for (const item of owners) freed += await removal.remove(item)
    } catch (error) {
      log.warn({ items: owners.map(({ name }) => name), err: error }, 'could not evict')
    }
    if (freed === 0) return 0
    observer.evicted({ reason: 'maxSize', bytes: freed })
    const items = owners.map(({ name }) => name)
    log.info({ items, bytes: freed, usedAt: new Date(usedAt).toISOString() }, 'evicted to make space')
    return freed
  }

  #isBusy(item: HeldItem): boolean {
    const { leases, inventory } = this.#parts
    return [...blobsOf(item)].some((digest) => leases.isLeased(digest) || inventory.claims.isClaimed(digest))
  }
}
