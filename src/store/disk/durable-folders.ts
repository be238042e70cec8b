import { mkdir, open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { LRUCache } from 'lru-cache'
import { errnoOf } from './storage-error.ts'

/** Who may enter the folders of a store, and read its files. */
export interface Modes {
  readonly folder: number
  readonly file: number
}

/** The user and the group of this process: for content. */
export const GROUP_MODES: Modes = { folder: 0o750, file: 0o640 }
/** The user of this process alone: for what is secret or personal. */
export const PRIVATE_MODES: Modes = { folder: 0o700, file: 0o600 }

/**
 * The folders below one data folder. A folder that this has made, or found, survives a power cut: its entry in the
 * folder above is on disk. Everything here throws bare system errors; the stores map them.
 */
export class DurableFolders {
  /** The data folder itself; it must exist. Absolute. */
  readonly root: string
  /** Where unfinished files live. Nothing in it is ever served, and it is emptied at start. */
  readonly tmp: string
  /** Where damaged files are kept as evidence. */
  readonly quarantine: string
  readonly modes: Modes
  readonly #known = new LRUCache<string, true>({ max: 10_000 })
  readonly #pending = new Map<string, Promise<void>>()

  constructor(root: string, modes: Modes = GROUP_MODES) {
    this.root = root
    this.modes = modes
    this.tmp = join(root, 'tmp')
    this.quarantine = join(root, 'quarantine')
  }

  /** Makes a folder below the root and those above it; fine if they are there. */
  async ensure(folder: string): Promise<void> {
    if (folder === this.root || this.#known.has(folder)) return
    const pending = this.#pending.get(folder)
    if (pending !== undefined) return pending
    const made = this.#make(folder).finally(() => this.#pending.delete(folder))
    this.#pending.set(folder, made)
    return made
  }

  /** Runs `action`, which needs `folder`: makes it first, and once more if somebody removed it behind our back. */
  async within<T>(folder: string, action: () => Promise<T>): Promise<T> {
    await this.ensure(folder)
    try {
      return await action()
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error
      this.#known.clear()
      await this.ensure(folder)
      return action()
    }
  }

  async #make(folder: string): Promise<void> {
    const parent = dirname(folder)
    await this.ensure(parent)
    try {
      await mkdir(folder, { mode: this.modes.folder })
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error
    }
    // Also when it was there: who made it may have been killed before it synced.
    await syncFolder(parent)
    this.#known.set(folder, true)
  }
}

/** Makes the entries of a folder durable. Does nothing where the file system cannot sync folders. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } catch (error) {
    if (!['EINVAL', 'ENOTSUP', 'ENOSYS'].includes(errnoOf(error) ?? '')) throw error
  } finally {
    await handle.close()
  }
}
