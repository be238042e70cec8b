import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createHealthRoutes, type Lifecycle } from '../../src/http/health-routes.ts'
import { RequestAccount } from '../../src/http/request-account.ts'
import { createRequestListener } from '../../src/http/request-listener.ts'
import { silentLog } from '../../src/log.ts'
import { Metrics } from '../../src/metrics/metrics.ts'

const STAGES = ['starting', 'ready', 'draining'] as const

let stack: AsyncDisposableStack
let lifecycle: Lifecycle
let url: string

beforeEach(async () => {
  stack = new AsyncDisposableStack()
  lifecycle = 'starting'
  const metrics = new Metrics({ origins: [], perProvider: false })
  const routes = createHealthRoutes({ lifecycle: () => lifecycle, metrics })
  const server = createServer(
    createRequestListener(routes, { account: new RequestAccount({ log: silentLog(), metrics }) }),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  stack.defer(() => {
    server.close()
    server.closeAllConnections()
  })
})
afterEach(() => stack.disposeAsync())

describe('health', () => {
  it('the process answers, whatever it is doing', async () => {
    for (lifecycle of STAGES) {
      const answer = await fetch(`${url}/healthz`)
      expect([answer.status, await answer.json()]).toEqual([200, { status: 'ok' }])
    }
  })

  it('it is ready only between start and stop', async () => {
    const statuses: unknown[] = []
    for (lifecycle of STAGES) {
      const answer = await fetch(`${url}/readyz`)
      statuses.push(answer.status, await answer.json())
    }
    expect(statuses).toEqual([503, { status: 'starting' }, 200, { status: 'ready' }, 503, { status: 'draining' }])
  })

  it('metrics are in the format that Prometheus reads', async () => {
    const answer = await fetch(`${url}/metrics`)
    expect(answer.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
    expect(await answer.text()).toContain('# TYPE terramirror_requests_total counter')
  })

  it.each(['/healthz', '/readyz', '/metrics'])(
    'nobody on the way keeps %s, and HEAD tells its length',
    async (path) => {
      lifecycle = 'ready'
      const answer = await fetch(`${url}${path}`)
      expect(answer.headers.get('cache-control')).toBe('no-store')
      const head = await fetch(`${url}${path}`, { method: 'HEAD' })
      expect(head.status).toBe(200)
      expect(Number(head.headers.get('content-length'))).toBeGreaterThan(0)
      expect(await head.text()).toBe('')
    },
  )
})
