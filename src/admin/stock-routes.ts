import type { OpenAPIHono } from '@hono/zod-openapi'
import type { z } from 'zod'
import type { AdminEnv } from './admin-env.ts'
import type { Operations, StockQuery } from './operations.ts'
import { pageOf, pageRequest } from './paging.ts'
import { answer, createRoute, createRoutes, failure, noQuery, plain } from './route.ts'
import { ExplainQuery, Explanation } from './schema/explain.ts'
import {
  type HeldModule,
  type HeldPackage,
  ModulePage,
  ModuleQuery,
  OriginList,
  type OriginState,
  PackagePage,
  PackageQuery,
  Statistics,
} from './schema/stock.ts'

const tags = ['stock']

const packages = createRoute({
  method: 'get',
  path: '/packages',
  operationId: 'listPackages',
  summary: 'The archives of providers that are held, by name.',
  tags,
  request: { query: PackageQuery },
  responses: { 200: answer(PackagePage, 'A page of packages.'), default: failure },
})

const modules = createRoute({
  method: 'get',
  path: '/modules',
  operationId: 'listModules',
  summary: 'The versions of modules that are held, by name.',
  tags,
  request: { query: ModuleQuery },
  responses: { 200: answer(ModulePage, 'A page of modules.'), default: failure },
})

const statistics = createRoute({
  method: 'get',
  path: '/stats',
  operationId: 'showStatistics',
  summary: 'How much is held, how it is used, what that saves.',
  tags,
  request: { query: noQuery },
  responses: { 200: answer(Statistics, 'The statistics.'), default: failure },
})

const origins = createRoute({
  method: 'get',
  path: '/origins',
  operationId: 'listOrigins',
  summary: 'The configured origins, and how they are.',
  tags,
  request: { query: noQuery },
  responses: { 200: answer(OriginList, 'All of them.'), default: failure },
})

const explain = createRoute({
  method: 'get',
  path: '/explain',
  operationId: 'explain',
  summary: 'Why clients see what they see of a provider or module, without asking any origin.',
  tags,
  request: { query: ExplainQuery },
  responses: { 200: answer(Explanation, 'The findings.'), default: failure },
})

type Parts = Pick<Operations, 'stock' | 'statistics' | 'origins' | 'explain'>

/** What is held, and why: `/packages`, `/modules`, `/stats`, `/origins`, `/explain`. */
export function createStockRoutes(parts: Parts): OpenAPIHono<AdminEnv> {
  const routes = createRoutes()
  routes.openapi(packages, async (context) => {
    const page = await parts.stock.listPackages(queryOf(context.req.valid('query')), context.req.raw.signal)
    return context.json(pageOf<HeldPackage>(page), 200)
  })
  routes.openapi(modules, async (context) => {
    const page = await parts.stock.listModules(queryOf(context.req.valid('query')), context.req.raw.signal)
    return context.json(pageOf<HeldModule>(page), 200)
  })
  routes.openapi(statistics, async (context) => context.json(plain<Statistics>(await parts.statistics.read()), 200))
  routes.openapi(origins, async (context) => {
    return context.json({ items: plain<OriginState[]>(await parts.origins.list()), next: null }, 200)
  })
  routes.openapi(explain, async (context) => {
    const { address, version } = context.req.valid('query')
    return context.json(plain<Explanation>(await parts.explain.explain(address, version)), 200)
  })
  return routes
}

/** Without what is not asked for. */
function queryOf({ cursor, limit, ...filters }: z.output<typeof ModuleQuery>): StockQuery {
  const given = Object.entries(filters).filter(([, value]) => value !== undefined)
  return { ...pageRequest({ cursor, limit }), ...Object.fromEntries(given) }
}
