import type { MetadataCache } from '../metadata-cache.ts'

/** A metadata cache in memory without a bound, for tests and demonstrations. Values are copied, as JSON. */
export class MemoryMetadataCache implements MetadataCache {
  readonly #texts = new Map<string, string>()

  async get(key: string): Promise<unknown> {
    const text = this.#texts.get(key)
    return text === undefined ? undefined : JSON.parse(text)
  }

  async set(key: string, value: unknown): Promise<void> {
    const text: string | undefined = JSON.stringify(value)
    if (text === undefined) this.#texts.delete(key)
    else this.#texts.set(key, text)
  }

  async delete(key: string): Promise<void> {
    this.#texts.delete(key)
  }
}
