import { createHash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { packModule } from '../../src/mirror/module-archive.ts'
import { MemoryBlobStore } from '../../src/store/memory/memory-blob-store.ts'
import type { ModuleTree } from '../../src/upstream/module-upstream.ts'
import { SourceFolder } from '../upstream/module-source/archive-fixture.ts'

const NEVER = new AbortController().signal

function tree(files: Record<string, string>, pieceBytes = 1_000_000): ModuleTree {
  return {
    revision: { kind: 'archive', digest: '' },
    notes: [],
    files: new Map(
      Object.entries(files).map(([path, text]) => {
        const bytes = Buffer.from(text)
        return [path, { size: bytes.length, executable: path.endsWith('.sh'), read: () => pieces(bytes, pieceBytes) }]
      }),
    ),
    [Symbol.asyncDispose]: async () => undefined,
  }
}

async function* pieces(bytes: Buffer, length: number): AsyncGenerator<Buffer> {
  for (let start = 0; start < bytes.length; start += length) yield bytes.subarray(start, start + length)
}

async function pack(module: ModuleTree) {
  const blobs = new MemoryBlobStore()
  await using blob = await blobs.create()
  const packed = await packModule(module, blob, NEVER)
  const { digest } = await blob.commit()
  return { packed, digest, bytes: (await blobs.read(digest)) ?? Buffer.alloc(0) }
}

const FILES = {
  'a.tf': 'x'.repeat(200_000),
  'bin/run.sh': '#!/bin/sh\n',
  [`${'d/'.repeat(120)}far.tf`]: 'far',
  'empty.tf': '',
  'ü.tf': 'ü',
}

test('equal files give equal bytes, however they come, for ever', async () => {
  const first = await pack(tree(FILES))
  expect((await pack(tree(FILES, 777))).digest).toBe(first.digest)
  // Written down: another version of the packer that gives other bytes is a change that clients see.
  expect(first.digest).toBe('f21eafd95ba868392d846905490ae748c6652e1ade3d452982e0f6532fc52324')
})

test('the real tar unpacks it: contents, modes, long and foreign names; and the digest is that of the tar', async () => {
  const { bytes, packed } = await pack(tree(FILES))
  const tar = gunzipSync(bytes)
  expect(packed.tarDigest).toBe(createHash('sha256').update(tar).digest('hex'))
  expect(packed.unpackedBytes).toBe(Object.values(FILES).reduce((sum, text) => sum + Buffer.byteLength(text), 0))
  await using folder = await SourceFolder.make({ 'x.tar.gz': '' })
  const { writeFile, readFile, stat } = await import('node:fs/promises')
  await writeFile(`${folder.path}/x.tar.gz`, bytes)
  folder.run('tar', '-xzf', 'x.tar.gz')
  for (const [path, text] of Object.entries(FILES)) {
    expect(await readFile(`${folder.path}/${path}`, 'utf8')).toBe(text)
    const { mode, mtimeMs } = await stat(`${folder.path}/${path}`)
    expect([mode & 0o777, mtimeMs]).toEqual([path.endsWith('.sh') ? 0o755 : 0o644, 0])
  }
})

test('a file that cannot be read, or has another size than it said, fails the whole', async () => {
  const broken = tree({ 'a.tf': 'a', 'b.tf': 'b' })
  const failing = {
    size: 10,
    executable: false,
    read: async function* () {
      yield Buffer.from('12345')
      throw new Error('gone')
    },
  }
  await expect(pack({ ...broken, files: new Map([...broken.files, ['c.tf', failing]]) })).rejects.toThrow('gone')
  const short = { size: 10, executable: false, read: () => pieces(Buffer.from('12345'), 5) }
  await expect(pack({ ...broken, files: new Map([['c.tf', short]]) })).rejects.toThrow()
})

test('it ends when it is told to', async () => {
  const blobs = new MemoryBlobStore()
  await using blob = await blobs.create()
  await expect(packModule(tree(FILES), blob, AbortSignal.abort(new Error('stop')))).rejects.toThrow('stop')
})
