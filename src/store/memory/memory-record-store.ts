import { assertRecordKey, assertRecordName } from '../record-name.ts'
import type { RecordKey, RecordStore } from '../record-store.ts'

/** Records in memory, for tests and demonstrations. What is put is copied, as if it went through a file. */
export class MemoryRecordStore implements RecordStore {
  readonly #texts = new Map<string, string>()

  async get(key: RecordKey): Promise<unknown> {
    const text = this.#texts.get(identity(key))
    return text === undefined ? undefined : JSON.parse(text)
  }

  async put(key: RecordKey, document: unknown): Promise<void> {
    const text: string | undefined = JSON.stringify(document)
    if (text === undefined) throw new TypeError('a record is a JSON value')
    this.#texts.set(identity(key), text)
  }

  async delete(key: RecordKey): Promise<void> {
    this.#texts.delete(identity(key))
  }

  async children(prefix: RecordKey): Promise<string[]> {
    for (const name of prefix) assertRecordName(name)
    const start = prefix.map((name) => `${name}\0`).join('')
    const names = new Set<string>()
    for (const key of this.#texts.keys()) {
      if (key.length > start.length && key.startsWith(start))
        names.add(key.slice(start.length, key.indexOf('\0', start.length)))
    }
    return [...names].sort()
  }
}

/** Names have no NUL. */
function identity(key: RecordKey): string {
  assertRecordKey(key)
  return key.map((name) => `${name}\0`).join('')
}
