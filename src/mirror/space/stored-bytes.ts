import type { BlobStat, BlobStore } from '../../store/blob-store.ts'
import { SerialByKey } from '../../store/serial-by-key.ts'

/** What blobs come to, together. */
export interface Sum {
  readonly blobs: number
  /** Bytes of their contents. */
  readonly size: number
  /** Bytes of disk blocks. */
  readonly diskBytes: number
}

const NOTHING: Sum = { blobs: 0, size: 0, diskBytes: 0 }
const HEX = [...'0123456789abcdef']
/** Blobs are added up in parts, by the first two digits of their digests. */
const PARTS = HEX.flatMap((first) => HEX.map((second) => first + second))

/**
 * Adds up what is stored, to the byte: every blob once, whoever needs it. Counted part by part, and kept up to date by
 * every change that goes through here; a change and a count of the same part never overlap. Nothing is kept for single
 * blobs, so memory does not grow with them. Whatever others do to the files is found at the next count.
 */
export class StoredBytes {
  readonly #blobs: BlobStore
  readonly #onChange: () => void
  readonly #parts = new Map<string, Sum>()
  readonly #serial = new SerialByKey()
  /** Counted before, and changed since: some file systems (ZFS) tell late how many blocks a file takes. */
  readonly #unsettled = new Set<string>()
  #next = 0
  #sum = NOTHING

  /** `onChange` is called after every change of the sum, in the same turn. */
  constructor(blobs: BlobStore, onChange: () => void) {
    this.#blobs = blobs
    this.#onChange = onChange
  }

  /** What is added up so far; everything, once it `isMeasured`. */
  get sum(): Sum {
    return this.#sum
  }

  get isMeasured(): boolean {
    return this.#parts.size === PARTS.length
  }

  /** Adds everything up; ends early when aborted. @throws MirrorError `STORAGE_FAILED` */
  async measure(signal: AbortSignal): Promise<void> {
    for (const part of PARTS) {
      if (signal.aborted) return
      await this.#count(part)
    }
  }

  /** Counts what changed since the last time once more, and one part beside: so all are looked at again and again. */
  async remeasure(): Promise<void> {
    const due = new Set([...this.#unsettled, PARTS[this.#next] ?? ''])
    this.#next = (this.#next + 1) % PARTS.length
    for (const part of due) {
      this.#unsettled.delete(part)
      if (this.#parts.has(part)) await this.#count(part)
    }
  }

  /**
   * Runs `action`, which may add, replace or remove this blob, and takes what came of it into account, also if it
   * fails. `settle` is called right before that, in the same turn.
   * @throws what `action` throws; MirrorError `STORAGE_FAILED`
   */
  change<T>(digest: string, action: () => Promise<T>, settle: () => void = () => undefined): Promise<T> {
    const part = digest.slice(0, 2)
    return this.#serial.run(part, async () => {
      const before = await this.#blobs.stat(digest)
      try {
        return await action()
      } finally {
        const after = await this.#blobs.stat(digest).catch(() => 'unknown' as const)
        settle()
        this.#take(part, before, after)
      }
    })
  }

  #take(part: string, before: BlobStat | undefined, after: BlobStat | undefined | 'unknown'): void {
    const counted = this.#parts.get(part)
    // Whoever counts it later finds the change.
    if (counted === undefined) return
    if (after === 'unknown') {
      this.#unsettled.add(part)
    } else if (before?.fingerprint !== after?.fingerprint) {
      this.#unsettled.add(part)
      this.#set(part, plus(minus(counted, sumOf(before)), sumOf(after)))
    }
  }

  #count(part: string): Promise<void> {
    return this.#serial.run(part, async () => {
      let sum = NOTHING
      for await (const stat of this.#blobs.list(part)) sum = plus(sum, sumOf(stat))
      this.#set(part, sum)
    })
  }

  #set(part: string, sum: Sum): void {
    this.#sum = plus(minus(this.#sum, this.#parts.get(part) ?? NOTHING), sum)
    this.#parts.set(part, sum)
    this.#onChange()
  }
}

function sumOf(stat: BlobStat | undefined): Sum {
  return stat === undefined ? NOTHING : { blobs: 1, size: stat.size, diskBytes: stat.diskBytes }
}

function plus(one: Sum, other: Sum): Sum {
  return {
    blobs: one.blobs + other.blobs,
    size: one.size + other.size,
    diskBytes: one.diskBytes + other.diskBytes,
  }
}

function minus(one: Sum, other: Sum): Sum {
  return {
    blobs: one.blobs - other.blobs,
    size: one.size - other.size,
    diskBytes: one.diskBytes - other.diskBytes,
  }
}
