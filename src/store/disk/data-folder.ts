import { mkdir, readdir, readFile, rm, stat, statfs } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { isMirrorError, MirrorError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import type { BlobStore } from '../blob-store.ts'
import type { Journal } from '../journal.ts'
import { KeyvMetadataCache } from '../keyv-metadata-cache.ts'
import type { MetadataCache } from '../metadata-cache.ts'
import type { RecordStore } from '../record-store.ts'
import { writeAtomic } from './atomic-write.ts'
import { DiskBlobStore } from './disk-blob-store.ts'
import { DiskJournals } from './disk-journals.ts'
import { DiskRecordStore } from './disk-record-store.ts'
import { DurableFolders, syncFolder } from './durable-folders.ts'
import { FolderLock } from './folder-lock.ts'
import { MetadataFiles } from './metadata-files.ts'
import { errnoOf, storageError, unlessMissing, withStorageErrors } from './storage-error.ts'
import { DiskWorkspaces, isWorkspaceName } from './workspaces.ts'

/** The layout that this version reads and writes. */
export const FORMAT = 1

/** How to open a data folder. */
export interface DataFolderOptions {
  /** Made if it is not there (its parents too). */
  readonly dataDir: string
  readonly log: Log
  /** Called once if another process takes the folder: this one must stop writing. */
  readonly onLost?: (() => void) | undefined
}

/** An open data folder. Who opened it disposes of it, after all use: that frees the folder for the next process. */
export interface DataFolder extends AsyncDisposable {
  readonly blobs: BlobStore
  readonly records: RecordStore
  readonly metadata: MetadataCache
  readonly workspaces: DiskWorkspaces
  /** Opens `NAME.ndjson`, for what may be lost. The caller disposes of it, before the folder. @throws MirrorError `STORAGE_FAILED` */
  openJournal(name: string): Promise<Journal>
  /** Bytes that this process may still write to the file system. @throws MirrorError `STORAGE_FAILED` */
  freeBytes(): Promise<number>
  /** What was set aside as damaged. @throws MirrorError `STORAGE_FAILED` */
  measureQuarantine(): Promise<{ readonly files: number; readonly bytes: number }>
  /** Absolute. */
  readonly dataDir: string
}

/**
 * Opens the folder in which everything is kept, for this process alone, and removes what an earlier one left
 * unfinished:
 *
 *     format      the number of this layout
 *     lock        the process that writes here
 *     blobs/      sha256/ab/<digest>, read-only
 *     records/    JSON, durable
 *     metadata/   JSON, may be lost
 *     tmp/        unfinished files
 *     quarantine/ what was damaged
 *     NAME.ndjson may be lost
 *
 * @throws MirrorError `CONFIGURATION` if it cannot be written, is in use, or has another format; `STORAGE_FULL`,
 * `STORAGE_FAILED`
 */
export async function openDataFolder(options: DataFolderOptions): Promise<DataFolder> {
  const dataDir = resolve(options.dataDir)
  const { log } = options
  const folders = new DurableFolders(dataDir)
  try {
    await makeRoot(dataDir)
    const isNew = (await readFormat(dataDir)) === undefined
    await folders.ensure(folders.tmp)
    const lock = await FolderLock.acquire({ folder: dataDir, key: 'dataDir', log, onLost: options.onLost })
    try {
      if (isNew) await writeAtomic(folders, join(dataDir, 'format'), `${FORMAT}\n`)
      for (const name of ['blobs/sha256', 'records', 'metadata', 'quarantine'])
        await folders.ensure(join(dataDir, name))
      await removeLeftovers(folders.tmp, log)
    } catch (error) {
      await lock[Symbol.asyncDispose]()
      throw error
    }
    const journals = new DiskJournals(folders, dataDir, log)
    return {
      dataDir,
      blobs: new DiskBlobStore(folders),
      records: new DiskRecordStore(folders, log),
      metadata: new KeyvMetadataCache({ store: new MetadataFiles(folders), log }),
      workspaces: new DiskWorkspaces(folders.tmp),
      openJournal: (name) => journals.open(name),
      freeBytes: () => withStorageErrors('look at', dataDir, () => freeBytes(dataDir)),
      measureQuarantine: () => withStorageErrors('look at', folders.quarantine, () => measure(folders.quarantine)),
      async [Symbol.asyncDispose]() {
        await journals.close()
        await withStorageErrors('release', dataDir, () => lock[Symbol.asyncDispose]())
      },
    }
  } catch (error) {
    throw await openingError(dataDir, error)
  }
}

async function makeRoot(dataDir: string): Promise<void> {
  const first = await mkdir(dataDir, { recursive: true, mode: 0o750 })
  // A parent that we may not read cannot be synced; the folder is there all the same.
  if (first !== undefined) await syncFolder(dirname(first)).catch(() => undefined)
}

/** Undefined in a new folder. @throws MirrorError `CONFIGURATION` for a format that is not ours */
async function readFormat(dataDir: string): Promise<number | undefined> {
  const file = join(dataDir, 'format')
  const text = await unlessMissing(readFile(file, 'utf8'), undefined)
  if (text === undefined) return undefined
  const format = /^\d{1,9}\s*$/.test(text) ? Number(text) : undefined
  if (format === FORMAT) return format
  const found = format === undefined ? `${file} is not a number` : `it has format ${format}`
  const advice = format !== undefined && format > FORMAT ? 'Use the newer version that wrote it' : 'Restore it'
  const message = `Cannot use data folder ${dataDir}: ${found}, and this version reads format ${FORMAT}. ${advice}, or choose another dataDir.`
  throw new MirrorError('CONFIGURATION', message, { key: 'dataDir' })
}

/** What an earlier process had begun: regular files and our workspaces, only in `tmp`. Nothing else there is ours. */
async function removeLeftovers(tmp: string, log: Log): Promise<void> {
  const entries = await readdir(tmp, { withFileTypes: true })
  const leftovers = entries.filter((entry) => entry.isFile() || (entry.isDirectory() && isWorkspaceName(entry.name)))
  for (const entry of leftovers) await rm(join(tmp, entry.name), { recursive: true, force: true })
  if (leftovers.length > 0) log.info({ files: leftovers.length }, 'removed unfinished files of an earlier run')
}

async function freeBytes(dataDir: string): Promise<number> {
  const { bavail, bsize } = await statfs(dataDir)
  return bavail * bsize
}

async function measure(folder: string): Promise<{ files: number; bytes: number }> {
  const sum = { files: 0, bytes: 0 }
  for (const entry of await unlessMissing(readdir(folder, { withFileTypes: true, recursive: true }), [])) {
    if (!entry.isFile()) continue
    const facts = await unlessMissing(stat(join(entry.parentPath, entry.name)), undefined)
    sum.files += 1
    sum.bytes += facts?.size ?? 0
  }
  return sum
}

async function openingError(dataDir: string, cause: unknown): Promise<MirrorError> {
  const errno = errnoOf(cause)
  if (isMirrorError(cause) || !['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST'].includes(errno ?? '')) {
    return storageError('open data folder', dataDir, cause)
  }
  const facts = await stat(dataDir).catch(() => undefined)
  const mode =
    facts === undefined ? '' : `, mode 0${(facts.mode & 0o7777).toString(8)}, owner ${facts.uid}:${facts.gid}`
  const message = `Cannot write data folder ${dataDir} as uid ${process.geteuid?.() ?? 'unknown'}${mode}: ${errno}. Change its owner, or choose another dataDir.`
  return new MirrorError('CONFIGURATION', message, { key: 'dataDir' }, cause)
}
