import { createHash } from 'node:crypto'
import { MirrorError } from '../../src/errors.ts'
import { DocumentCache } from '../../src/mirror/freshness.ts'
import { ModuleCatalogue } from '../../src/mirror/module-catalogue.ts'
import { ModuleFetches } from '../../src/mirror/module-fetches.ts'
import { ModuleLists } from '../../src/mirror/module-lists.ts'
import { Modules } from '../../src/mirror/modules.ts'
import { Inventory } from '../../src/mirror/stock/inventory.ts'
import type { ModuleId } from '../../src/mirror/stock/item-name.ts'
import { parseStoredModuleVersions } from '../../src/mirror/stored-versions.ts'
import { parseModuleAddressText } from '../../src/protocol/module-address.ts'
import type { ModuleLocation } from '../../src/protocol/module-location.ts'
import { parseRemoteSource } from '../../src/protocol/module-source.ts'
import { assertVersion } from '../../src/protocol/version.ts'
import { BlobLeases } from '../../src/store/blob-leases.ts'
import type { BlobStore } from '../../src/store/blob-store.ts'
import { MemoryBlobStore } from '../../src/store/memory/memory-blob-store.ts'
import { MemoryMetadataCache } from '../../src/store/memory/memory-metadata-cache.ts'
import { MemoryRecordStore } from '../../src/store/memory/memory-record-store.ts'
import type { RecordStore } from '../../src/store/record-store.ts'
import type { ModuleTree, ModuleUpstream } from '../../src/upstream/module-upstream.ts'
import type { UpstreamRequest } from '../../src/upstream/provider-upstream.ts'
import { freshness, recordingLog, StillClock } from './parts-fixture.ts'

/** An archive somewhere, whose one file says what a test wants. */
export class ScriptedModuleUpstream implements ModuleUpstream {
  /** Text of the module's one file; part of what the archive's digest is made of. */
  text = '# one\n'
  location = 'https://files.example.test/a.tar.gz//sub'
  /** The commit that the files are of, if they are of a repository. */
  commit: string | undefined
  /** What the repository says that its ref is now. */
  current: string | undefined
  /** Where the module's one file is. */
  path = 'sub/main.tf'
  /** Whether the ref is a branch. */
  moving = false
  /** Runs before files are given. */
  beforeOpen: (signal: AbortSignal) => Promise<void> = async () => undefined
  opened = 0
  atOnce = 0
  mostAtOnce = 0

  async versions() {
    const versions = ['1.0.0', '2.0.0'].map((version) => ({ version: assertVersion(version), spelling: `v${version}` }))
    return { versions, problems: [] }
  }

  async locate(): Promise<ModuleLocation> {
    return { source: parseRemoteSource(this.location), withOriginToken: false }
  }

  async open(_location: ModuleLocation, { signal }: UpstreamRequest): Promise<ModuleTree> {
    this.opened += 1
    this.atOnce += 1
    this.mostAtOnce = Math.max(this.mostAtOnce, this.atOnce)
    try {
      await this.beforeOpen(signal)
    } finally {
      this.atOnce -= 1
    }
    const bytes = Buffer.from(this.text)
    const read = async function* () {
      yield bytes
    }
    return {
      revision:
        this.commit === undefined
          ? { kind: 'archive', digest: createHash('sha256').update(bytes).digest('hex') }
          : { kind: 'commit', commit: this.commit, moving: this.moving },
      files: new Map([[this.path, { size: bytes.length, executable: false, read }]]),
      notes: [],
      [Symbol.asyncDispose]: async () => undefined,
    }
  }

  async currentCommit() {
    return this.current
  }
}

export function moduleId(name: string, version = '1.0.0'): ModuleId {
  return { address: parseModuleAddressText(`registry.example.test/acme/${name}/aws`), version: assertVersion(version) }
}

export function outage(): MirrorError {
  const place = { host: 'files.example.test', upstreamUrl: 'https://files.example.test/a.tar.gz' }
  return new MirrorError('UPSTREAM_UNREACHABLE', 'no connection', place)
}

/** The use case over memory and one scripted upstream. */
export function createModuleParts(
  options: {
    filesMs?: number
    records?: RecordStore
    blobs?: BlobStore
    inventory?: Inventory
    isSealed?: boolean
  } = {},
) {
  const { filesMs, isSealed = false } = options
  const upstream = new ScriptedModuleUpstream()
  const clock = new StillClock()
  const { log, lines } = recordingLog()
  const { now } = clock
  const { records = new MemoryRecordStore(), blobs = new MemoryBlobStore() } = options
  const shutdown = new AbortController().signal
  const { inventory = new Inventory({ log }) } = options
  const catalogue = new ModuleCatalogue(records, inventory, log)
  const cache = new MemoryMetadataCache()
  const stored = { cache, prefix: 'module-versions', parse: parseStoredModuleVersions }
  const documents = new DocumentCache({ ...stored, freshness, now, log, shutdown })
  const upstreamFor = () => (isSealed ? undefined : upstream)
  const lists = new ModuleLists({ catalogue, upstreamFor, lists: documents, now, log })
  const observed: string[] = []
  const observer = {
    judged: () => undefined,
    releaseChanged: () => void observed.push('changed'),
    downloading: () => undefined,
  }
  const fetches = new ModuleFetches({
    ...{ catalogue, claims: inventory.claims, lists, blobs, upstreamFor, shutdown, observer, now, log },
    ...(filesMs === undefined ? {} : { filesMs }),
  })
  const leases = new BlobLeases()
  const used: string[] = []
  const usage = { touch: (name: string, hits = 1): void => void used.push(`${name} ${hits}`) }
  const modules = new Modules({ catalogue, lists, fetches, blobs, leases, usage, upstreamFor, now, log, ...freshness })
  return { used, upstream, clock, blobs, leases, records, inventory, catalogue, lists, modules, lines, observed }
}
