import { MirrorError } from '../../errors.ts'
import type { Job, JobItem, JobOutcome, JobResult } from './job.ts'

/** The most items that one job may have. */
export const MAX_ITEMS = 100_000

/** Which items to list. `outcome` picks those; `failed` picks every one that is not well. */
export interface ItemQuery {
  readonly after?: string
  readonly limit: number
  readonly outcome?: JobOutcome
}

/** A part of a list; `next` is the `after` of the following one. */
export interface Page<T> {
  readonly items: readonly T[]
  readonly next?: string
}

/** The items of one job in the order in which they became known, and what they come to. */
export class JobItems {
  readonly #items: JobItem[] = []
  readonly #places = new Map<string, number>()
  readonly #outcomes: Record<JobOutcome, number> = { done: 0, held: 0, notPublished: 0, refused: 0, failed: 0 }
  #bytes = 0
  #totalBytes = 0
  #sized = 0

  get size(): number {
    return this.#items.length
  }

  get outcomes(): Job['outcomes'] {
    return { ...this.#outcomes }
  }

  get progress(): Job['progress'] {
    const done = Object.values(this.#outcomes).reduce((sum, count) => sum + count, 0)
    return { done, total: this.size, bytes: this.#bytes, totalBytes: this.#sized === 0 ? null : this.#totalBytes }
  }

  get(item: string): JobItem | undefined {
    const place = this.#places.get(item)
    return place === undefined ? undefined : this.#items[place]
  }

  all(): Iterable<JobItem> {
    return this.#items.values()
  }

  /** False if it is there already. @throws MirrorError `REQUEST_INVALID` beyond 100,000 items */
  add({ item, totalBytes }: { readonly item: string; readonly totalBytes?: number }): boolean {
    if (this.#places.has(item)) return false
    this.#put({ item, outcome: null, bytes: 0, ...(totalBytes === undefined ? {} : { totalBytes }) })
    return true
  }

  /** False if it is unknown or decided already. */
  progressed(item: string, bytes: number, totalBytes?: number): boolean {
    const before = this.get(item)
    if (before === undefined || before.outcome !== null) return false
    const total = totalBytes ?? before.totalBytes
    this.#put({ item, outcome: null, bytes, ...(total === undefined ? {} : { totalBytes: total }) })
    return true
  }

  /** The decided item; undefined if it was decided before. @throws MirrorError as `add` */
  settle(item: string, { bytes = 0, ...rest }: JobResult): JobItem | undefined {
    const before = this.get(item)
    if (before !== undefined && before.outcome !== null) return undefined
    // What did not come is not waited for any more: it counts with the bytes that it had.
    const settled: JobItem = { item, ...rest, bytes, ...(bytes === 0 ? {} : { totalBytes: bytes }) }
    this.#put(settled)
    return settled
  }

  /** Takes back that an item is here; undefined if that was not said of it. */
  lose(item: string, reason: string): JobItem | undefined {
    const before = this.get(item)
    if (before === undefined || !isHere(before)) return undefined
    const lost: JobItem = { ...before, outcome: 'failed', reason }
    this.#put(lost)
    return lost
  }

  /** Takes an item as it was recorded; of two records of one item the last holds. */
  restore(item: JobItem): void {
    this.#put(item)
  }

  /** An unknown `after` gives the first page. */
  page({ after, limit, outcome }: ItemQuery): Page<JobItem> {
    const place = after === undefined ? undefined : this.#places.get(after)
    const items: JobItem[] = []
    for (let at = place === undefined ? 0 : place + 1; at < this.#items.length; at++) {
      const item = this.#items[at]
      if (item === undefined || !isPicked(item, outcome)) continue
      const last = items.at(-1)
      if (items.length === limit && last !== undefined) return { items, next: last.item }
      items.push(item)
    }
    return { items }
  }

  #put(item: JobItem): void {
    const place = this.#places.get(item.item)
    if (place === undefined) {
      if (this.size >= MAX_ITEMS) throw tooMany()
      this.#places.set(item.item, this.size)
      this.#items.push(item)
    } else {
      const before = this.#items[place]
      if (before !== undefined) this.#count(before, -1)
      this.#items[place] = item
    }
    this.#count(item, 1)
  }

  #count({ outcome, bytes, totalBytes }: JobItem, sign: 1 | -1): void {
    if (outcome !== null) this.#outcomes[outcome] += sign
    this.#bytes += sign * bytes
    if (totalBytes === undefined) return
    this.#totalBytes += sign * totalBytes
    this.#sized += sign
  }
}

/** The job brought it, or found it. */
export function isHere({ outcome }: Pick<JobItem, 'outcome'>): boolean {
  return outcome === 'done' || outcome === 'held'
}

function isPicked({ outcome }: JobItem, wanted: JobOutcome | undefined): boolean {
  if (wanted === undefined) return true
  if (wanted === 'failed') return outcome !== null && !isHere({ outcome })
  return outcome === wanted
}

function tooMany(): MirrorError<'REQUEST_INVALID'> {
  const problem = `a job may have at most ${MAX_ITEMS} items; ask for less at one time`
  return new MirrorError('REQUEST_INVALID', problem, { problems: [problem] })
}
