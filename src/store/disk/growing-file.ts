import { MirrorError } from '../../errors.ts'
import type { BlobReader } from '../blob-store.ts'
import type { DurableFolders } from './durable-folders.ts'
import type { SharedHandle } from './shared-handle.ts'
import { storageError } from './storage-error.ts'
import { TempFile } from './temp-file.ts'

/** Fits the second-level cache of common processors: blocks of 1 MB cost the kernel twice the time to take over. */
const BLOCK_BYTES = 256 * 1024
/** All the memory that a download takes here: 2 MB. */
const MAX_BLOCKS = 8
/** So much is brought to the disk while more comes in: at the end, when clients wait, little is left to sync. */
const SYNC_BYTES = 16 * 1024 * 1024
/** One early sync at a time in the process: each takes a thread from those that read the archives being served. */
let syncing = false

/** Bytes that are not in the file yet. */
interface Block {
  readonly start: number
  readonly bytes: Buffer
  length: number
  /** Settles when it is in the file. */
  written: Promise<void>
}

/**
 * A temporary file that is written in large blocks behind its writer's back, and can be read up to its last byte while
 * it grows. Throws bare system errors, except for its readers.
 */
export class GrowingFile implements AsyncDisposable {
  readonly #temp: TempFile
  /** In order; the last one is being filled, the others are on their way to the file. */
  readonly #blocks: Block[] = []
  readonly #spare: Buffer[] = []
  #written: Promise<void> = Promise.resolve()
  #failure: { readonly error: unknown } | undefined
  #size = 0
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

  get size(): number {
    return this.#size
  }

  /**
   * Takes a copy of `bytes`; waits only while too many are not in the file yet. Calls must not overlap. An error of the
   * disk may belong to earlier bytes.
   */
  async append(bytes: Uint8Array): Promise<void> {
    for (let taken = 0; taken < bytes.length; ) {
      if (this.#failure !== undefined) throw this.#failure.error
      const block = this.#blocks.at(-1)
      if (block === undefined || block.length === BLOCK_BYTES) {
        if (this.#blocks.length === MAX_BLOCKS) await this.#blocks[0]?.written
        this.#blocks.push(this.#newBlock())
        continue
      }
      const part = bytes.subarray(taken, taken + BLOCK_BYTES - block.length)
      block.bytes.set(part, block.length)
      block.length += part.length
      this.#size += part.length
      taken += part.length
      if (block.length === BLOCK_BYTES) this.#startWriting(block)
    }
  }

  /** Gives the file its name, whole and durable, as `TempFile.publish`. No `append` may follow. */
  async publish(destination: string, mode: number): Promise<void> {
    const rest = this.#blocks.at(-1)
    if (rest !== undefined && rest.length < BLOCK_BYTES) this.#startWriting(rest)
    await this.#written
    await this.#syncs
    if (this.#failure !== undefined) throw this.#failure.error
    await this.#temp.publish(destination, mode)
  }

  /** A reader of what is there and of what is still to come; it outlives this object. */
  follow(): BlobReader {
    return new GrowingFileReader(this, this.#temp.share())
  }

  /** Copies bytes that are not in the file yet; undefined if those at `position` are. */
  copyUnwritten(buffer: Uint8Array, position: number, length: number): number | undefined {
    const block = this.#blocks.find(({ start, length }) => start <= position && position < start + length)
    if (block === undefined) return undefined
    const from = position - block.start
    const part = block.bytes.subarray(from, Math.min(from + length, block.length))
    buffer.set(part)
    return part.length
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#temp[Symbol.asyncDispose]()
    this.#spare.length = 0
  }

  #newBlock(): Block {
    const bytes = this.#spare.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES)
    return { start: this.#size, bytes, length: 0, written: Promise.resolve() }
  }

  #startWriting(block: Block): void {
    block.written = this.#written.then(() => this.#write(block))
    this.#written = block.written
    // Whoever appends or publishes next is told.
    block.written.catch((error: unknown) => {
      this.#failure ??= { error }
    })
  }

  async #write(block: Block): Promise<void> {
    await this.#temp.write(block.bytes.subarray(0, block.length))
    this.#blocks.shift()
    this.#spare.push(block.bytes)
    if (!syncing && this.#temp.size - this.#synced >= SYNC_BYTES) this.#syncEarly()
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
  readonly #file: GrowingFile
  readonly #path: string
  #shared: SharedHandle | undefined

  constructor(file: GrowingFile, shared: SharedHandle) {
    this.#file = file
    this.#path = file.path
    this.#shared = shared
  }

  async read(buffer: Uint8Array, position: number, length: number): Promise<number> {
    if (this.#shared === undefined) {
      throw new MirrorError('STORAGE_FAILED', `Cannot read ${this.#path}: it is closed.`, { operation: 'read' })
    }
    const wanted = Math.min(length, buffer.length)
    const copied = this.#file.copyUnwritten(buffer, position, wanted)
    if (copied !== undefined) return copied
    try {
      const { bytesRead } = await this.#shared.handle.read(buffer, 0, wanted, position)
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
