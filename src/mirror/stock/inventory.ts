import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../../log.ts'
import type { Sha256 } from '../../protocol/package-hash.ts'
import type { Journal } from '../../store/journal.ts'
import { untilAborted } from '../deadline.ts'
import { BlobClaims } from './blob-claims.ts'
import { type HeldItem, isSameItem } from './held-item.ts'
import { InventoryJournal } from './inventory-journal.ts'
import { type InventoryFact, lineOf, snapshotLines } from './inventory-line.ts'
import { ItemIndex, type ItemPage, type ItemQuery } from './item-index.ts'
import { type ItemKind, kindOfName } from './item-name.ts'
import type { ItemSource } from './item-source.ts'
import { Pace } from './pace.ts'

/** With more changes than this after it, the snapshot is made anew at the start. */
const MIN_CHANGES_AT_START = 1_000
const RETRY_MS = 30_000

/** What `Inventory` is made of. */
export interface InventoryParts {
  readonly log: Log
  /** Where a copy is kept from one process to the next; without it, every start reads all records. The caller closes it. */
  readonly journal?: Journal
  /** Called when an item is not held any more. */
  readonly onRemoved?: (name: string) => void
}

/**
 * What is held, in memory, for whoever looks at more than one item: lists, counts, eviction. It is a copy of the
 * records, and loses to them: it starts from the journal, which a crash at any moment leaves usable, and is then
 * compared with all records in the background. Whoever wants one item looks into its record (`Catalogue`).
 */
export class Inventory {
  /** For whoever is about to record something that points to a blob. */
  readonly claims = new BlobClaims()
  readonly #index = new ItemIndex()
  #evidence = new Set<Sha256>()
  readonly #parts: InventoryParts
  readonly #journal: InventoryJournal
  /** Names whose records are being written, and how often at this moment. */
  readonly #changing = new Map<string, number>()
  /** While everything is loaded or compared: what has changed meanwhile is better known here. */
  #changed: Set<string> | undefined = new Set()
  #newEvidence: Set<Sha256> | undefined = new Set()
  readonly #complete = Promise.withResolvers<void>()
  readonly #reconciled = Promise.withResolvers<void>()
  #isComplete = false
  #sources: readonly ItemSource[] = []
  #starting: Promise<void> | undefined
  #reconciling: Promise<void> | undefined

  constructor(parts: InventoryParts) {
    this.#parts = parts
    const facts = (): Parameters<typeof snapshotLines>[1] => {
      return { evidence: [...this.#evidence], changing: [...this.#changing.keys()] }
    }
    this.#journal = new InventoryJournal({ ...parts, snapshot: () => snapshotLines(this.all(), facts()) })
  }

  /** True once everything that was held at the start is known here. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** Resolves then. @throws the reason of `signal`, if that comes first */
  whenComplete(signal?: AbortSignal): Promise<void> {
    return untilAborted(this.#complete.promise, signal)
  }

  /** Resolves when the copy has been compared with all records. @throws the reason of `signal`, if that comes first */
  whenReconciled(signal?: AbortSignal): Promise<void> {
    return untilAborted(this.#reconciled.promise, signal)
  }

  /** Undefined if nothing of this name is known to be held. */
  get(name: string): HeldItem | undefined {
    return this.#index.get(name)
  }

  /** True if something of this name is known to be held. */
  has(name: string): boolean {
    return this.get(name) !== undefined
  }

  /** The items that keep a blob. */
  ownersOf(digest: Sha256): readonly HeldItem[] {
    return this.#index.ownersOf(digest)
  }

  /** True if an item keeps the blob, or a release has it as evidence. May be true for evidence that was just forgotten. */
  needs(digest: Sha256): boolean {
    return this.#evidence.has(digest) || this.ownersOf(digest).length > 0
  }

  /** All items at this moment, packages first, each kind in the order of the names. */
  all(): readonly HeldItem[] {
    return this.#index.all()
  }

  /** Some items in the order of their names. */
  page(query: ItemQuery): ItemPage {
    return this.#index.page(query)
  }

  /** How many of a kind are held, of one origin or of all. */
  count(kind: ItemKind, origin?: string): number {
    return this.#index.count(kind, origin)
  }

  /** The sizes of all of a kind, added up. */
  bytes(kind: ItemKind): number {
    return this.#index.bytes(kind)
  }

  /**
   * Runs `write`, which changes the record of an item and says what it is then: that is what is held from now on. Changes
   * of one name must not overlap. @throws what `write` throws
   */
  async change(name: string, write: () => Promise<HeldItem | undefined>): Promise<void> {
    this.#changing.set(name, (this.#changing.get(name) ?? 0) + 1)
    this.#changed?.add(name)
    try {
      // On the disk before the record is: so the next process knows what it has to look at.
      await this.#journal.append({ changing: name })
      this.#set(name, await write())
    } catch (error) {
      await this.#reread(name)
      throw error
    } finally {
      const running = this.#changing.get(name) ?? 0
      if (running > 1) this.#changing.set(name, running - 1)
      else this.#changing.delete(name)
    }
  }

  /** These blobs are evidence of a release that was recorded. */
  addEvidence(digests: Iterable<Sha256>): void {
    const added: Sha256[] = []
    for (const digest of digests) {
      this.#newEvidence?.add(digest)
      if (this.#evidence.has(digest)) continue
      this.#evidence.add(digest)
      added.push(digest)
    }
    if (added.length > 0) void this.#journal.append({ evidence: added })
  }

  /** Loads the copy, then compares it with the records; goes on until that is done. Never rejects. */
  start(sources: readonly ItemSource[], signal: AbortSignal): Promise<void> {
    this.#sources = sources
    this.#starting = this.#start(signal)
    return this.#starting
  }

  /**
   * Compares everything with the records, which are right, and keeps the result for the next start. At leisure, once
   * the inventory is complete; who asks while this is being done joins. @throws MirrorError `STORAGE_FAILED`; the reason of `signal`
   */
  reconcile(signal: AbortSignal): Promise<void> {
    this.#reconciling ??= this.#reconcile(signal).finally(() => {
      this.#reconciling = undefined
    })
    return this.#reconciling
  }

  /** Waits until the copy is written; the signal of `start` must be aborted. The caller closes the journal then. */
  async close(): Promise<void> {
    await this.#starting
    await this.#journal.settle()
  }

  async #start(signal: AbortSignal): Promise<void> {
    const changed = this.#changed ?? new Set()
    const loaded = await this.#load(changed).catch((error: unknown) => {
      this.#parts.log.warn({ err: error }, 'could not read the inventory; it is made anew from the records')
      return false
    })
    if (loaded) this.#setComplete()
    for (;;) {
      try {
        await this.reconcile(signal)
        return
      } catch (error) {
        if (signal.aborted) return
        this.#parts.log.warn({ err: error }, 'could not compare the inventory with the records; trying again later')
      }
      await delay(RETRY_MS, undefined, { signal, ref: false }).catch(() => undefined)
      if (signal.aborted) return
    }
  }

  async #reconcile(signal: AbortSignal): Promise<void> {
    this.#changed ??= new Set(this.#changing.keys())
    this.#newEvidence ??= new Set()
    const [changed, newEvidence] = [this.#changed, this.#newEvidence]
    const evidence = new Set<Sha256>()
    const seen = new Set<HeldItem>()
    let differences = 0
    const pace = new Pace(signal)
    for (const source of this.#sources) {
      for await (const part of source.recorded()) {
        for (const digest of part.evidence) evidence.add(digest)
        for (const item of part.items) {
          if (changed.has(item.name)) continue
          const known = this.get(item.name)
          const same = known !== undefined && isSameItem(known, item)
          if (!same) this.#index.set(item)
          if (!same) differences += 1
          seen.add(same ? known : item)
        }
        signal.throwIfAborted()
        if (this.#isComplete) await pace.rest()
      }
    }
    differences += await this.#dropUnseen(seen, changed)
    for (const digest of newEvidence) evidence.add(digest)
    this.#evidence = evidence
    this.#changed = undefined
    this.#newEvidence = undefined
    if (this.#isComplete && differences > 0) {
      this.#parts.log.info({ differences }, 'the inventory was not what the records say; put right')
    }
    const mustSave = !this.#isComplete || differences > 0 || this.#journal.changes > MIN_CHANGES_AT_START
    this.#setComplete()
    this.#reconciled.resolve()
    if (mustSave) await this.#journal.compact()
  }

  #setComplete(): void {
    this.#isComplete = true
    this.#complete.resolve()
  }

  /** True if there was a whole snapshot. */
  async #load(changed: ReadonlySet<string>): Promise<boolean> {
    let isWhole = false
    const unsettled = new Set<string>()
    for await (const fact of this.#journal.read()) {
      if (fact.kind === 'start') isWhole = true
      else if (fact.kind === 'evidence') for (const digest of fact.digests) this.#evidence.add(digest)
      else this.#take(fact, { changed, unsettled })
    }
    // The last process ended while their records were written.
    for (const name of unsettled) if (!changed.has(name)) await this.#reread(name)
    this.#journal.changes -= Math.min(this.#journal.changes, this.#index.count('package') + this.#index.count('module'))
    return isWhole
  }

  #take(
    fact: InventoryFact & { kind: 'held' | 'gone' | 'changing' },
    { changed, unsettled }: { changed: ReadonlySet<string>; unsettled: Set<string> },
  ): void {
    const name = fact.kind === 'held' ? fact.item.name : fact.name
    if (changed.has(name)) return
    if (fact.kind === 'held') this.#index.set(fact.item)
    if (fact.kind === 'gone') this.#index.delete(name)
    if (fact.kind === 'changing') unsettled.add(name)
    else unsettled.delete(name)
  }

  async #dropUnseen(seen: ReadonlySet<HeldItem>, changed: ReadonlySet<string>): Promise<number> {
    const before = this.all().filter((item) => !seen.has(item))
    let dropped = 0
    for (const item of before) {
      if (changed.has(item.name) || this.get(item.name) !== item) continue
      await this.#reread(item.name)
      dropped += 1
    }
    return dropped
  }

  /** Takes what is recorded of one item, unless that cannot be read. */
  async #reread(name: string): Promise<void> {
    const source = this.#sources.find(({ kind }) => kind === kindOfName(name))
    if (source === undefined) return
    try {
      this.#set(name, await source.readItem(name))
    } catch (error) {
      this.#journal.warn(error)
    }
  }

  #set(name: string, item: HeldItem | undefined): void {
    if (item !== undefined) this.#index.set(item)
    else if (this.#index.delete(name)) this.#parts.onRemoved?.(name)
    void this.#journal.append(lineOf(name, item))
    if (this.#isComplete) this.#journal.compactIfLong()
  }
}
