import type { FileHandle } from 'node:fs/promises'

/** One open file with several users: each gives its share back once, and the last one closes the file. */
export class SharedHandle {
  readonly handle: FileHandle
  #shares = 1

  /** The caller has the first share. */
  constructor(handle: FileHandle) {
    this.handle = handle
  }

  /** Takes one more share. */
  share(): this {
    this.#shares += 1
    return this
  }

  /** Gives one share back. Reads and writes on their way are finished first. Never throws. */
  async release(): Promise<void> {
    this.#shares -= 1
    // Nothing hangs on it: what counts was synced before, the rest is thrown away or was only read.
    if (this.#shares === 0) await this.handle.close().catch(() => undefined)
  }
}
