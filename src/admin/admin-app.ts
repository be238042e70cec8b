import { OpenAPIHono } from '@hono/zod-openapi'
import type { MiddlewareHandler } from 'hono'
import { routePath } from 'hono/route'
import { MirrorError } from '../errors.ts'
import { exchangeOf } from '../http/exchange.ts'
import { ADMIN_BASE } from './admin-base.ts'
import type { AdminEnv, Change } from './admin-env.ts'
import type { AuditLog } from './audit-log.ts'
import { auditChanges } from './audited.ts'
import { limitBodies } from './body-limit.ts'
import { createChangeRoutes } from './change-routes.ts'
import { createJobRoutes } from './job-routes.ts'
import type { AdminObserver } from './observer.ts'
import { createDocumentRoutes } from './openapi-document.ts'
import type { Operations } from './operations.ts'
import { createPinRoutes } from './pin-routes.ts'
import { problemOf, problemResponse } from './problem.ts'
import { createStockRoutes } from './stock-routes.ts'

/** What the admin app is made of. */
export interface AdminAppParts extends Operations {
  readonly audit: AuditLog
  readonly observer: AdminObserver
  /** The name of the token that opens it, for the audit. */
  readonly who: string
  /** Of the program. */
  readonly version: string
  /** Fires when the mirror stops: streams of events end. */
  readonly stopping: AbortSignal
}

/**
 * Everything that the admin listener answers. It asks for no token: `createAdminRequestListener` does, before anything of
 * a request is looked at.
 */
export function createAdminApp(parts: AdminAppParts): OpenAPIHono<AdminEnv> {
  const app = new OpenAPIHono<AdminEnv>({ strict: true })
  app.use(accountForRoute, auditChanges({ ...parts, actionOf: createActions(app) }), limitBodies)
  for (const routes of [
    createJobRoutes({ ...parts, base: ADMIN_BASE }),
    createStockRoutes(parts),
    createPinRoutes(parts),
    createChangeRoutes(parts),
  ]) {
    app.route(ADMIN_BASE, routes)
  }
  app.route(ADMIN_BASE, createDocumentRoutes(app, parts.version))
  refuseOtherMethods(app)
  app.notFound(() => {
    const message = `nothing is here; the admin API is at ${ADMIN_BASE}/, and ${ADMIN_BASE}/openapi.json says what it has`
    throw new MirrorError('ROUTE_NOT_FOUND', message, { baseUrl: `${ADMIN_BASE}/` })
  })
  app.onError((error, context) => {
    const exchange = exchangeOf(context.env.incoming)
    exchange.error = problemOf(error)
    return problemResponse(exchange.error, exchange.id)
  })
  return app
}

/** The routes as `METHOD path template`, as the app itself has them. */
export function listRoutes(app: OpenAPIHono<AdminEnv>): readonly string[] {
  const routes = app.routes.filter(({ method }) => method !== 'ALL').map(({ method, path }) => `${method} ${path}`)
  return [...new Set(routes)]
}

const accountForRoute: MiddlewareHandler<AdminEnv> = async (context, next) => {
  const { method, path } = context.req
  const isChange = method !== 'GET' && method !== 'HEAD'
  const change: Change = { target: path.slice(ADMIN_BASE.length + 1), isChange }
  context.set('change', change)
  // The last one that matches; the first are for every path.
  const route = routePath(context, -1)
  context.set('route', route)
  exchangeOf(context.env.incoming).route = route === '/*' ? 'not found' : route
  await next()
  context.header('Cache-Control', 'no-store')
}

/** The operations of the OpenAPI document, by method and path template. */
function createActions(app: OpenAPIHono<AdminEnv>): (method: string, path: string) => string | undefined {
  let actions: Map<string, string | undefined> | undefined
  return (method, path) => {
    actions ??= new Map(
      app.openAPIRegistry.definitions.flatMap((definition) => {
        if (definition.type !== 'route') return []
        const { method, path, operationId } = definition.route
        return [[`${method.toUpperCase()} ${path.replaceAll(/{(\w+)}/g, ':$1')}`, operationId] as const]
      }),
    )
    return actions.get(`${method} ${path}`)
  }
}

/** A path that is there with another method is told as such. */
function refuseOtherMethods(app: OpenAPIHono<AdminEnv>): void {
  const methods = Map.groupBy(
    app.routes.filter(({ method }) => method !== 'ALL'),
    ({ path }) => path,
  )
  for (const [path, routes] of methods) {
    const names = new Set(routes.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))
    const allow = [...names].join(', ')
    app.all(path, ({ req: { method } }) => {
      throw new MirrorError('METHOD_NOT_ALLOWED', `${method} is not served here; use ${allow}`, { method, allow })
    })
  }
}
