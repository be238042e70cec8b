import { randomUUID } from 'node:crypto'
import type { Config, OriginConfig } from './config/schema.ts'
import { MirrorError } from './errors.ts'
import { ConnectionFront } from './http/connection-front.ts'
import { createFrontPath } from './http/front-path.ts'
import type { Lifecycle } from './http/health-routes.ts'
import { HotDocuments } from './http/hot-documents.ts'
import { createPublicApp } from './http/public-app.ts'
import { RequestAccount } from './http/request-account.ts'
import { createRequestListener } from './http/request-listener.ts'
import { KEEP_ALIVE_MS, type Listener, openListener } from './listener.ts'
import type { Log } from './log.ts'
import { Metrics } from './metrics.ts'
import { Archives } from './mirror/archives.ts'
import { Catalogue } from './mirror/catalogue.ts'
import { DocumentCache, type Freshness } from './mirror/freshness.ts'
import { Mirror } from './mirror/mirror.ts'
import type { MirrorObserver } from './mirror/observer.ts'
import { PackageHashes } from './mirror/package-hashes.ts'
import { Releases } from './mirror/releases.ts'
import { parseStoredVersions } from './mirror/stored-versions.ts'
import { Versions } from './mirror/versions.ts'
import type { View } from './mirror/view.ts'
import { findOriginConfig, OriginUpstreams } from './origin-upstreams.ts'
import { createOriginAllowList } from './policy/origin-allow-list.ts'
import type { Hostname } from './protocol/hostname.ts'
import type { BlobStore } from './store/blob-store.ts'
import { CheckedBlobStore } from './store/checked-blob-store.ts'
import { type DataFolder, openDataFolder } from './store/disk/data-folder.ts'
import { openTlsIdentity } from './tls/tls-identity.ts'
import type { UpstreamObserver } from './upstream/observer.ts'
import type { ProviderUpstream } from './upstream/provider-upstream.ts'
import { PackageHasher } from './verify/h1-worker.ts'
import { findUnsafety } from './verify/package-safety.ts'

/** What is held is served stale when the origin has not answered within this time (design, rule 2). */
const GRACE_MS = 1_500
/** After a failed refresh, what is held is served at once for this long. */
const MAX_BACK_OFF_MS = 10_000
/** One refresh with all its retries; less than the 8 s in which a request must be answered. */
const REFRESH_MS = 7_500

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
  const metrics = new Metrics(Object.keys(config.origins))
  const folder = opened.use(
    await openDataFolder({ dataDir: config.dataDir, log, onLost: () => parts.onFatal?.(lostFolder(config.dataDir)) }),
  )
  const blobs = new CheckedBlobStore(parts.wrapBlobs?.(folder.blobs) ?? folder.blobs, {
    recheckAfterMs: config.archives.recheckAfter,
    now: parts.now ?? Date.now,
    onSizeChange: (bytes) => metrics.cacheBytes.inc(bytes),
    onDamaged: (digest) => {
      metrics.damagedBlobs.inc()
      log.error({ digest }, 'a stored file was damaged; it was set aside and will be fetched again')
    },
  })
  const instanceId = randomUUID()
  const upstreams =
    config.mode === 'sealed' ? undefined : opened.use(await createUpstreams(parts, { folder, metrics, instanceId }))
  const mirror = createMirror(parts, { folder, blobs, metrics, upstreams, shutdown: shutdown.signal })

  let lifecycle: Lifecycle = 'starting'
  const allowsOrigin = createOriginAllowList(Object.keys(config.origins))
  const view: View = { id: 'public', allowsOrigin }
  const account = new RequestAccount({ log, metrics })
  const documents = new HotDocuments(account)
  const front = new ConnectionFront({ documents, view, idleMs: KEEP_ALIVE_MS })
  const app = createPublicApp({
    mirror,
    view,
    instanceId,
    documents,
    lifecycle: () => lifecycle,
    registry: metrics.registry,
    publicUrl: config.publicUrl,
  })
  const identity = await openTlsIdentity({
    tls: config.listen.tls,
    stateDir: config.stateDir,
    listenHost: config.listen.host,
    ...(config.publicUrl === undefined ? {} : { publicUrl: config.publicUrl }),
    log,
  })
  if (identity !== undefined) opened.use(identity)
  const listener = await openListener({
    ...config.listen,
    identity,
    handle: createRequestListener(app, { account, serveHot: createFrontPath(documents, view), front }),
    accept: (socket, handOver) => front.accept(socket, handOver),
    onHandshakeFailure: limitRate((error: Error) =>
      log.info(
        { reason: 'code' in error ? error.code : error.message },
        'a client broke off the TLS handshake: does it trust our CA?',
      ),
    ),
  })
  lifecycle = 'ready'
  void measureCache(blobs, { metrics, log, signal: shutdown.signal })
  const resources = opened.move()
  let closing: Promise<void> | undefined
  return {
    url: config.publicUrl ?? localUrl(config.listen.host, listener.port, identity !== undefined),
    port: listener.port,
    caFile: identity?.caFile,
    caBundleFile: identity?.caBundleFile,
    close(graceMs) {
      lifecycle = 'draining'
      closing ??= closeAll({ listener, graceMs, shutdown, mirror, resources })
      return closing
    },
  }
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

interface Foundations {
  readonly folder: DataFolder
  readonly metrics: Metrics
}

function createUpstreams(
  { config, version, now = Date.now, log }: ServerParts,
  { folder, metrics, instanceId }: Foundations & { instanceId: string },
): Promise<OriginUpstreams> {
  const observer: UpstreamObserver = {
    answered(name, status, durationMs) {
      const host = metrics.hostLabel(name)
      metrics.upstreamRequests.inc({ host, status: String(status) })
      metrics.upstreamSeconds.observe({ host }, durationMs / 1_000)
    },
    received: (name, bytes) => metrics.upstreamBytes.inc({ host: metrics.hostLabel(name) }, bytes),
    retried: (name) => metrics.upstreamRetries.inc({ host: metrics.hostLabel(name) }),
  }
  const userAgent = config.upstream.userAgent ?? `Terramirror/${version}`
  return OriginUpstreams.create({ config, memory: folder.metadata, observer, instanceId, userAgent, now, log })
}

function createMirror(
  { config, now = Date.now, log }: ServerParts,
  parts: Foundations & { blobs: BlobStore; upstreams: OriginUpstreams | undefined; shutdown: AbortSignal },
): Mirror {
  const { folder, blobs, metrics, upstreams, shutdown } = parts
  const observer: MirrorObserver = {
    judged: (verdict) => metrics.verdicts.inc({ verdict }),
    releaseChanged: () => metrics.releaseChanges.inc(),
    downloading: (change) => metrics.downloads.inc(change),
  }
  const freshness: Freshness = {
    freshForMs: config.freshness.versions,
    notFoundForMs: config.freshness.notFound,
    graceMs: GRACE_MS,
    backOffMs: Math.min(MAX_BACK_OFF_MS, config.freshness.versions),
    refreshForMs: REFRESH_MS,
  }
  const upstreamFor = (hostname: Hostname): ProviderUpstream | undefined => upstreams?.for(hostname)
  const rulesFor = (hostname: Hostname): OriginConfig['verification'] =>
    findOriginConfig(config.origins, hostname)?.verification ?? config.verification
  const catalogue = new Catalogue(folder.records, log)
  const cache = folder.metadata
  const lists = new DocumentCache({
    cache,
    prefix: 'versions',
    parse: parseStoredVersions,
    onChange: (address) => catalogue.editions.end(address),
    freshness,
    now,
    log,
    shutdown,
  })
  const versions = new Versions({ catalogue, upstreamFor, lists, now, log })
  const common = { catalogue, blobs, upstreamFor, shutdown, observer, now, log }
  const releases = new Releases({ ...common, versions, rulesFor, freshness })
  const hashes = new PackageHashes({ records: folder.records, blobs, hasher: new PackageHasher(), log })
  const archives = new Archives({ ...common, releases, hashes, findUnsafety })
  return new Mirror({ catalogue, versions, releases, archives, hashes, upstreamFor })
}

/** Adds up what is stored, off every request's path; what comes later adds itself. */
async function measureCache(
  blobs: BlobStore,
  { metrics, log, signal }: { metrics: Metrics; log: Log; signal: AbortSignal },
): Promise<void> {
  try {
    for await (const { size } of blobs.list()) {
      if (signal.aborted) return
      metrics.cacheBytes.inc(size)
    }
  } catch (error) {
    log.warn({ err: error }, 'could not measure the cache')
  }
}

async function closeAll(parts: {
  listener: Listener
  graceMs: number
  shutdown: AbortController
  mirror: Mirror
  resources: AsyncDisposableStack
}): Promise<void> {
  const { listener, graceMs, shutdown, mirror, resources } = parts
  await using _resources = resources
  await listener.close(graceMs)
  shutdown.abort(new MirrorError('SHUTTING_DOWN', 'this mirror is stopping', {}))
  await mirror.close()
}

function lostFolder(dataDir: string): MirrorError {
  return new MirrorError('STORAGE_FAILED', `another process took over ${dataDir}; this one must not write any more`, {
    operation: 'lock',
  })
}

function localUrl(host: string, port: number, secure: boolean): string {
  const everywhere = host === '0.0.0.0' || host === '::' || host === '127.0.0.1' || host === '::1'
  const name = everywhere ? 'localhost' : host.includes(':') ? `[${host}]` : host
  return `${secure ? 'https' : 'http'}://${name}:${port}/`
}
