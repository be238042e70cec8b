import { posix } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Log } from '../../log.ts'
import type { Sha256 } from '../../protocol/package-hash.ts'
import { formatProviderAddress, type ProviderAddress } from '../../protocol/provider-address.ts'
import type { BlobStore } from '../../store/blob-store.ts'
import { ConcurrencyLimit } from '../../store/concurrency-limit.ts'
import type { RecordStore } from '../../store/record-store.ts'
import type { ModuleRecord } from '../module-record.ts'
import { SingleFlight } from '../single-flight.ts'
import { readConfigurationFiles, UnreadableArchive } from './configuration-files.ts'
import { CallsRecord, callsOf, type FolderCalls, type ModuleCalls, sortCalls, uniteCalls } from './module-calls.ts'

/** What the files of one folder say, `hcl/` reads it. Bounded, whatever the text; throws nothing for it. */
export type ReadConfiguration = (
  files: ReadonlyMap<string, string>,
  folder?: string,
) => Promise<{
  readonly modules: readonly { readonly source: string; readonly version: string | undefined }[]
  readonly providers: readonly { readonly source: ProviderAddress; readonly constraint: string | undefined }[]
  readonly problems: readonly { readonly file: string; readonly line: number; readonly reason: string }[]
}>

/** What `ModuleCallsReader` is made of. */
export interface ModuleCallsReaderParts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly readConfiguration: ReadConfiguration
  readonly shutdown: AbortSignal
  readonly log: Log
}

/**
 * What held modules call, read from their archives once for each content, and recorded as `calls/DIGEST`. Losing a
 * record costs nothing but the time to read the archive again.
 */
export class ModuleCallsReader {
  readonly #parts: ModuleCallsReaderParts
  readonly #known = new LRUCache<string, CallsRecord>({ max: 1_000 })
  readonly #reading = new SingleFlight<CallsRecord | undefined>()
  readonly #limit = new ConcurrencyLimit(1)

  constructor(parts: ModuleCallsReaderParts) {
    this.#parts = parts
  }

  /**
   * What a held module calls: by its root, and by the submodules that it publishes (each folder of `modules/`), as each
   * leads to local ones. `subfolder` asks for what a call with `//subfolder` leads to alone; empty, for the root alone.
   * Null if its files cannot be read, or there is no such folder.
   * @throws MirrorError `STORAGE_FAILED`
   */
  async read({ state }: ModuleRecord, subfolder?: string): Promise<ModuleCalls | null> {
    const record = await this.#find(state.digest)
    if (record === undefined || record.folders === null) return null
    const { folders } = record
    const root = state.subfolder
    if (subfolder) return callsOf(folders, posix.join(root, subfolder).replace(/\/$/, '')) ?? null
    const published = posix.join(root, 'modules')
    const entries = Object.keys(folders).filter(
      (folder) => folder === root || (subfolder === undefined && posix.dirname(folder) === published),
    )
    return uniteCalls(entries.map((entry) => callsOf(folders, entry)).filter((calls) => calls !== undefined))
  }

  /** Forgets what is known of a content; fine if nothing is. @throws MirrorError `STORAGE_FAILED` */
  async forget(digest: Sha256): Promise<void> {
    this.#known.delete(digest)
    await this.#parts.records.delete(['calls', digest])
  }

  async #find(digest: Sha256): Promise<CallsRecord | undefined> {
    const known = this.#known.get(digest)
    if (known !== undefined) return known
    const { done } = this.#reading.run(digest, async () => {
      const stored = CallsRecord.safeParse(await this.#parts.records.get(['calls', digest])).data
      // One at a time: it is work for the processor, and clients come first.
      const record = stored ?? (await this.#limit.run(() => this.#readArchive(digest)))
      if (record !== undefined) this.#known.set(digest, record)
      return record
    })
    return await done
  }

  /** Undefined if the archive is not held: that may change. */
  async #readArchive(digest: Sha256): Promise<CallsRecord | undefined> {
    const { blobs, records, shutdown, log } = this.#parts
    await using blob = await blobs.open(digest)
    if (blob === undefined) return undefined
    let folders: CallsRecord['folders']
    try {
      folders = await this.#readFolders(await readConfigurationFiles(blob, shutdown))
    } catch (error) {
      if (!(error instanceof UnreadableArchive)) throw error
      log.warn({ digest, reason: error.message }, 'what a module calls cannot be read')
      folders = null
    }
    const record: CallsRecord = { format: 1, folders }
    await records.put(['calls', digest], record)
    return record
  }

  async #readFolders(files: ReadonlyMap<string, string>): Promise<Record<string, FolderCalls>> {
    const { readConfiguration, shutdown, log } = this.#parts
    const folders = new Map<string, FolderCalls>()
    const byFolder = Map.groupBy(files, ([path]) => folderOf(path))
    for (const [folder, own] of byFolder) {
      shutdown.throwIfAborted()
      const { modules, providers, problems } = await readConfiguration(new Map(own), folder)
      if (problems.length > 0) log.info({ folder, problems: problems.slice(0, 3) }, 'left out what a module calls')
      const required = providers.map(({ source, constraint }) => ({
        source: formatProviderAddress(source),
        version: constraint,
      }))
      folders.set(folder, sortCalls(folder, modules, required))
      await setImmediate()
    }
    // Whatever a folder is called, this makes it a property like any other.
    return Object.fromEntries(folders)
  }
}

function folderOf(path: string): string {
  const folder = posix.dirname(path)
  return folder === '.' ? '' : folder
}
