import { type ErrorCode, isMirrorError } from '../errors.ts'

/** Told how the work for one origin ended. Methods never throw. */
export interface OriginWatch {
  /** It answered, be it that something does not exist. */
  answered(): void
  /** It did not give what was asked for. What is not the origin's failure is left out of account. */
  failed(error: unknown): void
}

/** How one configured origin is. Equal to the admin API's document; times are RFC 3339 text. */
export interface OriginState {
  /** As configured; patterns too. */
  readonly host: string
  /**
   * `unknown`: not asked since the start. `well`, `failing`: how the last question to it ended. `backingOff`: a host
   * limits our requests, and is not asked until `retryAt`.
   */
  readonly health: 'unknown' | 'well' | 'failing' | 'backingOff'
  readonly lastAnswerAt: string | null
  readonly lastError: { readonly at: string; readonly error: string; readonly code: ErrorCode } | null
  /** Until then it is not asked again, for what failed last. */
  readonly retryAt: string | null
  readonly signatures: 'required' | 'whenListed'
  /** How many archives of providers and how many versions of modules of it are held. */
  readonly packages: number
  readonly modules: number
}

/** What is held, by its name: it begins with the host of its origin. */
export interface HeldName {
  readonly name: string
  readonly kind: 'package' | 'module'
}

/** What the states are made of. */
export interface OriginStatesParts {
  /** As configured. */
  readonly origins: Readonly<Record<string, { readonly verification: Pick<OriginState, 'signatures'> }>>
  /** The configured origin of a host; undefined if it has none. */
  readonly keyOf: (hostname: string) => string | undefined
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/**
 * The health of each configured origin since the start, in the order of the configuration. Hosts below a pattern share
 * one state, so there are never more than the configuration names.
 */
export class OriginStates {
  readonly #parts: OriginStatesParts
  readonly #records = new Map<string, OriginRecord>()

  constructor(parts: OriginStatesParts) {
    this.#parts = parts
    for (const host of Object.keys(parts.origins)) this.#records.set(host, new OriginRecord(parts.now))
  }

  /** Who is told about the work for a host. One that belongs to no configured origin is not recorded. */
  watch(hostname: string): OriginWatch {
    return this.#find(hostname) ?? new OriginRecord(this.#parts.now)
  }

  /** What failed is served stale without asking the host before `untilMs`. */
  postpone(hostname: string, untilMs: number): void {
    this.#find(hostname)?.postpone(untilMs)
  }

  /** Every state now; `held` is all that is held, read once. */
  list(held: Iterable<HeldName>): OriginState[] {
    const counts = this.#count(held)
    return Object.entries(this.#parts.origins).map(([host, { verification }]) => ({
      host,
      ...(this.#records.get(host) ?? new OriginRecord(this.#parts.now)).read(),
      signatures: verification.signatures,
      packages: counts.get(`package ${host}`) ?? 0,
      modules: counts.get(`module ${host}`) ?? 0,
    }))
  }

  #find(hostname: string): OriginRecord | undefined {
    const key = this.#parts.keyOf(hostname)
    return key === undefined ? undefined : this.#records.get(key)
  }

  #count(held: Iterable<HeldName>): Map<string, number> {
    const byHost = new Map<string, number>()
    for (const { name, kind } of held) add(byHost, `${kind} ${name.slice(0, name.indexOf('/'))}`, 1)
    const byKey = new Map<string, number>()
    for (const [id, count] of byHost) {
      const [kind, hostname = ''] = id.split(' ')
      const key = this.#parts.keyOf(hostname)
      if (key !== undefined) add(byKey, `${kind} ${key}`, count)
    }
    return byKey
  }
}

class OriginRecord implements OriginWatch {
  readonly #now: () => number
  #health: 'unknown' | 'well' | 'failing' = 'unknown'
  #lastAnswerAt: number | undefined
  #lastError: OriginState['lastError'] = null
  #limitedUntil = 0
  #postponedUntil = 0

  constructor(now: () => number) {
    this.#now = now
  }

  answered(): void {
    this.#health = 'well'
    this.#lastAnswerAt = this.#now()
    this.#postponedUntil = 0
  }

  failed(error: unknown): void {
    if (!isMirrorError(error) || error.is('SHUTTING_DOWN')) return
    if (!isFailureOfOrigin(error.code)) {
      this.answered()
      return
    }
    const at = this.#now()
    this.#health = 'failing'
    this.#lastError = { at: textOf(at), error: error.message, code: error.code }
    if (error.is('UPSTREAM_RATE_LIMITED')) this.#limitedUntil = at + error.fields.retryAfterMs
  }

  postpone(untilMs: number): void {
    this.#postponedUntil = untilMs
  }

  read(): Pick<OriginState, 'health' | 'lastAnswerAt' | 'lastError' | 'retryAt'> {
    const now = this.#now()
    // Another host of the same origin may answer meanwhile; the limit of this one holds all the same.
    const limited = now < this.#limitedUntil
    const retryAt = limited ? this.#limitedUntil : this.#health === 'failing' ? this.#postponedUntil : 0
    return {
      health: limited ? 'backingOff' : this.#health,
      lastAnswerAt: this.#lastAnswerAt === undefined ? null : textOf(this.#lastAnswerAt),
      lastError: this.#lastError,
      retryAt: now < retryAt ? textOf(retryAt) : null,
    }
  }
}

/** All else is about one thing that the origin has, or about us. */
function isFailureOfOrigin(code: ErrorCode): boolean {
  return code.startsWith('UPSTREAM_') || code === 'MIRROR_LOOP'
}

function textOf(ms: number): string {
  return new Date(ms).toISOString()
}

function add(counts: Map<string, number>, key: string, count: number): void {
  counts.set(key, (counts.get(key) ?? 0) + count)
}
