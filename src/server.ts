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
import { CountedWorkspaces } from './mirror/space/counted-workspaces.ts'
import type { View } from './mirror/view.ts'
import { OriginUpstreams } from './origin-upstreams.ts'
import { createPageParts } from './page-parts.ts'
import { createOriginAllowList } from './policy/origin-allow-list.ts'
import { findOriginKey } from './policy/origin-key.ts'
import { openStorage, type Storage } from './storage.ts'
import type { BlobStore } from './store/blob-store.ts'
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
  const now = parts.now ?? Date.now
  const storage = opened.use(
    await openStorage({
      ...{ config, metrics, wrapBlobs: parts.wrapBlobs, shutdown: shutdown.signal, now, log },
      onLost: (error) => parts.onFatal?.(error),
    }),
  )
  const { state, space } = storage
  const instanceId = randomUUID()
  const origins = createOriginStates(parts)
  const upstreams =
    config.mode === 'sealed'
      ? undefined
      : opened.use(await createUpstreams(parts, { storage, metrics, origins, instanceId }))
  const allowsOrigin = createOriginAllowList(Object.keys(config.origins))
  const view: View = { id: 'public', allowsOrigin }
  const common = { ...storage, config, metrics, origins, shutdown: shutdown.signal, now, log }
  const useCases = await createUseCases({ ...common, upstreams })

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
  const operations = createOperations({ ...common, useCases, view })
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

function createOriginStates({ config, now = Date.now }: ServerParts): OriginStates {
  const keys = Object.keys(config.origins)
  return new OriginStates({ origins: config.origins, keyOf: (hostname) => findOriginKey(keys, hostname), now })
}

function createUpstreams(
  { config, version, now = Date.now, log }: ServerParts,
  parts: { storage: Storage; metrics: Metrics; origins: OriginStates; instanceId: string },
): Promise<OriginUpstreams> {
  const { storage, metrics, origins, instanceId } = parts
  const userAgent = config.upstream.userAgent ?? `Terramirror/${version}`
  const { metadata: memory } = storage.folder
  const workspaces = new CountedWorkspaces(storage.folder.workspaces, storage.space.ledger)
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
