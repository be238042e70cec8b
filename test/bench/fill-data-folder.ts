import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { sha256 } from '../../src/store/digest.ts'
import { recordFile } from '../../src/store/disk/record-path.ts'

const HOST = 'registry.terraform.io'
const PLATFORMS = ['darwin_arm64', 'linux_amd64', 'linux_arm64', 'windows_amd64', 'windows_arm64']
const VERSIONS_OF_A_PROVIDER = 10
const AT_ONCE = 64
const DATE = '2026-01-01T00:00:00.000Z'

/** Something that was filled in. */
export interface FilledPackage {
  /** `registry.terraform.io/bench/p7`. */
  readonly provider: string
  readonly version: string
  readonly platform: string
}

/**
 * Writes a data folder that holds so many packages, as the mirror itself would have left it but for the sizes: each
 * archive has a few bytes of its own. Nothing is synced: 100,000 packages take half a minute. Resolves to the last one.
 */
export async function fillDataFolder(dataDir: string, packages: number): Promise<FilledPackage> {
  const perProvider = VERSIONS_OF_A_PROVIDER * PLATFORMS.length
  await mkdir(dataDir, { recursive: true })
  await writeFile(join(dataDir, 'format'), '1\n')
  let last: FilledPackage | undefined
  const versions = function* () {
    for (let first = 0; first < packages; first += PLATFORMS.length) {
      const address = `${HOST}/bench/p${Math.floor(first / perProvider)}`
      const version = `1.${Math.floor((first % perProvider) / PLATFORMS.length)}.0`
      const platforms = PLATFORMS.slice(0, packages - first)
      last = { provider: address, version, platform: platforms.at(-1) ?? '' }
      yield { address, version, platforms }
    }
  }
  const all = versions()
  const work = async () => {
    for (const each of all) await fillVersion(dataDir, each)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  if (last === undefined) throw new Error('no packages were asked for')
  return last
}

interface FilledVersion {
  readonly address: string
  readonly version: string
  readonly platforms: readonly string[]
}

async function fillVersion(dataDir: string, { address, version, platforms }: FilledVersion): Promise<void> {
  const archives = platforms.map((platform) => {
    const bytes = Buffer.from(`${address} ${version} ${platform}\n`)
    const filename = `terraform-provider-bench_${version}_${platform}.zip`
    return { platform, filename, bytes, digest: sha256(bytes), archiveUrl: `https://releases.example/${filename}` }
  })
  const sumsText = Buffer.from(archives.map(({ digest, filename }) => `${digest}  ${filename}\n`).join(''))
  const sums = sha256(sumsText)
  const key = ['providers', ...address.split('/'), 'versions', version]
  const authenticate = (digest: string) => ({ rule: 'unsigned-checksums', digest, sums })
  await writeBlob(dataDir, sums, sumsText)
  for (const { digest, bytes } of archives) await writeBlob(dataDir, digest, bytes)
  await writeRecord(dataDir, [...key, 'release'], {
    ...{ format: 1, address, version, spelling: version, generation: 1, firstSeenAt: DATE, recordedAt: DATE },
    files: archives.map(({ filename, digest }) => ({ filename, digest })),
    complete: true,
    platforms: Object.fromEntries(
      archives.map(({ platform, filename, digest, archiveUrl }) => {
        const documentUrl = `https://${HOST}/v1/providers/download/${platform}`
        const evidence = { protocols: ['5.0'], statedHashes: [], authentication: authenticate(digest), document: {} }
        return [platform, { filename, digest, archiveUrl, ...evidence, documentUrl }]
      }),
    ),
  })
  await writeRecord(dataDir, [...key, 'pin'], { format: 1, generation: 1, pinnedAt: DATE })
  for (const { platform, filename, digest, bytes, archiveUrl } of archives) {
    await writeRecord(dataDir, [...key, 'archives', platform], {
      ...{ format: 1, address, version, platform, filename, digest, size: bytes.length, generation: 1 },
      ...{ authentication: authenticate(digest), archiveUrl, cachedAt: DATE },
    })
  }
}

const made = new Map<string, Promise<unknown>>()

async function writeBlob(dataDir: string, digest: string, bytes: Uint8Array): Promise<void> {
  await writeInto(join(dataDir, 'blobs/sha256', digest.slice(0, 2), digest), bytes)
}

async function writeRecord(dataDir: string, key: readonly string[], record: unknown): Promise<void> {
  await writeInto(join(dataDir, 'records', recordFile(key)), `${JSON.stringify(record, null, 2)}\n`)
}

async function writeInto(path: string, content: string | Uint8Array): Promise<void> {
  const folder = dirname(path)
  if (!made.has(folder)) made.set(folder, mkdir(folder, { recursive: true }))
  await made.get(folder)
  await writeFile(path, content, { mode: 0o444 })
}

/** `node test/bench/fill-data-folder.ts FOLDER PACKAGES` */
if (import.meta.main) {
  const [dataDir = '', packages] = process.argv.slice(2)
  const { provider, version, platform } = await fillDataFolder(dataDir, Number(packages))
  process.stdout.write(`${packages} packages in ${dataDir}; the last is ${provider} ${version} ${platform}\n`)
}
