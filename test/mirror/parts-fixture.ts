import { createLog, type Log } from '../../src/log.ts'
import type { FindUnsafety } from '../../src/mirror/archive-check.ts'
import type { Delivery } from '../../src/mirror/archive-download.ts'
import { Archives } from '../../src/mirror/archives.ts'
import type { Call } from '../../src/mirror/call.ts'
import { Catalogue } from '../../src/mirror/catalogue.ts'
import { createDeadline } from '../../src/mirror/deadline.ts'
import { DownloadDocuments } from '../../src/mirror/download-documents.ts'
import { DocumentCache, type Freshness } from '../../src/mirror/freshness.ts'
import { Mirror } from '../../src/mirror/mirror.ts'
import type { MirrorObserver } from '../../src/mirror/observer.ts'
import { type Hasher, PackageHashes } from '../../src/mirror/package-hashes.ts'
import { ReleaseRecorder } from '../../src/mirror/release-recorder.ts'
import { ReleaseReplacement } from '../../src/mirror/release-replacement.ts'
import { Releases } from '../../src/mirror/releases.ts'
import { Inventory } from '../../src/mirror/stock/inventory.ts'
import { parseStoredVersions } from '../../src/mirror/stored-versions.ts'
import { Versions } from '../../src/mirror/versions.ts'
import type { View } from '../../src/mirror/view.ts'
import { parsePlatform } from '../../src/protocol/platform.ts'
import { parseProviderAddressText } from '../../src/protocol/provider-address.ts'
import { assertVersion } from '../../src/protocol/version.ts'
import type { BlobStore } from '../../src/store/blob-store.ts'
import { MemoryBlobStore } from '../../src/store/memory/memory-blob-store.ts'
import { MemoryMetadataCache } from '../../src/store/memory/memory-metadata-cache.ts'
import { MemoryRecordStore } from '../../src/store/memory/memory-record-store.ts'
import type { MetadataCache } from '../../src/store/metadata-cache.ts'
import type { RecordStore } from '../../src/store/record-store.ts'
import type { ProviderUpstream } from '../../src/upstream/provider-upstream.ts'
import { ScriptedUpstream } from './scripted-upstream.ts'

export const widget = parseProviderAddressText('registry.example.test/acme/widget')
export const gadget = parseProviderAddressText('other.example.test/acme/gadget')
export const v1 = assertVersion('1.0.0')
export const everything: View = { id: 'test', allowsOrigin: () => true }

/** The grace is short, and real time; the rest is by the clock of the test. */
export const freshness: Freshness = {
  freshForMs: 300_000,
  notFoundForMs: 30_000,
  graceMs: 60,
  backOffMs: 10_000,
  refreshForMs: 7_500,
}

/** A clock that stands still until it is moved. */
export class StillClock {
  nowMs = Date.parse('2026-11-30T12:00:00Z')
  readonly now = (): number => this.nowMs

  advance(ms: number): void {
    this.nowMs += ms
  }
}

/** A log that a test can look into. */
export function recordingLog(): { log: Log; lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = []
  const log = createLog({ level: 'debug', format: 'json' }, { write: (line) => void lines.push(JSON.parse(line)) })
  return { log, lines }
}

export function newCall(deadlineMs = 8_000): Call {
  return { deadline: createDeadline(deadlineMs), hops: [] }
}

/** What a test wants otherwise than usual. */
export interface PartsOptions {
  readonly records?: RecordStore
  readonly blobs?: BlobStore
  readonly cache?: MetadataCache
  readonly clock?: StillClock
  readonly signatures?: 'required' | 'whenListed'
  readonly freshness?: Partial<Freshness>
  readonly hasher?: Hasher
  /** Default: nothing is unsafe, although no archive of a test is a zip. */
  readonly findUnsafety?: FindUnsafety
  /** Default: verified. */
  readonly delivery?: Delivery
  readonly upstream?: ScriptedUpstream
  /** Default: `upstream` for every host. Undefined: sealed. */
  readonly upstreamFor?: (hostname: string) => ProviderUpstream | undefined
}

/** The use cases over memory and one scripted upstream. */
export interface TestParts {
  readonly upstream: ScriptedUpstream
  readonly clock: StillClock
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly inventory: Inventory
  readonly catalogue: Catalogue
  readonly versions: Versions
  readonly releases: Releases
  readonly replacement: ReleaseReplacement
  readonly archives: Archives
  readonly hashes: PackageHashes
  readonly mirror: Mirror
  readonly shutdown: AbortController
  readonly log: Log
  readonly lines: Record<string, unknown>[]
  /** `judged RULE`, `changed`, `downloading 1`. */
  readonly observed: string[]
  /** Names of what was served. */
  readonly used: string[]
}

/** No archive of a test is a zip: a hash that tells which file it is of. */
export function fakeHasher(): Hasher {
  return {
    hash: async () => ({ hashes: [], reason: 'not a zip' }),
    [Symbol.asyncDispose]: async () => undefined,
  }
}

export function createParts(options: PartsOptions = {}): TestParts {
  const { signatures = 'whenListed', clock = new StillClock(), upstream = new ScriptedUpstream() } = options
  const { records = new MemoryRecordStore(), blobs = new MemoryBlobStore() } = options
  const upstreamFor = options.upstreamFor ?? (() => upstream)
  const { log, lines } = recordingLog()
  const { now } = clock
  const times = { ...freshness, ...options.freshness }
  const controller = new AbortController()
  const shutdown = controller.signal
  const observed: string[] = []
  const used: string[] = []
  const observer: MirrorObserver = {
    judged: (verdict) => observed.push(`judged ${verdict}`),
    releaseChanged: () => observed.push('changed'),
    downloading: (change) => observed.push(`downloading ${change}`),
  }
  const inventory = new Inventory({ log })
  const catalogue = new Catalogue(records, inventory, log)
  const cache = options.cache ?? new MemoryMetadataCache()
  const lists = new DocumentCache({
    ...{
      cache,
      prefix: 'versions',
      parse: parseStoredVersions,
      onChange: ({ name }) => catalogue.editions.end(name),
      freshness: times,
      now,
      log,
      shutdown,
    },
  })
  const versions = new Versions({ catalogue, upstreamFor, lists, now, log })
  const common = { catalogue, claims: inventory.claims, blobs, upstreamFor, shutdown, observer, now, log }
  const rulesFor = () => ({ signatures, expiredKeys: 'accept' as const })
  const replacement = new ReleaseReplacement({
    ...{ catalogue, records, recorder: new ReleaseRecorder({ ...common, log }), log },
    removeArchive: async (address, archive) => {
      await catalogue.deleteArchive(address, archive.version, parsePlatform(archive.platform))
      await blobs.delete(archive.digest)
    },
  })
  const releases = new Releases({ ...common, versions, rulesFor, freshness: times, replacement })
  const hashes = new PackageHashes({ records, blobs, hasher: options.hasher ?? fakeHasher(), log })
  const archives = new Archives({
    ...common,
    releases,
    hashes,
    delivery: options.delivery ?? 'verified',
    findUnsafety: options.findUnsafety ?? (async () => undefined),
  })
  const downloads = new DownloadDocuments({ catalogue, releases, hashes, upstreamFor, log })
  const usage = { touch: (name: string): void => void used.push(name) }
  const mirror = new Mirror({ catalogue, versions, releases, archives, hashes, downloads, usage, upstreamFor })
  return {
    ...{ upstream, clock, records, blobs, inventory, catalogue, versions, releases, archives, hashes, mirror },
    ...{ replacement, shutdown: controller, log, lines, observed, used },
  }
}

/** Fails unless `work` fails with an error of ours; gives the error. */
export async function failureOf(work: Promise<unknown>): Promise<Error & { code?: string; fields?: object }> {
  const outcome = await work.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (outcome instanceof Error) return outcome
  throw new Error('expected a failure')
}

/** Lets everything run that is only waiting for its turn. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
}
