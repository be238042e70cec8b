import { z } from 'zod'
import { isMirrorError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Hostname } from '../protocol/hostname.ts'
import { DiscoveryDocument, findService, type ServiceName } from '../protocol/service-discovery.ts'

/** Where a discovery document outlives the process. A failing store is logged and never fails a request. */
export interface DiscoveryStore {
  /** What was set last under the key, or undefined. Foreign content is ignored. */
  get(key: string): Promise<unknown>
  /** `value` is plain JSON. */
  set(key: string, value: unknown): Promise<void>
}

/** A document, and when it was fetched in milliseconds since 1970. */
const Remembered = z
  .object({ fetchedAt: z.number(), document: DiscoveryDocument })
  .refine(({ document }) => findUsable(document, 'providers.v1') !== undefined)
/** A document, and when it was fetched in milliseconds since 1970. */
export type Remembered = z.infer<typeof Remembered>

/** The last good discovery document of one origin: in memory, and in a store for the next start. */
export class DiscoveryMemory {
  readonly #hostname: Hostname
  readonly #store: DiscoveryStore
  readonly #log: Log
  #loading: Promise<void> | undefined
  #remembered: Remembered | undefined

  constructor(parts: { hostname: Hostname; store: DiscoveryStore; log: Log }) {
    this.#hostname = parts.hostname
    this.#store = parts.store
    this.#log = parts.log
  }

  /** Undefined before the first; see `load`. */
  get current(): Remembered | undefined {
    return this.#remembered
  }

  /** Reads what an earlier process kept, unless a document is there already. Never fails. */
  async load(): Promise<void> {
    if (this.#remembered !== undefined) return
    this.#loading ??= this.#load()
    await this.#loading
  }

  /** Keeps a document from now on. Never fails. */
  async keep(remembered: Remembered): Promise<void> {
    this.#remembered = remembered
    try {
      await this.#store.set(this.#key, remembered)
    } catch (error) {
      this.#warn(error, 'could not be kept')
    }
  }

  /** A document that lacks the service is no answer: only a new one may say so (design, rule 3). */
  findService(service: ServiceName): URL | undefined {
    return this.#remembered && findUsable(this.#remembered.document, service)
  }

  /** Whether the document was fetched less than `forMs` ago. A clock that was set back makes it old. */
  isYoung(now: number, forMs: number): boolean {
    if (this.#remembered === undefined) return false
    const ageMs = now - this.#remembered.fetchedAt
    return ageMs >= 0 && ageMs < forMs
  }

  get #key(): string {
    return `discovery/${this.#hostname}`
  }

  async #load(): Promise<void> {
    try {
      const { success, data } = Remembered.safeParse(await this.#store.get(this.#key))
      if (success) this.#remembered ??= data
    } catch (error) {
      this.#loading = undefined
      this.#warn(error, 'could not be read')
    }
  }

  #warn(error: unknown, what: string): void {
    const facts = isMirrorError(error) ? { code: error.code, reason: error.message } : { reason: String(error) }
    this.#log.warn({ hostname: this.#hostname, ...facts }, `the discovery document ${what}`)
  }
}

/** The URL of a service; undefined too if the document gives one that no client would use. */
export function findUsable(document: DiscoveryDocument, service: ServiceName): URL | undefined {
  try {
    return findService(document, service)
  } catch {
    return undefined
  }
}
