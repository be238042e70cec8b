import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { MirrorError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import type { Durability, Journal } from '../journal.ts'
import { assertJournalName, isJournalName } from '../state-store.ts'
import { DiskJournal } from './disk-journal.ts'
import { type DurableFolders, syncFolder } from './durable-folders.ts'
import { unlessMissing, withStorageErrors } from './storage-error.ts'

const EXTENSION = '.ndjson'

interface Opened {
  readonly journal: Promise<DiskJournal>
  shares: number
}

/** The journals of one folder, `NAME.ndjson`. Each file has one writer, however many have it open. */
export class DiskJournals {
  readonly #folders: DurableFolders
  readonly #folder: string
  readonly #log: Log
  readonly #open = new Map<string, Opened>()

  /** `folder` is absolute, and below the root of `folders`. */
  constructor(folders: DurableFolders, folder: string, log: Log) {
    this.#folders = folders
    this.#folder = folder
    this.#log = log
  }

  /** As `StateStore.journal`. @throws MirrorError `STORAGE_FAILED` */
  async open(name: string): Promise<Journal> {
    assertJournalName(name)
    const opened = this.#open.get(name) ?? this.#begin(name)
    opened.shares += 1
    try {
      return new SharedJournal(await opened.journal, () => this.#release(name, opened))
    } catch (error) {
      await this.#release(name, opened)
      throw error
    }
  }

  /** As `StateStore.journals`. @throws MirrorError `STORAGE_FAILED` */
  async list(): Promise<string[]> {
    const entries = await withStorageErrors('list', this.#folder, () =>
      unlessMissing(readdir(this.#folder, { withFileTypes: true }), []),
    )
    const names: string[] = []
    for (const entry of entries) {
      const name = entry.name.slice(0, -EXTENSION.length)
      if (!entry.isFile() || !entry.name.endsWith(EXTENSION) || !isJournalName(name)) continue
      const facts = await withStorageErrors('look at', this.#path(name), () =>
        unlessMissing(stat(this.#path(name)), undefined),
      )
      if (facts !== undefined && facts.size > 0) names.push(name)
    }
    return names.sort()
  }

  /** As `StateStore.deleteJournal`. @throws MirrorError `STORAGE_FAILED` */
  async delete(name: string): Promise<void> {
    assertJournalName(name)
    if (this.#open.has(name)) throw new Error(`the journal ${name} is open`)
    await withStorageErrors('delete', this.#path(name), () => unlessMissing(this.#removeDurably(name), undefined))
  }

  /** Closes every journal, whoever has it open: what they append from now on is refused. */
  async close(): Promise<void> {
    for (const [name, { journal }] of this.#open) {
      this.#open.delete(name)
      await (await journal.catch(() => undefined))?.[Symbol.asyncDispose]()
    }
  }

  #begin(name: string): Opened {
    const journal = DiskJournal.open({ folders: this.#folders, path: this.#path(name), log: this.#log })
    const opened = { journal, shares: 0 }
    this.#open.set(name, opened)
    return opened
  }

  async #release(name: string, opened: Opened): Promise<void> {
    opened.shares -= 1
    const journal = await opened.journal.catch(() => undefined)
    await journal?.idle()
    // Others have it open, or have opened it meanwhile.
    if (opened.shares > 0 || this.#open.get(name) !== opened) return
    this.#open.delete(name)
    await journal?.[Symbol.asyncDispose]()
  }

  async #removeDurably(name: string): Promise<void> {
    await rm(this.#path(name))
    await syncFolder(this.#folder)
  }

  #path(name: string): string {
    return join(this.#folder, `${name}${EXTENSION}`)
  }
}

/** One user's share of a journal. */
class SharedJournal implements Journal {
  readonly #journal: DiskJournal
  #release: (() => Promise<void>) | undefined

  constructor(journal: DiskJournal, release: () => Promise<void>) {
    this.#journal = journal
    this.#release = release
  }

  async append(entry: unknown, durability?: Durability): Promise<void> {
    this.#assertOpen()
    await this.#journal.append(entry, durability)
  }

  read(): AsyncIterable<unknown> {
    return this.#journal.read()
  }

  async replace(entries: Iterable<unknown>): Promise<void> {
    this.#assertOpen()
    await this.#journal.replace(entries)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const release = this.#release
    this.#release = undefined
    await release?.()
  }

  #assertOpen(): void {
    if (this.#release !== undefined) return
    throw new MirrorError('STORAGE_FAILED', 'Cannot write this journal: it is closed.', { operation: 'write' })
  }
}
