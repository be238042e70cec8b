import { MirrorError } from '../../errors.ts'
import type { BlobReader } from '../blob-store.ts'
import type { DurableFolders } from './durable-folders.ts'
import type { SharedHandle } from './shared-handle.ts'
import { storageError } from './storage-error.ts'
import { TempFile } from './temp-file.ts'

/** So much is brought to the disk while more comes in: at the end, when clients wait, little is left to sync. */
const SYNC_BYTES = 16 * 1024 * 1024
/** One early sync at a time in the process: each takes a thread from those that read the archives being served. */
let syncing = false

/**
 * A temporary file that can be read up to its last byte while it grows. Throws bare system errors, except for its
 * readers.
 */
export class GrowingFile implements AsyncDisposable {
  readonly #temp: TempFile
  #failure: { readonly error: unknown } | undefined
  #synced = 0
  #syncs: Promise<void> = Promise.resolve()

  private constructor(temp: TempFile) {
    this.#temp = temp
  }

  /** Makes an empty file. The caller disposes of it. */
  static async open(folders: DurableFolders): Promise<GrowingFile> {
    return new GrowingFile(await TempFile.open(folders))
  }

  get path(): string {
    return this.#temp.path
  }

  /** Bytes that are in the file. */
  get size(): number {
    return this.#temp.size
  }

  /** Appends all chunks. Calls must not overlap. An error of the disk may belong to earlier bytes. */
  async append(chunks: readonly Uint8Array[]): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure.error
    try {
      await this.#temp.write(...chunks)
    } catch (error) {
      this.#failure = { error }
      throw error
    }
    if (!syncing && this.size - this.#synced >= SYNC_BYTES) this.#syncEarly()
  }

  /** Gives the file its name, whole and durable, as `TempFile.publish`. No `append` may follow. */
  async publish(destination: string, mode: number): Promise<void> {
    await this.#syncs
    if (this.#failure !== undefined) throw this.#failure.error
    await this.#temp.publish(destination, mode)
  }

  /** A reader of what is there and of what is still to come; it outlives this object. */
  follow(): BlobReader {
    return new GrowingFileReader(this.path, this.#temp.share())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#temp[Symbol.asyncDispose]()
  }

  /** An error of the disk is told only once: by the next append, or by `publish`, if it comes here. */
  #syncEarly(): void {
    syncing = true
    this.#synced = this.#temp.size
    this.#syncs = this.#temp
      .sync()
      .catch((error: unknown) => {
        this.#failure ??= { error }
      })
      .finally(() => {
        syncing = false
      })
  }
}

class GrowingFileReader implements BlobReader {
  readonly #path: string
  #shared: SharedHandle | undefined

  constructor(path: string, shared: SharedHandle) {
    this.#path = path
    this.#shared = shared
  }

  async read(buffer: Uint8Array, position: number, length: number): Promise<number> {
    if (this.#shared === undefined) {
      throw new MirrorError('STORAGE_FAILED', `Cannot read ${this.#path}: it is closed.`, { operation: 'read' })
    }
    try {
      const { bytesRead } = await this.#shared.handle.read(buffer, 0, Math.min(length, buffer.length), position)
      return bytesRead
    } catch (error) {
      throw storageError('read', this.#path, error)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const shared = this.#shared
    this.#shared = undefined
    await shared?.release()
  }
}
