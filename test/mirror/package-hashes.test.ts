import { describe, expect, it } from 'vitest'
import { type Hasher, PackageHashes } from '../../src/mirror/package-hashes.ts'
import { type PackageHash, parsePackageHash, type Sha256 } from '../../src/protocol/package-hash.ts'
import { MemoryBlobStore } from '../../src/store/memory/memory-blob-store.ts'
import { MemoryRecordStore } from '../../src/store/memory/memory-record-store.ts'
import { recordingLog, settle } from './parts-fixture.ts'
import { sha256 } from './scripted-upstream.ts'

function h1(letter: string): PackageHash {
  const hash = parsePackageHash(`h1:${letter.repeat(43)}=`)
  if (hash === undefined) throw new Error('not a hash')
  return hash
}

const truth = h1('T')
const zip = Buffer.from('an archive')
const digest: Sha256 = sha256(zip)

interface Fixture {
  readonly hashes: PackageHashes
  readonly records: MemoryRecordStore
  readonly lines: Record<string, unknown>[]
  hashed: number
}

function createHashes(hash: Hasher['hash'] = async () => ({ hashes: [truth] }), records = new MemoryRecordStore()) {
  const blobs = new MemoryBlobStore()
  const { log, lines } = recordingLog()
  const disposed = Promise.withResolvers<never>()
  disposed.promise.catch(() => undefined)
  const hasher: Hasher = {
    hash: (path) => {
      fixture.hashed += 1
      return Promise.race([hash(path), disposed.promise])
    },
    [Symbol.asyncDispose]: async () => disposed.reject(new Error('the hasher is closed')),
  }
  const fixture: Fixture = { hashes: new PackageHashes({ records, blobs, hasher, log }), records, lines, hashed: 0 }
  return blobs.put(zip).then(() => fixture)
}

describe('the h1 of an archive', () => {
  it('is computed once, off the caller, and kept for the next process', async () => {
    const fixture = await createHashes()
    expect(await fixture.hashes.find(digest)).toBeUndefined()
    for (let turn = 0; turn < 5; turn++) fixture.hashes.ensure(digest, [], 'acme/widget')
    expect(await fixture.hashes.find(digest)).toBeUndefined()
    await expect.poll(() => fixture.hashes.find(digest)).toEqual([truth])
    fixture.hashes.ensure(digest, [], 'acme/widget')
    await settle()
    expect(fixture.hashed).toBe(1)
    const next = await createHashes(undefined, fixture.records)
    expect(await next.hashes.find(digest)).toEqual([truth])
    next.hashes.ensure(digest, [], 'acme/widget')
    await settle()
    expect(next.hashed).toBe(0)
  })

  it('that does not exist is remembered as such, with the reason in the log', async () => {
    const fixture = await createHashes(async () => ({ hashes: [], reason: 'not a zip' }))
    fixture.hashes.ensure(digest, [], 'acme/widget')
    await expect.poll(() => fixture.hashes.find(digest)).toEqual([])
    expect(fixture.lines).toMatchObject([{ level: 'warn', archive: 'acme/widget', reason: 'not a zip' }])
  })

  it('that could not be computed is tried again', async () => {
    let failures = 1
    const fixture = await createHashes(async () => {
      if (failures-- > 0) throw new Error('the worker died')
      return { hashes: [truth] }
    })
    fixture.hashes.ensure(digest, [], 'acme/widget')
    await expect.poll(() => fixture.lines.length).toBe(1)
    await settle()
    fixture.hashes.ensure(digest, [], 'acme/widget')
    await expect.poll(() => fixture.hashes.find(digest)).toEqual([truth])
  })

  it('of an archive that is not held any more is nothing', async () => {
    const fixture = await createHashes()
    const other = sha256(Buffer.from('gone'))
    fixture.hashes.ensure(other, [], 'acme/widget')
    await settle()
    expect(await fixture.hashes.find(other)).toBeUndefined()
    expect([fixture.hashed, fixture.lines.length]).toEqual([0, 0])
  })

  it('in a record that cannot be read is computed again', async () => {
    const fixture = await createHashes()
    await fixture.records.put(['hashes', digest], { format: 1, h1: ['nonsense'] })
    fixture.hashes.ensure(digest, [], 'acme/widget')
    await expect.poll(() => fixture.hashes.find(digest)).toEqual([truth])
  })
})

describe('what an origin states', () => {
  it('is reported when the bytes contradict it, and the truth is what is told', async () => {
    const fixture = await createHashes()
    fixture.hashes.ensure(digest, [h1('L')], 'acme/widget')
    await expect.poll(() => fixture.hashes.find(digest)).toEqual([truth])
    expect(fixture.lines).toMatchObject([{ level: 'error', claimed: [h1('L')], computed: [truth] }])
  })

  it('is not reported when it is true, or where nothing could be computed', async () => {
    const good = await createHashes()
    good.hashes.ensure(digest, [truth], 'acme/widget')
    await expect.poll(() => good.hashes.find(digest)).toEqual([truth])
    expect(good.lines).toEqual([])
    const none = await createHashes(async () => ({ hashes: [], reason: 'not a zip' }))
    none.hashes.ensure(digest, [truth], 'acme/widget')
    await expect.poll(() => none.hashes.find(digest)).toEqual([])
    expect(none.lines.map(({ level }) => level)).toEqual(['warn'])
  })
})

describe('closing', () => {
  it('gives up what is running, and nothing is recorded from then on', async () => {
    const result = Promise.withResolvers<{ hashes: PackageHash[] }>()
    const fixture = await createHashes(() => result.promise)
    fixture.hashes.ensure(digest, [], 'acme/widget')
    await expect.poll(() => fixture.hashed).toBe(1)
    await fixture.hashes.close()
    result.resolve({ hashes: [truth] })
    fixture.hashes.ensure(digest, [], 'acme/widget')
    await settle()
    expect(await fixture.records.children(['hashes'])).toEqual([])
    expect(fixture.hashed).toBe(1)
  })

  it('a hash that comes in although all is closed is not recorded', async () => {
    const result = Promise.withResolvers<{ hashes: PackageHash[] }>()
    const blobs = new MemoryBlobStore()
    await blobs.put(zip)
    const records = new MemoryRecordStore()
    // It does not give up, but ends well in the moment in which it is closed.
    let hashed = 0
    const hasher: Hasher = {
      hash: () => {
        hashed += 1
        return result.promise
      },
      [Symbol.asyncDispose]: async () => result.resolve({ hashes: [truth] }),
    }
    const hashes = new PackageHashes({ records, blobs, hasher, log: recordingLog().log })
    hashes.ensure(digest, [], 'acme/widget')
    await expect.poll(() => hashed).toBe(1)
    await hashes.close()
    expect(await records.children([])).toEqual([])
  })
})
