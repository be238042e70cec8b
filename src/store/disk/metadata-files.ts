import { createHash, randomUUID } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import {
  type KeyvStorageCapability,
  type KeyvStorageEntry,
  type KeyvStorageGetResult,
  keyvStorageCapability,
} from 'keyv'
import { z } from 'zod'
import type { MetadataStorage } from '../keyv-metadata-cache.ts'
import type { DurableFolders } from './durable-folders.ts'
import { errnoOf, unlessMissing } from './storage-error.ts'

const Entry = z.object({ key: z.string(), value: z.any(), expires: z.number().optional() })
type Entry = z.infer<typeof Entry>

/**
 * A storage adapter for Keyv: one readable JSON file a key, `metadata/ab/<sha256 of the key>.json`. Writes are atomic
 * but not synced: what a power cut tears is a miss. Use it with `serialization: false`. Throws bare system errors,
 * which Keyv turns into `error` events.
 */
export class MetadataFiles extends EventEmitter implements MetadataStorage {
  /** Part of the name of every file; Keyv sets it. */
  namespace?: string | undefined
  readonly #folders: DurableFolders
  readonly #root: string

  constructor(folders: DurableFolders) {
    super()
    this.#folders = folders
    this.#root = join(folders.root, 'metadata')
  }

  /** Tells Keyv that `set` takes an absolute expiry. */
  get capabilities(): KeyvStorageCapability {
    return keyvStorageCapability(this)
  }

  async get<Value>(key: string): Promise<KeyvStorageGetResult<Value>> {
    const entry = await this.#read(this.#path(key))
    return entry?.key === key ? entry.value : undefined
  }

  async set(key: string, value: unknown, expires?: number): Promise<boolean> {
    const path = this.#path(key)
    const temp = join(this.#folders.tmp, randomUUID())
    const text = JSON.stringify({ key, value, expires })
    try {
      await this.#folders.within(this.#folders.tmp, () => writeFile(temp, text, { flag: 'wx', mode: 0o640 }))
      await this.#folders.within(dirname(path), () => rename(temp, path))
    } catch (error) {
      await rm(temp, { force: true }).catch(() => undefined)
      throw error
    }
    return true
  }

  async has(key: string): Promise<boolean> {
    return (await this.get(key)) !== undefined
  }

  async delete(key: string): Promise<boolean> {
    return unlessMissing(
      rm(this.#path(key)).then(() => true),
      false,
    )
  }

  async clear(): Promise<void> {
    for (const shard of await unlessMissing(readdir(this.#root), [])) {
      await rm(join(this.#root, shard), { recursive: true, force: true })
    }
  }

  getMany<Value>(keys: string[]): Promise<KeyvStorageGetResult<Value | undefined>[]> {
    return Promise.all(keys.map((key) => this.get<Value | undefined>(key)))
  }

  setMany<Value>(entries: KeyvStorageEntry<Value>[]): Promise<boolean[]> {
    return Promise.all(entries.map((entry) => this.set(entry.key, entry.value, entry.expires)))
  }

  hasMany(keys: string[]): Promise<boolean[]> {
    return Promise.all(keys.map((key) => this.has(key)))
  }

  deleteMany(keys: string[]): Promise<boolean[]> {
    return Promise.all(keys.map((key) => this.delete(key)))
  }

  async #read(path: string): Promise<Entry | undefined> {
    try {
      const entry = Entry.safeParse(JSON.parse(await readFile(path, 'utf8')))
      if (!entry.success || (entry.data.expires ?? Number.POSITIVE_INFINITY) <= Date.now()) return undefined
      return entry.data
    } catch (error) {
      if (errnoOf(error) === 'ENOENT' || error instanceof SyntaxError) return undefined
      throw error
    }
  }

  #path(key: string): string {
    const hex = createHash('sha256')
      .update(`${this.namespace ?? ''}\0${key}`)
      .digest('hex')
    return join(this.#root, hex.slice(0, 2), `${hex}.json`)
  }
}
