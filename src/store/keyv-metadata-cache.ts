import type { EventEmitter } from 'node:events'
import { Keyv, type KeyvStorageAdapter } from 'keyv'
import { LRUCache } from 'lru-cache'
import type { Log } from '../log.ts'
import type { MetadataCache } from './metadata-cache.ts'
import { SerialByKey } from './serial-by-key.ts'

const WARN_EVERY_MS = 60_000

/** A storage adapter of Keyv that takes values as they are and does not enforce freshness. */
export type MetadataStorage = Omit<KeyvStorageAdapter, keyof EventEmitter> & EventEmitter

/** What a `KeyvMetadataCache` is made of. */
export interface KeyvMetadataCacheOptions {
  /** Where entries are kept. */
  readonly store: MetadataStorage
  readonly log: Log
  /** Entries kept in memory; 5,000 if not given. */
  readonly maxEntries?: number
  /** Characters of JSON kept in memory; 64 Mi if not given. */
  readonly maxCharacters?: number
}

/**
 * A metadata cache over Keyv, with the entries used last in memory: those need no read, and they outlive a full disk.
 * Values are JSON values; what comes back is a frozen copy. No TTL is used: Keyv would delete what may still be served
 * stale. A failure is a miss, and one line of the log a minute.
 */
export class KeyvMetadataCache implements MetadataCache {
  readonly #keyv: Keyv
  readonly #log: Log
  readonly #hot: LRUCache<string, { readonly value: unknown }>
  readonly #reads = new Map<string, Promise<unknown>>()
  readonly #writes = new SerialByKey()
  #warnedAtMs = Number.NEGATIVE_INFINITY
  #unreported = 0

  constructor(options: KeyvMetadataCacheOptions) {
    this.#log = options.log
    this.#hot = new LRUCache({ max: options.maxEntries ?? 5000, maxSize: options.maxCharacters ?? 64 * 1024 * 1024 })
    this.#keyv = new Keyv({ store: options.store, serialization: false })
    // Without a listener Keyv would throw.
    this.#keyv.on('error', (error: unknown) => this.#warn(error))
  }

  async get(key: string): Promise<unknown> {
    const hot = this.#hot.get(key)
    if (hot !== undefined) return hot.value
    const running = this.#reads.get(key)
    if (running !== undefined) return running
    const read = this.#read(key)
    this.#reads.set(key, read)
    try {
      const value = await read
      // Gone from the list: a `set` or `delete` came meanwhile, and what was read is out of date.
      if (value !== undefined && this.#reads.get(key) === read) this.#keepHot(key, value)
      return value
    } finally {
      if (this.#reads.get(key) === read) this.#reads.delete(key)
    }
  }

  async set(key: string, value: unknown): Promise<void> {
    const copy = this.#copy(value)
    if (copy === undefined) return this.delete(key)
    this.#reads.delete(key)
    this.#keepHot(key, copy.value)
    await this.#writes.run(key, () => this.#attempt(() => this.#keyv.set(key, copy.value)))
  }

  async delete(key: string): Promise<void> {
    this.#reads.delete(key)
    this.#hot.delete(key)
    await this.#writes.run(key, () => this.#attempt(() => this.#keyv.delete(key)))
  }

  #read(key: string): Promise<unknown> {
    return this.#attempt(async () => freeze(await this.#keyv.get(key)))
  }

  async #attempt(action: () => Promise<unknown>): Promise<unknown> {
    try {
      return await action()
    } catch (error) {
      this.#warn(error)
      return undefined
    }
  }

  #copy(value: unknown): { value: unknown } | undefined {
    try {
      const text: string | undefined = JSON.stringify(value)
      return text === undefined ? undefined : { value: freeze(JSON.parse(text)) }
    } catch (error) {
      this.#warn(error)
      return undefined
    }
  }

  #keepHot(key: string, value: unknown): void {
    this.#hot.set(key, { value }, { size: JSON.stringify(value).length })
  }

  #warn(error: unknown): void {
    this.#unreported += 1
    const nowMs = Date.now()
    if (nowMs - this.#warnedAtMs < WARN_EVERY_MS) return
    this.#log.warn({ err: error, failures: this.#unreported }, 'the metadata cache failed; going on without it')
    this.#warnedAtMs = nowMs
    this.#unreported = 0
  }
}

/** Freezes a JSON value, all the way down. */
function freeze(root: unknown): unknown {
  const rest = [root]
  while (rest.length > 0) {
    const value = rest.pop()
    if (typeof value !== 'object' || value === null) continue
    Object.freeze(value)
    for (const inner of Object.values(value)) rest.push(inner)
  }
  return root
}
