import { randomUUID } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type DurableFolders, syncFolder } from './durable-folders.ts'
import { SharedHandle } from './shared-handle.ts'

/**
 * A file that is not finished: it lives in `tmp/` until `publish` gives it its name. Disposing removes it if it was
 * not published. After a kill at any point it is either in `tmp/`, where the next start removes it, or whole under its
 * name. Throws bare system errors; the stores map them.
 */
export class TempFile implements AsyncDisposable {
  readonly path: string
  readonly #folders: DurableFolders
  #file: SharedHandle | undefined
  #size = 0

  private constructor(folders: DurableFolders, path: string, file: SharedHandle) {
    this.#folders = folders
    this.path = path
    this.#file = file
  }

  /** Makes an empty temporary file. The caller disposes of it. */
  static async open(folders: DurableFolders): Promise<TempFile> {
    const path = join(folders.tmp, randomUUID())
    const handle = await folders.within(folders.tmp, () => open(path, 'wx+', 0o600))
    return new TempFile(folders, path, new SharedHandle(handle))
  }

  /** Bytes that are in the file. */
  get size(): number {
    return this.#size
  }

  /** Appends all of `bytes`. Calls must not overlap. */
  async write(bytes: Uint8Array): Promise<void> {
    const { handle } = this.#open()
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, this.#size)
      done += bytesWritten
      this.#size += bytesWritten
    }
  }

  /** Begins to bring what was written to the disk, so that `publish` has less to wait for. Its errors count. */
  async sync(): Promise<void> {
    await this.#open().handle.datasync()
  }

  /** The file for a reader, which stays open, published or removed, until the reader releases it. */
  share(): SharedHandle {
    return this.#open().share()
  }

  /** Makes the content durable, then the name. What was there under that name is replaced atomically. */
  async publish(destination: string, mode: number): Promise<void> {
    const { handle } = this.#open()
    const folder = dirname(destination)
    await handle.chmod(mode)
    await handle.sync()
    await this.#folders.within(folder, () => rename(this.path, destination))
    await syncFolder(folder)
    await this.#close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#file === undefined) return
    await this.#close()
    // What cannot be removed now is removed at the next start.
    await rm(this.path, { force: true }).catch(() => undefined)
  }

  #open(): SharedHandle {
    if (this.#file === undefined) throw new Error('the temporary file is closed')
    return this.#file
  }

  async #close(): Promise<void> {
    const file = this.#file
    this.#file = undefined
    await file?.release()
  }
}
