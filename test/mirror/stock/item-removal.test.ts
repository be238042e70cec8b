import { beforeEach, expect, it } from 'vitest'
import { BlobClaims } from '../../../src/mirror/stock/blob-claims.ts'
import { ItemRemoval } from '../../../src/mirror/stock/item-removal.ts'
import { MemoryBlobStore } from '../../../src/store/memory/memory-blob-store.ts'
import { settle } from '../parts-fixture.ts'
import { digestOf, moduleId, never, openStock, packageId, releaseRecord } from './stock-fixture.ts'

const A = 'acme/a 1.0.0 linux_amd64'
const B = 'acme/b 1.0.0 linux_amd64'
const full = (text: string): string => `registry.example.test/${text}`

let blobs: MemoryBlobStore
let stock: ReturnType<typeof openStock>
let removal: ItemRemoval

beforeEach(async () => {
  blobs = new MemoryBlobStore()
  stock = openStock()
  removal = new ItemRemoval({ ...stock, blobs })
  await stock.inventory.start(stock.sources, never)
})

async function holds(content: string): Promise<boolean> {
  return (await blobs.stat(digestOf(content))) !== undefined
}

async function hold(text: string, content = text): Promise<void> {
  await blobs.put(Buffer.from(content))
  await stock.save(text, content)
}

function remove(name: string): Promise<number> {
  const item = stock.inventory.get(full(name))
  if (item === undefined) throw new Error(`${name} is not held`)
  return removal.remove(item)
}

it('removes the record and the blob, and says how much that was', async () => {
  await hold(A)
  expect(await remove(A)).toBe(A.length)
  expect(await holds(A)).toBe(false)
  expect((await stock.catalogue.version(packageId(A).address, packageId(A).version)).archives.size).toBe(0)
  expect(stock.inventory.count('package')).toBe(0)
})

it('a blob that two items keep goes with the second one', async () => {
  await hold(A, 'same')
  await hold(B, 'same')
  expect(await remove(A)).toBe(0)
  expect(await holds('same')).toBe(true)
  expect(await remove(B)).toBe(4)
  expect(await holds('same')).toBe(false)
})

it('a blob that is evidence of a release stays, whoever published the same bytes as an archive', async () => {
  await stock.catalogue.saveRelease(packageId(B).address, releaseRecord(B, 'sums of b'))
  await hold(A, 'sums of b')
  expect(await remove(A)).toBe(0)
  expect(await holds('sums of b')).toBe(true)
})

it('a module goes with the blobs of its earlier states', async () => {
  for (const content of ['new', 'old']) await blobs.put(Buffer.from(content))
  await stock.saveModule('acme/vpc/aws 1.0.0', 'new', ['old'])
  expect(await remove('acme/vpc/aws 1.0.0')).toBe(6)
  expect([await holds('new'), await holds('old')]).toEqual([false, false])
  const { address, version } = moduleId('acme/vpc/aws 1.0.0')
  expect(await stock.modules.find(address, version)).toBeUndefined()
})

it('a blob that somebody is about to record stays', async () => {
  await hold(A, 'same')
  {
    using _claim = await stock.inventory.claims.claim([digestOf('same')])
    expect(await remove(A)).toBe(0)
    await stock.save(B, 'same')
  }
  expect(await holds('same')).toBe(true)
})

it('who claims a blob that is being removed waits, and then sees that it is gone', async () => {
  await hold(A, 'same')
  const go = Promise.withResolvers<void>()
  const drop = blobs.delete.bind(blobs)
  blobs.delete = async (digest) => {
    await go.promise
    await drop(digest)
  }
  const removing = remove(A)
  await settle()
  let claimed: boolean | undefined
  const claiming = stock.inventory.claims.claim([digestOf('same')]).then(async (claim) => {
    claimed = await holds('same')
    return claim
  })
  await settle()
  expect(claimed).toBeUndefined()
  go.resolve()
  expect(await removing).toBe(4)
  ;(await claiming)[Symbol.dispose]()
  expect(claimed).toBe(false)
})

it('before everything is known to be held, blobs stay', async () => {
  await hold(A, 'same')
  const early = openStock({ records: stock.records })
  const item = stock.inventory.get(full(A))
  if (item === undefined) throw new Error('not held')
  expect(await new ItemRemoval({ ...early, blobs }).remove(item)).toBe(0)
  expect(await holds('same')).toBe(true)
})

it('a claim ends with the last one who has it', async () => {
  const claims = new BlobClaims()
  const [one, two] = [await claims.claim(['a', 'b']), await claims.claim(['a'])]
  one[Symbol.dispose]()
  one[Symbol.dispose]()
  expect([claims.isClaimed('a'), claims.isClaimed('b')]).toEqual([true, false])
  expect(await claims.removing('a', async () => 'removed')).toBeUndefined()
  two[Symbol.dispose]()
  expect(await claims.removing('a', async () => 'removed')).toBe('removed')
  await expect(claims.removing('a', () => Promise.reject(new Error('disk')))).rejects.toThrow('disk')
  expect(await claims.removing('a', async () => 'again')).toBe('again')
})
