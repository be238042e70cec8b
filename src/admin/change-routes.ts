import type { OpenAPIHono } from '@hono/zod-openapi'
import { z } from 'zod'
import { type ErrorFields, isMirrorError, redactInput } from '../errors.ts'
import { exchangeOf } from '../http/exchange.ts'
import type { PurgeScope } from '../mirror/care/purge.ts'
import type { AdminEnv } from './admin-env.ts'
import type { Fixed, Operations } from './operations.ts'
import { formatPurgeScope, moduleScope, packageScope } from './purge-scope.ts'
import { answer, body, createRoute, createRoutes, failure, noQuery, plain } from './route.ts'
import { PurgeQuery, PurgeResult, RefreshRequest, RefreshResult } from './schema/changes.ts'

const MAX_TARGET_LENGTH = 700
const segment = z.string().min(1).max(300)
const provider = z.object({ origin: segment, namespace: segment, type: segment })
const providerVersion = provider.extend({ version: segment })
const providerPlatform = providerVersion.extend({ platform: segment })
const module = z.object({ origin: segment, namespace: segment, name: segment, system: segment })
const moduleVersion = module.extend({ version: segment })

function purgeRoute<Path extends string, Params extends z.ZodObject>(
  path: Path,
  params: Params,
  { operationId, what }: { operationId: string; what: string },
) {
  return createRoute({
    method: 'delete',
    path,
    operationId,
    summary: `Removes what is held of ${what}. Pinned items stay, and are named.`,
    tags: ['changes'],
    request: { params, query: PurgeQuery },
    responses: { 200: answer(PurgeResult, 'What was removed.'), default: failure },
  })
}

const PROVIDER = '/packages/{origin}/{namespace}/{type}'
const MODULE = '/modules/{origin}/{namespace}/{name}/{system}'

const purgeProvider = purgeRoute(PROVIDER, provider, { operationId: 'purgeProvider', what: 'a provider' })
const purgeProviderVersion = purgeRoute(`${PROVIDER}/{version}`, providerVersion, {
  operationId: 'purgeProviderVersion',
  what: 'one version of a provider',
})
const purgePackage = purgeRoute(`${PROVIDER}/{version}/{platform}`, providerPlatform, {
  operationId: 'purgePackage',
  what: 'one version of a provider for one platform',
})
const purgeModule = purgeRoute(MODULE, module, { operationId: 'purgeModule', what: 'a module' })
const purgeModuleVersion = purgeRoute(`${MODULE}/{version}`, moduleVersion, {
  operationId: 'purgeModuleVersion',
  what: 'one version of a module',
})

const refresh = createRoute({
  method: 'post',
  path: '/refresh',
  operationId: 'refresh',
  summary: 'Asks the origin anew, now. The only way to replace a version that was published anew with other bytes.',
  tags: ['changes'],
  request: { query: noQuery, body: body(RefreshRequest) },
  responses: {
    200: answer(RefreshResult, 'What came of it.'),
    409: answer(RefreshResult, 'The origin offers other bytes, and `accept` was not given: nothing is replaced.'),
    default: failure,
  },
})

type Parts = Pick<Operations, 'purge' | 'refresh'>

/** What changes what is held: `DELETE /packages`, `DELETE /modules`, `/refresh`. */
export function createChangeRoutes({ purge, refresh: refreshing }: Parts): OpenAPIHono<AdminEnv> {
  const routes = createRoutes()
  const remove = (
    change: AdminEnv['Variables']['change'],
    scope: PurgeScope,
    { forget }: z.output<typeof PurgeQuery>,
  ) => {
    change.target = formatPurgeScope(scope)
    return purge.purge(scope, { forget: forget === 'true' }).then(plain<PurgeResult>)
  }
  for (const route of [purgeProvider, purgeProviderVersion, purgePackage]) {
    routes.openapi(route, async (context) => {
      const scope = packageScope(context.req.valid('param'))
      return context.json(await remove(context.var.change, scope, context.req.valid('query')), 200)
    })
  }
  for (const route of [purgeModule, purgeModuleVersion]) {
    routes.openapi(route, async (context) => {
      const scope = moduleScope(context.req.valid('param'))
      return context.json(await remove(context.var.change, scope, context.req.valid('query')), 200)
    })
  }
  routes.openapi(refresh, async (context) => {
    const { accept, ...rest } = context.req.valid('json')
    context.var.change.target = redactInput([rest.address, rest.version ?? ''].join(' ').trimEnd(), MAX_TARGET_LENGTH)
    try {
      return context.json(plain<RefreshResult>(await refreshing.refresh(rest, { accept })), 200)
    } catch (error) {
      if (!isMirrorError(error) || !error.is('ACCEPT_REQUIRED')) throw error
      exchangeOf(context.env.incoming).error = error
      return context.json(plain<RefreshResult>(changedResult(error.fields)), 409)
    }
  })
  return routes
}

function changedResult({ address, version, changes }: ErrorFields['ACCEPT_REQUIRED']): Fixed<RefreshResult> {
  return { address, version, outcome: 'changed', added: [], changes }
}
