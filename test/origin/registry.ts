import { createHash } from 'node:crypto'
import type { OriginKey } from './origin-key.ts'
import { fullAddress, type Target } from './origin-request.ts'
import { buildRelease, type JsonDocument, type Publication, type Release } from './release.ts'
import { bufferBody, fileReply, jsonReply, type Reply } from './reply.ts'

/** What an origin has published, and the answers of the provider registry protocol about it. */
export class Registry {
  readonly #hosts: readonly string[]
  readonly #defaultKey: OriginKey
  readonly #tempDir: string
  /** Full provider address to version to release, in the order of publication. */
  readonly #releases = new Map<string, Map<string, Release>>()
  /** How often each version was published; outlives a withdrawal. */
  readonly #generations = new Map<string, number>()

  constructor(hosts: readonly string[], defaultKey: OriginKey, tempDir: string) {
    this.#hosts = hosts
    this.#defaultKey = defaultKey
    this.#tempDir = tempDir
  }

  /** Publishes a version, or a new generation of it under the same URLs. */
  async publish(publication: Publication): Promise<Release> {
    const address = fullAddress(publication.provider, this.#hosts)
    const [host = '', namespace = '', type = ''] = address.split('/')
    if (!this.#hosts.includes(host)) throw new Error(`this origin does not play the host ${host}`)
    const generation = (this.#generations.get(`${address} ${publication.version}`) ?? 0) + 1
    this.#generations.set(`${address} ${publication.version}`, generation)
    const place = { host, namespace, type, generation, defaultKey: this.#defaultKey, tempDir: this.#tempDir }
    const release = await buildRelease(publication, place)
    const versions = this.#releases.get(address) ?? new Map<string, Release>()
    this.#releases.set(address, versions.set(publication.version, release))
    return release
  }

  /** Takes a version away, or the whole provider; unknown ones are ignored. */
  withdraw(provider: string, version?: string): void {
    const address = fullAddress(provider, this.#hosts)
    if (version === undefined) this.#releases.delete(address)
    else this.#releases.get(address)?.delete(version)
  }

  /** The honest answer to a request; what does not exist is a 404 as registry.terraform.io words it. */
  answer(target: Target): Reply {
    return this.#find(target) ?? jsonReply(404, { errors: ['Not Found'] })
  }

  #find(target: Target): Reply | undefined {
    if (target.kind === 'discovery')
      return jsonReply(200, { 'providers.v1': '/v1/providers/', 'modules.v1': '/v1/modules/' })
    if (target.provider === undefined) return undefined
    const versions = this.#releases.get(fullAddress(target.provider, this.#hosts))
    if (target.kind === 'versions') return versions && jsonReply(200, versionsDocument(target.provider, versions))
    const release = versions?.get(target.version ?? '')
    return release && answerFromRelease(release, target)
  }
}

function answerFromRelease(release: Release, target: Target): Reply | undefined {
  switch (target.kind) {
    case 'download': {
      const document = release.document(target.platform ?? '')
      return document && jsonReply(200, document)
    }
    case 'sums':
      return bytesReply(release.sums)
    case 'signature':
      return release.signature && bytesReply(release.signature)
    case 'archive': {
      const archive = release.packages.find((each) => each.platform === target.platform)
      return archive && fileReply(archive.body, archive.sha256)
    }
    default:
      return undefined
  }
}

function versionsDocument(provider: string, versions: ReadonlyMap<string, Release>): JsonDocument {
  const listed = [...versions.values()].filter((release) => release.listed)
  return {
    id: provider,
    versions: listed.map(({ version, protocols, packages }) => ({
      version,
      protocols,
      platforms: packages.map(({ platform }) => {
        const [os, arch] = platform.split('_')
        return { os, arch }
      }),
    })),
    warnings: null,
  }
}

function bytesReply(bytes: Buffer): Reply {
  return fileReply(bufferBody(bytes), createHash('sha256').update(bytes).digest('hex'))
}
