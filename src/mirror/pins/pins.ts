import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { MirrorError } from '../../errors.ts'
import type { Hostname } from '../../protocol/hostname.ts'
import { namesHost } from '../../protocol/item-address.ts'
import { formatProviderAddress, type ProviderAddress } from '../../protocol/provider-address.ts'
import type { Version } from '../../protocol/version.ts'
import type { HeldItem } from '../stock/held-item.ts'
import { parsePinnedItem } from './pinned-item.ts'
import type { PinnedSet, PinnedSets } from './pinned-sets.ts'

/** So many items are looked at before clients have their turn. */
const ITEMS_AT_ONCE = 5_000

/** What becomes a set: all that its parts name. */
export interface PinWish {
  /** Texts of lock files: each version that they name, for every platform. */
  readonly lockFiles: readonly string[]
  /** As `parsePinnedItem` takes them; an address without a host is one of the default origin. */
  readonly items: readonly string[]
  /** Ids of jobs: all that they brought or found. */
  readonly jobs: readonly string[]
}

/** A set, and what of it is held now. Times are RFC 3339 text. */
export interface PinnedSetWithStock extends PinnedSet {
  /** How many packages and modules; and their bytes. */
  readonly held: number
  readonly bytes: number
}

/** What `Pins` is made of. */
export interface PinsParts {
  readonly sets: PinnedSets
  readonly inventory: { all(): Iterable<Pick<HeldItem, 'name' | 'size'>> }
  readonly jobs: { itemsOf(id: string): Promise<readonly string[]> }
  readonly defaultHost: Hostname
  readonly readLockFile: (
    text: string,
    file: string,
  ) => Promise<readonly { readonly address: ProviderAddress; readonly version: Version }[]>
}

/** The named sets of what eviction and purge leave alone, as operators make and see them. */
export class Pins {
  readonly #parts: PinsParts

  constructor(parts: PinsParts) {
    this.#parts = parts
  }

  /** By name, what comes behind `after`; `next` is the `after` of the following part. */
  async list({
    after,
    limit,
  }: {
    readonly after?: string
    readonly limit: number
  }): Promise<{ items: PinnedSetWithStock[]; next?: string }> {
    const rest = this.#parts.sets.list().filter(({ name }) => after === undefined || name > after)
    const some = rest.slice(0, limit)
    const last = some.at(-1)
    const items = await this.#withStock(some)
    return rest.length > some.length && last !== undefined ? { items, next: last.name } : { items }
  }

  /** @throws MirrorError `ITEM_NOT_FOUND` */
  async get(name: string): Promise<PinnedSetWithStock> {
    const set = this.#parts.sets.get(name)
    if (set === undefined) throw unknownSet(name)
    return await this.#withStockOf(set)
  }

  /**
   * Makes a set, or replaces it whole.
   * @throws MirrorError `REQUEST_INVALID` for what names no item, with every such name, and for a set of nothing;
   *   `CONFIGURATION_FILE_INVALID`, `ITEM_NOT_FOUND` for a job, `STORAGE_*`
   */
  async put(name: string, wish: PinWish): Promise<PinnedSetWithStock> {
    const items = [...readItems(wish.items, this.#parts.defaultHost), ...(await this.#lockedItems(wish.lockFiles))]
    for (const job of wish.jobs) for (const item of await this.#parts.jobs.itemsOf(job)) items.push(item)
    if (items.length === 0) throw invalid(['these lock files, items and jobs name nothing, so there is nothing to pin'])
    return await this.#withStockOf(await this.#parts.sets.put(name, items))
  }

  /** What the set held may be evicted then. @throws MirrorError `ITEM_NOT_FOUND`, `STORAGE_FAILED` */
  async delete(name: string): Promise<void> {
    if (!(await this.#parts.sets.delete(name))) throw unknownSet(name)
  }

  async #lockedItems(texts: readonly string[]): Promise<string[]> {
    const items: string[] = []
    for (const [index, text] of texts.entries()) {
      const locked = await this.#parts.readLockFile(text, `lockFiles[${index}]`)
      items.push(...locked.map(({ address, version }) => `${formatProviderAddress(address)} ${version}`))
    }
    return items
  }

  async #withStockOf(set: PinnedSet): Promise<PinnedSetWithStock> {
    const [described] = await this.#withStock([set])
    return described ?? { ...set, held: 0, bytes: 0 }
  }

  async #withStock(sets: readonly PinnedSet[]): Promise<PinnedSetWithStock[]> {
    const counts = new Map(sets.map(({ name }) => [name, { held: 0, bytes: 0 }]))
    let looked = 0
    for (const { name, size } of this.#parts.inventory.all()) {
      if (++looked % ITEMS_AT_ONCE === 0) await yieldToOthers()
      for (const holder of this.#parts.sets.setsOf(name)) {
        const count = counts.get(holder)
        if (count === undefined) continue
        count.held += 1
        count.bytes += size
      }
    }
    return sets.map((set) => ({ ...set, held: 0, bytes: 0, ...counts.get(set.name) }))
  }
}

/** All that are wrong at once. @throws MirrorError `REQUEST_INVALID` */
function readItems(texts: readonly string[], defaultHost: Hostname): string[] {
  const problems: string[] = []
  const items = texts.flatMap((text, index) => {
    try {
      return [parsePinnedItem(withHost(text.trim(), defaultHost))]
    } catch (error) {
      if (!(error instanceof MirrorError)) throw error
      problems.push(`body.items[${index}]: ${error.message}`)
      return []
    }
  })
  if (problems.length > 0) throw invalid(problems)
  return items
}

function withHost(text: string, defaultHost: Hostname): string {
  const [address = ''] = text.split(' ', 1)
  return namesHost(address) || !address.includes('/') ? text : `${defaultHost}/${text}`
}

function invalid(problems: readonly string[]): MirrorError<'REQUEST_INVALID'> {
  const shown = problems.slice(0, 100)
  return new MirrorError('REQUEST_INVALID', `the set cannot be made: ${shown.join('; ')}`, { problems: shown })
}

function unknownSet(name: string): MirrorError<'ITEM_NOT_FOUND'> {
  const item = name.slice(0, 100)
  return new MirrorError('ITEM_NOT_FOUND', `there is no set of pins ${JSON.stringify(item)}`, { item })
}
