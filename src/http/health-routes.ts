import { Hono } from 'hono'
import type { Registry } from 'prom-client'
import { exchangeOf, type HttpEnv } from './exchange.ts'

/** Where a process is in its life. */
export type Lifecycle = 'starting' | 'ready' | 'draining'

/**
 * `/healthz` (the process answers), `/readyz` (503 while starting or draining, whatever the origins do: a mirror whose
 * origin is down still serves what it holds) and `/metrics` (Prometheus).
 */
export function createHealthRoutes(parts: { lifecycle: () => Lifecycle; registry: Registry }): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  routes.get('/healthz', (context) => {
    exchangeOf(context.env.incoming).route = '/healthz'
    return context.json({ status: 'ok' })
  })
  routes.get('/readyz', (context) => {
    exchangeOf(context.env.incoming).route = '/readyz'
    const status = parts.lifecycle()
    return context.json({ status }, status === 'ready' ? 200 : 503)
  })
  routes.get('/metrics', async (context) => {
    exchangeOf(context.env.incoming).route = '/metrics'
    return context.body(await parts.registry.metrics(), 200, { 'Content-Type': parts.registry.contentType })
  })
  return routes
}
