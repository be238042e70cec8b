import { beforeEach, describe, expect, it } from 'vitest'
import { HeldModule, HeldPackage } from '../../../src/admin/schema/stock.ts'
import type { ModuleRecord } from '../../../src/mirror/module-record.ts'
import { Stock, type StockQuery } from '../../../src/mirror/stock/stock.ts'
import { parsePackageHash } from '../../../src/protocol/package-hash.ts'
import { AT, archiveRecord, digestOf, never, openStock, packageId, releaseRecord } from './stock-fixture.ts'

const A = 'acme/widget 1.0.0 linux_amd64'
const full = (text: string): string => `registry.example.test/${text}`
const h1 = parsePackageHash(`h1:${'a'.repeat(43)}=`)

let parts: ReturnType<typeof openStock>
let stock: Stock
let asked: ModuleRecord[]

beforeEach(async () => {
  parts = openStock()
  asked = []
  stock = new Stock({
    ...parts,
    hashes: { find: async (digest) => (digest === digestOf(A) && h1 !== undefined ? [h1] : undefined) },
    usage: {
      of: (name) =>
        name === full(A) ? { lastUsedAt: Date.parse(AT) + 5, hits: 7 } : { lastUsedAt: undefined, hits: 0 },
    },
    pinsOf: (name) => (name === full(A) ? ['ci'] : []),
    callsOf: async (record) => {
      asked.push(record)
      return { modules: [], otherSources: [], providers: [{ source: full('acme/widget'), version: '~> 1.0' }] }
    },
  })
  await parts.inventory.start(parts.sources, never)
})

const packages = (query: Partial<StockQuery> = {}) => stock.listPackages({ limit: 100, ...query }, never)
const modules = (query: Partial<StockQuery> = {}) => stock.listModules({ limit: 100, ...query }, never)

describe('a row', () => {
  it('of a package has everything that the admin API promises, and nothing besides', async () => {
    await parts.save(A)
    const release = { ...releaseRecord(A, 'sums'), firstSeenAt: '2026-01-01T00:00:00.000Z' }
    await parts.catalogue.saveRelease(packageId(A).address, release)
    const page = await packages()
    expect(page).toEqual({
      items: [
        {
          item: full(A),
          ...{ origin: 'registry.example.test', namespace: 'acme', type: 'widget', version: '1.0.0' },
          ...{ platform: 'linux_amd64', filename: 'widget.zip', size: A.length, digest: digestOf(A) },
          hashes: [`zh:${digestOf(A)}`, h1],
          authentication: { rule: 'stated-checksum' },
          archiveUrl: 'https://files.example.test/x.zip',
          ...{ firstSeenAt: '2026-01-01T00:00:00.000Z', cachedAt: AT, lastUsedAt: '2026-11-30T12:00:00.005Z' },
          ...{ hits: 7, pins: ['ci'] },
        },
      ],
    })
    expect(HeldPackage.strict().parse(page.items[0])).toEqual(page.items[0])
  })

  it('of a signed package names who signed it, and no blobs of ours', async () => {
    const signer = { keyId: 'A', fingerprint: 'a', userId: 'Acme', signedAt: AT, keyExpired: false, weak: false }
    const digest = digestOf(A)
    const authentication = { rule: 'signed-checksums', digest, sums: digest, signature: digest, signer } as const
    const { address, platform } = packageId(A)
    await parts.catalogue.saveArchive(address, platform, { ...archiveRecord(A), authentication })
    const [row] = (await packages()).items
    expect(row?.authentication).toEqual({ rule: 'signed-checksums', signer })
    expect(row).toMatchObject({ firstSeenAt: AT })
    expect(HeldPackage.strict().parse(row)).toEqual(row)
  })

  it('of a module has what its files call, and when its first state was seen', async () => {
    await parts.saveModule('acme/vpc/aws 1.0.0', 'new', ['old'])
    const page = await modules()
    const [row] = page.items
    expect(row).toMatchObject({
      ...{
        item: full('acme/vpc/aws 1.0.0'),
        name: 'vpc',
        targetSystem: 'aws',
        version: '1.0.0',
        digest: digestOf('new'),
      },
      ...{ revision: 'a'.repeat(40), lastUsedAt: null, hits: 0, pins: [], firstSeenAt: AT },
      calls: { providers: [{ source: full('acme/widget') }] },
    })
    expect(asked.map(({ state }) => state.digest)).toEqual([digestOf('new')])
    expect(HeldModule.strict().parse(row)).toEqual(row)
  })
})

describe('a list', () => {
  it('goes on where the last page ended, while packages come and go', async () => {
    const name = (n: number): string => `acme/p${n} 1.0.0 linux_amd64`
    for (let n = 0; n < 9; n += 1) await parts.save(name(n))
    const first = await packages({ limit: 4 })
    await parts.remove(name(3))
    await parts.remove(name(4))
    await parts.save('acme/p0-b 1.0.0 linux_amd64')
    const second = await packages({ limit: 4, after: first.next })
    expect([...first.items, ...second.items].map(({ type }) => type)).toEqual([
      'p0',
      'p1',
      'p2',
      'p3',
      'p5',
      'p6',
      'p7',
      'p8',
    ])
    expect(second.next).toBeUndefined()
  })

  it('of one origin, namespace, type or search has only that', async () => {
    for (const text of [A, 'acme/gadget 1.0.0 linux_amd64', 'other/widget 2.0.0 linux_amd64']) await parts.save(text)
    const found = async (query: Partial<StockQuery>) => (await packages(query)).items.map(({ item }) => item)
    expect(await found({ type: 'widget' })).toEqual([full(A), full('other/widget 2.0.0 linux_amd64')])
    expect(await found({ origin: 'registry.example.test', namespace: 'acme', type: 'gadget' })).toHaveLength(1)
    expect(await found({ q: 'widget 2' })).toHaveLength(1)
    expect(await found({ origin: 'other.example.test' })).toEqual([])
  })

  it('leaves out what is removed while its rows are made', async () => {
    await parts.save(A)
    const { records } = parts.catalogue
    const read = records.readArchive.bind(records)
    records.readArchive = async (address, version, platform) => {
      await parts.remove(A)
      return read(address, version, platform)
    }
    expect(await packages()).toEqual({ items: [] })
  })

  it('reads the evidence of each version once, and only of those of its page', async () => {
    for (const version of ['1.0.0', '2.0.0', '3.0.0']) {
      for (const platform of ['linux_amd64', 'linux_arm64']) await parts.save(`acme/widget ${version} ${platform}`)
    }
    const looks: string[] = []
    const { records } = parts.catalogue
    const read = records.readRelease.bind(records)
    records.readRelease = (address, version) => {
      looks.push(version)
      return read(address, version)
    }
    expect((await packages({ limit: 4 })).items).toHaveLength(4)
    expect(looks).toEqual(['1.0.0', '2.0.0'])
  })

  it('waits until it is known what is held, as long as its caller does', async () => {
    await parts.save(A)
    const fresh = openStock({ records: parts.records })
    const early = new Stock({
      ...fresh,
      ...{ hashes: { find: async () => undefined }, usage: { of: () => ({ lastUsedAt: undefined, hits: 0 }) } },
      ...{ pinsOf: () => [], callsOf: async () => null },
    })
    await expect(early.listPackages({ limit: 1 }, AbortSignal.timeout(20))).rejects.toThrow()
    const listing = early.listPackages({ limit: 1 }, never)
    await fresh.inventory.start(fresh.sources, never)
    expect((await listing).items).toHaveLength(1)
  })
})
