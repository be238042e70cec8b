import { execFileSync } from 'node:child_process'
import {
  appendFile,
  mkdir,
  mkdtempDisposable,
  open,
  readdir,
  readFile,
  rm,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { PublishedPackage } from '../origin/release.ts'
import { openDownload } from './download.ts'
import {
  askArchive,
  assertListed,
  assertRight,
  blobFile,
  PLATFORM,
  PROVIDER,
  publishArchive,
  sha256,
  startWarmMirror,
  VERSION,
} from './held-archive.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'

const HOUR_MS = 3_600_000

let origin: TestOrigin
let archive: PublishedPackage

beforeAll(async () => {
  origin = await startOrigin()
  archive = await publishArchive(origin)
})

afterEach(async () => {
  await origin.stop()
  await origin.start()
  origin.reset()
})

afterAll(() => origin[Symbol.asyncDispose]())

/** Changes one byte, and leaves size, inode and the modification time to the nanosecond as they were. */
async function flipBit(file: string): Promise<void> {
  const reference = `${file}.time`
  execFileSync('touch', ['-r', file, reference])
  const handle = await open(file, 'r+')
  const byte = Buffer.alloc(1)
  await handle.read(byte, 0, 1, 600_000)
  byte.writeUInt8(byte.readUInt8() ^ 0x10)
  await handle.write(byte, 0, 1, 600_000)
  await handle.close()
  execFileSync('touch', ['-r', reference, file])
  await rm(reference)
}

const damages: { name: string; damage: (file: string) => Promise<void>; setAside: boolean; unnoticed?: true }[] = [
  { name: 'one bit flipped, with the old time', damage: flipBit, setAside: true, unnoticed: true },
  { name: 'emptied', damage: (file) => truncate(file, 0), setAside: true },
  { name: 'deleted', damage: (file) => rm(file), setAside: false },
  { name: 'cut to its half', damage: (file) => truncate(file, 500_000), setAside: true },
  { name: 'longer than it was', damage: (file) => appendFile(file, 'more'), setAside: true },
  {
    name: 'replaced by another whole file',
    damage: async (file) => {
      await rm(file)
      await writeFile(file, Buffer.alloc(archive.body.size, 7))
    },
    setAside: true,
  },
]

async function assertSetAside(mirror: TestMirror, expected: boolean): Promise<void> {
  const aside = await readdir(join(mirror.dataDir, 'quarantine'))
  expect(aside.filter((name) => name.startsWith(archive.sha256))).toHaveLength(expected ? 1 : 0)
  if (!expected) return
  expect(mirror.logLines).toContainEqual(expect.objectContaining({ digest: archive.sha256, level: 'error' }))
  expect(await mirror.metrics()).toMatch(/^terramirror_damaged_blobs_total 1$/m)
}

describe.each(damages)('a stored archive that is $name (B46, B47)', ({ damage, setAside, unnoticed }) => {
  test('is found at its first use after a restart, set aside and fetched again', async () => {
    await using mirror = await startWarmMirror({ origin }, archive)
    await damage(blobFile(mirror, archive.sha256))
    await mirror.restart()
    assertRight(await askArchive(mirror), archive)
    expect(origin.count('archive')).toBe(1)
    await assertSetAside(mirror, setAside)
    expect((await askArchive(mirror)).headers['terramirror-cache']).toBe('hit')
    expect(sha256(await readFile(blobFile(mirror, archive.sha256)))).toBe(archive.sha256)
  })

  test('is found without a restart, at the latest when it is time to check again', async () => {
    let now = Date.now()
    await using mirror = await startWarmMirror(
      { origin, now: () => now, config: { archives: { recheckAfter: '2h' } } },
      archive,
    )
    await damage(blobFile(mirror, archive.sha256))
    if (unnoticed) now += 2 * HOUR_MS + 1
    const answers = await Promise.all([askArchive(mirror), askArchive(mirror), askArchive(mirror)])
    for (const answer of answers) assertRight(answer, archive)
    expect(origin.count('archive')).toBe(1)
    await assertSetAside(mirror, setAside)
  })

  test('is never served while the origin is away: a clear error, and right again when it is back', async () => {
    await using mirror = await startWarmMirror({ origin, config: { upstream: { retries: 1 } } }, archive)
    await damage(blobFile(mirror, archive.sha256))
    await mirror.restart()
    await origin.stop()
    for (let turn = 0; turn < 2; turn++) {
      const refused = await askArchive(mirror)
      expect(refused.status).toBe(502)
      expect(refused.json()).toMatchObject({
        code: 'UPSTREAM_UNREACHABLE',
        request_id: refused.headers['x-request-id'],
      })
    }
    expect((await mirror.version(PROVIDER, VERSION)).status).toBe(200)
    await origin.start()
    assertRight(await askArchive(mirror), archive)
  })

  test('is never served by a sealed mirror, which says that it does not hold it', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'test-damage-'))
    {
      await using warm = await startWarmMirror({ origin, folder: folder.path }, archive)
      await damage(blobFile(warm, archive.sha256))
    }
    await using sealed = await startMirror({ origin, folder: folder.path, config: { mode: 'sealed' } })
    const refused = await askArchive(sealed)
    expect(refused.status).toBe(404)
    expect(refused.json()).toMatchObject({ code: 'NOT_CACHED' })
    expect(origin.requests).toEqual([])
  })

  test('is not announced with a wrong length by HEAD', async () => {
    await using mirror = await startWarmMirror({ origin }, archive)
    await damage(blobFile(mirror, archive.sha256))
    await mirror.restart()
    const head = await mirror.archive(PROVIDER, VERSION, PLATFORM, { method: 'HEAD' })
    expect(head.status).toBe(200)
    expect([undefined, String(archive.body.size)]).toContain(head.headers['content-length'])
    assertRight(await askArchive(mirror), archive)
  })
})

test('a stored archive that cannot be read at all is a clear error or fetched again, never an empty 200 (B46)', async () => {
  await using mirror = await startWarmMirror({ origin }, archive)
  await rm(blobFile(mirror, archive.sha256))
  await mkdir(blobFile(mirror, archive.sha256))
  const answer = await askArchive(mirror)
  expect(answer.status).toBe(500)
  expect(answer.json()).toMatchObject({ code: 'STORAGE_FAILED' })
  await rm(blobFile(mirror, archive.sha256), { recursive: true })
  assertRight(await askArchive(mirror), archive)
})

test('damaged evidence is fetched again when it is needed, and damages no archive', async () => {
  await using mirror = await startWarmMirror({ origin }, archive)
  for (const shard of await readdir(join(mirror.dataDir, 'blobs', 'sha256'))) {
    for (const digest of await readdir(join(mirror.dataDir, 'blobs', 'sha256', shard))) {
      if (digest !== archive.sha256) await truncate(blobFile(mirror, digest), 1)
    }
  }
  await mirror.restart()
  assertRight(await askArchive(mirror), archive)
  await assertListed(mirror, archive)
})

test.each(['shrinks', 'is emptied'])(
  'when a blob %s while it is served, the connection is torn, not ended cleanly (B46)',
  async (how) => {
    const stray = vi.spyOn(console, 'error')
    const provider = 'acme/large'
    const release = await origin.publish({
      provider,
      version: VERSION,
      platforms: [PLATFORM],
      archiveBytes: 30_000_000,
    })
    const large = release.package(PLATFORM)
    await using mirror = await startMirror({ origin })
    const path = mirror.archivePath(provider, VERSION, PLATFORM)
    await mirror.ask(path, { method: 'HEAD' })
    const download = await openDownload(mirror, path)
    await download.until(1)
    download.pause()
    await truncate(blobFile(mirror, large.sha256), how === 'shrinks' ? 25_000_000 : 0)
    download.resume()
    const { bytes, complete } = await download.end
    expect(complete).toBe(false)
    expect(bytes).toBeLessThanOrEqual(25_000_000)

    const again = await openDownload(mirror, path)
    expect(await again.end).toEqual({ bytes: large.body.size, sha256: large.sha256, complete: true })
    expect(stray).not.toHaveBeenCalled()
    const torn = mirror.logLines.find(({ msg, aborted }) => msg === 'request' && aborted === true)
    expect(torn).toMatchObject({ status: 200, err: { code: 'STORAGE_FAILED' } })
  },
)
