import { randomUUID } from 'node:crypto'
import { createOperations, type RunningOperations } from './admin-operations.ts'
import { type AdminServer, type AdminServerParts, openAdminServer } from './admin-server.ts'
import type { Config } from './config/schema.ts'
import { MirrorError } from './errors.ts'
import { ConnectionFront } from './http/connection-front.ts'
import { createFrontPath } from './http/front-path.ts'
import type { Lifecycle } from './http/health-routes.ts'
import { HotDocuments } from './http/hot-documents.ts'
import { createPublicApp } from './http/public-app.ts'
import { RequestAccount } from './http/request-account.ts'
import { createRequestListener } from './http/request-listener.ts'
import { KEEP_ALIVE_MS, type Listener, openListener, urlOf } from './listener.ts'
import type { Log } from './log.ts'
import { showLiveValues } from './metrics/live-values.ts'
import { Metrics } from './metrics/metrics.ts'
import { PinnedSets } from './mirror/pins/pinned-sets.ts'
import { CountedWorkspaces } from './mirror/space/counted-workspaces.ts'
import { Space } from './mirror/space/space.ts'
import type { View } from './mirror/view.ts'
import { OriginUpstreams } from './origin-upstreams.ts'
import { createPageParts } from './page-parts.ts'
import { createOriginAllowList } from './policy/origin-allow-list.ts'
import { findOriginKey } from './policy/origin-key.ts'
import type { BlobStore } from './store/blob-store.ts'
import { CheckedBlobStore } from './store/checked-blob-store.ts'
import { type DataFolder, openDataFolder } from './store/disk/data-folder.ts'
import { openStateFolder } from './store/disk/state-folder.ts'
import { LeasedBlobStore } from './store/leased-blob-store.ts'
import { openTlsIdentity } from './tls/tls-identity.ts'
import { OriginStates } from './upstream/origin-states.ts'
import { createUseCases, type UseCases } from './use-cases.ts'

/** What the process brings along, beside the configuration. */
export interface ServerParts {
  readonly config: Config
  readonly version: string
  readonly log: Log
  /** Milliseconds since 1970; tests bring their own clock. */
  readonly now?: () => number
  /** Wraps the blob store; tests inject faults. */
  readonly wrapBlobs?: (blobs: BlobStore) => BlobStore
  /** Called if the server cannot go on: the caller should close it and exit. */
  readonly onFatal?: (error: MirrorError) => void
}

/** A mirror that serves. Whoever started it closes it. */
export interface RunningServer {
  /** Base URL as a client on this machine reaches it, or `publicUrl`; ends with `/`. */
  readonly url: string
  readonly port: number
  /** PEM file with our CA and the public roots, for clients; undefined unless `tls: auto`. */
  readonly caBundleFile: string | undefined
  readonly caFile: string | undefined
  /** Where commands on this machine reach the admin API; ends with `/`. `unix:PATH` for a socket, undefined for `off`. */
  readonly adminUrl: string | undefined
  /** No new work; running downloads and answers get `graceMs`; then everything is closed. Safe to call twice. */
  close(graceMs: number): Promise<void>
}

/**
 * Composes the parts and starts to serve.
 * @throws MirrorError `CONFIGURATION`, `STORAGE_FULL`, `STORAGE_FAILED`; nothing stays open then
 */
export async function startServer(parts: ServerParts): Promise<RunningServer> {
  const { config, log } = parts
  await using opened = new AsyncDisposableStack()
  const shutdown = new AbortController()
  const metrics = new Metrics({ origins: Object.keys(config.origins), ...config.metrics })
  metrics.instance.describe({ version: parts.version, sealed: config.mode === 'sealed' })
  const folder = opened.use(
    await openDataFolder({ dataDir: config.dataDir, log, onLost: () => parts.onFatal?.(lostFolder(config.dataDir)) }),
  )
  const state = opened.use(await openStateFolder({ stateDir: config.stateDir, log }))
  const now = parts.now ?? Date.now
  const pins = await PinnedSets.open({ records: state.records, now, log })
  const space = createSpace(parts, { folder, metrics, shutdown: shutdown.signal })
  const checked = new CheckedBlobStore(space.blobs, {
    recheckAfterMs: config.archives.recheckAfter,
    now,
    onDamaged: (digest) => {
      metrics.storage.damaged()
      log.error({ digest }, 'a stored file was damaged; it was set aside and will be fetched again')
    },
  })
  const blobs = new LeasedBlobStore(checked, space.leases)
  const instanceId = randomUUID()
  const origins = createOriginStates(parts)
  const upstreams =
    config.mode === 'sealed'
      ? undefined
      : opened.use(await createUpstreams(parts, { folder, metrics, origins, space, instanceId }))
  const allowsOrigin = createOriginAllowList(Object.keys(config.origins))
  const view: View = { id: 'public', allowsOrigin }
  const useCases = await createUseCases({
    config,
    state,
    now,
    log,
    folder,
    blobs,
    space,
    pins,
    metrics,
    origins,
    upstreams,
    shutdown: shutdown.signal,
  })

  let lifecycle: Lifecycle = 'starting'
  const account = new RequestAccount({ log, metrics })
  const documents = new HotDocuments(account)
  const front = new ConnectionFront({ documents, view, idleMs: KEEP_ALIVE_MS })
  const identity = await openTlsIdentity({
    tls: config.listen.tls,
    stateDir: config.stateDir,
    listenHost: config.listen.host,
    ...(config.publicUrl === undefined ? {} : { publicUrl: config.publicUrl }),
    log,
  })
  if (identity !== undefined) opened.use(identity)
  showLiveValues(metrics, {
    isReady: () => lifecycle === 'ready',
    origins: () => origins.list([]),
    held: (kind) => (useCases.inventory.isComplete ? useCases.inventory.count(kind) : undefined),
    certificates: () => ({ server: identity?.certificatePem(), authority: identity?.authorityPem?.() }),
    dataDir: config.dataDir,
  })
  const app = createPublicApp({
    ...useCases,
    view,
    instanceId,
    delivery: config.archives.delivery,
    documents,
    lifecycle: () => lifecycle,
    metrics,
    defaultOrigin: config.defaultOrigin,
    ...(await createPageParts(parts, { inventory: useCases.inventory, stored: space.blobs.stored, identity })),
  })
  const onHandshakeFailure = limitRate((error: Error) =>
    log.info(
      { reason: reasonOf(error) },
      `a client ${HANDSHAKES[reasonOf(error)] ?? 'broke off the TLS handshake: does it trust our CA?'}`,
    ),
  )
  const operations = createOperations({
    ...{ config, useCases, folder, state, blobs, checked, space, pins, origins, metrics, view, now, log },
    shutdown: shutdown.signal,
  })
  await operations.recover()
  const admin = await openAdmin(parts, { state, operations, identity, metrics, onHandshakeFailure })
  if (admin !== undefined) opened.defer(() => admin.close(0))
  const listener = await openListener({
    address: config.listen,
    key: 'listen',
    identity,
    handle: createRequestListener(app, { account, serveHot: createFrontPath(documents, view), front }),
    accept: (socket, handOver) => front.accept(socket, handOver),
    onHandshakeFailure,
  })
  lifecycle = 'ready'
  void useCases.takeStock()
  void space.watch()
  void operations.resume()
  const resources = opened.move()
  let closing: Promise<void> | undefined
  return {
    url: config.publicUrl ?? urlOf(config.listen, { port: listener.port, secure: identity !== undefined }),
    port: listener.port,
    caFile: identity?.caFile,
    caBundleFile: identity?.caBundleFile,
    adminUrl: admin?.url,
    close(graceMs) {
      lifecycle = 'draining'
      const listeners = admin === undefined ? [listener] : [listener, admin]
      closing ??= closeAll({ listeners, graceMs, shutdown, operations, useCases, resources })
      return closing
    },
  }
}

const HANDSHAKES: Readonly<Record<string, string>> = {
  ERR_SSL_HTTP_REQUEST: 'spoke plain http to the TLS port: its URL must begin with https',
}

function reasonOf(error: Error): string {
  return 'code' in error ? String(error.code) : error.message
}

/** Passes a call on at most once in ten seconds: what strangers can cause must not fill the log. */
function limitRate<A extends unknown[]>(action: (...args: A) => void): (...args: A) => void {
  let last = Number.NEGATIVE_INFINITY
  return (...args) => {
    if (performance.now() - last < 10_000) return
    last = performance.now()
    action(...args)
  }
}

/** Undefined where the configuration does without. */
async function openAdmin(
  { config, version, now = Date.now, log }: ServerParts,
  parts: Pick<AdminServerParts, 'state' | 'operations' | 'identity' | 'metrics' | 'onHandshakeFailure'>,
): Promise<AdminServer | undefined> {
  const { admin, stateDir } = config
  return admin === 'off' ? undefined : await openAdminServer({ ...parts, config: admin, stateDir, version, now, log })
}

interface Foundations {
  readonly folder: DataFolder
  readonly metrics: Metrics
  readonly origins: OriginStates
}

function createOriginStates({ config, now = Date.now }: ServerParts): OriginStates {
  const keys = Object.keys(config.origins)
  return new OriginStates({ origins: config.origins, keyOf: (hostname) => findOriginKey(keys, hostname), now })
}

/** Sealed, nothing comes in and nothing is evicted. */
function createSpace(
  { config, wrapBlobs, log }: ServerParts,
  { folder, metrics, shutdown }: Omit<Foundations, 'origins'> & { shutdown: AbortSignal },
): Space {
  const { maxSize, minFree } = config.archives
  const isSealed = config.mode === 'sealed'
  const space = new Space({
    blobs: wrapBlobs?.(folder.blobs) ?? folder.blobs,
    limits: isSealed ? { maxSize: undefined, minFree: undefined } : { maxSize, minFree },
    diskFree: () => folder.freeBytes(),
    shutdown,
    log,
    onChange: () => {
      const { size, diskBytes } = space.blobs.stored.sum
      metrics.storage.cacheBytes.set(size)
      metrics.storage.showDisk({ used: space.blobs.stored.isMeasured ? diskBytes : undefined })
    },
    onRefused: () => metrics.storage.spaceRefused(),
  })
  metrics.onRead(() => metrics.storage.showDisk({ reserved: space.ledger.reserved, limit: maxSize, minFree }))
  return space
}

function createUpstreams(
  { config, version, now = Date.now, log }: ServerParts,
  { folder, metrics, origins, space, instanceId }: Foundations & { space: Space; instanceId: string },
): Promise<OriginUpstreams> {
  const userAgent = config.upstream.userAgent ?? `Terramirror/${version}`
  const { metadata: memory } = folder
  const workspaces = new CountedWorkspaces(folder.workspaces, space.ledger)
  const told = { observer: metrics.upstream, states: origins }
  return OriginUpstreams.create({ config, memory, workspaces, ...told, instanceId, userAgent, now, log })
}

async function closeAll(parts: {
  listeners: readonly Pick<Listener, 'close'>[]
  graceMs: number
  shutdown: AbortController
  operations: RunningOperations
  useCases: UseCases
  resources: AsyncDisposableStack
}): Promise<void> {
  const { listeners, graceMs, shutdown, operations, useCases, resources } = parts
  await using _resources = resources
  await Promise.all([...listeners.map((each) => each.close(graceMs)), operations.close()])
  shutdown.abort(new MirrorError('SHUTTING_DOWN', 'this mirror is stopping', {}))
  await useCases.close()
}

function lostFolder(dataDir: string): MirrorError {
  return new MirrorError('STORAGE_FAILED', `another process took over ${dataDir}; this one must not write any more`, {
    operation: 'lock',
  })
}
