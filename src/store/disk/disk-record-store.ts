import { readFile as readFileWithCallback } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import type { Log } from '../../log.ts'
import type { RecordKey, RecordStore } from '../record-store.ts'
import { SerialByKey } from '../serial-by-key.ts'
import { moveDurably, writeAtomic } from './atomic-write.ts'
import { type DurableFolders, syncFolder } from './durable-folders.ts'
import { pruneQuarantine } from './quarantine.ts'
import { decodeName, recordFile, recordFolder } from './record-path.ts'
import { unlessMissing, withStorageErrors } from './storage-error.ts'

/** For small files in less than half the time that the one of `node:fs/promises` takes. */
const readFile = promisify(readFileWithCallback)

/**
 * Records as readable JSON files of a data folder: `records/<name>/<name>.json`. A record and records below it stand
 * side by side: `a.json` and `a/b.json`. Writes and deletions of one record happen in the order of the calls.
 */
export class DiskRecordStore implements RecordStore {
  readonly #folders: DurableFolders
  readonly #log: Log
  readonly #root: string
  readonly #serial = new SerialByKey()

  constructor(folders: DurableFolders, log: Log) {
    this.#folders = folders
    this.#log = log
    this.#root = join(folders.root, 'records')
  }

  async get(key: RecordKey): Promise<unknown> {
    const path = this.#path(key)
    const text = await this.#read(path)
    if (text === undefined) return undefined
    const parsed = parseJson(text)
    if (parsed !== undefined) return parsed.document
    return this.#serial.run(path, () => this.#setAsideUnlessRepaired(path))
  }

  async put(key: RecordKey, document: unknown): Promise<void> {
    const path = this.#path(key)
    const text: string | undefined = JSON.stringify(document, null, 2)
    if (text === undefined) throw new TypeError('a record is a JSON value')
    await this.#serial.run(path, () =>
      withStorageErrors('write', path, () => writeAtomic(this.#folders, path, `${text}\n`)),
    )
  }

  async delete(key: RecordKey): Promise<void> {
    const path = this.#path(key)
    const removeDurably = async () => {
      await rm(path)
      await syncFolder(dirname(path))
    }
    await this.#serial.run(path, () =>
      withStorageErrors('delete', path, () => unlessMissing(removeDurably(), undefined)),
    )
  }

  async children(prefix: RecordKey): Promise<string[]> {
    const folder = prefix.length === 0 ? this.#root : join(this.#root, recordFolder(prefix))
    const encoded = await withStorageErrors('list', folder, () => listNames(folder, ''))
    const names = new Set(encoded.map(decodeName).filter((name) => name !== undefined))
    return [...names].sort()
  }

  #path(key: RecordKey): string {
    return join(this.#root, recordFile(key))
  }

  async #read(path: string): Promise<string | undefined> {
    return withStorageErrors('read', path, () => unlessMissing(readFile(path, 'utf8'), undefined))
  }

  /** A `put` may have come between the first look and this one. */
  async #setAsideUnlessRepaired(path: string): Promise<unknown> {
    const text = await this.#read(path)
    if (text === undefined) return undefined
    const parsed = parseJson(text)
    if (parsed !== undefined) return parsed.document
    const aside = join(this.#folders.quarantine, 'records', relative(this.#root, path))
    try {
      await withStorageErrors('set aside', path, () => moveDurably(this.#folders, path, aside))
      await pruneQuarantine(this.#folders.quarantine)
      this.#log.error({ path, aside }, 'a record is not JSON: set aside')
    } catch (error) {
      // On a full disk too, a damaged record is as good as none, and no reason to refuse anything.
      this.#log.error({ path, err: error }, 'a record is not JSON, and could not be set aside')
    }
    return undefined
  }
}

function parseJson(text: string): { document: unknown } | undefined {
  try {
    return { document: JSON.parse(text) }
  } catch {
    return undefined
  }
}

/** The encoded names in a folder that lead to a record; `head` is what earlier folders hold of a long name. */
async function listNames(folder: string, head: string): Promise<string[]> {
  const names: string[] = []
  for (const entry of await unlessMissing(readdir(folder, { withFileTypes: true }), [])) {
    const path = join(folder, entry.name)
    if (entry.isFile()) {
      if (entry.name.endsWith('.json')) names.push(head + entry.name.slice(0, -'.json'.length))
    } else if (!entry.isDirectory()) {
    } else if (entry.name.endsWith('%')) {
      names.push(...(await listNames(path, head + entry.name.slice(0, -1))))
    } else if (await leadsToRecord(path)) {
      names.push(head + entry.name)
    }
  }
  return names
}

/** False for empty folders: they stay behind when records are deleted, or when a kill comes before the first one. */
async function leadsToRecord(folder: string): Promise<boolean> {
  const entries = await unlessMissing(readdir(folder, { withFileTypes: true }), [])
  if (entries.some((entry) => entry.isFile() && entry.name.endsWith('.json'))) return true
  for (const entry of entries) {
    if (entry.isDirectory() && (await leadsToRecord(join(folder, entry.name)))) return true
  }
  return false
}
