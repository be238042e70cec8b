import { isDeepStrictEqual } from 'node:util'
import { LRUCache } from 'lru-cache'
import { isMirrorError, MirrorError, redactUrl } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Hostname } from '../protocol/hostname.ts'
import { formatModuleAddress } from '../protocol/module-address.ts'
import type { ModuleLocation } from '../protocol/module-location.ts'
import { parseSha256, type Sha256 } from '../protocol/package-hash.ts'
import type { BlobStore } from '../store/blob-store.ts'
import { ConcurrencyLimit } from '../store/concurrency-limit.ts'
import { SerialByKey } from '../store/serial-by-key.ts'
import type { ModuleTree, ModuleUpstream } from '../upstream/module-upstream.ts'
import type { UpstreamRequest } from '../upstream/provider-upstream.ts'
import { createDeadline } from './deadline.ts'
import type { ModuleCatalogue } from './module-catalogue.ts'
import { acceptAll, acceptRequired, assertUnchanged, isChanged, type Judge, type Offered } from './module-change.ts'
import type { ModuleLists } from './module-lists.ts'
import { type ModuleRecord, type ModuleState, statesOf } from './module-record.ts'
import type { MirrorObserver } from './observer.ts'
import { notCached } from './origin-lists.ts'
import type { BlobClaims } from './stock/blob-claims.ts'
import { formatModuleName, type ModuleId } from './stock/item-name.ts'
import type { ModuleUpstreamFor } from './upstreams.ts'

/** How long the registry's documents for a module may take. */
const DOCUMENTS_MS = 8_000
const FILES_MS = 15 * 60_000
/** Modules of one origin whose files are fetched at one time: each may run a git, or a thread that unpacks. */
const MAX_AT_ONCE = 8
const MAX_EARLIER_STATES = 5

/** What a fetch is begun with. */
export interface FetchRequest {
  /** Mirrors that the request has already passed. */
  readonly hops: readonly string[]
  /** Fires when nobody wants it any more. */
  readonly abandoned: AbortSignal
}

/** What `ModuleFetches` is made of. */
export interface ModuleFetchesParts {
  readonly catalogue: ModuleCatalogue
  readonly claims: BlobClaims
  readonly lists: ModuleLists
  readonly blobs: BlobStore
  readonly upstreamFor: ModuleUpstreamFor
  readonly shutdown: AbortSignal
  readonly observer: MirrorObserver
  readonly now: () => number
  readonly log: Log
  /** The most that all files of a module may take; a repository with a long history takes minutes. Default 15 minutes. */
  readonly filesMs?: number
}

interface Keeping {
  /** Throws if what came must not be kept. */
  readonly judge: Judge
  /** Takes the claim to the archive's blob, until the record is written. */
  readonly claims: DisposableStack
}

/** The pull-through of modules: location, files, one archive, record. The blob comes first, the record last. */
export class ModuleFetches {
  readonly #parts: ModuleFetchesParts
  readonly #keeping = new SerialByKey()
  /** Tags that were found to name another commit. */
  readonly #moved = new LRUCache<string, { readonly at: number; readonly offered: string }>({ max: 1_000 })
  readonly #limits = new LRUCache<Hostname, ConcurrencyLimit>({ max: 1_000 })

  constructor(parts: ModuleFetchesParts) {
    this.#parts = parts
  }

  /**
   * Fetches a version that is not held, or whose archive was lost or evicted: then it must come out as it was.
   * @throws MirrorError as `Modules.locate`
   */
  async first(id: ModuleId, request: FetchRequest): Promise<ModuleRecord> {
    const { catalogue, lists } = this.#parts
    const { hops, abandoned: leaving } = request
    const call = { deadline: createDeadline(DOCUMENTS_MS), hops, leaving }
    const { spelling } = await lists.find(id.address, id.version, call)
    const location = await this.#locate(id, spelling, request)
    const earlier = await catalogue.recall(id.address, id.version)
    const judge = (offered: Offered): void => earlier && assertUnchanged(id, earlier.state, offered)
    using claims = new DisposableStack()
    const state = await this.#inTurn(id, () => this.#fetch(id, location, { request, judge, claims }))
    return await this.#keep(id, { spelling, state, before: earlier, earlier: statesOf(earlier) })
  }

  /**
   * Asks whether the source of a held version names something else by now. A branch may: its new state is fetched. A tag
   * must not: that is reported, and what is held stays.
   * @throws MirrorError `UPSTREAM_*`, `MODULE_*`, `STORAGE_*`
   */
  async follow(id: ModuleId, held: ModuleRecord, request: FetchRequest): Promise<ModuleRecord> {
    const { revision, source: heldSource } = held.state
    if (revision.kind === 'archive') return held
    const location = await this.#locate(id, held.spelling, request)
    const { source } = location
    const current = await this.#within(DOCUMENTS_MS, { id, request }, (upstreamRequest) =>
      this.#upstream(id).currentCommit(location, upstreamRequest),
    )
    const now = current ?? (source.kind === 'git' ? source.ref : undefined)
    // A commit may be named by the first digits of its id.
    if (now === undefined || revision.commit.startsWith(now)) return held
    if (revision.moving) {
      using claims = new DisposableStack()
      const state = await this.#inTurn(id, () => this.#fetch(id, location, { request, judge: acceptAll, claims }))
      return await this.#keep(id, { spelling: held.spelling, state, before: held, earlier: statesOf(held) })
    }
    this.#moved.set(formatModuleName(id), { at: this.#parts.now(), offered: now })
    this.#parts.observer.releaseChanged()
    const facts = {
      module: formatModuleName(id),
      held: revision.commit,
      offered: now,
      heldSource,
      source: describeSource(location),
    }
    this.#parts.log.error(facts, 'the tag of a module was moved at its origin; the commit that is held stays')
    return held
  }

  /**
   * Asks anew for a held version, for an operator. With `replace`, its files may be others than before: then nothing of
   * what was held stays in the record. Whose archives are not named any more, is for the caller to remove.
   * @throws MirrorError `ACCEPT_REQUIRED` if they changed, without `replace`; as `first`
   */
  async renew(
    id: ModuleId,
    held: ModuleRecord,
    { replace, ...request }: FetchRequest & { replace: boolean },
  ): Promise<ModuleRecord> {
    const { lists } = this.#parts
    const { hops, abandoned: leaving } = request
    const call = { deadline: createDeadline(DOCUMENTS_MS), hops, leaving }
    const { spelling } = await lists.find(id.address, id.version, call)
    const location = await this.#locate(id, spelling, request)
    const judge = (offered: Offered): void => {
      if (!replace && isChanged(held.state, offered)) throw acceptRequired(id, held.state, offered)
    }
    using claims = new DisposableStack()
    const state = await this.#inTurn(id, () => this.#fetch(id, location, { request, judge, claims }))
    const sameFiles = state.tarDigest === held.state.tarDigest
    if (sameFiles && (!replace || isDeepStrictEqual(state.revision, held.state.revision))) return held
    const moving = held.state.revision.kind === 'commit' && held.state.revision.moving
    return await this.#keep(id, { spelling, state, before: held, earlier: moving ? statesOf(held) : [] })
  }

  /** The commit that the tag of a held version was last found to name instead, if it was. Asks nobody. */
  movedTag(id: ModuleId): { readonly at: number; readonly offered: string } | undefined {
    return this.#moved.peek(formatModuleName(id))
  }

  async #locate(id: ModuleId, spelling: string, request: FetchRequest): Promise<ModuleLocation> {
    return await this.#within(DOCUMENTS_MS, { id, request }, (upstreamRequest) =>
      this.#upstream(id).locate(id.address, spelling, upstreamRequest),
    )
  }

  /** One origin that hangs must not hold up the modules of others. */
  #inTurn<T>({ address: { hostname } }: ModuleId, work: () => Promise<T>): Promise<T> {
    const limit = this.#limits.get(hostname) ?? new ConcurrencyLimit(MAX_AT_ONCE)
    this.#limits.set(hostname, limit)
    return limit.run(work)
  }

  async #fetch(
    id: ModuleId,
    location: ModuleLocation,
    { request, ...rest }: { request: FetchRequest } & Keeping,
  ): Promise<ModuleState> {
    const { filesMs = FILES_MS, observer } = this.#parts
    observer.downloading(1)
    try {
      return await this.#within(filesMs, { id, request }, (upstreamRequest) =>
        this.#archive(id, location, { request: upstreamRequest, ...rest }),
      )
    } finally {
      observer.downloading(-1)
    }
  }

  async #archive(
    id: ModuleId,
    location: ModuleLocation,
    { request, judge, claims }: { request: UpstreamRequest } & Keeping,
  ): Promise<ModuleState> {
    const { blobs, now, log } = this.#parts
    // First, so that a full disk leaves no work of others hanging.
    await using incoming = await blobs.create()
    await using tree = await this.#upstream(id).open(location, request)
    if (tree.notes.length > 0)
      log.warn({ module: formatModuleName(id), notes: tree.notes }, 'left something out of a module')
    const subfolder = servedSubfolder(location)
    assertFolder(id, tree, subfolder)
    // Loaded at the first use.
    const { packModule } = await import('./module-archive.ts')
    const { tarDigest, unpackedBytes } = await packModule(tree, incoming, request.signal)
    judge({ tarDigest, digest: incoming.digest(), revision: tree.revision })
    claims.use(await this.#parts.claims.claim([incoming.digest()]))
    const { digest, size } = await incoming.commit()
    const state: ModuleState = {
      digest: asSha256(digest),
      size,
      tarDigest: asSha256(tarDigest),
      unpackedBytes,
      files: tree.files.size,
      source: describeSource(location),
      revision: tree.revision,
      subfolder,
      cachedAt: new Date(now()).toISOString(),
    }
    const { source, files, revision } = state
    log.info({ module: formatModuleName(id), source, revision, digest, size, files }, 'fetched a module')
    return state
  }

  /** If the record is not `before` any more, an operator has replaced it meanwhile: what is there now counts. */
  #keep(
    id: ModuleId,
    {
      spelling,
      state,
      before,
      earlier,
    }: { spelling: string; state: ModuleState; before: ModuleRecord | undefined; earlier: readonly ModuleState[] },
  ): Promise<ModuleRecord> {
    const { catalogue } = this.#parts
    const { address, version } = id
    return this.#keeping.run(formatModuleName(id), async () => {
      const current = await catalogue.find(address, version)
      if (current !== undefined && current.state.digest !== before?.state.digest) return current
      const record: ModuleRecord = {
        format: 1,
        address: formatModuleAddress(address),
        version,
        spelling,
        state,
        earlier: earlier.filter(({ digest }) => digest !== state.digest).slice(0, MAX_EARLIER_STATES),
      }
      await catalogue.save(address, record)
      this.#moved.delete(formatModuleName(id))
      return record
    })
  }

  #upstream(id: ModuleId): ModuleUpstream {
    const upstream = this.#parts.upstreamFor(id.address.hostname)
    if (upstream === undefined) throw notCached(formatModuleName(id))
    return upstream
  }

  /** Work with a limit in time. @throws MirrorError `UPSTREAM_TIMEOUT` beyond it */
  async #within<T>(
    ms: number,
    { id, request: { hops, abandoned } }: { id: ModuleId; request: FetchRequest },
    work: (request: UpstreamRequest) => Promise<T>,
  ): Promise<T> {
    abandoned.throwIfAborted()
    const limit = AbortSignal.timeout(ms)
    try {
      return await work({ signal: AbortSignal.any([this.#parts.shutdown, limit, abandoned]), hops })
    } catch (error) {
      if (!limit.aborted || isMirrorError(error)) throw error
      const message = `${formatModuleName(id)}: its source did not answer completely within ${ms / 1_000} seconds`
      throw new MirrorError('UPSTREAM_TIMEOUT', message, { host: id.address.hostname }, error)
    }
  }
}

/** The source for records and logs: what may be secret in it is left out. */
function describeSource({ source }: ModuleLocation): string {
  const ref = source.kind === 'git' && source.ref !== undefined ? ` at ${source.ref}` : ''
  return `${source.kind === 'git' ? 'git::' : ''}${redactUrl(source.url)}${ref}`
}

/** The one top folder that `*` stands for is taken off when the archive is made. */
function servedSubfolder({ source }: ModuleLocation): string {
  return source.subfolder.replace(/^\*(?:\/|$)/, '')
}

/** First copy wins, so what no client can use must not be the first copy: the registry may yet correct it. */
function assertFolder(id: ModuleId, { files }: ModuleTree, subfolder: string): void {
  const paths = [...files.keys()]
  if (subfolder === '' || paths.some((path) => path.startsWith(`${subfolder}/`))) return
  const reason = `its location names the folder ${JSON.stringify(subfolder)}, which is not in it`
  throw new MirrorError('MODULE_INVALID', `${formatModuleName(id)}: ${reason}`, { reason })
}

function asSha256(digest: string): Sha256 {
  const parsed = parseSha256(digest)
  if (parsed === undefined) throw new Error(`not a digest: ${digest}`)
  return parsed
}
