import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'

/*
 * The slice of the data set of registry.opentofu.org in `vectors/opentofu-registry`, as its files have it. Free of
 * vitest, because a worker reads it too.
 */

const root = new URL('../../../shared/vectors/opentofu-registry/', import.meta.url)

/** One zip of a version. `h1` and `size` are there in the format of 2026 only. */
export interface Target {
  readonly os: string
  readonly arch: string
  readonly filename: string
  readonly download_url: string
  readonly shasum: string
  readonly h1?: string
  readonly size?: number
}

export interface VersionEntry {
  readonly version: string
  readonly protocols: readonly string[]
  readonly shasums_url: string
  readonly shasums_signature_url: string
  readonly targets: readonly Target[]
}

/** A provider file. */
export interface ProviderData {
  readonly versions: readonly VersionEntry[]
  readonly warnings?: readonly string[]
}

/** A line of the manifest, with what it stands for. */
export interface Provider {
  readonly group: string
  /** `NAMESPACE/TYPE`; undefined if the file lies where the generator of the registry does not look. */
  readonly name: string | undefined
  readonly file: string
  readonly data: ProviderData
}

interface ManifestLine {
  readonly group: string
  readonly file: string
}

/** Where the generator finds a provider's address: a letter, the namespace and the type, and no folder more. */
const PROVIDER_PATH = /^providers\/\w\/([^/]+)\/([^/]+?)\.json(?:\.gz)?$/i

/** Every provider of the slice, the odd groups first. */
export function readProviders(): Provider[] {
  const lines = readManifest()
  const odd = lines.filter(({ group }) => group !== 'popular')
  const popular = lines.filter(({ group }) => group === 'popular')
  return [...odd, ...popular].map(({ group, file }) => ({
    group,
    file,
    name: findName(file),
    data: readProviderData(file),
  }))
}

/** The data of one provider, `NAMESPACE/TYPE`. */
export function readProvider(name: string): ProviderData {
  const line = readManifest().find(({ file }) => findName(file) === name)
  if (line === undefined) throw new Error(`${name} is not in the slice`)
  return readProviderData(line.file)
}

function readManifest(): ManifestLine[] {
  return JSON.parse(readText('MANIFEST.json'))
}

function findName(file: string): string | undefined {
  const [, namespace, type] = PROVIDER_PATH.exec(file) ?? []
  return namespace === undefined ? undefined : `${namespace}/${type}`
}

/** One provider file of the slice, e.g. one outside its manifest: `providers-2026-format/hashicorp-waypoint.json`. */
export function readProviderData(file: string): ProviderData {
  return JSON.parse(readText(file))
}

/**
 * The armored keys of a provider as the files have them: first those of the namespace, then those of the provider
 * alone, each by file name. What is under `hashicorp` was built and signed by `opentofu`.
 */
export function readKeys(name: string): string[] {
  const [written = '', type = ''] = name.split('/')
  const namespace = written === 'hashicorp' ? 'opentofu' : written
  const folder = `keys/${namespace[0]}/${namespace}/`
  return [folder, `${folder}${type}/`].flatMap((place) =>
    filesIn(place)
      .filter((file) => file.endsWith('.asc'))
      .sort()
      .map((file) => readText(`${place}${file}`)),
  )
}

/** A file of the slice as text; `.gz` is unpacked. */
export function readText(path: string): string {
  const bytes = readFileSync(new URL(path, root))
  return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
}

/** All files below a folder of the slice, as paths from the root of the slice; none if the slice is not there. */
export function filesBelow(folder: string): string[] {
  if (!existsSync(root)) return []
  return readdirSync(new URL(folder, root), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(fileURLToPath(root), join(entry.parentPath, entry.name)))
    .sort()
}

function filesIn(folder: string): string[] {
  try {
    return readdirSync(new URL(folder, root))
  } catch {
    return []
  }
}
