import { Hono } from 'hono'
import type { Registry } from 'prom-client'
import { MirrorError } from '../errors.ts'
import type { Mirror } from '../mirror/mirror.ts'
import type { View } from '../mirror/view.ts'
import { errorAnswer } from './error-response.ts'
import { exchangeOf, type HttpEnv } from './exchange.ts'
import { createHealthRoutes, type Lifecycle } from './health-routes.ts'
import type { HotDocuments } from './hot-documents.ts'
import { NETWORK_MIRROR_BASE } from './links.ts'
import { createNetworkMirrorRoutes } from './network-mirror-routes.ts'

/** What the public app is made of. */
export interface PublicAppParts {
  readonly mirror: Mirror
  readonly view: View
  readonly instanceId: string
  readonly documents: HotDocuments
  readonly lifecycle: () => Lifecycle
  readonly registry: Registry
  /** As clients reach this mirror, if the operator told us; ends with `/`. */
  readonly publicUrl: string | undefined
}

/** Everything that the public listener answers. */
export function createPublicApp(parts: PublicAppParts): Hono<HttpEnv> {
  const app = new Hono<HttpEnv>({ strict: true })
  app.route(NETWORK_MIRROR_BASE, createNetworkMirrorRoutes(parts))
  app.route('/', createHealthRoutes(parts))
  app.notFound((context) => {
    exchangeOf(context.env.incoming).route = 'not found'
    const base = parts.publicUrl ?? `https://${context.req.header('host') ?? 'HOST'}/`
    const baseUrl = new URL(NETWORK_MIRROR_BASE.slice(1), base).href
    throw new MirrorError(
      'ROUTE_NOT_FOUND',
      `nothing is served at this path; Terraform and OpenTofu reach this mirror with network_mirror { url = "${baseUrl}" } (with the slash at its end)`,
      { baseUrl },
    )
  })
  app.onError((error, context) => {
    const exchange = exchangeOf(context.env.incoming)
    exchange.error = error
    const { status, headers, body } = errorAnswer(error, exchange.id)
    return new Response(body, { status, headers })
  })
  return app
}
