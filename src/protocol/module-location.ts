import { MirrorError, redactUrl } from '../errors.ts'
import { isJsonObject, type JsonObject } from './json.ts'
import { parseRemoteSource, type RemoteModuleSource } from './module-source.ts'

/** The answer of an origin's `download` endpoint, as far as it can name a location. */
export interface ModuleDownloadAnswer {
  /** 200 or 204. */
  readonly status: number
  /** The header `X-Terraform-Get`. */
  readonly header: string | undefined
  readonly body: Buffer
  /** The URL that was asked, before redirects: relative locations resolve against it (client-contract E4). */
  readonly endpoint: URL
}

/** Where the files of one module version are. */
export interface ModuleLocation {
  readonly source: RemoteModuleSource
  /** The origin wants its own token with the request for the archive (client-contract E12). */
  readonly withOriginToken: boolean
}

/**
 * Reads where a module's files are: on 200 from `location` of a JSON body, else from the header (client-contract E3,
 * field-reports B63). A location that begins with `/`, `./` or `../` is a URL relative to the endpoint; everything else
 * is a source as a module block has it, but neither a registry address nor a local path.
 * @throws MirrorError `UPSTREAM_INVALID` if there is no location; `MODULE_SOURCE_REFUSED`
 */
export function parseModuleLocation(answer: ModuleDownloadAnswer): ModuleLocation {
  const document = answer.status === 200 ? parseObject(answer.body) : undefined
  const stated = typeof document?.location === 'string' && document.location !== '' ? document.location : undefined
  const location = stated ?? answer.header?.trim()
  if (location === undefined || location === '') throw noLocation(answer.endpoint)
  return {
    source: parseRemoteSource(resolveLocation(location, answer.endpoint)),
    withOriginToken: stated !== undefined && document?.use_registry_credentials === true,
  }
}

function resolveLocation(location: string, endpoint: URL): string {
  if (!/^(?:\/|\.\.?\/)/.test(location)) return location
  const url = URL.parse(location, endpoint)
  if (url === null) return location
  // The endpoint may carry a user name and password of ours; locations have none.
  url.username = ''
  url.password = ''
  return url.href
}

function parseObject(body: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function noLocation(endpoint: URL): MirrorError<'UPSTREAM_INVALID'> {
  const upstreamUrl = redactUrl(endpoint)
  const reason = 'no location: neither a header X-Terraform-Get nor a JSON body with "location"'
  return new MirrorError('UPSTREAM_INVALID', `${endpoint.host} answered at ${upstreamUrl}, but with ${reason}`, {
    host: endpoint.host,
    upstreamUrl,
    reason,
  })
}
