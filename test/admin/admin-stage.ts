import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { type IncomingHttpHeaders, request as sendRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { OpenAPIHono } from '@hono/zod-openapi'
import { createAdminApp } from '../../src/admin/admin-app.ts'
import { ADMIN_BASE } from '../../src/admin/admin-base.ts'
import type { AdminEnv } from '../../src/admin/admin-env.ts'
import { createAdminRequestListener } from '../../src/admin/admin-request-listener.ts'
import { AuditLog } from '../../src/admin/audit-log.ts'
import { BearerToken } from '../../src/admin/bearer-token.ts'
import type { Operations } from '../../src/admin/operations.ts'
import { openListener } from '../../src/listener.ts'
import { createLog } from '../../src/log.ts'
import { Metrics } from '../../src/metrics/metrics.ts'
import { openStateFolder } from '../../src/store/disk/state-folder.ts'
import { standIns } from './stand-ins.ts'

export const TOKEN = 'a-token-that-nobody-guesses'

/** A request; `body` is sent as JSON unless it is text. */
export interface AdminAsk {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** Null: none. */
  readonly token?: string | null
}

export interface AdminAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into documents whose shape is what they test
  readonly json: any
}

/** The admin app at a port of its own, over use cases that a test brings. */
export interface AdminStage extends AsyncDisposable {
  readonly app: OpenAPIHono<AdminEnv>
  readonly port: number
  readonly metrics: Metrics
  readonly stateDir: string
  readonly logText: string
  readonly stopping: AbortController
  /** `path` is below the API's base, or absolute where it begins with two slashes. */
  ask(path: string, options?: AdminAsk): Promise<AdminAnswer>
  audit(): Promise<Record<string, unknown>[]>
}

/** Opens a stage; the operations that are not given are stand-ins, and the audit is a real one. */
export async function openAdminStage(operations: Partial<Operations> = {}, given?: AuditLog): Promise<AdminStage> {
  const folder = await mkdtemp(join(tmpdir(), 'test-admin-'))
  const lines: string[] = []
  const log = createLog({ level: 'trace', format: 'json' }, { write: (line) => lines.push(line) })
  const state = await openStateFolder({ stateDir: folder, log })
  const journal = await state.journal('audit')
  const own = await AuditLog.open({ journal, now: Date.now })
  const audit = given ?? own
  const stopping = new AbortController()
  const parts = { ...standIns(), ...operations }
  const metrics = new Metrics({ origins: [], perProvider: false })
  const app = createAdminApp({
    ...{ ...parts, audit, who: 'admin.token', version: '1.2.3' },
    ...{ observer: metrics.admin, stopping: stopping.signal },
  })
  const listener = await openListener({
    address: { host: '127.0.0.1', port: 0 },
    key: 'admin.listen',
    identity: undefined,
    handle: createAdminRequestListener(app, {
      ...{ token: new BearerToken(TOKEN, 'admin.token'), audit, observer: metrics.admin, log },
    }),
    onHandshakeFailure: () => undefined,
  })
  const ask = (path: string, options: AdminAsk = {}): Promise<AdminAnswer> => send(listener.port, path, options)
  return {
    app,
    port: listener.port,
    metrics,
    stateDir: folder,
    stopping,
    get logText() {
      return lines.join('')
    },
    ask,
    async audit() {
      await own.idle()
      const text = await readFile(join(folder, 'journals', 'audit.ndjson'), 'utf8').catch(() => '')
      const entries: Record<string, unknown>[] = []
      for await (const entry of journal.read()) entries.push(entry as Record<string, unknown>)
      if (entries.length !== text.split('\n').filter(Boolean).length)
        throw new Error('the audit is not a line an entry')
      return entries
    },
    async [Symbol.asyncDispose]() {
      await listener.close(0)
      await own.idle()
      await state[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function send(port: number, path: string, options: AdminAsk): Promise<AdminAnswer> {
  const { method = 'GET', headers = {}, body, token = TOKEN } = options
  const text = typeof body === 'string' || body === undefined ? body : JSON.stringify(body)
  const target = path.startsWith('//') ? path.slice(1) : `${ADMIN_BASE}${path}`
  return new Promise((resolve, reject) => {
    const asked = sendRequest(
      {
        port,
        host: '127.0.0.1',
        path: target,
        method,
        agent: false,
        headers: {
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(text === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
          ...headers,
        },
      },
      (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.on('error', reject)
        answer.on('end', () => {
          const whole = Buffer.concat(chunks).toString()
          const isJson = answer.headers['content-type']?.startsWith('application/json') === true && whole !== ''
          const { statusCode: status = 0, headers } = answer
          resolve({ status, headers, text: whole, json: isJson ? JSON.parse(whole) : undefined })
        })
      },
    )
    asked.on('error', reject)
    asked.end(text)
  })
}
