import type { PurgeScope } from '../mirror/care/purge.ts'
import type { PinRequest, PinSet, PurgeResult, RefreshRequest, RefreshResult, VerifyRequest } from './schema/changes.ts'
import type { Explanation } from './schema/explain.ts'
import type { Job, JobEvent, JobItem, JobOutcome } from './schema/jobs.ts'
import type { HeldModule, HeldPackage, OriginState, Statistics } from './schema/stock.ts'
import type { WarmPlan, WarmRequest } from './schema/warm.ts'

/*
 * What an operator can do, as the admin app needs it: the use cases of `mirror`, put together in `src/admin-operations.ts`.
 * Answers are documents of `schema/`. Errors are `MirrorError`s.
 */

/** Which part of a list: what comes behind `after`, at most `limit`. */
export interface PageRequest {
  readonly after?: string
  readonly limit: number
}

/** A part of a list; `next` is the `after` of the following one; there is none at the end. */
export interface Page<Item> {
  readonly items: readonly Item[]
  readonly next?: string | undefined
}

/** A document that is not changed any more: what use cases give. */
export type Fixed<T> = T extends object ? { readonly [K in keyof T]: Fixed<T[K]> } : T

type Awaitable<T> = Fixed<T> | Promise<Fixed<T>>

/** Pieces of work that go on by themselves. */
export interface JobOperations {
  list(page: PageRequest): Awaitable<Page<Job>>
  /** @throws MirrorError `ITEM_NOT_FOUND`, as all below */
  get(id: string): Awaitable<Job>
  items(id: string, page: PageRequest & { readonly outcome?: JobOutcome }): Awaitable<Page<JobItem>>
  /** From how it stands now to its end. Keeps a bounded backlog for who reads slowly. */
  events(id: string, signal: AbortSignal): AsyncIterable<Fixed<JobEvent>>
  cancel(id: string): Awaitable<Job>
}

/** Which packages or modules: parts of their names, exact but for `q`. */
export interface StockQuery extends PageRequest {
  readonly origin?: string
  readonly namespace?: string
  readonly name?: string
  readonly type?: string
  readonly q?: string
}

/** Everything that the admin API offers. */
export interface Operations {
  readonly jobs: JobOperations
  readonly warm: {
    plan(request: WarmRequest, signal: AbortSignal): Promise<Fixed<WarmPlan>>
    start(request: WarmRequest): Promise<Fixed<Job>>
  }
  readonly verify: { start(request: VerifyRequest): Promise<Fixed<Job>> }
  readonly stock: {
    listPackages(query: StockQuery, signal: AbortSignal): Promise<Page<Fixed<HeldPackage>>>
    listModules(query: StockQuery, signal: AbortSignal): Promise<Page<Fixed<HeldModule>>>
  }
  readonly statistics: { read(): Awaitable<Statistics> }
  readonly origins: { list(): Awaitable<OriginState[]> }
  readonly pins: {
    list(page: PageRequest): Awaitable<Page<PinSet>>
    /** @throws MirrorError `ITEM_NOT_FOUND` */
    get(name: string): Awaitable<PinSet>
    put(name: string, request: PinRequest): Promise<Fixed<PinSet>>
    /** @throws MirrorError `ITEM_NOT_FOUND` */
    delete(name: string): Promise<void>
  }
  readonly purge: { purge(scope: PurgeScope, options: { readonly forget: boolean }): Promise<Fixed<PurgeResult>> }
  readonly refresh: {
    /** @throws MirrorError `ACCEPT_REQUIRED` where there are other bytes and `accept` was not given */
    refresh(
      request: Omit<RefreshRequest, 'accept'>,
      options: { readonly accept: boolean },
    ): Promise<Fixed<RefreshResult>>
  }
  /** Asks no origin. */
  readonly explain: { explain(address: string, version: string | undefined): Promise<Fixed<Explanation>> }
}
