import { describe, expect, it } from 'vitest'
import { MirrorError } from '../../src/errors.ts'
import { ModuleCatalogue } from '../../src/mirror/module-catalogue.ts'
import type { ArchiveRecord } from '../../src/mirror/release-record.ts'
import type { PackageId } from '../../src/mirror/stock/item-name.ts'
import { ItemRemoval } from '../../src/mirror/stock/item-removal.ts'
import { parsePlatform } from '../../src/protocol/platform.ts'
import type { IncomingBlob, OpenBlob } from '../../src/store/blob-store.ts'
import { MemoryBlobStore } from '../../src/store/memory/memory-blob-store.ts'
import { MemoryRecordStore } from '../../src/store/memory/memory-record-store.ts'
import type { RecordKey } from '../../src/store/record-store.ts'
import {
  createParts,
  everything,
  failureOf,
  freshness,
  gadget,
  newCall,
  settle,
  type TestParts,
  v1,
  widget,
} from './parts-fixture.ts'
import { outage, PLATFORMS, ScriptedUpstream, sha256, statusError } from './scripted-upstream.ts'

const linux: PackageId = { address: widget, version: v1, platform: parsePlatform('linux_amd64') }
const darwin: PackageId = { address: widget, version: v1, platform: parsePlatform('darwin_arm64') }

async function contentOf(blob: OpenBlob): Promise<string> {
  await using open = blob
  const buffer = Buffer.alloc(open.size)
  await open.read(buffer, 0, open.size)
  return buffer.toString()
}

async function open({ archives }: TestParts, id = linux): Promise<{ text: string; outcome: string }> {
  const { value, outcome } = await archives.open(everything, id, newCall())
  return { text: await contentOf(value), outcome }
}

function describeArchive({ archives }: TestParts, id = linux) {
  return archives.describe(everything, id, newCall())
}

async function recordOf({ catalogue }: TestParts, id = linux): Promise<ArchiveRecord | undefined> {
  return (await catalogue.version(id.address, id.version)).archives.get(`${id.platform.os}_${id.platform.arch}`)
}

async function published(options: Parameters<typeof createParts>[0] = {}): Promise<TestParts> {
  const parts = createParts(options)
  await parts.upstream.publish('1.0.0')
  return parts
}

describe('an archive that is not held', () => {
  it('is downloaded once for all who ask, verified, pinned and recorded; from then on the origin is not needed', async () => {
    const parts = await published()
    const answers = await Promise.all([open(parts), open(parts), open(parts)])
    expect(answers).toEqual([
      { text: '1.0.0 linux_amd64 generation 1', outcome: 'miss' },
      { text: '1.0.0 linux_amd64 generation 1', outcome: 'coalesced' },
      { text: '1.0.0 linux_amd64 generation 1', outcome: 'coalesced' },
    ])
    expect(parts.upstream.count('archive')).toBe(1)
    expect((await parts.catalogue.version(widget, v1)).pin).toMatchObject({ generation: 1 })
    const digest = parts.upstream.digest('1.0.0', 'linux_amd64')
    expect(await recordOf(parts)).toMatchObject({
      digest,
      size: 30,
      generation: 1,
      filename: 'widget_1.0.0_linux_amd64.zip',
    })
    expect(parts.observed.filter((each) => each.startsWith('downl'))).toEqual(['downloading 1', 'downloading -1'])
    const next = createParts({ ...parts, upstreamFor: () => undefined })
    expect(await open(next)).toEqual({ text: '1.0.0 linux_amd64 generation 1', outcome: 'hit' })
  })

  it('keeps no secret of its link in its record', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0', { link: '?signature=secret' })
    await open(parts)
    expect(parts.upstream.asked.at(-1)).toContain('?signature=secret')
    expect(JSON.stringify(await recordOf(parts))).not.toContain('secret')
  })

  it('begins again from nothing when the origin cannot resume', async () => {
    const parts = await published()
    parts.upstream.pieces = function* (bytes) {
      yield { kind: 'bytes', bytes: bytes.subarray(0, 7) }
      yield { kind: 'restart' }
      yield { kind: 'bytes', bytes }
    }
    expect((await open(parts)).text).toBe('1.0.0 linux_amd64 generation 1')
  })

  it('is asked for again by the next caller after an outage', async () => {
    const parts = await published()
    parts.upstream.beforeArchive = () => {
      throw outage()
    }
    expect(await failureOf(open(parts))).toMatchObject({ code: 'UPSTREAM_UNREACHABLE' })
    expect(parts.upstream.count('archive')).toBe(1)
    parts.upstream.beforeArchive = () => undefined
    expect((await open(parts)).outcome).toBe('miss')
  })

  it('of an origin that this caller may not see is refused before anything is looked up', async () => {
    const parts = await published()
    const view = { id: 'nothing', allowsOrigin: () => false }
    expect(await failureOf(parts.archives.open(view, linux, newCall()))).toMatchObject({ code: 'ORIGIN_NOT_ALLOWED' })
    expect(await failureOf(parts.archives.describe(view, linux, newCall()))).toMatchObject({
      code: 'ORIGIN_NOT_ALLOWED',
    })
    expect(parts.upstream.asked).toEqual([])
  })

  it('sealed, is not cached', async () => {
    const sealed = createParts({ upstreamFor: () => undefined })
    expect(await failureOf(open(sealed))).toMatchObject({ code: 'NOT_CACHED' })
    expect(await failureOf(describeArchive(sealed))).toMatchObject({ code: 'NOT_CACHED' })
  })
})

describe('equal bytes', () => {
  it('of another origin are not downloaded again, and are recorded for both', async () => {
    const other = new ScriptedUpstream()
    const upstream = new ScriptedUpstream()
    const parts = createParts({ upstreamFor: (host) => (host === gadget.hostname ? other : upstream) })
    const bytes = () => Buffer.from('the same provider at two registries')
    await upstream.publish('1.0.0', { bytes })
    await other.publish('1.0.0', { bytes })
    await open(parts)
    const elsewhere = { ...linux, address: gadget }
    expect(await open(parts, elsewhere)).toMatchObject({ text: 'the same provider at two registries' })
    expect(other.count('archive')).toBe(0)
    expect(await recordOf(parts, elsewhere)).toMatchObject({ address: 'other.example.test/acme/gadget' })
    expect((await parts.catalogue.version(gadget, v1)).pin).toBeDefined()
  })

  it('whose other owner is removed meanwhile are kept, or come again: never a record without its blob', async () => {
    const other = new ScriptedUpstream()
    const upstream = new ScriptedUpstream()
    const parts = createParts({ upstreamFor: (host) => (host === gadget.hostname ? other : upstream) })
    const bytes = () => Buffer.from('the same provider at two registries')
    await upstream.publish('1.0.0', { bytes })
    await other.publish('1.0.0', { bytes })
    await parts.inventory.start([], new AbortController().signal)
    const modules = new ModuleCatalogue(parts.records, parts.inventory, parts.log)
    const removal = new ItemRemoval({ ...parts, modules })
    const elsewhere = { ...linux, address: gadget }
    let kept = 0
    for (let turns = 0; turns < 40; turns++) {
      await open(parts)
      const item = parts.inventory.get('registry.example.test/acme/widget 1.0.0 linux_amd64')
      if (item === undefined) throw new Error('not held')
      const opening = open(parts, elsewhere)
      for (let turn = 0; turn < turns; turn++) await null
      kept += (await removal.remove(item)) === 0 ? 1 : 0
      await opening
      expect(await parts.blobs.stat(item.digest), `after ${turns} turns`).toBeDefined()
      const second = parts.inventory.get('other.example.test/acme/gadget 1.0.0 linux_amd64')
      if (second === undefined) throw new Error('not held')
      await removal.remove(second)
      expect(await parts.blobs.stat(item.digest)).toBeUndefined()
    }
    expect(kept).toBeGreaterThan(0)
  })

  it('are not taken for equal because of a name: another digest is downloaded', async () => {
    const other = new ScriptedUpstream()
    const upstream = new ScriptedUpstream()
    const parts = createParts({ upstreamFor: (host) => (host === gadget.hostname ? other : upstream) })
    await upstream.publish('1.0.0')
    await other.publish('1.0.0', { generation: 2 })
    await open(parts)
    expect((await open(parts, { ...linux, address: gadget })).text).toContain('generation 2')
  })
})

describe('bytes that are not the published ones', () => {
  it('are refused, and asked for once more with a fresh document', async () => {
    const parts = await published()
    let wrong = 1
    parts.upstream.pieces = function* (bytes) {
      yield { kind: 'bytes', bytes: wrong-- > 0 ? Buffer.from('something else') : bytes }
    }
    expect((await open(parts)).text).toBe('1.0.0 linux_amd64 generation 1')
    expect(parts.upstream.asked.filter((each) => !each.startsWith('versions'))).toEqual([
      `release ${PLATFORMS.join(' ')}`,
      expect.stringContaining('archive'),
      `release ${PLATFORMS.join(' ')}`,
      expect.stringContaining('archive'),
    ])
  })

  it('twice are refused for good, naming both digests; nothing is kept of them, nothing pinned', async () => {
    const parts = await published()
    parts.upstream.pieces = () => [{ kind: 'bytes', bytes: Buffer.from('something else') }]
    const error = await failureOf(open(parts))
    const expected = parts.upstream.digest('1.0.0', 'linux_amd64')
    const actual = sha256(Buffer.from('something else'))
    expect(error).toMatchObject({ code: 'CHECKSUM_MISMATCH', fields: { expected, actual } })
    expect(error.message).toContain(expected)
    expect(error.message).toContain(actual)
    expect(parts.upstream.count('archive')).toBe(2)
    expect(await parts.blobs.stat(actual)).toBeUndefined()
    expect(await parts.catalogue.version(widget, v1)).toMatchObject({ pin: undefined, archives: new Map() })
  })
})

describe('a link that has expired', () => {
  function expireLinks({ upstream }: TestParts, valid: () => string): void {
    upstream.beforeArchive = (url) => {
      if (url.search !== valid()) throw statusError(url.href, 403)
    }
  }

  it('is replaced by the one of a fresh document', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0', { link: '?signature=1' })
    expireLinks(parts, () => '?signature=2')
    await parts.releases.get(widget, v1, newCall())
    await parts.upstream.publish('1.0.0', { link: '?signature=2' })
    expect((await open(parts)).text).toBe('1.0.0 linux_amd64 generation 1')
    expect(parts.upstream.asked.filter((each) => each.startsWith('archive'))).toEqual([
      expect.stringMatching(/signature=1$/),
      expect.stringMatching(/signature=2$/),
    ])
  })

  it('also in a release that is pinned and complete, where another platform was downloaded before', async () => {
    const parts = createParts()
    let link = '?signature=1'
    expireLinks(parts, () => link)
    await parts.upstream.publish('1.0.0', { link })
    await open(parts)
    link = '?signature=2'
    await parts.upstream.publish('1.0.0', { link })
    parts.clock.advance(freshness.freshForMs)
    expect((await open(parts, darwin)).text).toBe('1.0.0 darwin_arm64 generation 1')
  })

  it('that is dead for good is told as the status of the origin', async () => {
    const parts = await published()
    expireLinks(parts, () => '?never')
    expect(await failureOf(open(parts))).toMatchObject({ code: 'UPSTREAM_STATUS', fields: { upstreamStatus: 403 } })
    expect(parts.upstream.count('archive')).toBe(2)
  })
})

describe('a release that changes during the download', () => {
  it('once: the bytes of the new one are served and recorded', async () => {
    const parts = await published()
    let changes = 1
    parts.upstream.beforeArchive = async () => {
      if (changes-- <= 0) return
      await parts.upstream.publish('1.0.0', { generation: 2 })
      await parts.releases.refresh(widget, v1, newCall())
    }
    // The first answer still has the old bytes.
    const old = Buffer.from('1.0.0 linux_amd64 generation 1')
    let first = true
    parts.upstream.pieces = function* (bytes) {
      yield { kind: 'bytes', bytes: first ? old : bytes }
      first = false
    }
    expect((await open(parts)).text).toBe('1.0.0 linux_amd64 generation 2')
    expect(await recordOf(parts)).toMatchObject({
      generation: 2,
      digest: parts.upstream.digest('1.0.0', 'linux_amd64'),
    })
  })

  it('again and again: that is said in clear words, and nothing is pinned', async () => {
    const parts = await published()
    let generation = 1
    parts.upstream.pieces = () => {
      const bytes = Buffer.from(`1.0.0 linux_amd64 generation ${generation - 1}`)
      return [{ kind: 'bytes', bytes }]
    }
    parts.upstream.beforeArchive = async () => {
      generation += 1
      await parts.upstream.publish('1.0.0', { generation })
      await parts.releases.refresh(widget, v1, newCall())
    }
    const error = await failureOf(open(parts))
    expect(error).toMatchObject({ code: 'UPSTREAM_INVALID', message: expect.stringContaining('keeps changing') })
    expect((await parts.catalogue.version(widget, v1)).pin).toBeUndefined()
  })
})

/** Fails to write records whose last names are told. */
class CrashingRecordStore extends MemoryRecordStore {
  crashAt: string | undefined
  readonly written: string[] = []

  override async put(key: RecordKey, document: unknown): Promise<void> {
    if (this.crashAt !== undefined && key.includes(this.crashAt)) throw new Error('killed')
    this.written.push(key.slice(6).join('/'))
    await super.put(key, document)
  }
}

describe('a crash', () => {
  it('between pin and record leaves a version that cannot change, and an archive that is not downloaded again', async () => {
    const records = new CrashingRecordStore()
    const parts = await published({ records })
    records.crashAt = 'archives'
    expect((await failureOf(open(parts))).message).toBe('killed')
    records.crashAt = undefined
    const next = createParts({ ...parts, records })
    expect(await next.catalogue.version(widget, v1)).toMatchObject({ pin: { generation: 1 }, archives: new Map() })
    expect((await open(next)).text).toBe('1.0.0 linux_amd64 generation 1')
    expect(parts.upstream.count('archive')).toBe(1)
  })

  it('before the pin leaves nothing that is served', async () => {
    const records = new CrashingRecordStore()
    const parts = await published({ records })
    records.crashAt = 'pin'
    await failureOf(open(parts))
    expect(await recordOf(createParts({ ...parts, records }))).toBeUndefined()
  })

  it('the order on disk is release, pin, archive; a second archive does not pin again', async () => {
    const records = new CrashingRecordStore()
    const parts = await published({ records })
    await open(parts)
    await open(parts, darwin)
    expect(records.written.filter((each) => each !== '')).toEqual([
      'release',
      'pin',
      'archives/linux_amd64',
      'archives/darwin_arm64',
    ])
  })
})

/** Counts what is open, and fails where told. */
class WatchedBlobStore extends MemoryBlobStore {
  full = false
  fullAtAppend = false
  incoming = 0

  override async create(): Promise<IncomingBlob> {
    if (this.full) throw new MirrorError('STORAGE_FULL', 'no space left', { operation: 'create' })
    const inner = await super.create()
    this.incoming += 1
    const end = (): void => {
      this.incoming -= 1
    }
    const isFull = (): boolean => this.fullAtAppend
    return {
      get size() {
        return inner.size
      },
      expect: (bytes) => inner.expect(bytes),
      append: async (bytes) => {
        if (isFull()) throw new MirrorError('STORAGE_FULL', 'no space left', { operation: 'append' })
        await inner.append(bytes)
      },
      restart: () => inner.restart(),
      follow: () => inner.follow(),
      digest: () => inner.digest(),
      commit: () => inner.commit(),
      async [Symbol.asyncDispose]() {
        end()
        await inner[Symbol.asyncDispose]()
      },
    }
  }
}

describe('what was opened is closed', () => {
  it('when the disk is full before the first byte, or in the middle, and when the bytes are wrong', async () => {
    const blobs = new WatchedBlobStore()
    const parts = await published({ blobs })
    await parts.releases.get(widget, v1, newCall())
    blobs.full = true
    expect(await failureOf(open(parts))).toMatchObject({ code: 'STORAGE_FULL' })
    expect([blobs.incoming, parts.upstream.openArchives, parts.upstream.count('archive')]).toEqual([0, 0, 0])
    blobs.full = false
    blobs.fullAtAppend = true
    expect(await failureOf(open(parts))).toMatchObject({ code: 'STORAGE_FULL' })
    expect([blobs.incoming, parts.upstream.openArchives]).toEqual([0, 0])
    blobs.fullAtAppend = false
    parts.upstream.pieces = () => [{ kind: 'bytes', bytes: Buffer.from('wrong') }]
    await failureOf(open(parts))
    expect([blobs.incoming, parts.upstream.openArchives]).toEqual([0, 0])
    expect(parts.observed.filter((each) => each.startsWith('downloading')).length % 2).toBe(0)
  })
})

describe('an archive that is held', () => {
  it('is served while the origin is down, and after it released it anew', async () => {
    const parts = await published()
    await open(parts)
    await parts.upstream.publish('1.0.0', { generation: 2 })
    parts.clock.advance(freshness.freshForMs)
    parts.upstream.beforeVersions = () => {
      throw outage()
    }
    expect(await open(parts)).toEqual({ text: '1.0.0 linux_amd64 generation 1', outcome: 'hit' })
  })

  it('and whose bytes were lost is fetched again, as it was', async () => {
    const parts = await published()
    await open(parts)
    await parts.blobs.setAside(parts.upstream.digest('1.0.0', 'linux_amd64'))
    expect(await open(parts)).toEqual({ text: '1.0.0 linux_amd64 generation 1', outcome: 'miss' })
    expect(parts.upstream.count('archive')).toBe(2)
  })

  it('and whose bytes were lost is refused, if the origin now has others', async () => {
    const parts = await published()
    await open(parts)
    await parts.blobs.setAside(parts.upstream.digest('1.0.0', 'linux_amd64'))
    await parts.upstream.publish('1.0.0', { generation: 2 })
    expect(await failureOf(open(parts))).toMatchObject({ code: 'CHECKSUM_MISMATCH' })
    expect(parts.observed).toContain('changed')
  })
})

describe('describing', () => {
  it('a missing archive begins the download that the next request joins, and does not wait for it', async () => {
    const parts = await published()
    const gate = Promise.withResolvers<void>()
    parts.upstream.beforeArchive = () => gate.promise
    const digest = parts.upstream.digest('1.0.0', 'linux_amd64')
    expect(await describeArchive(parts)).toEqual({ value: { digest, size: undefined }, outcome: 'miss' })
    expect(await describeArchive(parts)).toEqual({ value: { digest, size: undefined }, outcome: 'coalesced' })
    const opening = open(parts)
    await settle()
    gate.resolve()
    expect((await opening).outcome).toBe('coalesced')
    expect(parts.upstream.count('archive')).toBe(1)
  })

  it('a held archive opens nothing and asks nobody', async () => {
    const parts = await published()
    await open(parts)
    const asked = parts.upstream.asked.length
    const digest = parts.upstream.digest('1.0.0', 'linux_amd64')
    expect(await describeArchive(parts)).toMatchObject({ value: { digest, size: 30 }, outcome: 'hit' })
    expect(parts.upstream.asked.length).toBe(asked)
  })

  it('a platform that is not published is told as such', async () => {
    const parts = await published()
    const plan9 = { ...linux, platform: parsePlatform('plan9_amd64') }
    expect(await failureOf(describeArchive(parts, plan9))).toMatchObject({ code: 'PLATFORM_NOT_FOUND' })
  })

  it('a download that nobody waits for may fail without harm', async () => {
    const parts = await published()
    parts.upstream.beforeArchive = () => {
      throw outage()
    }
    await describeArchive(parts)
    await parts.archives.idle()
    await settle()
  })
})

describe('an archive that is evicted at the wrong moment', () => {
  /** Blobs that go as often as is wished just before they are opened. */
  class VanishingBlobs extends MemoryBlobStore {
    vanish = 0

    override async open(digest: string): Promise<OpenBlob | undefined> {
      const blob = await super.open(digest)
      if (blob === undefined || this.vanish === 0) return blob
      this.vanish -= 1
      await this.delete(digest)
      return undefined
    }
  }

  it('is fetched again, as often as is reasonable, and no request fails', async () => {
    const blobs = new VanishingBlobs()
    const parts = await published({ blobs })
    blobs.vanish = 2
    const { value } = await parts.archives.open(everything, linux, newCall())
    await value[Symbol.asyncDispose]()
    expect(parts.upstream.asked.filter((asked) => asked.startsWith('archive'))).toHaveLength(3)
    blobs.vanish = 100
    expect(await failureOf(parts.archives.open(everything, linux, newCall()))).toMatchObject({ code: 'STORAGE_FAILED' })
  })
})
