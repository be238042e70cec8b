import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hashPackageZip } from '../../src/verify/package-h1.ts'
import { findUnsafety } from '../../src/verify/package-safety.ts'
import { makeHiddenEntries, makeManyFiles, makeOddZips, smallFiles, withSizes } from './odd-zips.ts'
import { storedZip } from './stored-zip.ts'
import { hasVectors, vector } from './vectors.ts'
import { makeZip, openFolder } from './zip-fixture.ts'

const zips = await makeOddZips()
const safe = zips.filter(({ unsafe }) => unsafe === undefined)
const unsafe = zips.filter((zip) => zip.unsafe !== undefined)

async function judge(bytes: Buffer): Promise<string | undefined> {
  await using folder = await openFolder()
  return await findUnsafety(await folder.write('package.zip', bytes))
}

describe('a package that nobody signed', () => {
  it('is not called unsafe because the disk fails', async () => {
    await using folder = await openFolder()
    await expect(findUnsafety(`${folder.path}/missing.zip`)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  it.each(unsafe)('is not safe with $name', async ({ bytes, unsafe }) => {
    expect(await judge(bytes)).toContain(unsafe)
  })

  it.each(safe)('is safe with $name', async ({ bytes }) => {
    expect(await judge(bytes)).toBeUndefined()
  })

  it.skipIf(process.env.HEAVY === undefined)('is safe with 70,000 entries', async () => {
    expect(await judge(makeManyFiles().bytes)).toBeUndefined()
  })

  it('is not safe with more than 100,000 entries', async () => {
    expect(await judge(storedZip(smallFiles(100_001)))).toContain('more than 100000 entries')
  })

  it('is not safe with names that fill the memory', async () => {
    const files = Array.from({ length: 300 }, (_, i) => [`${i}`.padEnd(60_000, 'x'), ''] as const)
    expect(await judge(storedZip(files))).toContain('names of more than 16000000 bytes')
  })

  it('is not safe if it unpacks to more than 100 times its size, beyond a billion bytes', async () => {
    const zip = await makeZip([['file', 'content '.repeat(1000)]])
    expect(await judge(withSizes(zip, 1_000_000_000))).toBeUndefined()
    expect(await judge(withSizes(zip, 1_000_000_001))).toContain('100 times its size')
  })

  it('is not safe with entries that it does not count but clients unpack; it has no h1 either', async () => {
    await using folder = await openFolder()
    const path = await folder.write('package.zip', makeHiddenEntries())
    expect(await findUnsafety(path)).toBe('it has more entries than it states')
    expect(await hashPackageZip(path)).toEqual({ hashes: [], reason: 'no h1: more entries than it states' })
  })

  it('is judged without an exception whatever its bytes are', async () => {
    const zip = await makeZip([
      ['a/', ''],
      ['a/file', 'content'],
    ])
    const changes = fc.array(fc.tuple(fc.nat(zip.length - 1), fc.nat(255)), { maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(changes, async (changes) => {
        const bytes = Buffer.from(zip)
        for (const [at, value] of changes) bytes[at] = value
        const reason = await judge(bytes)
        expect(reason === undefined || reason.length < 400).toBe(true)
      }),
      { numRuns: 200 },
    )
  })
})

describe.skipIf(!hasVectors)('the archives of the vectors', () => {
  const rows: [string, string | undefined][] = [
    ['provider-zip/terraform-provider-nodir_1.0.0_linux_amd64.zip', undefined],
    ['provider-zip/terraform-provider-withdir_1.0.0_linux_amd64.zip', undefined],
    ['provider-zip/terraform-provider-emptydir_1.0.0_linux_amd64.zip', undefined],
    ['provider-zip/terraform-provider-order_1.0.0_linux_amd64.zip', undefined],
    ['zip/subdir.zip', undefined],
    ['zip/permissions.zip', undefined],
    ['zip/empty.zip', 'it is empty'],
    ['zip/outside_parent.zip', 'an entry leaves the folder: "../demo.poc"'],
  ]
  it.each(rows)('%s: %s', async (file, reason) => {
    expect(await findUnsafety(fileURLToPath(vector(`archives/${file}`)))).toBe(reason)
  })
})
