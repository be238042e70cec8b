import { Hono } from 'hono'
import type { Mirror } from '../mirror/mirror.ts'
import type { View } from '../mirror/view.ts'
import { assertSha256 } from '../protocol/package-hash.ts'
import { downloadDocument, versionsDocument } from '../protocol/provider-registry.ts'
import { headArchive, sendArchive } from './archive-response.ts'
import { sendDocument } from './document-response.ts'
import { exchangeOf, type HttpEnv } from './exchange.ts'
import { downloadLinks } from './links.ts'
import { addressOf, callOf, platformOf, versionOf } from './provider-request.ts'

/**
 * The provider registry protocol, below its base path and the origin's host: `versions`, `download`, and what download
 * documents point to: archives, SHA256SUMS and signatures (client-contract C). A client's credentials are not looked at.
 */
export function createProviderRegistryRoutes(parts: { mirror: Mirror; view: View; instanceId: string }): Hono<HttpEnv> {
  const { mirror, view, instanceId } = parts
  const routes = new Hono<HttpEnv>()

  routes.get('/:hostname/:namespace/:type/versions', async (context) => {
    exchangeOf(context.env.incoming).route = '/v1/providers/:hostname/:namespace/:type/versions'
    const answer = await mirror.describeVersions(view, addressOf(context), callOf(context, instanceId))
    return sendDocument(context, { ...answer, value: versionsDocument(answer.value.versions, answer.value.warnings) })
  })

  routes.get('/:hostname/:namespace/:type/:version/download/:os/:arch', async (context) => {
    exchangeOf(context.env.incoming).route = '/v1/providers/:hostname/:namespace/:type/:version/download/:os/:arch'
    const { version, os, arch } = context.req.param()
    const id = {
      address: addressOf(context),
      version: versionOf(context, version),
      platform: platformOf(context, `${os}_${arch}`),
    }
    const answer = await mirror.getDownload(view, id, callOf(context, instanceId))
    const { document, signingKeys, packages, checksums } = answer.value
    const links = downloadLinks(id, checksums)
    return sendDocument(context, { ...answer, value: downloadDocument(document, { links, signingKeys, packages }) })
  })

  routes.get('/:hostname/:namespace/:type/:version/checksums/:digest/:filename', async (context) => {
    exchangeOf(context.env.incoming).route =
      '/v1/providers/:hostname/:namespace/:type/:version/checksums/:digest/:filename'
    const { version, digest } = context.req.param()
    const file = {
      address: addressOf(context),
      version: versionOf(context, version),
      digest: assertSha256(digest),
    }
    const answer = await mirror.readChecksums(view, file, callOf(context, instanceId))
    exchangeOf(context.env.incoming).outcome = answer.outcome
    return context.body(Uint8Array.from(answer.value), 200, fileHeaders(answer.value, file.digest, answer.outcome))
  })

  routes.get('/:hostname/:namespace/:type/:version/archives/:platform/:filename', async (context) => {
    exchangeOf(context.env.incoming).route =
      '/v1/providers/:hostname/:namespace/:type/:version/archives/:platform/:filename'
    const id = {
      address: addressOf(context),
      version: versionOf(context, context.req.param('version')),
      platform: platformOf(context, context.req.param('platform')),
    }
    const call = callOf(context, instanceId)
    if (context.req.method === 'HEAD') return headArchive(context, await mirror.describeArchive(view, id, call))
    return sendArchive(context, await mirror.openArchive(view, id, call))
  })

  return routes
}

/** Signed bytes: nobody on the way may touch them. Their path names their digest, so they never change. */
function fileHeaders(bytes: Uint8Array, digest: string, outcome: string): Record<string, string> {
  return {
    'Content-Type': 'application/octet-stream',
    'Content-Length': String(bytes.length),
    ETag: `"${digest}"`,
    'Cache-Control': 'public, max-age=3600, no-transform',
    'Terramirror-Cache': outcome,
  }
}
