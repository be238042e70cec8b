import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createOriginKey, type OriginKey } from '../origin/origin-key.ts'
import { buildRelease, type Publication, type Release } from '../origin/release.ts'

/** The host that the providers of the benchmark belong to. */
export const HOST = 'registry.example.test'

/**
 * An origin registry as plain files, so that nginx can be the origin: the fastest one there is, and no process of ours.
 * Everything below `root` is what `https://HOST/` answers.
 */
export class OriginFiles {
  readonly root: string
  readonly #tempDir: string
  readonly #key: OriginKey

  constructor(parts: { root: string; tempDir: string; key: OriginKey }) {
    this.root = parts.root
    this.#tempDir = parts.tempDir
    this.#key = parts.key
  }

  static async create(folder: string): Promise<OriginFiles> {
    const files = new OriginFiles({
      root: join(folder, 'origin-root'),
      tempDir: join(folder, 'releases'),
      key: await createOriginKey(),
    })
    await mkdir(join(folder, 'releases'), { recursive: true })
    await files.#write('.well-known/terraform.json', JSON.stringify({ 'providers.v1': '/v1/providers/' }))
    return files
  }

  /** Writes a signed release of a provider, `NAMESPACE/TYPE`, and a list with it and any `more` versions. */
  async publish(publication: Publication, more: readonly string[] = []): Promise<Release> {
    const { provider, version } = publication
    const [namespace = '', type = ''] = provider.split('/')
    const place = { host: HOST, namespace, type, generation: 1, defaultKey: this.#key, tempDir: this.#tempDir }
    const release = await buildRelease(publication, place)
    const platforms = release.packages.map(({ platform }) => {
      const [os, arch] = platform.split('_')
      return { os, arch }
    })
    const versions = [...more, version].map((each) => ({ version: each, protocols: release.protocols, platforms }))
    await this.#write(`v1/providers/${provider}/versions`, JSON.stringify({ id: provider, versions }))
    for (const { platform, body } of release.packages) {
      const document = release.document(platform) ?? {}
      const [os, arch] = platform.split('_')
      await this.#write(`v1/providers/${provider}/${version}/download/${os}/${arch}`, JSON.stringify(document))
      await this.#write(String(document.shasums_url), release.sums)
      await this.#write(String(document.shasums_signature_url), release.signature ?? '')
      await this.#writeAll(String(document.download_url), body.read(0, body.size))
    }
    return release
  }

  async #writeAll(path: string, chunks: AsyncIterable<Buffer>): Promise<void> {
    await this.#write(path, chunks)
  }

  async #write(path: string, content: string | Uint8Array | AsyncIterable<Buffer>): Promise<void> {
    const file = join(this.root, path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, content)
  }
}
