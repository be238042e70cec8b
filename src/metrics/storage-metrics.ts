import { Counter, Gauge, type Registry } from 'prom-client'
import type { EvictionReason, ScrubObserver, SpaceObserver } from '../mirror/observer.ts'
import { MeasuredGauge } from './measured-gauge.ts'
import { sum } from './sum.ts'

/** How the disk is used now, in bytes. What is undefined is not known, or has no limit. */
export interface DiskUse {
  /** Disk blocks of everything stored. */
  readonly used?: number | undefined
  /** Promised to downloads that are running. */
  readonly reserved?: number | undefined
  /** `archives.maxSize`. */
  readonly limit?: number | undefined
  /** What this process may still write to the file system, and the size of that. */
  readonly free?: number | undefined
  readonly size?: number | undefined
  /** `archives.minFree`. */
  readonly minFree?: number | undefined
}

const DISK: readonly (readonly [keyof DiskUse, string, string])[] = [
  ['used', 'terramirror_disk_used_bytes', 'Disk blocks of everything stored; missing until they are added up.'],
  ['reserved', 'terramirror_disk_reserved_bytes', 'Disk that is promised to running downloads.'],
  ['limit', 'terramirror_disk_limit_bytes', 'The limit archives.maxSize; missing without one.'],
  ['free', 'terramirror_disk_free_bytes', 'What may still be written to the file system of the data folder.'],
  ['size', 'terramirror_disk_size_bytes', 'The size of the file system of the data folder.'],
  ['minFree', 'terramirror_disk_min_free_bytes', 'What archives.minFree keeps free; missing without it.'],
]

/** What is on disk, what leaves it, and what is found wrong with it. */
export class StorageMetrics implements SpaceObserver, ScrubObserver {
  /** Bytes of all stored archives and evidence. */
  readonly cacheBytes: Gauge
  readonly #damaged: Counter
  readonly #evictedItems: Counter<'reason'>
  readonly #evictedBytes: Counter<'reason'>
  readonly #spaceRefusals: Counter
  readonly #scrubbedBytes: Counter
  readonly #scrubbedFiles: Counter<'result'>
  readonly #scrubEnded: MeasuredGauge
  readonly #orphans: MeasuredGauge
  readonly #dangling: MeasuredGauge
  readonly #held: Gauge<'kind'>
  readonly #disk: ReadonlyMap<keyof DiskUse, MeasuredGauge>

  constructor(registry: Registry) {
    const registers = [registry]
    this.cacheBytes = new Gauge({
      name: 'terramirror_cache_bytes',
      help: 'Bytes of all stored archives and evidence, as the lengths of their files.',
      registers,
    })
    this.#damaged = new Counter({
      name: 'terramirror_damaged_blobs_total',
      help: 'Stored files that were found damaged and set aside, by whatever found them.',
      registers,
    })
    this.#evictedItems = new Counter({
      name: 'terramirror_evicted_items_total',
      help: 'Archives and modules that were deleted to make room, by reason: "unused" (longer than all others), "orphan" (files that nothing named any more).',
      labelNames: ['reason'],
      registers,
    })
    this.#evictedBytes = new Counter({
      name: 'terramirror_evicted_bytes_total',
      help: 'Bytes of disk that were freed by that.',
      labelNames: ['reason'],
      registers,
    })
    for (const reason of ['unused', 'orphan'] as const) {
      this.#evictedItems.inc({ reason }, 0)
      this.#evictedBytes.inc({ reason }, 0)
    }
    this.#spaceRefusals = new Counter({
      name: 'terramirror_space_refusals_total',
      help: 'Downloads that were refused because there was no room and nothing could be evicted.',
      registers,
    })
    this.#scrubbedBytes = new Counter({
      name: 'terramirror_scrub_checked_bytes_total',
      help: 'Bytes of stored files that verification in the background has read and hashed.',
      registers,
    })
    this.#scrubbedFiles = new Counter({
      name: 'terramirror_scrub_checked_blobs_total',
      help: 'Stored files that verification in the background has checked, by result: good, damaged or missing.',
      labelNames: ['result'],
      registers,
    })
    for (const result of ['good', 'damaged', 'missing'] as const) this.#scrubbedFiles.inc({ result }, 0)
    this.#scrubEnded = new MeasuredGauge({
      name: 'terramirror_scrub_last_completed_timestamp_seconds',
      help: 'When a verification of everything last came to its end, in seconds since 1970; missing before the first time.',
      registers,
    })
    this.#orphans = new MeasuredGauge({
      name: 'terramirror_scrub_orphan_blobs',
      help: 'Stored files that nothing named, as the last verification of everything found.',
      registers,
    })
    this.#dangling = new MeasuredGauge({
      name: 'terramirror_scrub_dangling_records',
      help: 'Records that named a file which is not stored, as the last verification of everything found.',
      registers,
    })
    this.#held = new Gauge({
      name: 'terramirror_held_items',
      help: 'Archives of providers ("package") and versions of modules ("module") that are held; missing until they are counted.',
      labelNames: ['kind'],
      registers,
    })
    this.#disk = new Map(DISK.map(([key, name, help]) => [key, new MeasuredGauge({ name, help, registers })]))
  }

  /** A stored file was found damaged and set aside. */
  damaged(): void {
    this.#damaged.inc()
  }

  /** What was evicted since the start. */
  async evictions(): Promise<{ items: number; bytes: number }> {
    return { items: sum(await this.#evictedItems.get()), bytes: sum(await this.#evictedBytes.get()) }
  }

  evicted({ reason, bytes }: { reason: EvictionReason; bytes: number }): void {
    this.#evictedItems.inc({ reason })
    this.#evictedBytes.inc({ reason }, bytes)
  }

  spaceRefused(): void {
    this.#spaceRefusals.inc()
  }

  scrubbed({ bytes, result }: { bytes: number; result: 'good' | 'damaged' | 'missing' }): void {
    this.#scrubbedFiles.inc({ result })
    this.#scrubbedBytes.inc(bytes)
  }

  scrubEnded({ at, orphans, dangling }: { at: number; orphans: number; dangling: number }): void {
    this.#scrubEnded.set(at / 1_000)
    this.#orphans.set(orphans)
    this.#dangling.set(dangling)
  }

  /** Shows how many things of a kind are held; undefined while they are not all counted. */
  showHeld(kind: 'package' | 'module', count: number | undefined): void {
    if (count === undefined) this.#held.remove({ kind })
    else this.#held.set({ kind }, count)
  }

  /** Shows how the disk is used; what is not given keeps what it was. */
  showDisk(use: DiskUse): void {
    for (const [key, gauge] of this.#disk) if (key in use) gauge.set(use[key])
  }
}
