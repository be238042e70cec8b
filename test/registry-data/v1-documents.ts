import { readKey } from 'openpgp'
import type { ProviderData, Target, VersionEntry } from './data-set.ts'

/*
 * The answers of registry.opentofu.org, rendered from its data set by the rules of its generator: order of keys, two
 * spaces, `<`, `>` and `&` escaped as Go does, no final newline. `v1-documents.test.ts` holds them against
 * `vectors/opentofu-registry/v1-derived`.
 */

/** One entry of `gpg_public_keys`. */
export interface ListedKey {
  readonly ascii_armor: string
  readonly key_id: string
}

/** `NAMESPACE/TYPE/versions`. Without warnings the key is left out. */
export function versionsDocument({ versions, warnings = [] }: ProviderData): string {
  return goJson({
    versions: versions.map(({ version, protocols, targets }) => ({
      version,
      protocols,
      platforms: targets.map(({ os, arch }) => ({ os, arch })),
    })),
    ...(warnings.length === 0 ? {} : { warnings }),
  })
}

/**
 * `NAMESPACE/TYPE/VERSION/download/OS/ARCH`. No key is `null`, not an empty list. With the form of 2026, `packages`
 * has the hashes and sizes of all platforms.
 */
export function downloadDocument(entry: VersionEntry, target: Target, keys: readonly ListedKey[]): string {
  const { os, arch, filename, download_url, shasum } = target
  const { protocols, shasums_url, shasums_signature_url } = entry
  return goJson({
    protocols,
    os,
    arch,
    filename,
    download_url,
    shasums_url,
    shasums_signature_url,
    shasum,
    signing_keys: { gpg_public_keys: keys.length === 0 ? null : keys },
    ...(target.h1 === undefined ? {} : { packages: packages(entry.targets) }),
  })
}

/** The files of a version, as `sha256sum` prints them. The data has no SHA256SUMS of its own. */
export function sha256Sums(targets: readonly Target[]): string {
  return targets.map(({ shasum, filename }) => `${shasum}  ${filename}\n`).join('')
}

/** A key of the data set as the registry lists it. The id is empty if the key cannot be read. */
export async function listedKey(armor: string): Promise<ListedKey> {
  try {
    const key = await readKey({ armoredKey: armor })
    return { ascii_armor: armor, key_id: key.getKeyID().toHex().toUpperCase() }
  } catch {
    return { ascii_armor: armor, key_id: '' }
  }
}

function packages(targets: readonly Target[]): unknown {
  const entries = targets.map(({ os, arch, shasum, h1, size }) => [
    `${os}_${arch}`,
    { hashes: [`zh:${shasum}`, h1], package_size: size },
  ])
  return Object.fromEntries(entries)
}

/** JSON as Go's `encoding/json` indents and escapes it. */
function goJson(value: unknown): string {
  return JSON.stringify(value, undefined, 2).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
