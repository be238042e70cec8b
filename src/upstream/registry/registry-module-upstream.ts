import { MirrorError, redactUrl } from '../../errors.ts'
import { formatModuleAddress, type ModuleAddress } from '../../protocol/module-address.ts'
import { type ModuleLocation, parseModuleLocation } from '../../protocol/module-location.ts'
import { type ModuleVersions, parseModuleVersions } from '../../protocol/module-versions.ts'
import type { Discovery } from '../discovery.ts'
import type { DocumentAnswer, OriginClient } from '../http-client.ts'
import type { ModuleSources } from '../module-source/module-sources.ts'
import type { ModuleTree, ModuleUpstream } from '../module-upstream.ts'
import type { UpstreamRequest } from '../provider-upstream.ts'
import { parseJsonAnswer, statusError } from './origin-answer.ts'

const MAX_VERSIONS_BYTES = 5_000_000
/** A location, and what a registry may say beside it. */
const MAX_DOWNLOAD_BYTES = 100_000

/** What a registry of modules is reached with. The client and the sources belong to the caller. */
export interface RegistryModuleUpstreamOptions {
  readonly client: OriginClient
  readonly discovery: Discovery
  readonly sources: ModuleSources
}

/** An origin that speaks the module registry protocol (client-contract E). */
export class RegistryModuleUpstream implements ModuleUpstream {
  readonly #options: RegistryModuleUpstreamOptions

  constructor(options: RegistryModuleUpstreamOptions) {
    this.#options = options
  }

  async versions(address: ModuleAddress, request: UpstreamRequest): Promise<ModuleVersions> {
    const answer = await this.#ask(address, 'versions', request, MAX_VERSIONS_BYTES)
    const name = formatModuleAddress(address)
    if (answer.status === 404) throw notFound(address, answer)
    if (answer.status !== 200) throw statusError(answer, `the list of versions of ${name} was answered with status`)
    return parseModuleVersions(parseJsonAnswer(answer), { host: answer.url.host, upstreamUrl: redactUrl(answer.url) })
  }

  async locate(address: ModuleAddress, spelling: string, request: UpstreamRequest): Promise<ModuleLocation> {
    const path = `${encodeURIComponent(spelling)}/download`
    const answer = await this.#ask(address, path, request, MAX_DOWNLOAD_BYTES)
    const { status, terraformGet: header, body } = answer
    const name = formatModuleAddress(address)
    if (status === 404) throw versionNotFound(name, spelling, answer)
    if (status !== 200 && status !== 204)
      throw statusError(answer, `the location of ${name} ${spelling} was answered with status`)
    // Clients resolve against the URL that they asked, whatever it redirected to (E4).
    return parseModuleLocation({
      status,
      header,
      body,
      endpoint: new URL(path, await this.#moduleBase(address, request)),
    })
  }

  open(location: ModuleLocation, request: UpstreamRequest): Promise<ModuleTree> {
    return this.#options.sources.open(location, request)
  }

  currentCommit({ source }: ModuleLocation, request: UpstreamRequest): Promise<string | undefined> {
    return this.#options.sources.currentCommit(source, request)
  }

  async #ask(
    address: ModuleAddress,
    path: string,
    request: UpstreamRequest,
    maxBytes: number,
  ): Promise<DocumentAnswer> {
    const { signal, hops } = request
    const url = new URL(path, await this.#moduleBase(address, request))
    return await this.#options.client.fetchDocument({ url, signal, hops, maxBytes, trusted: true })
  }

  /** URL of `NAMESPACE/NAME/SYSTEM/` below the origin's service. */
  async #moduleBase({ namespace, name, targetSystem }: ModuleAddress, request: UpstreamRequest): Promise<URL> {
    const { url } = await this.#options.discovery.serviceBase('modules.v1', request)
    return new URL(`${[namespace, name, targetSystem].map(encodeURIComponent).join('/')}/`, url)
  }
}

function notFound({ hostname, ...rest }: ModuleAddress, answer: DocumentAnswer): MirrorError<'MODULE_NOT_FOUND'> {
  const address = formatModuleAddress({ hostname, ...rest })
  const upstreamUrl = redactUrl(answer.url)
  const message = `${hostname} has no module ${address.slice(hostname.length + 1)}: ${upstreamUrl} answered 404`
  return new MirrorError('MODULE_NOT_FOUND', message, { address, upstreamUrl, upstreamStatus: 404 })
}

function versionNotFound(address: string, version: string, answer: DocumentAnswer): MirrorError<'VERSION_NOT_FOUND'> {
  const upstreamUrl = redactUrl(answer.url)
  const message = `${address} has no version ${version}: ${upstreamUrl} answered 404`
  return new MirrorError('VERSION_NOT_FOUND', message, { address, version, upstreamUrl, upstreamStatus: 404 })
}
