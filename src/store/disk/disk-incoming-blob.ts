import { createHash } from 'node:crypto'
import { MirrorError } from '../../errors.ts'
import type { BlobReader, BlobStat, IncomingBlob } from '../blob-store.ts'
import type { DurableFolders } from './durable-folders.ts'
import { GrowingFile } from './growing-file.ts'
import { storageError } from './storage-error.ts'

/** Gives finished bytes their place in the store. */
export type Keep = (file: GrowingFile, digest: string, size: number) => Promise<BlobStat>

/** Bytes on their way into a `DiskBlobStore`, in a temporary file. */
export class DiskIncomingBlob implements IncomingBlob {
  readonly #folders: DurableFolders
  readonly #keep: Keep
  #file: GrowingFile | undefined
  #hash = createHash('sha256')
  #size = 0
  #digest: string | undefined
  #kept: BlobStat | undefined
  #disposed = false

  private constructor(folders: DurableFolders, file: GrowingFile, keep: Keep) {
    this.#folders = folders
    this.#file = file
    this.#keep = keep
  }

  static async create(folders: DurableFolders, keep: Keep): Promise<DiskIncomingBlob> {
    return new DiskIncomingBlob(folders, await GrowingFile.open(folders), keep)
  }

  get size(): number {
    return this.#size
  }

  /** The disk itself tells when it is full. */
  async expect(): Promise<void> {}

  async append(bytes: Uint8Array): Promise<void> {
    const file = this.#open()
    if (this.#digest !== undefined) throw closedError('its digest was taken')
    this.#hash.update(bytes)
    this.#size += bytes.length
    try {
      await file.append(bytes)
    } catch (error) {
      // A full disk gets its space back now, not when the caller is through with its error handling.
      await this.#discard()
      throw storageError('write', file.path, error)
    }
  }

  /** In another file: whoever follows the old bytes must not meet new ones among them. */
  async restart(): Promise<void> {
    if (this.#kept !== undefined || this.#disposed) throw closedError('it is committed or disposed of')
    await this.#discard()
    try {
      this.#file = await GrowingFile.open(this.#folders)
    } catch (error) {
      throw storageError('restart', this.#folders.tmp, error)
    }
    this.#hash = createHash('sha256')
    this.#size = 0
    this.#digest = undefined
  }

  follow(): BlobReader {
    return this.#open().follow()
  }

  digest(): string {
    this.#digest ??= this.#hash.digest('hex')
    return this.#digest
  }

  async commit(): Promise<BlobStat> {
    if (this.#kept !== undefined) return this.#kept
    const file = this.#open()
    try {
      this.#kept = await this.#keep(file, this.digest(), this.#size)
      return this.#kept
    } catch (error) {
      throw storageError('commit', file.path, error)
    } finally {
      await this.#discard()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true
    await this.#discard()
  }

  #open(): GrowingFile {
    if (this.#file === undefined) throw closedError('it failed before, or is committed or disposed of')
    return this.#file
  }

  /** Removes the file, unless it was kept under its digest. */
  async #discard(): Promise<void> {
    const file = this.#file
    this.#file = undefined
    await file?.[Symbol.asyncDispose]()
  }
}

function closedError(why: string): MirrorError {
  return new MirrorError('STORAGE_FAILED', `Cannot write to this blob: ${why}.`, { operation: 'write' })
}
