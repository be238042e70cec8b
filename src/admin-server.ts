import type { Hono } from 'hono'
import type { AdminAppParts } from './admin/admin-app.ts'
import { ADMIN_BASE } from './admin/admin-base.ts'
import type { AdminEnv } from './admin/admin-env.ts'
import { createAdminRequestListener } from './admin/admin-request-listener.ts'
import { AuditLog } from './admin/audit-log.ts'
import type { Operations } from './admin/operations.ts'
import { openAdminToken } from './admin-token.ts'
import type { AdminConfig } from './config/admin-schema.ts'
import { type ListenerOptions, openListener, urlOf } from './listener.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics/metrics.ts'
import type { StateStore } from './store/state-store.ts'
import type { TlsIdentity } from './tls/tls-identity.ts'

/** In the state store. */
const AUDIT_JOURNAL = 'audit'

/** What the admin listener is made of; all of it belongs to the caller. */
export interface AdminServerParts {
  readonly config: Exclude<AdminConfig, 'off'>
  readonly stateDir: string
  readonly state: StateStore
  readonly operations: Operations
  /** Undefined: plain http. */
  readonly identity: TlsIdentity | undefined
  readonly onHandshakeFailure: ListenerOptions['onHandshakeFailure']
  readonly metrics: Metrics
  /** Of the program. */
  readonly version: string
  readonly now: () => number
  readonly log: Log
}

/** The admin API that is served. Whoever opened it closes it. */
export interface AdminServer {
  /** As commands on this machine reach it; ends with `/`. `unix:PATH` for a socket. */
  readonly url: string
  /** Ends streams of events, gives running answers up to `graceMs`, then tears what is left. Safe to call twice. */
  close(graceMs: number): Promise<void>
}

/**
 * Serves the admin API on its own listener.
 * @throws MirrorError `CONFIGURATION`, `STORAGE_FULL`, `STORAGE_FAILED`; nothing stays open then
 */
export async function openAdminServer(parts: AdminServerParts): Promise<AdminServer> {
  const { config, stateDir, state, operations, identity, onHandshakeFailure, metrics, version, now, log } = parts
  await using opened = new AsyncDisposableStack()
  const token = await openAdminToken(config.token, stateDir)
  const journal = opened.use(await state.journal(AUDIT_JOURNAL))
  const audit = await AuditLog.open({ journal, now })
  opened.defer(() => audit.idle())
  const stopping = new AbortController()
  const observer = metrics.admin
  const app = openLater({ ...operations, audit, observer, who: token.name, version, stopping: stopping.signal })
  const isSocket = 'socket' in config.listen
  const listener = await openListener({
    address: config.listen,
    key: 'admin.listen',
    identity: isSocket ? undefined : withoutClientCertificates(identity),
    handle: createAdminRequestListener(app, { token, audit, observer, log }),
    onHandshakeFailure,
  })
  const resources = opened.move()
  let closing: Promise<void> | undefined
  const url = urlOf(config.listen, { port: listener.port, secure: identity !== undefined })
  log.info({ url: isSocket ? url : `${url}${ADMIN_BASE.slice(1)}/`, token: token.name }, 'the admin API is served')
  return {
    url,
    close(graceMs) {
      closing ??= closeAll()
      return closing

      async function closeAll(): Promise<void> {
        await using _resources = resources
        stopping.abort()
        await listener.close(graceMs)
      }
    },
  }
}

/** Loaded with the first request that shows the token: most mirrors are asked seldom, and start sooner without it. */
function openLater(parts: AdminAppParts): Pick<Hono<AdminEnv>, 'fetch'> {
  let app: Promise<Hono<AdminEnv>> | undefined
  return {
    async fetch(...request) {
      app ??= import('./admin/admin-app.ts').then(({ createAdminApp }) => createAdminApp(parts))
      return (await app).fetch(...request)
    },
  }
}

/** The token is what the admin API asks for; commands of the same machine have no certificate. */
function withoutClientCertificates(identity: TlsIdentity | undefined): ListenerOptions['identity'] {
  if (identity === undefined) return undefined
  return {
    onChange: (listener) => identity.onChange(listener),
    secureContext() {
      const { requestCert: _, rejectUnauthorized: __, ca: ___, ...own } = identity.secureContext()
      return own
    },
  }
}
