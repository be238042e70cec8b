import type { BlobStore } from '../store/blob-store.ts'

/** Bytes of all stored archives and evidence: added up once, in the background, and kept up to date from then on. */
export class CacheSize {
  readonly #onChange: (bytes: number) => void
  #bytes = 0
  #measured = false

  /** `onChange` is told of every change, also while the sum is not whole. */
  constructor(onChange: (bytes: number) => void) {
    this.#onChange = onChange
  }

  /** Undefined until everything is added up. */
  get bytes(): number | undefined {
    return this.#measured ? this.#bytes : undefined
  }

  /** Takes a change into account; negative for what was removed. */
  add(bytes: number): void {
    this.#bytes += bytes
    this.#onChange(bytes)
  }

  /** Adds up what is stored; ends early when aborted. @throws MirrorError `STORAGE_FAILED` */
  async measure(blobs: BlobStore, signal: AbortSignal): Promise<void> {
    for await (const { size } of blobs.list()) {
      if (signal.aborted) return
      this.add(size)
    }
    this.#measured = true
  }
}
