import { LRUCache } from 'lru-cache'
import { type ErrorCode, type ErrorFields, isMirrorError, isNotFound, MirrorError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Hostname } from '../protocol/hostname.ts'
import type { MetadataCache } from '../store/metadata-cache.ts'
import type { Answer, Call } from './call.ts'
import type { ClientWork } from './client-work.ts'
import { createDeadline, settledWithin, slowOrigin, waitFor } from './deadline.ts'
import { type Flight, SingleFlight } from './single-flight.ts'

/** For how long what is held may be used, and how long the origin may take. Times in milliseconds. */
export interface Freshness {
  /** A document is used without asking the origin. */
  readonly freshForMs: number
  /** A 404 of the origin is believed. */
  readonly notFoundForMs: number
  /** With something held, the origin has this long before the held is served stale. */
  readonly graceMs: number
  /** After a failed refresh, the held is served stale at once for this long. */
  readonly backOffMs: number
  /** The longest that one refresh may take. */
  readonly refreshForMs: number
}

/** What a document is about, e.g. `registry.terraform.io/hashicorp/aws`, and whose it is. */
export interface Subject {
  readonly name: string
  readonly hostname: Hostname
}

/** Fetches a document anew. `signal` is the refresh's own, never that of one client. */
export type Fetch<T> = (signal: AbortSignal) => Promise<T>

interface Entry<T> {
  readonly at: number
  readonly found: { readonly value: T } | { readonly absent: MirrorError }
}

/** What is remembered of a document, as it is. Times in milliseconds since 1970. */
export interface Remembered<T> {
  /** When it was fetched, or when the origin said that there is none. */
  readonly found:
    | { readonly at: number; readonly value: T }
    | { readonly at: number; readonly absent: MirrorError }
    | undefined
  /** Why the last refresh failed, if none succeeded since. */
  readonly failure: { readonly at: number; readonly error: MirrorError } | undefined
}

/** What a document cache is made of. */
export interface DocumentCacheParts<T> {
  readonly cache: MetadataCache
  /** What the documents are, e.g. `versions`; begins the names of all entries. */
  readonly prefix: string
  /** Reads back what `set` wrote; undefined for anything else. */
  readonly parse: (stored: unknown) => T | undefined
  /** Called when another document, or another 404, is remembered for a subject. */
  readonly onChange?: (subject: Subject) => void
  /** Called when a refresh failed: a held document of the subject is served stale, unasked, before `untilMs`. */
  readonly onBackOff?: (subject: Subject, untilMs: number) => void
  readonly freshness: Freshness
  readonly now: () => number
  readonly log: Log
  /** Ends all refreshes when the process stops. */
  readonly shutdown: AbortSignal
  /** Is told of the refreshes that clients cause. */
  readonly clientWork?: ClientWork
}

/**
 * Documents of origins, one a subject, with their age: fresh ones are served as they are; old ones are refreshed, and served stale
 * when the origin is slow or down; a 404 is remembered for a short while, an outage never.
 */
export class DocumentCache<T> {
  readonly #parts: DocumentCacheParts<T>
  readonly #refreshes: SingleFlight<Entry<T>>
  /** A list may hold thousands of entries: each stored object is parsed once. */
  readonly #parsed = new WeakMap<object, T>()
  readonly #failures = new LRUCache<string, { at: number; error: MirrorError }>({ max: 5_000 })

  constructor(parts: DocumentCacheParts<T>) {
    this.#parts = parts
    this.#refreshes = new SingleFlight({ clientWork: parts.clientWork })
  }

  /**
   * The document of a subject. `atLeastFrom` (a time) asks for one that was fetched since then, if the origin can.
   * @throws MirrorError the remembered 404; whatever `fetch` throws if nothing is held; `UPSTREAM_TIMEOUT`
   */
  async get(subject: Subject, fetch: Fetch<T>, call: Call, atLeastFrom = 0): Promise<Answer<T>> {
    const { freshness, now, prefix } = this.#parts
    const key = `${prefix} ${subject.name}`
    const what = { name: key, hostname: subject.hostname }
    const held = await this.#find(key)
    if (held !== undefined && held.at >= atLeastFrom) {
      const age = now() - held.at
      if ('absent' in held.found) {
        if (age < freshness.notFoundForMs) throw held.found.absent
      } else if (age < freshness.freshForMs) {
        return { value: held.found.value, outcome: 'hit', isCurrent: whileYoung(held.at, freshness.freshForMs, now) }
      }
    }
    const old = held !== undefined && 'value' in held.found ? held.found.value : undefined
    // 0 stands for an age that is not known.
    const age = held === undefined || held.at === 0 ? {} : { staleForMs: Math.max(0, now() - held.at) }
    const failure = this.#failures.get(key)
    if (old !== undefined && failure !== undefined && isYoung(now() - failure.at, freshness.backOffMs)) {
      return { value: old, outcome: 'stale', reason: failure.error, ...age }
    }

    const refresh = this.#begin(key, subject, { fetch, call })
    if (old !== undefined && !(await settledWithin(refresh.done, freshness.graceMs))) {
      return { value: old, outcome: 'stale', reason: slowOrigin(what), ...age }
    }
    try {
      const entry = await waitFor(refresh.done, call.deadline.signal, what)
      if ('absent' in entry.found) throw entry.found.absent
      return { value: entry.found.value, outcome: refresh.joined ? 'coalesced' : 'miss' }
    } catch (error) {
      if (old === undefined || !isMirrorError(error) || isNotFound(error)) throw error
      return { value: old, outcome: 'stale', reason: error, ...age }
    }
  }

  /**
   * The document as the origin gives it now; joins a refresh that is under way. Nothing stale counts.
   * @throws MirrorError whatever `fetch` throws; `UPSTREAM_TIMEOUT`
   */
  async renew(subject: Subject, fetch: Fetch<T>, call: Call): Promise<T> {
    const key = `${this.#parts.prefix} ${subject.name}`
    const { done } = this.#begin(key, subject, { fetch, call })
    const { found } = await waitFor(done, call.deadline.signal, { name: key, hostname: subject.hostname })
    if ('absent' in found) throw found.absent
    return found.value
  }

  /** What is remembered of a subject; asks nobody. */
  async remembered(subject: Subject): Promise<Remembered<T>> {
    const key = `${this.#parts.prefix} ${subject.name}`
    const entry = await this.#find(key)
    return { found: entry && { at: entry.at, ...entry.found }, failure: this.#failures.get(key) }
  }

  /** Waits until no refresh is running. */
  idle(): Promise<void> {
    return this.#refreshes.idle()
  }

  #begin(key: string, subject: Subject, { fetch, call }: { fetch: Fetch<T>; call: Call }): Flight<Entry<T>> {
    return this.#refreshes.run(key, (_, abandoned) => this.#refresh(key, subject, { fetch, abandoned }), call.leaving)
  }

  async #refresh(
    key: string,
    subject: Subject,
    { fetch, abandoned }: { fetch: Fetch<T>; abandoned: AbortSignal },
  ): Promise<Entry<T>> {
    const { freshness, shutdown, log, now } = this.#parts
    const signal = AbortSignal.any([createDeadline(freshness.refreshForMs).signal, shutdown, abandoned])
    try {
      const entry: Entry<T> = { at: now(), found: { value: await fetch(signal) } }
      await this.#remember(key, entry)
      this.#parts.onChange?.(subject)
      this.#failures.delete(key)
      return entry
    } catch (error) {
      if (isNotFound(error)) {
        const entry: Entry<T> = { at: now(), found: { absent: error } }
        await this.#remember(key, entry)
        this.#parts.onChange?.(subject)
        return entry
      }
      // That says nothing about the origin.
      if (abandoned.aborted) throw error
      if (isMirrorError(error)) {
        const at = now()
        this.#failures.set(key, { at, error })
        this.#parts.onBackOff?.(subject, at + freshness.backOffMs)
      }
      log.warn({ document: key, err: error }, 'could not refresh a document of an origin')
      throw error
    }
  }

  async #remember(key: string, { at, found }: Entry<T>): Promise<void> {
    const stored =
      'value' in found
        ? { at, value: found.value }
        : { at, absent: { code: found.absent.code, message: found.absent.message, fields: found.absent.fields } }
    await this.#parts.cache.set(key, stored)
  }

  async #find(key: string): Promise<Entry<T> | undefined> {
    const stored = await this.#parts.cache.get(key)
    if (typeof stored !== 'object' || stored === null || !('at' in stored) || typeof stored.at !== 'number') return
    // A clock that was set back must not keep an entry fresh for years.
    const at = stored.at > this.#parts.now() ? 0 : stored.at
    if ('value' in stored) {
      const value = this.#parsed.get(stored) ?? this.#parts.parse(stored.value)
      if (value === undefined) return undefined
      this.#parsed.set(stored, value)
      return { at, found: { value } }
    }
    const absent = 'absent' in stored ? reviveError(stored.absent) : undefined
    return isNotFound(absent) ? { at, found: { absent } } : undefined
  }
}

/** True until something from the time `at` is as old as `limitMs`. Top-level, so that it keeps nothing but numbers. */
export function whileYoung(at: number, limitMs: number, now: () => number): () => boolean {
  return () => isYoung(now() - at, limitMs)
}

/** A negative age is none: the clock was set back. */
function isYoung(ageMs: number, limitMs: number): boolean {
  return ageMs >= 0 && ageMs < limitMs
}

function reviveError(stored: unknown): MirrorError | undefined {
  if (isMirrorError(stored)) return stored
  if (typeof stored !== 'object' || stored === null || !('code' in stored) || !('message' in stored)) return undefined
  const { code, message } = stored
  const fields = 'fields' in stored && typeof stored.fields === 'object' && stored.fields !== null ? stored.fields : {}
  if (typeof code !== 'string' || typeof message !== 'string') return undefined
  return new MirrorError(code as ErrorCode, message, fields as ErrorFields[ErrorCode])
}
