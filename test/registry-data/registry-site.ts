import { createOriginKey, type OriginKey } from '../origin/origin-key.ts'
import type { Reply, Site } from './data-origin.ts'
import { type ProviderData, readKeys, type Target, type VersionEntry } from './data-set.ts'
import { downloadDocument, type ListedKey, listedKey, sha256Sums, versionsDocument } from './v1-documents.ts'

/** A provider to serve. */
export interface SiteProvider {
  /** `NAMESPACE/TYPE`. */
  readonly name: string
  readonly data: ProviderData
}

interface Download {
  readonly entry: VersionEntry
  readonly target: Target
}

/**
 * registry.opentofu.org, or a host of another name, as the generator of its site makes it out of the data, with the
 * releases of github.com that its documents name. Two things are not in the data and are made here:
 *
 * - SHA256SUMS: of the targets of a version.
 * - Its signature, for providers with keys. Nobody has the private keys of the data, so the last listed key is replaced
 *   by one of the test, which signs; the others stay before it as they are. Providers without keys have none here
 *   either: `gpg_public_keys` is null, and the signature is a 404.
 */
export async function createRegistrySite(host: string, providers: readonly SiteProvider[]): Promise<Site> {
  const key = await createOriginKey()
  const served = new Map<string, ServedProvider>()
  for (const { name, data } of providers) {
    served.set(name, new ServedProvider(data, await substituteLast(await listedKeys(name), key)))
  }
  const sums = new Map<string, Target[]>()
  const signatures = new Map<string, string>()
  for (const provider of served.values()) {
    for (const { shasums_url, shasums_signature_url, targets } of provider.data.versions) {
      sums.set(shasums_url, [...(sums.get(shasums_url) ?? []), ...targets])
      if (provider.keys.length > 0) signatures.set(shasums_signature_url, shasums_url)
    }
  }
  const sumsBytes = (url: string): Buffer | undefined => {
    const targets = sums.get(url)
    return targets === undefined ? undefined : Buffer.from(sha256Sums(targets))
  }
  const base = `https://${host}/v1/providers/`
  return async (url) => {
    if (url === `https://${host}/.well-known/terraform.json`) return { body: '{"providers.v1":"/v1/providers/"}' }
    if (url.startsWith(base)) {
      const [namespace, type, ...rest] = url.slice(base.length).split('/')
      return served.get(`${namespace}/${type}`)?.answer(rest.join('/'))
    }
    const body = sumsBytes(url)
    if (body !== undefined) return { body, headers: OCTETS }
    const signed = sumsBytes(signatures.get(url) ?? '')
    return signed && { body: await key.sign(signed), headers: OCTETS }
  }
}

const OCTETS = { 'content-type': 'application/octet-stream' }

class ServedProvider {
  readonly data: ProviderData
  readonly keys: readonly ListedKey[]
  /** By path. The generator writes one file for each: of two entries for one version, the later one stays. */
  readonly #downloads = new Map<string, Download>()

  constructor(data: ProviderData, keys: readonly ListedKey[]) {
    this.data = data
    this.keys = keys
    for (const entry of data.versions) {
      for (const target of entry.targets) {
        this.#downloads.set(`${entry.version}/download/${target.os}/${target.arch}`, { entry, target })
      }
    }
  }

  answer(path: string): Reply | undefined {
    if (path === 'versions') return { body: versionsDocument(this.data) }
    const download = this.#downloads.get(path)
    return download && { body: downloadDocument(download.entry, download.target, this.keys) }
  }
}

function listedKeys(name: string): Promise<ListedKey[]> {
  return Promise.all(readKeys(name).map(listedKey))
}

async function substituteLast(keys: readonly ListedKey[], own: OriginKey): Promise<ListedKey[]> {
  return keys.length === 0 ? [] : [...keys.slice(0, -1), { ascii_armor: own.asciiArmor, key_id: own.keyId }]
}
