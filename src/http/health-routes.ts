import { type Context, Hono } from 'hono'
import type { Metrics } from '../metrics/metrics.ts'
import { exchangeOf, type HttpEnv } from './exchange.ts'

/** Where a process is in its life. */
export type Lifecycle = 'starting' | 'ready' | 'draining'

/**
 * `/healthz` (the process answers), `/readyz` (503 while starting or draining, whatever the origins do: a mirror whose
 * origin is down still serves what it holds) and `/metrics` (Prometheus).
 */
export function createHealthRoutes(parts: { lifecycle: () => Lifecycle; metrics: Metrics }): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  routes.get('/healthz', (context) => {
    exchangeOf(context.env.incoming).route = '/healthz'
    return sendWhole(context, JSON.stringify({ status: 'ok' }), 'application/json')
  })
  routes.get('/readyz', (context) => {
    exchangeOf(context.env.incoming).route = '/readyz'
    const status = parts.lifecycle()
    return sendWhole(context, JSON.stringify({ status }), 'application/json', status === 'ready' ? 200 : 503)
  })
  routes.get('/metrics', async (context) => {
    exchangeOf(context.env.incoming).route = '/metrics'
    return sendWhole(context, await parts.metrics.text(), parts.metrics.contentType)
  })
  return routes
}

/** With its length, which HEAD tells too. */
function sendWhole(context: Context<HttpEnv>, body: string, contentType: string, status: 200 | 503 = 200): Response {
  const length = String(Buffer.byteLength(body))
  return context.body(body, status, {
    'Content-Type': contentType,
    'Content-Length': length,
    'Cache-Control': 'no-store',
  })
}
