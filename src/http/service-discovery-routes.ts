import { Hono } from 'hono'
import { assertOriginAllowed, type View } from '../mirror/view.ts'
import type { Hostname } from '../protocol/hostname.ts'
import { discoveryDocument } from '../protocol/provider-registry.ts'
import { sendDocument } from './document-response.ts'
import { exchangeOf, type HttpEnv } from './exchange.ts'
import { discoveryLinks } from './links.ts'

/**
 * Service discovery for source addresses that begin with the mirror's own host: both services lead to those of the
 * default origin. 404 if that origin is not served: clients take it for a host without services (client-contract D2).
 */
export function createServiceDiscoveryRoutes({
  view,
  defaultOrigin,
}: {
  view: View
  defaultOrigin: Hostname
}): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  routes.get('/.well-known/terraform.json', (context) => {
    exchangeOf(context.env.incoming).route = '/.well-known/terraform.json'
    assertOriginAllowed(view, defaultOrigin)
    return sendDocument(context, { value: discoveryDocument(discoveryLinks(defaultOrigin)), outcome: 'hit' })
  })
  return routes
}
