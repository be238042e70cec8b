import { MirrorError } from '../errors.ts'
import type { Journal } from './journal.ts'
import type { RecordStore } from './record-store.ts'

/** What this one instance keeps for itself: never shared, private to its user. One conformance suite tests every implementation. */
export interface StateStore {
  readonly records: RecordStore
  /**
   * Opens the journal of this name; an empty one if there is none. Opening it twice gives the same entries to both. The
   * caller disposes of it. A name has `a-z0-9._-`, up to 100 characters, and begins with a letter or digit.
   * @throws MirrorError `STORAGE_FAILED`
   */
  journal(name: string): Promise<Journal>
  /** The names of all journals that have entries, sorted. @throws MirrorError `STORAGE_FAILED` */
  journals(): Promise<string[]>
  /** Removes a journal with all its entries; fine if there is none. Nobody may have it open. @throws MirrorError `STORAGE_FAILED` */
  deleteJournal(name: string): Promise<void>
}

/** Asserts that `name` may name a journal. @throws MirrorError `STORAGE_FAILED` */
export function assertJournalName(name: string): void {
  if (isJournalName(name)) return
  const reason = 'a journal is named with up to 100 characters of a-z0-9._-'
  throw new MirrorError('STORAGE_FAILED', `Cannot use ${JSON.stringify(name.slice(0, 100))}: ${reason}.`, {
    operation: 'name a journal',
  })
}

/** True for the name of a journal. */
export function isJournalName(name: string): boolean {
  return /^[a-z0-9][a-z0-9._-]{0,99}$/.test(name)
}
