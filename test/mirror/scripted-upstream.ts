import { createHash } from 'node:crypto'
import { MirrorError } from '../../src/errors.ts'
import { assertSha256, type PackageHash, type Sha256 } from '../../src/protocol/package-hash.ts'
import { formatPlatform, parsePlatform } from '../../src/protocol/platform.ts'
import type { ProviderAddress } from '../../src/protocol/provider-address.ts'
import type { ProviderVersions } from '../../src/protocol/provider-versions.ts'
import type {
  ChecksumsClaim,
  PlatformClaim,
  PublishedPlatform,
  ReleaseClaim,
} from '../../src/protocol/release-claim.ts'
import { assertVersion } from '../../src/protocol/version.ts'
import type {
  ArchivePiece,
  ArchiveStream,
  ProviderUpstream,
  ReleaseQuery,
  UpstreamRequest,
} from '../../src/upstream/provider-upstream.ts'
import type { OriginKey } from '../origin/origin-key.ts'

/** When keys of these tests sign: before the time at which `StillClock` stands, whatever time it really is. */
const SIGNED_AT = new Date('2026-11-01T00:00:00Z')
/** When keys are made that sign. */
export const KEY_MADE_AT = new Date('2026-01-01T00:00:00Z')

export const PLATFORMS = ['linux_amd64', 'linux_arm64', 'darwin_arm64'] as const

/** What a scripted upstream publishes under one version. */
export interface Publication {
  /** Default {@link PLATFORMS}. */
  readonly platforms?: readonly string[]
  /** Platforms that the version list names; default all of `platforms`. */
  readonly listed?: readonly string[]
  /** Another number gives other bytes. */
  readonly generation?: number
  /** Signs, and is listed; default nobody. */
  readonly key?: OriginKey
  /** False: no SHA256SUMS, the documents state the digests themselves. */
  readonly sums?: boolean
  /** The bytes of a platform's archive, instead of some that differ by version, platform and generation. */
  readonly bytes?: (platform: string) => Buffer
  readonly statedHashes?: readonly PackageHash[]
  /** Appended to every archive URL, as the secret part of a signed link. */
  readonly link?: string
}

interface Published {
  readonly publication: Publication
  readonly files: ReadonlyMap<string, { filename: string; bytes: Buffer; digest: Sha256 }>
  readonly checksums: ChecksumsClaim | undefined
}

/** An upstream without a network: it publishes claims as a registry makes them, and does what a test tells it to. */
export class ScriptedUpstream implements ProviderUpstream {
  /** Everything that was asked: `versions`, `release linux_amd64 darwin_arm64`, `archive URL`. */
  readonly asked: string[] = []
  /** Answers of single platforms that are no documents: an absence or a failure. */
  readonly platformFaults = new Map<string, 'absent' | MirrorError>()
  /** Each runs before the answer; it may throw, wait, or change what is published. */
  beforeVersions: (signal: AbortSignal) => void | Promise<void> = () => undefined
  beforeRelease: (query: ReleaseQuery, signal: AbortSignal) => void | Promise<void> = () => undefined
  beforeArchive: (url: URL, signal: AbortSignal) => void | Promise<void> = () => undefined
  /** Changes what an archive delivers. */
  pieces: (bytes: Buffer, url: URL) => Iterable<ArchivePiece> = halves
  /** Changes a claim before it is answered. */
  claim: (claim: ReleaseClaim, query: ReleaseQuery) => ReleaseClaim = (claim) => claim
  /** Archives that were opened and neither read to the end nor left. */
  openArchives = 0
  readonly #published = new Map<string, Published>()

  async publish(version: string, publication: Publication = {}): Promise<void> {
    const { platforms = PLATFORMS, generation = 1, key, sums = true } = publication
    const files = new Map(
      platforms.map((platform) => {
        const bytes = publication.bytes?.(platform) ?? Buffer.from(`${version} ${platform} generation ${generation}`)
        return [platform, { filename: `widget_${version}_${platform}.zip`, bytes, digest: sha256(bytes) }]
      }),
    )
    const text = Buffer.from([...files.values()].map(({ filename, digest }) => `${digest}  ${filename}\n`).join(''))
    const signature = key && (await key.sign(text, SIGNED_AT))
    const sumsUrl = `https://files.example.test/${version}/SHA256SUMS`
    const checksums = { sumsUrl, signatureUrl: signature && `${sumsUrl}.sig`, sums: text, signature }
    this.#published.set(version, { publication, files, checksums: sums ? checksums : undefined })
  }

  withdraw(version: string): void {
    this.#published.delete(version)
  }

  digest(version: string, platform: string): Sha256 {
    const file = this.#published.get(version)?.files.get(platform)
    if (file === undefined) throw new Error(`${version} is not published for ${platform}`)
    return file.digest
  }

  /** How often something was asked that begins so. */
  count(what: string): number {
    return this.asked.filter((each) => each.startsWith(what)).length
  }

  async versions(address: ProviderAddress, { signal }: UpstreamRequest): Promise<ProviderVersions> {
    this.asked.push('versions')
    await this.beforeVersions(signal)
    if (this.#published.size === 0) throw providerNotFound(address)
    const versions = [...this.#published].map(([spelling, { publication, files }]) => ({
      version: assertVersion(spelling),
      spelling,
      protocols: ['5.0'],
      platforms: (publication.listed ?? [...files.keys()]).map(parsePlatform),
    }))
    return { versions, warnings: [], problems: [] }
  }

  async release(query: ReleaseQuery, { signal }: UpstreamRequest): Promise<ReleaseClaim> {
    this.asked.push(['release', ...query.platforms.map(formatPlatform)].join(' '))
    await this.beforeRelease(query, signal)
    const published = this.#published.get(query.spelling)
    const names = new Set(query.platforms.map(formatPlatform))
    if (query.extend && published?.checksums !== undefined) for (const name of published.files.keys()) names.add(name)
    const platforms = [...names].map((name) => this.#platformClaim(name, published))
    return this.claim({ platforms, checksums: published?.checksums ? [published.checksums] : [] }, query)
  }

  async openArchive(
    { archiveUrl }: Pick<PublishedPlatform, 'archiveUrl'>,
    { signal }: UpstreamRequest,
  ): Promise<ArchiveStream> {
    const url = new URL(archiveUrl)
    this.asked.push(`archive ${archiveUrl}`)
    await this.beforeArchive(url, signal)
    const [, version = '', filename = ''] = url.pathname.split('/')
    const files = [...(this.#published.get(version)?.files.values() ?? [])]
    const file = files.find((each) => each.filename === filename)
    if (file === undefined) throw statusError(archiveUrl, 404)
    this.openArchives += 1
    return { size: file.bytes.length, [Symbol.asyncIterator]: () => this.#deliver(file.bytes, url) }
  }

  async *#deliver(bytes: Buffer, url: URL): AsyncGenerator<ArchivePiece> {
    try {
      yield* this.pieces(bytes, url)
    } finally {
      this.openArchives -= 1
    }
  }

  #platformClaim(name: string, published: Published | undefined): PlatformClaim {
    const platform = parsePlatform(name)
    const fault = this.platformFaults.get(name)
    if (fault instanceof MirrorError) return { kind: 'failed', platform, error: fault }
    const file = published?.files.get(name)
    if (fault === 'absent' || file === undefined || published === undefined) {
      return { kind: 'absent', platform, upstreamUrl: `https://registry.example.test/download/${name}` }
    }
    const { key, statedHashes = [], link = '' } = published.publication
    const [, version] = file.filename.split('_')
    return {
      kind: 'published',
      platform,
      filename: file.filename,
      shasum: file.digest,
      archiveUrl: `https://files.example.test/${version}/${file.filename}${link}`,
      protocols: ['5.0'],
      signingKeys: key ? [{ asciiArmor: key.asciiArmor, document: { ascii_armor: key.asciiArmor } }] : [],
      checksums: published.checksums === undefined ? undefined : 0,
      statedHashes,
      document: { os: platform.os, arch: platform.arch, filename: file.filename, extra: 'kept' },
      documentUrl: `https://registry.example.test/download/${name}`,
    }
  }
}

function* halves(bytes: Buffer): Iterable<ArchivePiece> {
  const middle = bytes.length >> 1
  yield { kind: 'bytes', bytes: bytes.subarray(0, middle) }
  yield { kind: 'bytes', bytes: bytes.subarray(middle) }
}

export function sha256(bytes: Uint8Array): Sha256 {
  return assertSha256(createHash('sha256').update(bytes).digest('hex'))
}

/** The origin is down. */
export function outage(): MirrorError {
  const upstreamUrl = 'https://registry.example.test/'
  return new MirrorError('UPSTREAM_UNREACHABLE', 'no route', { host: 'registry.example.test', upstreamUrl })
}

export function statusError(url: string, upstreamStatus: number): MirrorError {
  const upstreamUrl = url.replace(/\?.*/, '')
  const fields = { host: 'files.example.test', upstreamUrl, upstreamStatus }
  return new MirrorError('UPSTREAM_STATUS', `${upstreamStatus} from ${upstreamUrl}`, fields)
}

export function providerNotFound({ hostname, namespace, type }: ProviderAddress): MirrorError {
  const address = `${hostname}/${namespace}/${type}`
  return new MirrorError('PROVIDER_NOT_FOUND', `${address}: 404`, { address, upstreamStatus: 404 })
}

/** Waits for ever, as an origin that hangs; ends when it is given up. */
export function hang(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const end = (): void => {
      const fields = { host: 'registry.example.test', upstreamUrl: 'https://registry.example.test/' }
      reject(new MirrorError('UPSTREAM_TIMEOUT', 'no answer in time', fields))
    }
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
}
