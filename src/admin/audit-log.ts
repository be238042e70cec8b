import type { Journal } from '../store/journal.ts'

/** One line: what somebody did or tried to do. */
export interface AuditEntry {
  /** The name of the token, never the token; null for who had none. */
  readonly who: string | null
  /** The client's address, or `socket`. */
  readonly client: string
  /** The operation's name in the OpenAPI document. */
  readonly action: string
  readonly target: string
  readonly result: 'done' | 'refused' | 'failed'
  /** Of the error, unless it was done. */
  readonly code?: string
  readonly requestId: string
  /** How many were refused since the last such line, this one included. */
  readonly attempts?: number
}

/** When there are so many lines, the older ones go … */
const MAX_LINES = 25_000
/** … and so many stay. */
const KEPT_LINES = 20_000
/** Whoever has no token must not be able to push out the lines of those who have. */
const UNAUTHORIZED_EVERY_MS = 60_000

/** Who changed what, when, and what came of it: one line a change, in the state store. Bounded: the oldest lines go. */
export class AuditLog {
  readonly #journal: Journal
  readonly #now: () => number
  #lines = 0
  /** One after the other, so that no line is written between the reading and the replacing of a trim. */
  #last: Promise<unknown> = Promise.resolve()
  #unauthorized = { notedAt: Number.NEGATIVE_INFINITY, attempts: 0 }

  private constructor(journal: Journal, now: () => number) {
    this.#journal = journal
    this.#now = now
  }

  /** Continues what is there. The journal belongs to the caller. */
  static async open({ journal, now }: { journal: Journal; now: () => number }): Promise<AuditLog> {
    const audit = new AuditLog(journal, now)
    for await (const _ of journal.read()) audit.#lines += 1
    return audit
  }

  /** Durable when it resolves. @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED` */
  record(entry: AuditEntry): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#lines >= MAX_LINES) await this.#trim()
      await this.#journal.append({ at: new Date(this.#now()).toISOString(), ...entry })
      this.#lines += 1
    })
  }

  /** Notes who was refused for want of the token; many of them in one line a minute. Never fails. */
  async recordUnauthorized(entry: Pick<AuditEntry, 'client' | 'requestId'>): Promise<void> {
    const state = this.#unauthorized
    state.attempts += 1
    const sinceMs = this.#now() - state.notedAt
    // Less than nothing: the clock was set back.
    if (sinceMs >= 0 && sinceMs < UNAUTHORIZED_EVERY_MS) return
    const { attempts } = state
    Object.assign(state, { notedAt: this.#now(), attempts: 0 })
    const line = { who: null, action: 'authenticate', target: '', result: 'refused', code: 'UNAUTHORIZED' } as const
    // The log has every single one; a full disk is no reason to answer otherwise.
    await this.record({ ...line, ...entry, attempts }).catch(() => undefined)
  }

  /** Resolves when everything is written. */
  async idle(): Promise<void> {
    await this.#last
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work)
    this.#last = done.catch(() => undefined)
    return done
  }

  async #trim(): Promise<void> {
    const entries: unknown[] = []
    for await (const entry of this.#journal.read()) entries.push(entry)
    const kept = entries.slice(-KEPT_LINES)
    await this.#journal.replace(kept)
    this.#lines = kept.length
  }
}
