import { type Context, Hono } from 'hono'
import { MirrorError } from '../errors.ts'
import type { Modules } from '../mirror/modules.ts'
import type { ModuleId } from '../mirror/stock/item-name.ts'
import type { View } from '../mirror/view.ts'
import { formatModuleAddress, type ModuleAddress, parseModuleAddress } from '../protocol/module-address.ts'
import { moduleVersionsDocument } from '../protocol/module-registry.ts'
import { parseModuleVersion } from '../protocol/module-versions.ts'
import { assertSha256 } from '../protocol/package-hash.ts'
import { headArchive, sendArchive } from './archive-response.ts'
import { sendDocument } from './document-response.ts'
import { exchangeOf, type HttpEnv } from './exchange.ts'
import { moduleLocation } from './links.ts'
import { callOf } from './provider-request.ts'

const MEDIA_TYPE = 'application/gzip'
/** Modules are sent when they are whole. */
const RULES = { trustsBareRanges: true, mediaType: MEDIA_TYPE }

/**
 * The module registry protocol, below its base path and the origin's host: `versions`, `download`, and the archive that
 * its location points to (client-contract E). Locations carry the digest, so that clients check what they get.
 */
export function createModuleRegistryRoutes(parts: { modules: Modules; view: View; instanceId: string }): Hono<HttpEnv> {
  const { modules, view, instanceId } = parts
  const routes = new Hono<HttpEnv>()

  routes.get('/:hostname/:namespace/:name/:system/versions', async (context) => {
    exchangeOf(context.env.incoming).route = '/v1/modules/:hostname/:namespace/:name/:system/versions'
    const answer = await modules.listVersions(view, moduleAddressOf(context), callOf(context, instanceId))
    return sendDocument(context, { ...answer, value: moduleVersionsDocument(answer.value) })
  })

  routes.get('/:hostname/:namespace/:name/:system/:version/download', async (context) => {
    const exchange = exchangeOf(context.env.incoming)
    exchange.route = '/v1/modules/:hostname/:namespace/:name/:system/:version/download'
    const { value, outcome, reason } = await modules.locate(view, moduleIdOf(context), callOf(context, instanceId))
    exchange.outcome = outcome
    if (reason !== undefined) exchange.error = reason
    return context.body(null, 204, {
      'X-Terraform-Get': moduleLocation(value),
      'Cache-Control': 'no-cache, no-transform',
      'Terramirror-Cache': outcome,
    })
  })

  routes.get('/:hostname/:namespace/:name/:system/:version/archives/:digest/:filename', async (context) => {
    exchangeOf(context.env.incoming).route =
      '/v1/modules/:hostname/:namespace/:name/:system/:version/archives/:digest/:filename'
    const id = moduleIdOf(context)
    const digest = assertSha256(context.req.param('digest'))
    if (context.req.method === 'HEAD')
      return headArchive(context, await modules.describeArchive(view, id, digest), RULES)
    return sendArchive(context, await modules.openArchive(view, id, digest, callOf(context, instanceId)), RULES)
  })

  return routes
}

/** The module that the path names. Only what did parse gets into the log. @throws MirrorError `HOSTILE_INPUT`, `INVALID_ADDRESS` */
function moduleAddressOf(context: Context<HttpEnv>): ModuleAddress {
  const { hostname = '', namespace = '', name = '', system = '' } = context.req.param() as Record<string, string>
  const address = parseModuleAddress({ hostname, namespace, name, targetSystem: system })
  exchangeOf(context.env.incoming).fields.module = formatModuleAddress(address)
  return address
}

/** In whatever spelling the version is asked for. @throws MirrorError as `moduleAddressOf` */
function moduleIdOf(context: Context<HttpEnv>): ModuleId {
  const address = moduleAddressOf(context)
  const text = context.req.param('version') ?? ''
  const version = parseModuleVersion(text)
  if (version === undefined) {
    const input = text.slice(0, 80)
    const reason = 'expected the form 1.2.3'
    throw new MirrorError('INVALID_ADDRESS', `not a version: ${JSON.stringify(input)}; ${reason}`, { input, reason })
  }
  exchangeOf(context.env.incoming).fields.version = version
  return { address, version }
}
