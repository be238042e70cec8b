import { chmod, mkdir, readdir, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { isMirrorError, MirrorError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import type { StateStore } from '../state-store.ts'
import { DiskJournals } from './disk-journals.ts'
import { DiskRecordStore } from './disk-record-store.ts'
import { DurableFolders, PRIVATE_MODES, syncFolder } from './durable-folders.ts'
import { FolderLock } from './folder-lock.ts'
import { errnoOf, storageError, withStorageErrors } from './storage-error.ts'

/** How to open a state folder. */
export interface StateFolderOptions {
  /** Made if it is not there (its parents too). One process uses it. */
  readonly stateDir: string
  readonly log: Log
  /** False where the lock of the data folder covers it: a full disk may have no room for a second one. Default true. */
  readonly hasLock?: boolean
  /** Called once if another process takes the folder: this one must stop writing. */
  readonly onLost?: (() => void) | undefined
}

/**
 * Opens the folder of what this one instance keeps for itself. Only its user may enter what is made here; other things
 * that lie in the same folder (`tls/`) are left alone:
 *
 *     lock        the process that writes here, unless the lock of the data folder says so
 *     records/    JSON, durable
 *     journals/   NAME.ndjson: a line an entry, durable
 *     tmp/        unfinished files; emptied
 *     quarantine/ what was damaged
 *
 * The caller disposes of it, after all use: that closes every journal, and frees the folder for the next process.
 * @throws MirrorError `CONFIGURATION` if it cannot be written or is in use; `STORAGE_FULL`, `STORAGE_FAILED`
 */
export async function openStateFolder(options: StateFolderOptions): Promise<StateStore & AsyncDisposable> {
  const stateDir = resolve(options.stateDir)
  const folders = new DurableFolders(stateDir, PRIVATE_MODES)
  const journalFolder = join(stateDir, 'journals')
  await using opened = new AsyncDisposableStack()
  try {
    await makeRoot(stateDir)
    const { log, hasLock = true, onLost } = options
    if (hasLock) {
      const lock = await FolderLock.acquire({ folder: stateDir, key: 'stateDir', log, onLost })
      opened.defer(() => withStorageErrors('release', stateDir, () => lock[Symbol.asyncDispose]()))
    }
    for (const folder of [folders.tmp, join(stateDir, 'records'), journalFolder]) {
      await folders.ensure(folder)
      await closeToOthers(folder)
    }
    await removeLeftovers(folders.tmp)
  } catch (error) {
    throw await openingError(stateDir, error)
  }
  const journals = new DiskJournals(folders, journalFolder, options.log)
  opened.defer(() => journals.close())
  const resources = opened.move()
  return {
    records: new DiskRecordStore(folders, options.log),
    journal: (name) => journals.open(name),
    journals: () => journals.list(),
    deleteJournal: (name) => journals.delete(name),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}

async function makeRoot(stateDir: string): Promise<void> {
  const first = await mkdir(stateDir, { recursive: true, mode: PRIVATE_MODES.folder })
  // A parent that we may not read cannot be synced; the folder is there all the same.
  if (first !== undefined) await syncFolder(dirname(first)).catch(() => undefined)
}

/** A copy of the folder may have come with other rights. */
async function closeToOthers(folder: string): Promise<void> {
  const { mode } = await stat(folder)
  if ((mode & 0o077) !== 0) await chmod(folder, PRIVATE_MODES.folder)
}

async function removeLeftovers(tmp: string): Promise<void> {
  for (const entry of await readdir(tmp, { withFileTypes: true })) {
    if (entry.isFile()) await rm(join(tmp, entry.name), { force: true })
  }
}

async function openingError(stateDir: string, cause: unknown): Promise<MirrorError> {
  const errno = errnoOf(cause)
  if (isMirrorError(cause) || !['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST'].includes(errno ?? '')) {
    return storageError('open state folder', stateDir, cause)
  }
  const user = process.geteuid?.() ?? 'unknown'
  const message = `Cannot write state folder ${stateDir} as uid ${user}: ${errno}. Change its owner, or choose another stateDir.`
  return new MirrorError('CONFIGURATION', message, { key: 'stateDir' }, cause)
}
