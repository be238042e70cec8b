import { LRUCache } from 'lru-cache'
import { isMirrorError, MirrorError } from '../errors.ts'
import type { Log } from '../log.ts'
import { formatModuleAddress, type ModuleAddress } from '../protocol/module-address.ts'
import type { Sha256 } from '../protocol/package-hash.ts'
import type { Version } from '../protocol/version.ts'
import type { BlobLeases } from '../store/blob-leases.ts'
import type { BlobStore, OpenBlob } from '../store/blob-store.ts'
import type { Answer, Call } from './call.ts'
import type { ClientWork } from './client-work.ts'
import { settledWithin, untilAborted } from './deadline.ts'
import type { ModuleCatalogue } from './module-catalogue.ts'
import type { FetchRequest, ModuleFetches } from './module-fetches.ts'
import type { ModuleLists } from './module-lists.ts'
import type { ModuleRecord, ModuleState } from './module-record.ts'
import { statesOf } from './module-record.ts'
import { notCached } from './origin-lists.ts'
import { SingleFlight } from './single-flight.ts'
import type { ModuleId } from './stock/item-name.ts'
import { formatModuleName } from './stock/item-name.ts'
import type { UseObserver } from './stock/usage.ts'
import type { ModuleUpstreamFor } from './upstreams.ts'
import { assertOriginAllowed, type View } from './view.ts'

/** How long a failure is told to those who were told to come back, before the work is begun anew. */
const FAILURE_MS = 10_000
const PROMISE_MS = 60_000
/** What is gone before it could be opened is fetched again. */
const MAX_OPENINGS = 3

/** What `Modules` is made of. */
export interface ModulesParts {
  readonly catalogue: ModuleCatalogue
  readonly lists: ModuleLists
  readonly fetches: ModuleFetches
  readonly blobs: BlobStore
  readonly leases: BlobLeases
  readonly usage: UseObserver
  readonly upstreamFor: ModuleUpstreamFor
  /** For how long what a branch or tag names is used without asking. Milliseconds. */
  readonly freshForMs: number
  /** After a failed check of that, for how long nobody is asked. */
  readonly backOffMs: number
  /** With something held, a host has this long before the held is served stale. */
  readonly graceMs: number
  /** Is told of the fetches and checks that clients cause. */
  readonly clientWork?: ClientWork
  readonly now: () => number
  readonly log: Log
}

/** What is remembered of a module version beside its record. Times in milliseconds since 1970. */
export interface RememberedModule {
  /** When its source was last asked whether it moved, well or badly. */
  readonly checkedAt: number | undefined
  readonly failure: { readonly at: number; readonly error: MirrorError } | undefined
  readonly movedTag: { readonly at: number; readonly offered: string } | undefined
}

/** Modules as archives: from what is held, else fetched once for all who ask. */
export class Modules {
  readonly #parts: ModulesParts
  readonly #fetches: SingleFlight<ModuleRecord>
  readonly #checks: SingleFlight<ModuleRecord>
  readonly #failures = new LRUCache<string, { at: number; error: unknown }>({ max: 1_000 })
  /** Why the last fetch failed, for explanations alone. */
  readonly #lastFailures = new LRUCache<string, { readonly at: number; readonly error: MirrorError }>({ max: 1_000 })
  /** When the source of a held module was asked whether it moved, and for how long that counts. */
  readonly #checked = new LRUCache<string, { at: number; forMs: number }>({ max: 5_000 })

  /** Clients that were told of an archive come for it soon; until then it is not evicted. */
  readonly #promised = new LRUCache<Sha256, Disposable>({
    max: 1_000,
    ttl: PROMISE_MS,
    ttlAutopurge: true,
    dispose: (lease) => lease[Symbol.dispose](),
  })

  constructor(parts: ModulesParts) {
    this.#parts = parts
    this.#fetches = new SingleFlight(parts)
    this.#checks = new SingleFlight(parts)
  }

  /** The versions that a client may choose. @throws MirrorError as `ModuleLists.list` */
  listVersions(view: View, address: ModuleAddress, call: Call): Promise<Answer<readonly Version[]>> {
    return this.#parts.lists.list(view, address, call)
  }

  /**
   * The archive of a module version: held when this returns. What takes longer than the caller can wait goes on.
   * @throws MirrorError `MODULE_PENDING` then; `ORIGIN_NOT_ALLOWED`, `*_NOT_FOUND`, `NOT_CACHED`, `MODULE_*`,
   *   `RELEASE_CHANGED`, `UPSTREAM_*`, `STORAGE_*`
   */
  async locate(view: View, id: ModuleId, call: Call): Promise<Answer<ModuleState>> {
    const answer = await this.#locate(view, id, call)
    const { leases, usage } = this.#parts
    const { digest } = answer.value
    this.#promised.set(digest, await leases.lease(digest))
    usage.touch(formatModuleName(id), 0)
    return answer
  }

  /** The record of a version if it is held; asks nobody. @throws MirrorError `ORIGIN_NOT_ALLOWED`, `STORAGE_FAILED` */
  async find(view: View, id: ModuleId): Promise<ModuleRecord | undefined> {
    assertOriginAllowed(view, id.address.hostname)
    return await this.#findHeld(id)
  }

  /**
   * Opens the archive that clients were told of, by its digest; the caller disposes of it. One that was lost or evicted
   * is fetched anew, if it comes out the same.
   * @throws MirrorError `VERSION_NOT_FOUND` for a digest that this version never had; as `locate`
   */
  async openArchive(view: View, id: ModuleId, digest: Sha256, call: Call): Promise<Answer<OpenBlob>> {
    const answer = await this.#open(view, id, digest, call)
    this.#parts.usage.touch(formatModuleName(id))
    return answer
  }

  /**
   * Size of such an archive, without opening it; undefined if it would have to be fetched.
   * @throws MirrorError `ORIGIN_NOT_ALLOWED`, `VERSION_NOT_FOUND`, `STORAGE_FAILED`
   */
  async describeArchive(
    view: View,
    id: ModuleId,
    digest: Sha256,
  ): Promise<Answer<{ digest: string; size: number | undefined }>> {
    assertOriginAllowed(view, id.address.hostname)
    const record = await this.#parts.catalogue.recall(id.address, id.version)
    if (!record || !statesOf(record).some((state) => state.digest === digest)) throw unknownArchive(id)
    const stat = await this.#parts.blobs.stat(digest)
    return { value: { digest, size: stat?.size }, outcome: stat === undefined ? 'miss' : 'hit' }
  }

  /**
   * Asks anew where a held version comes from and what is there, for an operator; `before` is the record that was held.
   * @throws MirrorError `ITEM_NOT_FOUND` if it is not held; as `ModuleFetches.renew`
   */
  async renew(
    id: ModuleId,
    options: { hops: readonly string[]; replace: boolean },
  ): Promise<{ before: ModuleRecord; record: ModuleRecord }> {
    const name = formatModuleName(id)
    const before = await this.#parts.catalogue.find(id.address, id.version)
    if (before === undefined) throw notHeld(name)
    const { done } = this.#fetches.run(`${name} (${options.replace ? 'replace' : 'renew'})`, async (_, abandoned) => {
      const record = await this.#parts.fetches.renew(id, before, { ...options, abandoned })
      this.#checked.set(name, { at: this.#parts.now(), forMs: this.#parts.freshForMs })
      this.#failures.delete(name)
      return record
    })
    return { before, record: await done }
  }

  /** What is remembered of a version beside its record; asks nobody. Times in milliseconds since 1970. */
  remembered(id: ModuleId): RememberedModule {
    const name = formatModuleName(id)
    return {
      checkedAt: this.#checked.peek(name)?.at,
      failure: this.#lastFailures.peek(name),
      movedTag: this.#parts.fetches.movedTag(id),
    }
  }

  /** Waits until nothing is being fetched. */
  async idle(): Promise<void> {
    await Promise.all([this.#fetches.idle(), this.#checks.idle(), this.#parts.lists.idle()])
  }

  async #locate(view: View, id: ModuleId, call: Call): Promise<Answer<ModuleState>> {
    assertOriginAllowed(view, id.address.hostname)
    const name = formatModuleName(id)
    const held = await this.#findHeld(id)
    if (held !== undefined) return await this.#current(id, held, call)
    if (this.#parts.upstreamFor(id.address.hostname) === undefined) throw notCached(name)
    const failure = this.#failures.get(name)
    if (failure !== undefined && isYoung(this.#parts.now() - failure.at, FAILURE_MS)) throw failure.error
    const { done, joined } = this.#fetches.run(
      name,
      (_, abandoned) => this.#fetch(id, { hops: call.hops, abandoned }),
      call.leaving,
    )
    if (!(await settledWithin(untilAborted(done, call.leaving), call.deadline.remainingMs()))) {
      // They were told to come back, and then get to know what became of it.
      done.catch((error: unknown) => this.#failures.set(name, { at: this.#parts.now(), error }))
      throw pending(id)
    }
    return { value: (await untilAborted(done, call.leaving)).state, outcome: joined ? 'coalesced' : 'miss' }
  }

  async #open(view: View, id: ModuleId, digest: Sha256, call: Call): Promise<Answer<OpenBlob>> {
    assertOriginAllowed(view, id.address.hostname)
    const record = await this.#parts.catalogue.find(id.address, id.version)
    if (record !== undefined && !statesOf(record).some((state) => state.digest === digest)) throw unknownArchive(id)
    const held = record && (await this.#parts.blobs.open(digest))
    if (held !== undefined) return { value: held, outcome: 'hit' }
    for (let tries = 0; tries < MAX_OPENINGS; tries++) {
      const answer = await this.#locate(view, id, call)
      if (answer.value.digest !== digest) break
      const blob = await this.#parts.blobs.open(digest)
      if (blob !== undefined) return { ...answer, value: blob }
    }
    throw unknownArchive(id)
  }

  /** Undefined also if its archive was lost. */
  async #findHeld({ address, version }: ModuleId): Promise<ModuleRecord | undefined> {
    const record = await this.#parts.catalogue.find(address, version)
    const stat = record && (await this.#parts.blobs.stat(record.state.digest))
    return stat?.size === record?.state.size ? record : undefined
  }

  async #fetch(id: ModuleId, request: FetchRequest): Promise<ModuleRecord> {
    const { fetches, now, log } = this.#parts
    const name = formatModuleName(id)
    try {
      const record = await fetches.first(id, request)
      this.#checked.set(name, { at: now(), forMs: this.#parts.freshForMs })
      this.#lastFailures.delete(name)
      return record
    } catch (error) {
      if (request.abandoned.aborted) throw error
      if (isMirrorError(error)) this.#lastFailures.set(name, { at: now(), error })
      log.warn({ module: name, err: error }, 'could not fetch a module')
      throw error
    }
  }

  /** What is held; a branch is followed first, as far as its host answers soon. A moved tag is only reported. */
  async #current(id: ModuleId, held: ModuleRecord, call: Call): Promise<Answer<ModuleState>> {
    const { graceMs, upstreamFor, now } = this.#parts
    const { revision } = held.state
    const checked = this.#checked.get(formatModuleName(id))
    const fresh = checked !== undefined && isYoung(now() - checked.at, checked.forMs)
    if (fresh || revision.kind === 'archive' || upstreamFor(id.address.hostname) === undefined) {
      return { value: held.state, outcome: 'hit' }
    }
    const check = this.#checks.run(
      formatModuleName(id),
      (_, abandoned) => this.#check(id, held, { hops: call.hops, abandoned }),
      call.leaving,
    )
    if (!revision.moving) return { value: held.state, outcome: 'hit' }
    if (!(await settledWithin(check.done, Math.min(graceMs, call.deadline.remainingMs())))) {
      return { value: held.state, outcome: 'stale' }
    }
    try {
      const { state } = await check.done
      return { value: state, outcome: state === held.state ? 'hit' : 'miss' }
    } catch (error) {
      if (!isMirrorError(error)) throw error
      return { value: held.state, outcome: 'stale', reason: error }
    }
  }

  async #check(id: ModuleId, held: ModuleRecord, request: FetchRequest): Promise<ModuleRecord> {
    const { fetches, freshForMs, backOffMs, now, log } = this.#parts
    const name = formatModuleName(id)
    try {
      const record = await fetches.follow(id, held, request)
      this.#checked.set(name, { at: now(), forMs: freshForMs })
      return record
    } catch (error) {
      if (request.abandoned.aborted) throw error
      this.#checked.set(name, { at: now(), forMs: Math.min(backOffMs, freshForMs) })
      log.warn({ module: name, err: error }, 'could not ask whether the source of a module has moved')
      throw error
    }
  }
}

/** A negative age is none: the clock was set back. */
function isYoung(ageMs: number, limitMs: number): boolean {
  return ageMs >= 0 && ageMs < limitMs
}

function pending({ address, version }: ModuleId): MirrorError<'MODULE_PENDING'> {
  const name = formatModuleAddress(address)
  const message = `${name} ${version} is being fetched; that takes longer than a client waits, so try again in some seconds`
  return new MirrorError('MODULE_PENDING', message, { address: name, version })
}

function notHeld(item: string): MirrorError<'ITEM_NOT_FOUND'> {
  return new MirrorError('ITEM_NOT_FOUND', `${item} is not held, so there is nothing to refresh; warm it instead`, {
    item,
  })
}

function unknownArchive({ address, version }: ModuleId): MirrorError<'VERSION_NOT_FOUND'> {
  const name = formatModuleAddress(address)
  const message = `${name} ${version} has no such archive here; ask for its location again`
  return new MirrorError('VERSION_NOT_FOUND', message, { address: name, version })
}
