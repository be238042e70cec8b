import { z } from 'zod'
import { MirrorError, redactUrl } from '../errors.ts'
import type { Hostname } from './hostname.ts'
import { isJsonObject, type JsonObject } from './json.ts'

/** The services that Terramirror uses, by their identifiers in a discovery document. */
export type ServiceName = 'providers.v1' | 'modules.v1'

/**
 * What a host's service discovery document says, as plain JSON that can be remembered; `DiscoveryDocument.safeParse`
 * reads it back. Only `findService` makes a usable URL of an entry.
 * - `url`: final URL of the document, redacted; relative services resolve against it
 * - `services`: every service that is offered under a string, by identifier; absolute URLs ending in `/`,
 *   or `invalid:` where no client would use it
 */
export const DiscoveryDocument = z
  .object({ url: z.string(), services: z.record(z.string(), z.string()).readonly() })
  .readonly()
export type DiscoveryDocument = z.infer<typeof DiscoveryDocument>

const UNUSABLE = 'invalid:'

/** Where the document comes from: the host that was asked, the final URL after redirects, the media type without parameters. */
interface Source {
  readonly hostname: Hostname
  readonly url: URL
  readonly mediaType: string
}

/**
 * Reads `/.well-known/terraform.json` as the clients do (client-contract D2 to D4): exactly `application/json`, one
 * JSON object and nothing behind it, relative URLs resolved against the final URL. Unknown services are ignored, and a
 * value that is not a string does not offer its service.
 * @throws MirrorError `UPSTREAM_INVALID` if the host answered with something else
 */
export function parseDiscoveryDocument(body: Buffer, source: Source): DiscoveryDocument {
  if (source.mediaType !== 'application/json') {
    throw notARegistry(source, `its media type is ${source.mediaType || 'missing'}, not application/json`)
  }
  const document = parseObject(body)
  if (document === undefined) throw notARegistry(source, 'it is not a JSON object')

  const services = Object.entries(document).flatMap(([name, reference]) =>
    isOffered(reference) ? [[name, absoluteUrl(reference, source.url)] as const] : [],
  )
  return { url: redactUrl(source.url), services: Object.fromEntries(services) }
}

/**
 * Base URL of a service: http or https, no query, ending in `/`. Undefined if the host does not offer it.
 * @throws MirrorError `UPSTREAM_INVALID` if the host offers it under a URL that no client would use
 */
export function findService(document: DiscoveryDocument, name: ServiceName): URL | undefined {
  const reference = document.services[name]
  if (!isOffered(reference)) return undefined
  const url = URL.parse(reference, document.url)
  if (url !== null && isUsable(url)) return baseUrl(url)
  const reason = `"${name}" is not an http or https URL without user name and password`
  throw new MirrorError('UPSTREAM_INVALID', `the service discovery document at ${document.url} is wrong: ${reason}`, {
    host: URL.parse(document.url)?.host ?? '',
    upstreamUrl: document.url,
    reason,
  })
}

function parseObject(body: Buffer): JsonObject | undefined {
  try {
    const document: unknown = JSON.parse(body.toString('utf8'))
    return isJsonObject(document) ? document : undefined
  } catch {
    return undefined
  }
}

/** A blank value would name the discovery document itself: a template that was not filled in. */
function isOffered(reference: unknown): reference is string {
  return typeof reference === 'string' && reference.trim() !== ''
}

function isUsable(url: URL): boolean {
  return (url.protocol === 'https:' || url.protocol === 'http:') && url.username === '' && url.password === ''
}

/** Fit to be remembered: what no client would use leaves no trace of its credentials, and `findService` refuses it. */
function absoluteUrl(reference: string, base: URL): string {
  const url = URL.parse(reference, base)
  return url !== null && isUsable(url) ? baseUrl(url).href : UNUSABLE
}

/** Clients lose the query when they join paths to it; without the last slash they would lose its last folder too (B52). */
function baseUrl(url: URL): URL {
  const base = new URL(url)
  base.search = ''
  base.hash = ''
  if (!base.pathname.endsWith('/')) base.pathname += '/'
  return base
}

function notARegistry(source: Source, reason: string): MirrorError<'UPSTREAM_INVALID'> {
  const upstreamUrl = redactUrl(source.url)
  return new MirrorError(
    'UPSTREAM_INVALID',
    `${source.hostname} answered, but is not a registry: no service discovery document at ${upstreamUrl}: ${reason}`,
    { host: source.hostname, upstreamUrl, reason },
  )
}
