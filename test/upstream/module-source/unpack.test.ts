import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, open, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ArchiveFormat } from '../../../src/protocol/module-source.ts'
import { Spool } from '../../../src/upstream/module-source/archive/spool.ts'
import { unpackArchive } from '../../../src/upstream/module-source/archive/unpack.ts'
import { unpackTar } from '../../../src/upstream/module-source/archive/unpack-tar.ts'
import { unpackInThread } from '../../../src/upstream/module-source/archive/unpack-thread.ts'
import { SourceFolder } from './archive-fixture.ts'

const LIMITS = { unpackedBytes: 200_000_000, files: 1_000 }
const LONG = `${'deep/'.repeat(30)}${'n'.repeat(120)}.tf`
const FILES = {
  'main.tf': 'resource "x" "y" {}\n',
  'bin/run.sh': { run: '#!/bin/sh\n' },
  'modules/a/main.tf': '# a\n',
  'modules/a/link.tf': { link: '../../main.tf' },
  'ünï/ß.tf': '# umlauts\n',
  [LONG]: '# far down\n',
}

let folder: string
let source: SourceFolder

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'terramirror-unpack-'))
  source = await SourceFolder.make(FILES)
})
afterAll(async () => {
  await source[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

let jobs = 0
async function unpack(bytes: Buffer, options: { limits?: typeof LIMITS; stated?: ArchiveFormat } = {}) {
  const path = join(folder, `archive-${++jobs}`)
  const spoolPath = join(folder, `spool-${jobs}`)
  await writeFile(path, bytes)
  const entries = await unpackArchive({ path, spoolPath, stated: options.stated, limits: options.limits ?? LIMITS })
  const spool = await readFile(spoolPath)
  return Object.fromEntries(
    entries.map((entry) => [
      entry.path.replace(/^\.\//, ''),
      entry.kind === 'link'
        ? { link: entry.target }
        : entry.executable
          ? { run: spool.subarray(entry.content.offset, entry.content.offset + entry.size).toString() }
          : spool.subarray(entry.content.offset, entry.content.offset + entry.size).toString(),
    ]),
  )
}

const tarOf = (format: string, ...options: string[]): Buffer =>
  source.run('tar', `--format=${format}`, '-c', ...options, '-f', '-', '.')

describe('unpackArchive', () => {
  it.each([
    ['plain tar', () => tarOf('pax')],
    ['old tar with gnu long names', () => tarOf('gnu')],
    ['tar.gz', () => tarOf('pax', '-z')],
    ['tar.bz2', () => tarOf('pax', '-j')],
    ['tar.xz', () => tarOf('pax', '-J')],
    ['tar.zst', () => zstdCompressSync(tarOf('pax'))],
    ['zip', () => source.run('python3', '-c', ZIP_SCRIPT)],
  ])('reads %s, whatever its name: contents, execute bits, links, long and foreign names', async (_, make) => {
    expect(await unpack(make())).toEqual(FILES)
  })

  it('reads concatenated gzip members as one, as gzip does', async () => {
    const tar = tarOf('pax')
    const parts = [tar.subarray(0, 5_000), tar.subarray(5_000)].map((part) =>
      execFileSync('gzip', ['-c'], { input: part, maxBuffer: 1e8 }),
    )
    expect(await unpack(Buffer.concat(parts))).toEqual(FILES)
  })

  it('says hard links, and whatever is neither file nor link is refused', async () => {
    await using linked = await SourceFolder.make({ a: 'one', b: 'x' })
    linked.run('ln', 'a', 'hard')
    expect(await unpack(linked.run('tar', '-c', 'a', 'hard'))).toEqual({ a: 'one', hard: { link: 'a' } })
    linked.run('mkfifo', 'pipe')
    await expect(unpack(linked.run('tar', '-c', 'pipe'))).rejects.toMatchObject({ code: 'MODULE_INVALID' })
  })

  it.each(['-z', '-j', '-J'])('a damaged or cut archive (%s) is an error of ours that says so', async (compression) => {
    const whole = tarOf('pax', compression)
    await expect(unpack(whole.subarray(0, whole.length >> 1))).rejects.toThrow(/damaged/)
    const flipped = Buffer.from(whole)
    for (let i = 40; i < flipped.length; i += 7) flipped[i] = (flipped[i] ?? 0) ^ 0x55
    await expect(unpack(flipped)).rejects.toMatchObject({ code: 'MODULE_INVALID' })
  })

  it('a zip with a wrong checksum is refused, as clients refuse it', async () => {
    const zip = source.run('python3', '-c', ZIP_SCRIPT)
    const at = zip.indexOf('# a\n')
    zip[at] = 0x21
    await expect(unpack(zip)).rejects.toThrow(/checksum/)
  })

  it('what is no archive is refused, a web page too', async () => {
    await expect(unpack(Buffer.from('<!doctype html>'))).rejects.toThrow(/no archive/)
    await expect(unpack(Buffer.alloc(0))).rejects.toThrow(/no archive/)
  })

  it('limits hold: files, bytes, ratio', async () => {
    await expect(unpack(tarOf('pax'), { limits: { ...LIMITS, files: 3 } })).rejects.toThrow(/more than 3 files/)
    await expect(unpack(tarOf('pax'), { limits: { ...LIMITS, unpackedBytes: 50 } })).rejects.toThrow(
      /more than 50 bytes/,
    )
    await using zeros = await SourceFolder.make()
    await truncate(join(zeros.path, 'zeros'), 0).catch(() => writeFile(join(zeros.path, 'zeros'), ''))
    await truncate(join(zeros.path, 'zeros'), 100_000_000)
    await expect(unpack(zeros.run('tar', '-cz', 'zeros'))).rejects.toThrow(/200 times/)
  })

  it('a bzip2 bomb is refused before it is unpacked: its decoder makes all of it at one go', async () => {
    const path = join(folder, 'bomb')
    // Blocks of 5 MB each, in 60 bytes: the first is taken, the second waits.
    await writeFile(path, execFileSync('sh', ['-c', 'head -c 12000000 /dev/zero | bzip2 -1']))
    await using file = await open(join(folder, 'bomb-spool'), 'wx')
    const spool = new Spool(file, { limits: LIMITS, packedBytes: 100 })
    const unpacking = unpackTar(path, 'bzip2', { spool, limits: LIMITS, maxBacklog: 4_000_000 })
    await expect(unpacking).rejects.toMatchObject({
      code: 'MODULE_INVALID',
      message: expect.stringContaining('too much in too few bytes'),
    })
  })

  it('folders count too, above twice as many as files: they make no file, but take time', async () => {
    const limits = { ...LIMITS, files: 3 }
    await using folders = await SourceFolder.make()
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) await mkdir(join(folders.path, name))
    const tar = (...names: string[]) => folders.run('tar', '-c', ...names)
    expect(await unpack(tar('a', 'b', 'c', 'd', 'e', 'f'), { limits })).toEqual({})
    await expect(unpack(tar('a', 'b', 'c', 'd', 'e', 'f', 'g'), { limits })).rejects.toMatchObject({
      code: 'MODULE_INVALID',
      message: expect.stringContaining('more than 3 files and folders'),
    })
  })
})

describe('unpackInThread', () => {
  it('gives what unpackArchive gives, and its refusals', async () => {
    const path = join(folder, 'threaded')
    await writeFile(path, tarOf('pax', '-z'))
    const job = { path, stated: undefined, limits: LIMITS }
    const entries = await unpackInThread({ ...job, spoolPath: join(folder, 's1') }, AbortSignal.timeout(30_000))
    expect(entries.map((entry) => entry.path)).toContain('./bin/run.sh')
    const limits = { ...LIMITS, files: 1 }
    const refused = unpackInThread({ ...job, limits, spoolPath: join(folder, 's2') }, AbortSignal.timeout(30_000))
    await expect(refused).rejects.toThrow(/more than 1 files/)
  })

  it('ends at once when it is told to', async () => {
    const controller = new AbortController()
    const path = join(folder, 'slow')
    await writeFile(path, tarOf('pax', '-j'))
    const job = { path, spoolPath: join(folder, 's3'), stated: undefined, limits: LIMITS }
    const running = unpackInThread(job, controller.signal)
    controller.abort(new Error('stop'))
    await expect(running).rejects.toThrow('stop')
  })
})

/** Debian has no `zip` by default; Python writes modes and links into the attributes as `zip -y` does. */
const ZIP_SCRIPT = `
import os, stat, sys, zipfile, io
out = io.BytesIO()
with zipfile.ZipFile(out, 'w') as z:
    for folder, _, names in os.walk('.'):
        z.writestr(zipfile.ZipInfo(folder + '/'), '')
        for name in names:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            info = zipfile.ZipInfo(os.path.relpath(path, '.'))
            info.external_attr = mode << 16
            z.writestr(info, os.readlink(path) if stat.S_ISLNK(mode) else open(path, 'rb').read())
sys.stdout.buffer.write(out.getvalue())
`
