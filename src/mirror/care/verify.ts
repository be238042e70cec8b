import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { isMirrorError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import { assertSha256, type Sha256 } from '../../protocol/package-hash.ts'
import type { BlobLeases } from '../../store/blob-leases.ts'
import type { BlobStore } from '../../store/blob-store.ts'
import type { CheckedBlobStore } from '../../store/checked-blob-store.ts'
import type { RecordStore } from '../../store/record-store.ts'
import type { Catalogue } from '../catalogue.ts'
import type { JobResult } from '../jobs/job.ts'
import type { JobContext, JobKind } from '../jobs/job-kind.ts'
import type { ModuleCatalogue } from '../module-catalogue.ts'
import type { Inventory } from '../stock/inventory.ts'
import type { ItemRemoval } from '../stock/item-removal.ts'
import { HashingPace } from './hashing-pace.ts'
import { type FileGroup, type HeldFile, heldFiles } from './held-files.ts'
import { checkRecords, type RecordTrouble } from './record-check.ts'
import type { Restoration } from './restoration.ts'

/** Names of what a job over everything does beside the items. */
const ORPHANS = 'files that no record names'
const RECORDS = 'records'
/** A file that nobody names may be on its way to its record, or be copied here by an operator just now. */
const ORPHAN_AGE_MS = 3_600_000
/** A job has at most 100,000 items: more versions than this are told by provider and module. */
const MAX_GROUPS = 50_000
/** After so many looks at files or records, others come first. */
const LOOKS_AT_ONCE = 100
const REST_MS = 20

/** What to hash again. */
export const VerifyRequest = z.object({
  /** Only items whose name begins so; empty for everything, orphans and records too. */
  prefix: z.string(),
  repair: z.boolean(),
  /** Bytes per second; without it, as configured. */
  rate: z.number().positive().optional(),
})
export type VerifyRequest = z.infer<typeof VerifyRequest>

/** What is told to those who count. */
export interface ScrubObserver {
  scrubbed(file: { bytes: number; result: 'good' | 'damaged' | 'missing' }): void
  /** A verification of everything has ended. */
  scrubEnded(end: { at: number; orphans: number; dangling: number }): void
}

/** What `Verify` is made of. */
export interface VerifyParts {
  readonly catalogue: Catalogue
  readonly moduleCatalogue: ModuleCatalogue
  readonly inventory: Inventory
  readonly removal: Pick<ItemRemoval, 'removeBlob'>
  readonly records: RecordStore
  readonly blobs: Pick<BlobStore, 'list'>
  readonly checked: Pick<CheckedBlobStore, 'recheck'>
  readonly leases: Pick<BlobLeases, 'isLeased'>
  readonly restoration: Restoration
  /** Bytes per second. */
  readonly rate: number
  readonly observer?: ScrubObserver
  readonly now: () => number
  readonly log: Log
}

/** What went wrong with a file or record, and whether it is right again. */
interface Trouble {
  readonly item: string
  readonly isRepaired: boolean
  readonly text: string
  readonly code?: string | undefined
}

interface Run {
  readonly repair: boolean
  readonly pace: HashingPace
  readonly job: JobContext
  /** Keys and checksums are shared by many versions: once sound, sound for this run. */
  readonly sound: Set<Sha256>
  dangling: number
}

/**
 * Hashes what is held again, at a rate that clients do not notice. What is damaged is set aside, and fetched again where
 * that is wanted and possible; so is what is missing. Over everything, also: files that no record names, and records
 * that cannot be read or that nobody needs.
 */
export class Verify implements JobKind<VerifyRequest> {
  readonly kind = 'verify'
  readonly request = VerifyRequest
  readonly #parts: VerifyParts

  constructor(parts: VerifyParts) {
    this.#parts = parts
  }

  /** @throws MirrorError `STORAGE_FAILED`; the reason of the job's signal */
  async run({ prefix, repair, rate }: VerifyRequest, job: JobContext): Promise<void> {
    const { inventory, observer, now } = this.#parts
    await inventory.whenReconciled(job.signal)
    const pace = new HashingPace(rate ?? this.#parts.rate, job.signal)
    const run: Run = { repair, pace, job, sound: new Set(), dangling: 0 }
    const groups = await this.#groups(prefix)
    const sizes = this.#sizes()
    job.add([...groups].map(([item, versions]) => ({ item, totalBytes: sum(versions, ({ name }) => sizes.get(name)) })))
    if (prefix === '') job.add([{ item: RECORDS }, { item: ORPHANS }])
    const open = [...groups].filter(([item]) => !job.settled.has(item))
    await job.each(open, ([item, versions]) => this.#versions(item, versions, run))
    if (prefix !== '') return
    if (!job.settled.has(RECORDS)) await this.#records(run)
    const orphans = job.settled.has(ORPHANS) ? 0 : await this.#orphans(run)
    observer?.scrubEnded({ at: now(), orphans, dangling: run.dangling })
  }

  async #groups(prefix: string): Promise<Map<string, FileGroup[]>> {
    const all = await Array.fromAsync(heldFiles(prefix, this.#parts))
    return Map.groupBy(all, ({ name }) => (all.length > MAX_GROUPS ? name.replace(/ .*/, '') : name))
  }

  /** Bytes of the items of each version. */
  #sizes(): Map<string, number> {
    const sizes = new Map<string, number>()
    for (const { name, size } of this.#parts.inventory.all()) {
      const version = name.split(' ', 2).join(' ')
      sizes.set(version, (sizes.get(version) ?? 0) + size)
    }
    return sizes
  }

  async #versions(item: string, versions: readonly FileGroup[], run: Run): Promise<void> {
    const troubles: Trouble[] = []
    let bytes = 0
    for (const group of versions) {
      for (const file of await group.files()) {
        const trouble = await this.#file(file, group, run, (count) => {
          bytes += count
          run.job.progress(item, bytes)
        })
        if (trouble !== undefined) troubles.push(trouble)
      }
    }
    for (const trouble of troubles.filter((each) => each.item !== item)) {
      run.job.settle(trouble.item, resultOf([trouble]))
    }
    run.job.settle(item, { ...resultOf(troubles), bytes })
  }

  /** Undefined if all is well. */
  async #file(
    file: HeldFile,
    group: FileGroup,
    run: Run,
    onBytes: (count: number) => void,
  ): Promise<Trouble | undefined> {
    const { checked, observer, log } = this.#parts
    const { digest, use, isRequired } = file
    const { pace, sound, job, repair } = run
    if (sound.has(digest)) return undefined
    const item = use.kind === 'item' ? use.item.name : group.name
    const what = use.kind === 'item' ? 'its archive' : 'evidence of it (SHA256SUMS, signature or keys)'
    try {
      const found = await checked.recheck(digest, async (count) => {
        onBytes(count)
        await pace.after(count)
      })
      if (found.verdict === 'sound') {
        sound.add(digest)
        observer?.scrubbed({ bytes: found.size, result: 'good' })
        return undefined
      }
      if (found.verdict === 'missing' && !(isRequired && (await isStillNamed(file, group)))) return undefined
      const damaged = found.verdict === 'damaged'
      if (!damaged) run.dangling += 1
      observer?.scrubbed({ bytes: damaged ? found.size : 0, result: found.verdict })
      const text = damaged
        ? `${what} was damaged: its SHA-256 is ${found.actual}, not ${digest}; the damaged file is in the folder quarantine`
        : `${what} is missing: ${digest} is recorded, and there is no such file`
      log.error({ item, digest, ...(damaged ? { actual: found.actual } : {}) }, `verification: ${text}`)
      if (!isRequired) return { item, isRepaired: true, text }
      if (!repair) return { item, isRepaired: false, text }
      const result = await this.#parts.restoration.restore(file, job.signal)
      if (result.restored) return { item, isRepaired: true, text: `${text}; it was fetched again` }
      const end = result.isGone ? 'it is not held any more, as its origin says' : 'it cannot be fetched again'
      return { item, isRepaired: false, text: `${text}; ${end}: ${result.reason}`, code: result.code }
    } catch (error) {
      job.signal.throwIfAborted()
      if (!isMirrorError(error)) throw error
      return { item, isRepaired: false, text: `${what} cannot be read: ${error.message}`, code: error.code }
    }
  }

  async #records({ repair, job }: Run): Promise<void> {
    const { records, inventory } = this.#parts
    const troubles: Trouble[] = []
    const isHeld = (digest: Sha256): boolean => inventory.needs(digest) || inventory.claims.isClaimed(digest)
    let looks = 0
    for await (const trouble of checkRecords(records, isHeld)) {
      if (++looks % LOOKS_AT_ONCE === 0) await delay(REST_MS, undefined, { signal: job.signal })
      job.signal.throwIfAborted()
      troubles.push(await this.#record(trouble, repair, job.signal))
    }
    for (const trouble of troubles.filter(({ isRepaired }) => !isRepaired))
      job.settle(trouble.item, resultOf([trouble]))
    job.settle(RECORDS, resultOf(troubles))
  }

  async #record({ key, problem, use }: RecordTrouble, repair: boolean, signal: AbortSignal): Promise<Trouble> {
    const { records, restoration, log } = this.#parts
    const item = `record ${key.join('/')}`
    if (problem === 'needless') {
      if (repair) await records.delete(key)
      return { item, isRepaired: true, text: `${item} is of an archive that is not held` }
    }
    const text = `${item} cannot be read`
    log.error({ record: key.join('/') }, 'verification: a record cannot be read')
    if (!repair || use === undefined) return { item, isRepaired: false, text }
    try {
      await restoration.fetch(use, signal)
      return { item, isRepaired: true, text: `${text}; it was made anew` }
    } catch (error) {
      signal.throwIfAborted()
      if (!isMirrorError(error)) throw error
      return { item, isRepaired: false, text: `${text}, nor made anew: ${error.message}`, code: error.code }
    }
  }

  /** How many there were. */
  async #orphans({ repair, job }: Run): Promise<number> {
    const { inventory, leases, blobs, removal, now } = this.#parts
    // Evidence that was superseded is known as such only after this.
    await inventory.reconcile(job.signal)
    let [files, bytes, looks] = [0, 0, 0]
    for await (const { digest: name, size, modifiedAt } of blobs.list()) {
      if (++looks % LOOKS_AT_ONCE === 0) await delay(REST_MS, undefined, { signal: job.signal })
      job.signal.throwIfAborted()
      const digest = assertSha256(name)
      if (inventory.needs(digest) || inventory.claims.isClaimed(digest) || leases.isLeased(digest)) continue
      if (now() - modifiedAt < ORPHAN_AGE_MS) continue
      if (repair) await removal.removeBlob(digest)
      files += 1
      bytes += size
    }
    const reason = `${files} files (${bytes} bytes) were named by no record${repair ? ', and were removed' : ''}`
    job.settle(ORPHANS, { outcome: 'done', bytes, ...(files === 0 ? {} : { reason }) })
    return files
  }
}

/** It may have been removed or replaced since. */
async function isStillNamed({ digest }: HeldFile, group: FileGroup): Promise<boolean> {
  return (await group.files()).some((file) => file.digest === digest && file.isRequired)
}

/** One sentence for all that was wrong; what could not be put right comes first. */
function resultOf(troubles: readonly Trouble[]): JobResult {
  const [first, ...more] = troubles.toSorted((a, b) => Number(a.isRepaired) - Number(b.isRepaired))
  if (first === undefined) return { outcome: 'done' }
  const reason = more.length === 0 ? first.text : `${first.text} (and ${more.length} more)`
  return {
    outcome: first.isRepaired ? 'done' : 'failed',
    reason,
    ...(first.code === undefined ? {} : { code: first.code }),
  }
}

function sum<T>(values: readonly T[], of: (value: T) => number | undefined): number {
  return values.reduce((total, value) => total + (of(value) ?? 0), 0)
}
