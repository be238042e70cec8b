import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { MirrorError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import type { Durability, Journal } from '../journal.ts'
import { type DurableFolders, syncFolder } from './durable-folders.ts'
import { unlessMissing, withStorageErrors } from './storage-error.ts'
import { TempFile } from './temp-file.ts'

const LINE_FEED = 0x0a
const PIECE_BYTES = 256 * 1024

interface Waiting {
  readonly line: Buffer
  readonly durability: Durability
  readonly settled: PromiseWithResolvers<void>
}

/** What a `DiskJournal` is made of. */
export interface DiskJournalOptions {
  readonly folders: DurableFolders
  /** Absolute, below `folders.root`; made with the first entry. */
  readonly path: string
  readonly log: Log
}

/**
 * A journal as a readable file: one JSON value a line. Its end is the end of the last line that was kept: what a crash
 * or a full disk left behind that is cut off before the next line is written.
 */
export class DiskJournal implements Journal {
  readonly #folders: DurableFolders
  readonly #path: string
  readonly #log: Log
  /** Bytes of whole lines. */
  #size: number
  #handle: FileHandle | undefined
  /** What the next write takes; undefined if none is waiting for its turn. */
  #batch: Waiting[] | undefined
  /** Settles when everything that was begun has ended; never rejects. */
  #work: Promise<void> = Promise.resolve()
  #closed = false

  private constructor({ folders, path, log }: DiskJournalOptions, size: number) {
    this.#folders = folders
    this.#path = path
    this.#log = log
    this.#size = size
  }

  /** Opens the journal, which writes nothing yet. @throws MirrorError `STORAGE_FAILED` */
  static async open(options: DiskJournalOptions): Promise<DiskJournal> {
    const size = await withStorageErrors('read', options.path, () => unlessMissing(findEnd(options.path), 0))
    return new DiskJournal(options, size)
  }

  append(entry: unknown, durability: Durability = 'durable'): Promise<void> {
    const text: string | undefined = JSON.stringify(entry)
    if (text === undefined) throw new TypeError('an entry of a journal is a JSON value')
    const settled = Promise.withResolvers<void>()
    const waiting = { line: Buffer.from(`${text}\n`), durability, settled }
    if (this.#batch === undefined) this.#beginBatch([waiting])
    else this.#batch.push(waiting)
    return settled.promise
  }

  async *read(): AsyncIterable<unknown> {
    const { handle, size } = await this.#run(async () => ({
      handle: await withStorageErrors('read', this.#path, () => unlessMissing(open(this.#path, 'r'), undefined)),
      size: this.#size,
    }))
    if (handle === undefined) return
    let damaged = 0
    try {
      for await (const line of readLines(handle, this.#path, size)) {
        const parsed = parseJson(line)
        if (parsed === undefined) damaged += 1
        else yield parsed.entry
      }
    } finally {
      await handle.close()
      if (damaged > 0) this.#log.error({ path: this.#path, lines: damaged }, 'skipped damaged lines of a journal')
    }
  }

  replace(entries: Iterable<unknown>): Promise<void> {
    // What is appended from now on comes after these.
    this.#batch = undefined
    return this.#run(() => withStorageErrors('write', this.#path, () => this.#replace(entries)))
  }

  /** Waits for what was begun before. */
  async idle(): Promise<void> {
    await this.#work
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return
    await this.#run(async () => {
      this.#closed = true
      // Nothing hangs on it: what had to be durable was synced.
      await this.#handle?.close().catch(() => undefined)
      this.#handle = undefined
    })
  }

  /** One thing at a time, in the order of the calls. */
  #run<T>(action: () => Promise<T>): Promise<T> {
    const result = this.#work.then(action)
    this.#work = result.then(ignore, ignore)
    return result
  }

  #beginBatch(batch: Waiting[]): void {
    this.#batch = batch
    void this.#run(() => {
      if (this.#batch === batch) this.#batch = undefined
      return this.#writeBatch(batch)
    })
  }

  /** Never rejects: who waits is told. */
  async #writeBatch(batch: readonly Waiting[]): Promise<void> {
    try {
      await withStorageErrors('write', this.#path, () => this.#write(batch))
      for (const { settled } of batch) settled.resolve()
    } catch (error) {
      for (const { settled } of batch) settled.reject(error)
    }
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    const handle = await this.#open()
    const bytes = Buffer.concat(batch.map(({ line }) => line))
    try {
      for (let done = 0; done < bytes.length; ) {
        const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, this.#size + done)
        done += bytesWritten
      }
      if (batch.some(({ durability }) => durability === 'durable')) await handle.datasync()
      this.#size += bytes.length
    } catch (error) {
      // Now, if it works, else with the next line.
      await handle.close().catch(() => undefined)
      this.#handle = undefined
      await this.#open().catch(() => undefined)
      throw error
    }
  }

  /** The file, cut off after its last whole line. */
  async #open(): Promise<FileHandle> {
    if (this.#closed) {
      throw new MirrorError('STORAGE_FAILED', `Cannot write ${this.#path}: it is closed.`, { operation: 'write' })
    }
    if (this.#handle !== undefined) return this.#handle
    const handle = (await unlessMissing(open(this.#path, 'r+'), undefined)) ?? (await this.#create())
    try {
      await handle.truncate(this.#size)
    } catch (error) {
      await handle.close()
      throw error
    }
    this.#handle = handle
    return handle
  }

  async #create(): Promise<FileHandle> {
    const folder = dirname(this.#path)
    const handle = await this.#folders.within(folder, () => open(this.#path, 'wx+', this.#folders.modes.file))
    this.#size = 0
    await syncFolder(folder)
    return handle
  }

  async #replace(entries: Iterable<unknown>): Promise<void> {
    if (this.#closed) await this.#open()
    await using temp = await TempFile.open(this.#folders)
    for (const piece of inPieces(entries)) await temp.write(piece)
    const size = temp.size
    await temp.publish(this.#path, this.#folders.modes.file)
    await this.#handle?.close().catch(() => undefined)
    this.#handle = undefined
    this.#size = size
  }
}

function ignore(): void {}

/** Where the last whole line ends. */
async function findEnd(path: string): Promise<number> {
  await using handle = await open(path, 'r')
  const { size } = await handle.stat()
  const piece = Buffer.allocUnsafe(PIECE_BYTES)
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - PIECE_BYTES)
    const { bytesRead } = await handle.read(piece, 0, end - start, start)
    const last = piece.subarray(0, bytesRead).lastIndexOf(LINE_FEED)
    if (last !== -1) return start + last + 1
    end = start
  }
  return 0
}

async function* readLines(handle: FileHandle, path: string, size: number): AsyncIterable<string> {
  let rest: Buffer[] = []
  for (let position = 0; position < size; ) {
    const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, size - position))
    const { bytesRead } = await withStorageErrors('read', path, () => handle.read(piece, 0, piece.length, position))
    if (bytesRead === 0) return
    position += bytesRead
    let start = 0
    for (;;) {
      const end = piece.subarray(0, bytesRead).indexOf(LINE_FEED, start)
      if (end === -1) break
      rest.push(piece.subarray(start, end))
      yield rest.length === 1 ? (rest[0]?.toString() ?? '') : Buffer.concat(rest).toString()
      rest = []
      start = end + 1
    }
    rest.push(piece.subarray(start, bytesRead))
  }
}

function parseJson(line: string): { entry: unknown } | undefined {
  try {
    return { entry: JSON.parse(line) }
  } catch {
    return undefined
  }
}

function* inPieces(entries: Iterable<unknown>): Iterable<Buffer> {
  let text = ''
  for (const entry of entries) {
    text += `${JSON.stringify(entry)}\n`
    if (text.length < PIECE_BYTES) continue
    yield Buffer.from(text)
    text = ''
  }
  if (text !== '') yield Buffer.from(text)
}
