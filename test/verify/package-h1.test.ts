import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { hashPackageZip, type PackageHashes } from '../../src/verify/package-h1.ts'
import { hasVectors, readVector, vector } from './vectors.ts'
import { makeZip, openFolder, patch } from './zip-fixture.ts'

type Entry = readonly [name: string, content: string]

const entries: readonly Entry[] = [
  ['zeta.txt', 'z'],
  ['terraform-provider-acme_v1.0.0', 'binary '.repeat(50_000)],
  ['LICENSES/', ''],
  ['LICENSES/Apache-2.0.txt', 'license'],
  ['a-b.txt', 'a-b'],
  ['a/b.txt', 'a/b'],
  ['é.txt', 'e'],
  ['Empty.txt', ''],
]
const files = entries.filter(([name]) => !name.endsWith('/'))

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** Go's dirhash, written down once more in the plainest way. */
function h1(list: readonly Entry[]): string {
  const lines = list.map(([name, content]) => [Buffer.from(name), `${sha256(content)}  ${name}\n`] as const)
  lines.sort(([a], [b]) => Buffer.compare(a, b))
  return `h1:${createHash('sha256')
    .update(lines.map(([, line]) => line).join(''))
    .digest('base64')}`
}

async function hash(zip: Buffer, limits?: Parameters<typeof hashPackageZip>[1]): Promise<PackageHashes> {
  await using folder = await openFolder()
  return await hashPackageZip(await folder.write('package.zip', zip), limits)
}

const crc = Buffer.alloc(4)
crc.writeUInt32LE(crc32('content'))
const twice = await makeZip([
  ['file', '1'],
  ['file', '2'],
])
const one = await makeZip([['file', 'content']])
const stored = await makeZip([['file', 'content']], { compress: false })
const text = 'compressible '.repeat(1000)
const large = await makeZip([['file', text]])
const size = (bytes: number) => {
  const field = Buffer.alloc(4)
  field.writeUInt32LE(bytes)
  return field
}
/** Sets a field of the first central directory header. */
const field = (zip: Buffer, { at, value }: { at: number; value: number }) => {
  const patched = Buffer.from(zip)
  patched.writeUInt16LE(value, patched.indexOf(Buffer.from('PK\x01\x02')) + at)
  return patched
}

describe('hashPackageZip', () => {
  it('gives one h1 for a zip of files only', async () => {
    expect(await hash(await makeZip(files))).toEqual({ hashes: [h1(files)] })
  })

  it('gives two h1 for a zip with directory entries: every entry first, then files only', async () => {
    expect(await hash(await makeZip(entries))).toEqual({ hashes: [h1(entries), h1(files)] })
  })

  it('gives the same h1 whatever the order and packing of the entries', async () => {
    const expected = { hashes: [h1(files)] }
    expect(await hash(await makeZip([...files].reverse()))).toEqual(expected)
    expect(await hash(await makeZip(files, { compress: false }))).toEqual(expected)
    expect(await hash(await makeZip(files, { streamed: true }))).toEqual(expected)
    expect(await hash(await makeZip(files, { forceZip64Format: true }))).toEqual(expected)
  })

  it('hashes the raw bytes of a name', async () => {
    const zip = patch(await makeZip([['aXb.txt', '1']]), Buffer.from('aXb'), Buffer.from('a\\b'))
    expect(await hash(zip)).toEqual({ hashes: [h1([['a\\b.txt', '1']])] })
    const latin1 = patch(await makeZip([['aXb.txt', '1']]), Buffer.from('aXb'), Buffer.from([0x61, 0xe9, 0x62]))
    const line = Buffer.from(`${sha256('1')}  a\u00e9b.txt\n`, 'latin1')
    expect(await hash(latin1)).toEqual({ hashes: [`h1:${createHash('sha256').update(line).digest('base64')}`] })
  })

  it.each([
    ['duplicate names', twice, 'duplicate'],
    ['a wrong CRC-32', patch(one, crc, Buffer.alloc(4, 1)), 'CRC-32'],
    ['changed contents', patch(stored, Buffer.from('content'), Buffer.from('cOntent')), 'CRC-32'],
    ['more contents than stated', patch(large, size(text.length), size(100)), 'more contents'],
    ['less contents than stated', patch(large, size(text.length), size(text.length + 1)), 'less contents'],
    ['another compression method', field(one, { at: 10, value: 12 }), 'method 12'],
    ['a newline in a name', patch(one, Buffer.from('file'), Buffer.from('fi\ne')), 'newline'],
    ['a directory with contents', patch(stored, Buffer.from('file'), Buffer.from('fil/')), 'directory with contents'],
    ['an encrypted entry', field(one, { at: 8, value: 1 }), 'encrypted'],
    ['a truncated file', one.subarray(0, one.length - 10), 'truncated'],
    ['a torn middle', Buffer.concat([large.subarray(0, 40), large.subarray(60)]), ''],
    ['bytes that are no zip', Buffer.from('<html>'.repeat(100)), 'not a zip'],
    ['an empty file', Buffer.alloc(0), ''],
  ])('has no h1 and a reason for %s', async (_, zip, reason) => {
    const outcome = await hash(zip)
    expect(outcome.hashes).toEqual([])
    expect(outcome.reason).toMatch(/^no h1: ./)
    expect(outcome.reason).toContain(reason)
  })

  it('has no h1 for a file that is not there', async () => {
    expect(await hashPackageZip('/nowhere/x.zip')).toEqual({ hashes: [], reason: expect.stringContaining('ENOENT') })
  })

  it.each([
    ['entries', { maxEntries: 1 }],
    ['names', { maxNameBytes: 10 }],
    ['contents', { maxBytes: 1000 }],
  ])('stops at the limit of %s', async (_, limit) => {
    const limits = { maxEntries: 100, maxNameBytes: 1000, maxBytes: 1_000_000, ...limit }
    const outcome = await hash(await makeZip(entries), limits)
    expect(outcome).toEqual({ hashes: [], reason: expect.stringContaining('more than') })
  })
})

const Golden = z.object({
  zips_computed_here: z.array(z.object({ file: z.string(), h1_files_only: z.string(), h1_every_entry: z.string() })),
  provider_zips_checked_with_terraform_1_11_4: z.array(
    z.object({
      file: z.string(),
      h1_recorded_in_lock_by_terraform_1_11_4: z.string(),
      h1_that_terraform_1_11_4_accepts_from_a_network_mirror: z.string(),
    }),
  ),
  directories: z.array(z.object({ dir: z.string(), h1: z.string() })),
})

describe.skipIf(!hasVectors)('golden h1 values', () => {
  const golden = hasVectors ? Golden.parse(JSON.parse(readVector('golden/h1-vectors.json').toString())) : undefined
  const zips = [
    ...(golden?.zips_computed_here ?? []).map((zip) => [zip.file, zip.h1_every_entry, zip.h1_files_only] as const),
    ...(golden?.provider_zips_checked_with_terraform_1_11_4 ?? []).map(
      (zip) =>
        [
          zip.file,
          zip.h1_that_terraform_1_11_4_accepts_from_a_network_mirror,
          zip.h1_recorded_in_lock_by_terraform_1_11_4,
        ] as const,
    ),
  ]

  it('covers every zip of the vectors', () => {
    expect(zips).toHaveLength(12)
  })

  it.each(zips)('equals the values of %s', async (file, everyEntry, filesOnly) => {
    const outcome = await hashPackageZip(fileURLToPath(vector(file)))
    expect(outcome).toEqual({ hashes: [...new Set([everyEntry, filesOnly])] })
  })

  it.each((golden?.directories ?? []).map(({ dir, h1 }) => [dir, h1] as const))(
    'equals the value of the unpacked %s',
    async (dir, expected) => {
      const name = dir.includes('null') ? 'terraform-provider-null' : 'terraform-provider-template_v2.1.0_x4'
      const content = readVector(`${dir}/${name}`).toString()
      expect(await hash(await makeZip([[name, content]]))).toEqual({ hashes: [expected] })
    },
  )
})
