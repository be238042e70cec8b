import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { Log } from '../../log.ts'
import type { RecordStore } from '../../store/record-store.ts'

/** Clocks jump and machines sleep: so often it is looked whether it is time. */
const MAX_WAIT_MS = 3_600_000
/** A start has enough to do; also for one that is overdue. */
const AFTER_START_MS = 600_000

const Schedule = z.object({ format: z.literal(1), lastAt: z.iso.datetime() })

/** What `VerifySchedule` is made of. */
export interface VerifyScheduleParts {
  /** Of this one instance; `verify-schedule` is ours. */
  readonly records: RecordStore
  /** Milliseconds. */
  readonly every: number
  /** Begins a verification of everything. */
  readonly begin: () => Promise<unknown>
  readonly shutdown: AbortSignal
  readonly now: () => number
  readonly log: Log
}

/**
 * Begins a verification of everything at regular times, which restarts do not change: counted from the last one, and in a
 * new folder from the first start.
 */
export class VerifySchedule {
  readonly #parts: VerifyScheduleParts

  constructor(parts: VerifyScheduleParts) {
    this.#parts = parts
  }

  /** Goes on until the process stops. Never rejects. */
  async run(): Promise<void> {
    const { shutdown, now, log } = this.#parts
    let startedAt = now()
    while (!shutdown.aborted) {
      let waitMs = MAX_WAIT_MS
      // The clock may be set back meanwhile.
      startedAt = Math.min(startedAt, now())
      try {
        waitMs = Math.min(MAX_WAIT_MS, Math.max(await this.#dueInMs(), startedAt + AFTER_START_MS - now()))
        if (waitMs <= 0) {
          await this.#parts.begin()
          await this.#remember()
          continue
        }
      } catch (error) {
        log.warn({ err: error }, 'could not begin the regular verification; trying again in an hour')
      }
      await delay(waitMs, undefined, { signal: shutdown, ref: false }).catch(() => undefined)
    }
  }

  async #dueInMs(): Promise<number> {
    const { records, every, now } = this.#parts
    const lastAt = Schedule.safeParse(await records.get(['verify-schedule'])).data?.lastAt
    const sinceMs = lastAt === undefined ? Number.NEGATIVE_INFINITY : now() - Date.parse(lastAt)
    if (sinceMs >= 0) return every - sinceMs
    // There was none yet; or the clock was set back, which must not put it off until that time comes again.
    await this.#remember()
    return every
  }

  async #remember(): Promise<void> {
    const lastAt = new Date(this.#parts.now()).toISOString()
    await this.#parts.records.put(['verify-schedule'], { format: 1, lastAt })
  }
}
