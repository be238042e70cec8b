import { MirrorError, redactUrl } from '../../errors.ts'
import type { Hostname } from '../../protocol/hostname.ts'
import { formatProviderAddress, type ProviderAddress } from '../../protocol/provider-address.ts'
import { type ProviderVersions, parseProviderVersions } from '../../protocol/provider-versions.ts'
import type { PublishedPlatform, ReleaseClaim } from '../../protocol/release-claim.ts'
import type { Discovery } from '../discovery.ts'
import type { OriginClient } from '../http-client.ts'
import type { ArchiveStream, ProviderUpstream, ReleaseQuery, UpstreamRequest } from '../provider-upstream.ts'
import { parseJsonAnswer, statusError } from './origin-answer.ts'
import { fetchRelease } from './release-fetch.ts'

export interface RegistryUpstreamOptions {
  /** The origin's host as clients write it. */
  readonly hostname: Hostname
  /** Belongs to the caller, who closes it. */
  readonly client: OriginClient
  readonly discovery: Discovery
  /** Limit of one archive in bytes. */
  readonly maxArchiveBytes: number
}

const MAX_VERSIONS_BYTES = 5_000_000

/** An origin that speaks the provider registry protocol (client-contract C). */
export class RegistryUpstream implements ProviderUpstream {
  readonly #options: RegistryUpstreamOptions

  constructor(options: RegistryUpstreamOptions) {
    this.#options = options
  }

  async versions(address: ProviderAddress, request: UpstreamRequest): Promise<ProviderVersions> {
    const base = await this.#providerBase(address, request)
    const answer = await this.#options.client.fetchDocument({
      url: new URL('versions', base),
      signal: request.signal,
      hops: request.hops,
      maxBytes: MAX_VERSIONS_BYTES,
      trusted: true,
    })
    const upstreamUrl = redactUrl(answer.url)
    if (answer.status === 404) throw this.#notFound(address, upstreamUrl)
    if (answer.status !== 200)
      throw statusError(answer, `the list of versions of ${formatProviderAddress(address)} was answered with status`)
    return parseProviderVersions(parseJsonAnswer(answer), { host: answer.url.host, upstreamUrl })
  }

  async release(query: ReleaseQuery, request: UpstreamRequest): Promise<ReleaseClaim> {
    const base = await this.#providerBase(query.address, request)
    return await fetchRelease(query, { client: this.#options.client, base, request })
  }

  openArchive(published: Pick<PublishedPlatform, 'archiveUrl'>, request: UpstreamRequest): Promise<ArchiveStream> {
    return this.#options.client.openArchive({
      url: published.archiveUrl,
      signal: request.signal,
      hops: request.hops,
      maxBytes: this.#options.maxArchiveBytes,
    })
  }

  /** URL of `NAMESPACE/TYPE/` below the origin's service. */
  async #providerBase(address: ProviderAddress, request: UpstreamRequest): Promise<URL> {
    const { url } = await this.#options.discovery.serviceBase('providers.v1', request)
    return new URL(`${encodeURIComponent(address.namespace)}/${encodeURIComponent(address.type)}/`, url)
  }

  #notFound({ namespace, type, hostname }: ProviderAddress, upstreamUrl: string): MirrorError {
    const message = `${this.#options.hostname} has no provider ${namespace}/${type}: ${upstreamUrl} answered 404`
    const address = formatProviderAddress({ hostname, namespace, type })
    return new MirrorError('PROVIDER_NOT_FOUND', message, { address, upstreamUrl, upstreamStatus: 404 })
  }
}
