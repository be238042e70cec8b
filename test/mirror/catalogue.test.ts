import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { MirrorError } from '../../src/errors.ts'
import { Catalogue } from '../../src/mirror/catalogue.ts'
import type { ArchiveRecord, PinRecord, Release, TrustRecord } from '../../src/mirror/release-record.ts'
import { Inventory } from '../../src/mirror/stock/inventory.ts'
import { assertSha256 } from '../../src/protocol/package-hash.ts'
import { formatPlatform, parsePlatform } from '../../src/protocol/platform.ts'
import { assertVersion, type Version } from '../../src/protocol/version.ts'
import { openDataFolder } from '../../src/store/disk/data-folder.ts'
import { MemoryRecordStore } from '../../src/store/memory/memory-record-store.ts'
import type { RecordKey, RecordStore } from '../../src/store/record-store.ts'
import { makeTempFolder } from '../store/temp-folder.ts'
import { failureOf, gadget, recordingLog, v1, widget } from './parts-fixture.ts'

const at = '2026-11-30T12:00:00.000Z'
const digest = assertSha256('a'.repeat(64))
const linux = parsePlatform('linux_amd64')
const darwin = parsePlatform('darwin_arm64')
const VERSION_KEY: RecordKey = ['providers', 'registry.example.test', 'acme', 'widget', 'versions', '1.0.0']

const release: Release = {
  format: 1,
  address: 'registry.example.test/acme/widget',
  version: v1,
  spelling: 'v1.0',
  generation: 1,
  firstSeenAt: at,
  recordedAt: at,
  complete: true,
  files: [{ filename: 'widget.zip', digest }],
  platforms: {
    linux_amd64: {
      filename: 'widget.zip',
      digest,
      archiveUrl: 'https://files.example.test/widget.zip?signature=x',
      protocols: ['5.0'],
      statedHashes: [],
      authentication: { rule: 'unsigned-checksums', digest, sums: digest },
      document: { os: 'linux', arch: 'amd64', unknown: { kept: [1, null] } },
      documentUrl: 'https://registry.example.test/download',
      packages: digest,
    },
  },
}
const pin: PinRecord = { format: 1, generation: 1, pinnedAt: at }
const trust: TrustRecord = { format: 1, signedSince: at, version: v1, keyId: 'ABCD', fingerprint: 'abcd' }

function archive(version: Version = v1, platform = linux): ArchiveRecord {
  return {
    format: 1,
    address: 'registry.example.test/acme/widget',
    version,
    platform: formatPlatform(platform),
    filename: 'widget.zip',
    digest,
    size: 12,
    generation: 1,
    authentication: {
      rule: 'signed-checksums',
      digest,
      sums: digest,
      signature: digest,
      signer: { keyId: 'AB', fingerprint: 'ab', userId: 'Acme', signedAt: at, keyExpired: false, weak: false },
    },
    archiveUrl: 'https://files.example.test/widget.zip',
    cachedAt: at,
  }
}

const stores = [
  {
    name: 'memory',
    open: async (): Promise<{ records: RecordStore; close: () => Promise<void> }> => ({
      records: new MemoryRecordStore(),
      close: async () => undefined,
    }),
  },
  {
    name: 'disk',
    open: async (): Promise<{ records: RecordStore; close: () => Promise<void> }> => {
      const stack = new AsyncDisposableStack()
      const { path } = stack.use(await makeTempFolder())
      const dataDir = join(path, 'data')
      const folder = stack.use(await openDataFolder({ dataDir, log: recordingLog().log }))
      return { records: folder.records, close: () => stack.disposeAsync() }
    },
  },
]

describe.each(stores)('over records in $name', ({ open }) => {
  let records: RecordStore
  let close: () => Promise<void>
  let lines: Record<string, unknown>[]

  beforeEach(async () => {
    const opened = await open()
    records = opened.records
    close = opened.close
  })
  afterEach(() => close())

  function openCatalogue(): Catalogue {
    const recording = recordingLog()
    lines = recording.lines
    return new Catalogue(records, new Inventory(recording), recording.log)
  }

  it('takes a signed release for the trust record that was lost: unsigned ones stay refused', async () => {
    await openCatalogue().saveRelease(widget, release)
    expect(await openCatalogue().trust(widget)).toBeUndefined()
    const signer = { keyId: 'ABCD', fingerprint: 'abcd', userId: '', signedAt: at, keyExpired: false, weak: false }
    const authentication = { rule: 'signed-checksums', digest, sums: digest, signature: digest, signer } as const
    const platforms = Object.entries(release.platforms).map(([name, entry]) => [name, { ...entry, authentication }])
    await openCatalogue().saveRelease(widget, { ...release, platforms: Object.fromEntries(platforms) })
    expect(await openCatalogue().trust(widget)).toEqual(trust)
    expect(await openCatalogue().trust(gadget)).toBeUndefined()
  })

  it('gives back what was saved, at once and in the next process', async () => {
    const before = openCatalogue()
    expect(await before.version(widget, v1)).toEqual({ release: undefined, pin: undefined, archives: new Map() })
    expect(await before.trust(widget)).toBeUndefined()
    await before.saveTrust(widget, trust)
    await before.saveRelease(widget, release)
    await before.savePin(widget, v1, pin)
    await before.saveArchive(widget, linux, archive())
    for (const catalogue of [before, openCatalogue()]) {
      expect(await catalogue.version(widget, v1)).toEqual({
        release,
        pin,
        archives: new Map([['linux_amd64', archive()]]),
      })
      expect(await catalogue.trust(widget)).toEqual(trust)
      expect(await catalogue.installableVersions(widget)).toEqual(['1.0.0'])
    }
    expect(lines).toEqual([])
  })

  it('knows what others hold as little as other versions and other origins', async () => {
    const catalogue = openCatalogue()
    await catalogue.saveArchive(widget, linux, archive())
    expect(await catalogue.version(gadget, v1)).toEqual({ release: undefined, pin: undefined, archives: new Map() })
    expect(await catalogue.installableVersions(gadget)).toEqual([])
    expect((await catalogue.version(widget, assertVersion('1.0.1'))).archives.size).toBe(0)
  })

  it('a version is installable from its first archive on, not from its release; in the order of versions', async () => {
    const catalogue = openCatalogue()
    const versions = ['1.10.0', '1.9.0', '1.9.0-beta.1', '1.9.0+build'].map(assertVersion)
    for (const version of versions) {
      await catalogue.saveRelease(widget, { ...release, version })
      await catalogue.savePin(widget, version, pin)
      expect(await catalogue.installableVersions(widget)).not.toContain(version)
      await catalogue.saveArchive(widget, linux, archive(version))
    }
    const expected = ['1.9.0-beta.1', '1.9.0', '1.9.0+build', '1.10.0']
    expect(await catalogue.installableVersions(widget)).toEqual(expected)
    expect(await openCatalogue().installableVersions(widget)).toEqual(expected)
  })

  it('changes to one version at the same time are all kept', async () => {
    const catalogue = openCatalogue()
    await catalogue.version(widget, v1)
    const platforms = ['linux_amd64', 'linux_arm64', 'darwin_arm64', 'windows_amd64'].map(parsePlatform)
    await Promise.all([
      ...platforms.map((platform) => catalogue.saveArchive(widget, platform, archive(v1, platform))),
      catalogue.savePin(widget, v1, pin),
      catalogue.saveRelease(widget, release),
    ])
    for (const each of [catalogue, openCatalogue()]) {
      const held = await each.version(widget, v1)
      expect([...held.archives.keys()].sort()).toEqual(platforms.map(formatPlatform).sort())
      expect([held.pin, held.release]).toEqual([pin, release])
    }
  })

  it('a read that is under way during a change does not hide the change', async () => {
    await openCatalogue().saveRelease(widget, release)
    const catalogue = openCatalogue()
    const [, held] = await Promise.all([catalogue.savePin(widget, v1, pin), catalogue.version(widget, v1)])
    expect(held.release).toEqual(release)
    expect((await catalogue.version(widget, v1)).pin).toEqual(pin)
  })

  it('a record that it cannot read is as good as none, and is told in the log', async () => {
    const good = openCatalogue()
    await good.saveArchive(widget, linux, archive())
    await good.saveArchive(widget, darwin, archive(v1, darwin))
    await records.put([...VERSION_KEY, 'release'], { ...release, format: 2 })
    await records.put([...VERSION_KEY, 'archives', 'linux_amd64'], { ...archive(), digest: 'not a digest' })
    await records.put(['providers', 'registry.example.test', 'acme', 'widget', 'trust'], [])
    const catalogue = openCatalogue()
    const held = await catalogue.version(widget, v1)
    expect(held.release).toBeUndefined()
    expect([...held.archives.keys()]).toEqual(['darwin_arm64'])
    expect(await catalogue.trust(widget)).toBeUndefined()
    // The release is looked at twice: it might stand for the trust record.
    const told = new Set(lines.map(({ level, record }) => `${level} ${record}`))
    expect([...told].map((line) => line.split(' '))).toEqual([
      ['error', `${VERSION_KEY.join('/')}/archives/linux_amd64`],
      ['error', `${VERSION_KEY.join('/')}/release`],
      ['error', 'providers/registry.example.test/acme/widget/trust'],
    ])
  })

  it('an archive stands for its pin, if that was lost', async () => {
    const good = openCatalogue()
    await good.savePin(widget, v1, pin)
    await good.saveArchive(widget, linux, archive())
    await records.put([...VERSION_KEY, 'pin'], { format: 'damaged' })
    expect((await openCatalogue().version(widget, v1)).pin).toEqual({ format: 1, generation: 1, pinnedAt: at })
  })

  it('a deleted archive is gone, at once and in the next process; evidence and pin stay', async () => {
    const before = openCatalogue()
    await before.saveRelease(widget, release)
    await before.savePin(widget, v1, pin)
    await before.saveArchive(widget, linux, archive())
    await before.saveArchive(widget, darwin, archive(v1, darwin))
    const edition = before.editions.of('registry.example.test/acme/widget')
    await before.deleteArchive(widget, v1, linux)
    await before.deleteArchive(widget, v1, linux)
    expect(edition.isCurrent).toBe(false)
    for (const catalogue of [before, openCatalogue()]) {
      expect([...(await catalogue.version(widget, v1)).archives.keys()]).toEqual(['darwin_arm64'])
      expect(await catalogue.installableVersions(widget)).toEqual(['1.0.0'])
    }
    await before.deleteArchive(widget, v1, darwin)
    for (const catalogue of [before, openCatalogue()]) {
      expect(await catalogue.version(widget, v1)).toEqual({ release, pin, archives: new Map() })
      expect(await catalogue.installableVersions(widget)).toEqual([])
    }
  })

  it('a pin that only its archive stood for outlives it', async () => {
    await openCatalogue().saveArchive(widget, linux, archive())
    await openCatalogue().deleteArchive(widget, v1, linux)
    expect((await openCatalogue().version(widget, v1)).pin).toEqual({ format: 1, generation: 1, pinnedAt: at })
  })

  it('a deleted version keeps evidence and pin, unless it is to be forgotten', async () => {
    const before = openCatalogue()
    const other = assertVersion('2.0.0')
    for (const version of [v1, other]) {
      await before.saveRelease(widget, { ...release, version })
      await before.savePin(widget, version, pin)
      await before.saveArchive(widget, linux, archive(version))
    }
    await records.put([...VERSION_KEY, 'archives', 'plan9_mips'], 'unreadable')
    await before.deleteVersion(widget, v1, { forget: false })
    for (const catalogue of [before, openCatalogue()]) {
      expect(await catalogue.version(widget, v1)).toEqual({ release, pin, archives: new Map() })
      expect(await catalogue.installableVersions(widget)).toEqual([other])
    }
    expect(await records.children([...VERSION_KEY, 'archives'])).toEqual([])
    await before.deleteVersion(widget, v1, { forget: true })
    for (const catalogue of [before, openCatalogue()]) {
      expect(await catalogue.version(widget, v1)).toEqual({ release: undefined, pin: undefined, archives: new Map() })
      expect((await catalogue.version(widget, other)).archives.size).toBe(1)
    }
    expect(await records.children(VERSION_KEY)).toEqual([])
  })

  it('saving and deleting at the same time come out in the order of the calls, in memory as on the disk', async () => {
    const catalogue = openCatalogue()
    const [saved, deleted] = [assertVersion('1.1.0'), assertVersion('1.2.0')]
    await Promise.all([
      catalogue.deleteArchive(widget, saved, linux),
      catalogue.saveArchive(widget, linux, archive(saved)),
      catalogue.saveArchive(widget, linux, archive(deleted)),
      catalogue.saveArchive(widget, darwin, archive(deleted, darwin)),
      catalogue.deleteVersion(widget, deleted, { forget: true }),
      catalogue.version(widget, deleted),
    ])
    for (const each of [catalogue, openCatalogue()]) {
      expect(await each.installableVersions(widget)).toEqual([saved])
      expect([...(await each.version(widget, saved)).archives.keys()]).toEqual(['linux_amd64'])
      expect((await each.version(widget, deleted)).archives.size).toBe(0)
    }
  })

  it('looking at a version keeps no copy of it', async () => {
    await openCatalogue().saveRelease(widget, release)
    const catalogue = openCatalogue()
    expect((await catalogue.look(widget, v1)).release).toEqual(release)
    await records.delete([...VERSION_KEY, 'release'])
    expect((await catalogue.look(widget, v1)).release).toBeUndefined()
    await catalogue.saveRelease(widget, release)
    await records.delete([...VERSION_KEY, 'release'])
    expect((await catalogue.look(widget, v1)).release).toEqual(release)
  })

  it('names that are no versions are no versions', async () => {
    await records.put([...VERSION_KEY.slice(0, -1), 'latest', 'archives', 'linux_amd64'], archive())
    expect(await openCatalogue().installableVersions(widget)).toEqual([])
  })
})

/** Fails as often as told, and then works. */
class FailingRecordStore extends MemoryRecordStore {
  failures = 0

  override async children(prefix: RecordKey): Promise<string[]> {
    if (this.failures-- > 0) throw new MirrorError('STORAGE_FAILED', 'the disk', { operation: 'list' })
    return super.children(prefix)
  }

  override async put(key: RecordKey, document: unknown): Promise<void> {
    if (this.failures-- > 0) throw new MirrorError('STORAGE_FULL', 'the disk', { operation: 'write' })
    return super.put(key, document)
  }
}

describe('when the store fails', () => {
  it('a failed read is not remembered', async () => {
    const records = new FailingRecordStore()
    const catalogue = new Catalogue(records, new Inventory(recordingLog()), recordingLog().log)
    records.failures = 1
    expect(await failureOf(catalogue.version(widget, v1))).toMatchObject({ code: 'STORAGE_FAILED' })
    expect((await catalogue.version(widget, v1)).release).toBeUndefined()
    records.failures = 1
    expect(await failureOf(catalogue.installableVersions(widget))).toMatchObject({ code: 'STORAGE_FAILED' })
    expect(await catalogue.installableVersions(widget)).toEqual([])
  })

  it('what could not be written is not held', async () => {
    const records = new FailingRecordStore()
    const catalogue = new Catalogue(records, new Inventory(recordingLog()), recordingLog().log)
    await catalogue.version(widget, v1)
    for (const save of [
      () => catalogue.saveArchive(widget, linux, archive()),
      () => catalogue.savePin(widget, v1, pin),
      () => catalogue.saveRelease(widget, release),
      () => catalogue.saveTrust(widget, trust),
    ]) {
      records.failures = 1
      expect(await failureOf(save())).toMatchObject({ code: 'STORAGE_FULL' })
    }
    expect(await catalogue.version(widget, v1)).toEqual({ release: undefined, pin: undefined, archives: new Map() })
    expect(await catalogue.installableVersions(widget)).toEqual([])
    expect(await catalogue.trust(widget)).toBeUndefined()
  })
})
