import { fullModuleAddress, type Target } from './origin-request.ts'
import { bufferBody, jsonReply, type Reply } from './reply.ts'

/** A module version to publish. */
export interface ModulePublication {
  /** `acme/net/aws` at the first host, or with a host in front. */
  readonly module: string
  /** As the origin spells it. */
  readonly version: string
  /** What the origin says of where the files are: any form that a client takes. */
  readonly location: string
  /**
   * How it says so: `header` is 204 with the header, `header200` is 200 with header and `{}`, `json` is 200 with a body
   * alone. Default `header`.
   */
  readonly answer?: 'header' | 'header200' | 'json'
  /** Further fields of a JSON body. */
  readonly fields?: Readonly<Record<string, unknown>>
}

/** The modules that an origin has published, and the answers of the module registry protocol about them. */
export class ModuleRegistry {
  readonly #hosts: readonly string[]
  /** Full address to spelling to publication, in the order of publication. */
  readonly #modules = new Map<string, Map<string, ModulePublication>>()

  constructor(hosts: readonly string[]) {
    this.#hosts = hosts
  }

  /** Publishes a version; publishing it again replaces it. */
  publish(publication: ModulePublication): void {
    const address = fullModuleAddress(publication.module, this.#hosts)
    const versions = this.#modules.get(address) ?? new Map<string, ModulePublication>()
    this.#modules.set(address, versions.set(publication.version, publication))
  }

  /** Takes a version away, or the whole module; unknown ones are ignored. */
  withdraw(module: string, version?: string): void {
    const address = fullModuleAddress(module, this.#hosts)
    if (version === undefined) this.#modules.delete(address)
    else this.#modules.get(address)?.delete(version)
  }

  /** The honest answer; undefined for what is not about a published module. */
  answer(target: Target): Reply | undefined {
    if (target.module === undefined) return undefined
    const versions = this.#modules.get(fullModuleAddress(target.module, this.#hosts))
    if (versions === undefined) return undefined
    if (target.kind === 'module-versions') {
      return jsonReply(200, { modules: [{ versions: [...versions.keys()].map((version) => ({ version })) }] })
    }
    const publication = versions.get(target.version ?? '')
    return publication && downloadReply(publication)
  }
}

function downloadReply({ location, answer = 'header', fields = {} }: ModulePublication): Reply {
  if (answer === 'json') return jsonReply(200, { location, ...fields })
  const header = { 'x-terraform-get': location }
  if (answer === 'header') return { status: 204, headers: header, body: bufferBody('') }
  const reply = jsonReply(200, fields)
  return { ...reply, headers: { ...reply.headers, ...header } }
}
