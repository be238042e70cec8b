import { Hono } from 'hono'
import { indexDocument, versionDocument } from '../protocol/network-mirror.ts'
import { sendDocument } from './document-response.ts'
import { isAbsence } from './error-response.ts'
import { exchangeOf, type HttpEnv } from './exchange.ts'
import type { HotDocuments } from './hot-documents.ts'
import { archiveLink } from './links.ts'
import { answerPackageArchive } from './package-archive.ts'
import { addressOf, callOf, type ProviderDoorParts, platformOf, versionOf } from './provider-request.ts'

/** The provider network mirror protocol, below its base path: `index.json`, `VERSION.json` and the archives. */
export function createNetworkMirrorRoutes(
  parts: ProviderDoorParts & { readonly documents: HotDocuments },
): Hono<HttpEnv> {
  const { mirror, view, instanceId } = parts
  const routes = new Hono<HttpEnv>()

  routes.get('/:hostname/:namespace/:type/index.json', async (context) => {
    exchangeOf(context.env.incoming).route = '/providers/:hostname/:namespace/:type/index.json'
    const answer = await mirror.listVersions(view, addressOf(context), callOf(context, instanceId))
    return sendDocument(context, { ...answer, value: indexDocument(answer.value) }, parts)
  })

  routes.get('/:hostname/:namespace/:type/:document{.+\\.json}', async (context) => {
    exchangeOf(context.env.incoming).route = '/providers/:hostname/:namespace/:type/:version.json'
    try {
      const address = addressOf(context)
      const version = versionOf(context, context.req.param('document').slice(0, -'.json'.length))
      const answer = await mirror.listPackages(view, address, version, callOf(context, instanceId))
      const packages = answer.value.map((listed) => ({
        ...listed,
        url: archiveLink(address, version, listed.platform),
      }))
      return sendDocument(context, { ...answer, value: versionDocument(packages) }, parts)
    } catch (error) {
      // A client with several sources asks all of them for the version that it chose, and takes a 404 here for fatal;
      // an empty document sends it on to the next source (client-contract A29).
      if (!isAbsence(error)) throw error
      exchangeOf(context.env.incoming).error = error
      return sendDocument(context, { value: versionDocument([]), outcome: 'negative' }, parts)
    }
  })

  routes.get('/:hostname/:namespace/:type/:version/:platform/:filename', async (context) => {
    exchangeOf(context.env.incoming).route = '/providers/:hostname/:namespace/:type/:version/:platform/:filename'
    const id = {
      address: addressOf(context),
      version: versionOf(context, context.req.param('version')),
      platform: platformOf(context, context.req.param('platform')),
    }
    return answerPackageArchive(context, parts, { id, call: callOf(context, instanceId) })
  })

  return routes
}
