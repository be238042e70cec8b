import { rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type DurableFolders, syncFolder } from './durable-folders.ts'
import { TempFile } from './temp-file.ts'

/**
 * Replaces a file below the data folder atomically and durably: after a crash at any point the old or the new content
 * is there, whole. Parents are made. Throws bare system errors; the stores map them.
 */
export async function writeAtomic(folders: DurableFolders, path: string, content: string): Promise<void> {
  await using temp = await TempFile.open(folders)
  await temp.write(Buffer.from(content))
  await temp.publish(path, folders.modes.file)
}

/** Renames durably, replacing what has the new name. Parents are made. Throws bare system errors. */
export async function moveDurably(folders: DurableFolders, from: string, to: string): Promise<void> {
  await folders.within(dirname(to), () => rename(from, to))
  await syncFolder(dirname(to))
  await syncFolder(dirname(from))
}
