import type { RecordKey, RecordStore } from '../store/record-store.ts'

/** Where the records of archives are; `*` stands for any name. See `Catalogue`. */
const ARCHIVES = ['providers', '*', '*', '*', 'versions', '*', 'archives', '*'] as const

/**
 * How many packages are held: counted once, in the background, and kept up to date from then on. What is saved while
 * the count runs counts once, whether the count comes by it or not.
 */
export class PackageCount {
  readonly #records: RecordStore
  /** Saved since the start, until the count is done. */
  readonly #saved = new Set<string>()
  #counted: number | undefined

  constructor(records: RecordStore) {
    this.#records = records
  }

  /** Undefined until the count is done. */
  get value(): number | undefined {
    return this.#counted
  }

  /** Counts what is recorded; ends early when aborted. @throws MirrorError `STORAGE_FAILED` */
  async measure(signal: AbortSignal): Promise<void> {
    let found = 0
    for await (const key of this.#matches([], ARCHIVES)) {
      if (signal.aborted) return
      if (!this.#saved.has(nameOf(key))) found += 1
    }
    this.#counted = found + this.#saved.size
    this.#saved.clear()
  }

  /** Runs `write`, which records one more package under `key`. @throws what `write` throws; then nothing was added */
  async adding(key: RecordKey, write: () => Promise<void>): Promise<void> {
    // Known before it is on the disk: so the count never takes it for one that was there before.
    this.#change(key, 1)
    try {
      await write()
    } catch (error) {
      this.#change(key, -1)
      throw error
    }
  }

  #change(key: RecordKey, by: 1 | -1): void {
    if (this.#counted !== undefined) this.#counted += by
    else if (by > 0) this.#saved.add(nameOf(key))
    else this.#saved.delete(nameOf(key))
  }

  async *#matches(prefix: RecordKey, [first, ...rest]: readonly string[]): AsyncIterable<RecordKey> {
    if (first === undefined) {
      yield prefix
      return
    }
    const names = first === '*' ? await this.#records.children(prefix) : [first]
    for (const name of names) yield* this.#matches([...prefix, name], rest)
  }
}

function nameOf(key: RecordKey): string {
  return key.join('/')
}
