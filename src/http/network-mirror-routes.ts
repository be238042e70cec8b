import { type Context, Hono } from 'hono'
import { MirrorError } from '../errors.ts'
import type { Call } from '../mirror/call.ts'
import { createDeadline } from '../mirror/deadline.ts'
import type { Mirror } from '../mirror/mirror.ts'
import type { View } from '../mirror/view.ts'
import { HOPS_HEADER, parseHops } from '../protocol/hops.ts'
import { indexDocument, versionDocument } from '../protocol/network-mirror.ts'
import { formatPlatform, type Platform, parsePlatform } from '../protocol/platform.ts'
import { formatProviderAddress, type ProviderAddress, parseProviderAddress } from '../protocol/provider-address.ts'
import { assertVersion, type Version } from '../protocol/version.ts'
import { headArchive, sendArchive } from './archive-response.ts'
import { sendDocument } from './document-response.ts'
import { isAbsence } from './error-response.ts'
import { exchangeOf, type HttpEnv } from './exchange.ts'
import type { HotDocuments } from './hot-documents.ts'
import { archiveLink } from './links.ts'

/** Clients give up after 10 s (client-contract A9); the rest is for the way there and back. */
const ANSWER_WITHIN_MS = 8_000

/**
 * The provider network mirror protocol, below its base path: `index.json`, `VERSION.json` and the archives.
 * `instanceId` is this mirror's name in the hop header.
 */
export function createNetworkMirrorRoutes(parts: {
  mirror: Mirror
  view: View
  instanceId: string
  documents: HotDocuments
}): Hono<HttpEnv> {
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
    const call = callOf(context, instanceId)
    if (context.req.method === 'HEAD') return headArchive(context, await mirror.describeArchive(view, id, call))
    return sendArchive(context, await mirror.openArchive(view, id, call))
  })

  return routes
}

/** Parses what the path names; only what did parse gets into the log. */
function addressOf(context: Context<HttpEnv>): ProviderAddress {
  const { hostname = '', namespace = '', type = '' } = context.req.param() as Record<string, string>
  const address = parseProviderAddress({ hostname, namespace, type })
  exchangeOf(context.env.incoming).fields.provider = formatProviderAddress(address)
  return address
}

function versionOf(context: Context<HttpEnv>, text: string): Version {
  const version = assertVersion(text)
  exchangeOf(context.env.incoming).fields.version = version
  return version
}

function platformOf(context: Context<HttpEnv>, text: string): Platform {
  const platform = parsePlatform(text)
  exchangeOf(context.env.incoming).fields.platform = formatPlatform(platform)
  return platform
}

/** @throws MirrorError `MIRROR_LOOP` if the request has been here before */
function callOf(context: Context<HttpEnv>, instanceId: string): Call {
  const hops = parseHops(context.req.header(HOPS_HEADER))
  if (!hops.includes(instanceId)) return { deadline: createDeadline(ANSWER_WITHIN_MS), hops }
  throw new MirrorError(
    'MIRROR_LOOP',
    `mirrors ask each other in a circle: ${[...hops, instanceId].join(' -> ')}; correct the origins of one of them`,
    { hops },
  )
}
