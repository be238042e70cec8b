import { randomUUID } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { storageError, withStorageErrors } from './storage-error.ts'

const PREFIX = 'work-'

/** True for the name of a folder that `DiskWorkspaces` made. */
export function isWorkspaceName(name: string): boolean {
  return name.startsWith(PREFIX)
}

/** Folders for work that needs files of its own, below `tmp/` of the data folder. */
export class DiskWorkspaces {
  readonly #tmp: string

  constructor(tmp: string) {
    this.#tmp = tmp
  }

  /** Makes an empty folder. The caller disposes of it: that removes it. @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED` */
  async create(): Promise<DiskWorkspace> {
    const path = join(this.#tmp, PREFIX + randomUUID())
    await withStorageErrors('make', path, () => mkdir(path, { mode: 0o700 }))
    return new DiskWorkspace(path)
  }
}

/** One such folder. */
export class DiskWorkspace implements AsyncDisposable {
  readonly path: string

  constructor(path: string) {
    this.path = path
  }

  /** Runs work in here; errors of the file system become ours. @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED` */
  async run<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw error instanceof Error && 'syscall' in error ? storageError('write', this.path, error) : error
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // What cannot be removed now is removed at the next start.
    await rm(this.path, { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined)
  }
}
