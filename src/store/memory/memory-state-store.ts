import { MirrorError } from '../../errors.ts'
import type { Journal } from '../journal.ts'
import type { RecordStore } from '../record-store.ts'
import { assertJournalName, type StateStore } from '../state-store.ts'
import { MemoryRecordStore } from './memory-record-store.ts'

/** State in memory, for tests. What is appended is copied, as if it went through a file. */
export class MemoryStateStore implements StateStore {
  readonly records: RecordStore = new MemoryRecordStore()
  readonly #lines = new Map<string, string[]>()

  async journal(name: string): Promise<Journal> {
    assertJournalName(name)
    return new MemoryJournal({
      get: () => this.#lines.get(name) ?? [],
      set: (lines) => this.#lines.set(name, lines),
    })
  }

  async journals(): Promise<string[]> {
    return [...this.#lines]
      .filter(([, lines]) => lines.length > 0)
      .map(([name]) => name)
      .sort()
  }

  async deleteJournal(name: string): Promise<void> {
    assertJournalName(name)
    this.#lines.delete(name)
  }
}

interface Lines {
  get(): string[]
  set(lines: string[]): void
}

class MemoryJournal implements Journal {
  readonly #lines: Lines
  #closed = false

  constructor(lines: Lines) {
    this.#lines = lines
  }

  async append(entry: unknown): Promise<void> {
    const line = toLine(entry)
    this.#assertOpen()
    const lines = this.#lines.get()
    lines.push(line)
    this.#lines.set(lines)
  }

  async *read(): AsyncIterable<unknown> {
    for (const line of [...this.#lines.get()]) yield JSON.parse(line)
  }

  async replace(entries: Iterable<unknown>): Promise<void> {
    this.#assertOpen()
    this.#lines.set(Array.from(entries, toLine))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
  }

  #assertOpen(): void {
    if (this.#closed)
      throw new MirrorError('STORAGE_FAILED', 'Cannot write this journal: it is closed.', { operation: 'write' })
  }
}

function toLine(entry: unknown): string {
  const line: string | undefined = JSON.stringify(entry)
  if (line === undefined) throw new TypeError('an entry of a journal is a JSON value')
  return line
}
