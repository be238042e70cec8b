import { createHash } from 'node:crypto'
import { MirrorError } from '../../errors.ts'
import type { BlobStat, IncomingBlob } from '../blob-store.ts'
import type { DurableFolders } from './durable-folders.ts'
import { storageError } from './storage-error.ts'
import { TempFile } from './temp-file.ts'

/** Writes go out in steps of this size; it is all the memory that a download takes here. */
const STEP_BYTES = 1024 * 1024

/** Gives finished bytes their place in the store. */
export type Keep = (temp: TempFile, digest: string, size: number) => Promise<BlobStat>

/** Bytes on their way into a `DiskBlobStore`, in a temporary file. */
export class DiskIncomingBlob implements IncomingBlob {
  readonly #folders: DurableFolders
  readonly #keep: Keep
  #temp: TempFile | undefined
  #hash = createHash('sha256')
  #size = 0
  #staging: Buffer | undefined
  #staged = 0
  #digest: string | undefined
  #kept: BlobStat | undefined
  #disposed = false

  private constructor(folders: DurableFolders, temp: TempFile, keep: Keep) {
    this.#folders = folders
    this.#temp = temp
    this.#keep = keep
  }

  static async create(folders: DurableFolders, keep: Keep): Promise<DiskIncomingBlob> {
    return new DiskIncomingBlob(folders, await TempFile.open(folders), keep)
  }

  get size(): number {
    return this.#size
  }

  async append(bytes: Uint8Array): Promise<void> {
    const temp = this.#open()
    if (this.#digest !== undefined) throw closedError('its digest was taken')
    try {
      for (let start = 0; start < bytes.length; start += STEP_BYTES) {
        await this.#take(temp, bytes.subarray(start, start + STEP_BYTES))
      }
    } catch (error) {
      // A full disk gets its space back now, not when the caller is through with its error handling.
      await this.#discard()
      throw storageError('write', temp.path, error)
    }
  }

  async restart(): Promise<void> {
    if (this.#kept !== undefined || this.#disposed) throw closedError('it is committed or disposed of')
    const path = this.#temp?.path ?? this.#folders.tmp
    try {
      if (this.#temp === undefined) this.#temp = await TempFile.open(this.#folders)
      else await this.#temp.truncate()
    } catch (error) {
      await this.#discard()
      throw storageError('restart', path, error)
    }
    this.#hash = createHash('sha256')
    this.#size = 0
    this.#staged = 0
    this.#digest = undefined
  }

  digest(): string {
    this.#digest ??= this.#hash.digest('hex')
    return this.#digest
  }

  async commit(): Promise<BlobStat> {
    if (this.#kept !== undefined) return this.#kept
    const temp = this.#open()
    try {
      await this.#flush(temp)
      this.#kept = await this.#keep(temp, this.digest(), this.#size)
      return this.#kept
    } catch (error) {
      throw storageError('commit', temp.path, error)
    } finally {
      await this.#discard()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true
    await this.#discard()
  }

  async #take(temp: TempFile, part: Uint8Array): Promise<void> {
    this.#hash.update(part)
    this.#size += part.length
    if (this.#staged + part.length > STEP_BYTES) await this.#flush(temp)
    if (part.length === STEP_BYTES) return temp.write(part)
    // The copy lets the caller reuse its buffer, and costs a tenth of the hash.
    this.#staging ??= Buffer.allocUnsafeSlow(STEP_BYTES)
    this.#staging.set(part, this.#staged)
    this.#staged += part.length
  }

  async #flush(temp: TempFile): Promise<void> {
    if (this.#staging === undefined || this.#staged === 0) return
    await temp.write(this.#staging.subarray(0, this.#staged))
    this.#staged = 0
  }

  #open(): TempFile {
    if (this.#temp === undefined) throw closedError('it failed before, or is committed or disposed of')
    return this.#temp
  }

  /** Removes the file, unless it was kept under its digest. */
  async #discard(): Promise<void> {
    const temp = this.#temp
    this.#temp = undefined
    this.#staging = undefined
    await temp?.[Symbol.asyncDispose]()
  }
}

function closedError(why: string): MirrorError {
  return new MirrorError('STORAGE_FAILED', `Cannot write to this blob: ${why}.`, { operation: 'write' })
}
