import { Hono } from 'hono'
import { MirrorError } from '../errors.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Delivery } from '../mirror/archive-download.ts'
import type { Mirror } from '../mirror/mirror.ts'
import type { Modules } from '../mirror/modules.ts'
import type { View } from '../mirror/view.ts'
import type { Hostname } from '../protocol/hostname.ts'
import { baseUrlOf } from './base-url.ts'
import { errorAnswer } from './error-response.ts'
import { exchangeOf, type HttpEnv } from './exchange.ts'
import { createHealthRoutes, type Lifecycle } from './health-routes.ts'
import type { HotDocuments } from './hot-documents.ts'
import { MODULE_REGISTRY_BASE, NETWORK_MIRROR_BASE, PROVIDER_REGISTRY_BASE } from './links.ts'
import { createModuleRegistryRoutes } from './module-registry-routes.ts'
import { createNetworkMirrorRoutes } from './network-mirror-routes.ts'
import { createPageRoutes, isBrowser, type PageParts, sendPage } from './page-routes.ts'
import { createProviderRegistryRoutes } from './provider-registry-routes.ts'
import { createServiceDiscoveryRoutes } from './service-discovery-routes.ts'

/** What the public app is made of. */
export interface PublicAppParts extends PageParts {
  readonly mirror: Mirror
  readonly modules: Modules
  readonly view: View
  readonly instanceId: string
  readonly delivery: Delivery
  readonly documents: HotDocuments
  readonly lifecycle: () => Lifecycle
  readonly metrics: Metrics
  /** Whose services the mirror's own host offers. */
  readonly defaultOrigin: Hostname
}

/** Everything that the public listener answers. */
export function createPublicApp(parts: PublicAppParts): Hono<HttpEnv> {
  const app = new Hono<HttpEnv>({ strict: true })
  app.route(NETWORK_MIRROR_BASE, createNetworkMirrorRoutes(parts))
  app.route(PROVIDER_REGISTRY_BASE, createProviderRegistryRoutes(parts))
  app.route(MODULE_REGISTRY_BASE, createModuleRegistryRoutes(parts))
  app.route('/', createServiceDiscoveryRoutes(parts))
  app.route('/', createHealthRoutes(parts))
  app.route('/', createPageRoutes(parts))
  app.notFound((context) => {
    exchangeOf(context.env.incoming).route = 'not found'
    const base = baseUrlOf(context, parts.publicUrl)
    // Whatever this request came by: clients take a network mirror by https alone (client-contract A1).
    base.protocol = 'https:'
    throw routeNotFound(context.req.path, base)
  })
  app.onError((error, context) => {
    const exchange = exchangeOf(context.env.incoming)
    exchange.error = error
    if (error instanceof MirrorError && error.is('ROUTE_NOT_FOUND') && isBrowser(context)) {
      const kind = BASE_URL.test(context.req.path) ? 'base-url' : 'nothing-here'
      return sendPage(context, parts, { kind, baseUrl: error.fields.baseUrl })
    }
    const { status, headers, body } = errorAnswer(error, exchange.id)
    return new Response(body, { status, headers })
  })
  return app
}

/** What is configured in clients, with and without what people forget. */
const BASE_URL = /^\/(?:providers|v1\/(?:providers|modules)(?:\/[^/]+)?)\/?$/

/** A `versions` or `download` that no registry route took: the base URL lacks the origin's host, or is the other one's. */
const REGISTRY_QUESTION = /\/(?:versions|download\/[^/]+\/[^/]+)$/

/** Names the base URL of the protocol that the client seems to speak. */
function routeNotFound(path: string, base: URL): MirrorError {
  const speaksRegistry = REGISTRY_QUESTION.test(path)
  const registryBase = new URL(`${PROVIDER_REGISTRY_BASE.slice(1)}REGISTRY/`, base).href
  const baseUrl = speaksRegistry ? registryBase : new URL(NETWORK_MIRROR_BASE.slice(1), base).href
  const setting = speaksRegistry
    ? `host "REGISTRY" { services = { "providers.v1" = "${baseUrl}" } }, where REGISTRY is the host of the source addresses`
    : `network_mirror { url = "${baseUrl}" }`
  const message = `nothing is served at this path; Terraform and OpenTofu reach this mirror with ${setting} (with the slash at its end)`
  return new MirrorError('ROUTE_NOT_FOUND', message, { baseUrl })
}
