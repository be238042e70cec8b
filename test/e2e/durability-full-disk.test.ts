import { execFileSync } from 'node:child_process'
import { mkdir, mkdtempDisposable, readdir, rm, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { PublishedPackage } from '../origin/release.ts'
import { FullDisk, type Place } from './full-disk.ts'
import {
  askArchive,
  assertRight,
  PLATFORM,
  PROVIDER,
  publishArchive,
  sha256,
  startWarmMirror,
  VERSION,
} from './held-archive.ts'
import type { Answer, TestMirror } from './mirror-fixture.ts'

const NEW_PROVIDER = 'acme/gadget'

let origin: TestOrigin
let held: PublishedPackage

beforeAll(async () => {
  origin = await startOrigin()
  held = await publishArchive(origin)
})

afterEach(async () => {
  await origin.stop()
  await origin.start()
  origin.reset()
})

afterAll(() => origin[Symbol.asyncDispose]())

function assertFull(answer: Answer): void {
  expect(answer.status).toBe(507)
  expect(answer.json()).toMatchObject({ code: 'STORAGE_FULL', request_id: answer.headers['x-request-id'] })
}

async function assertServesTheRest(mirror: TestMirror): Promise<void> {
  expect((await mirror.ask('/readyz')).status).toBe(200)
  expect((await mirror.ask('/healthz')).status).toBe(200)
  assertRight(await askArchive(mirror), held)
  await expect.poll(() => readdir(join(mirror.dataDir, 'tmp'))).toEqual([])
}

const places: [Place, string][] = [
  ['create', 'before the download'],
  ['append', 'in the middle of the download'],
  ['commit', 'at its end'],
  ['put', 'where the evidence is written'],
]

describe.each(places)('a disk that is full at %s, %s (B73)', (place) => {
  test('fails new archives with 507 only; documents, held archives and readiness stay, and space ends it at once', async () => {
    const release = await origin.publish({ provider: NEW_PROVIDER, version: '1.0.0', archiveBytes: 900_000 })
    const disk = new FullDisk(place)
    await using mirror = await startWarmMirror({ origin, wrapBlobs: (blobs) => disk.wrap(blobs) }, held)
    const digest = release.package(PLATFORM).sha256
    disk.full = true
    for (let turn = 0; turn < 2; turn++) {
      const document = await mirror.version(NEW_PROVIDER, '1.0.0')
      expect(document.status).toBe(200)
      expect(document.json().archives[PLATFORM].hashes[0]).toBe(`zh:${digest}`)
      expect((await mirror.index(NEW_PROVIDER)).status).toBe(200)
      assertFull(await mirror.archive(NEW_PROVIDER, '1.0.0', PLATFORM))
      await assertServesTheRest(mirror)
    }
    expect(await mirror.metrics()).toMatch(/^terramirror_requests_total\{.*status="507".*\} 2$/m)
    expect(mirror.logLines).toContainEqual(
      expect.objectContaining({ level: 'warn', status: 507, err: expect.objectContaining({ code: 'STORAGE_FULL' }) }),
    )

    disk.full = false
    const answer = await mirror.archive(NEW_PROVIDER, '1.0.0', PLATFORM)
    expect(answer.status).toBe(200)
    expect(sha256(answer.body)).toBe(digest)
    await mirror.restart()
    await origin.stop()
    const kept = await mirror.archive(NEW_PROVIDER, '1.0.0', PLATFORM)
    expect(sha256(kept.body)).toBe(digest)
    expect(kept.headers['terramirror-cache']).toBe('hit')
    expect((await mirror.version(NEW_PROVIDER, '1.0.0')).status).toBe(200)
  })

  test('is told to all who wait for the same archive', async () => {
    await origin.publish({ provider: NEW_PROVIDER, version: '2.0.0', archiveBytes: 900_000 })
    const disk = new FullDisk(place)
    await using mirror = await startWarmMirror({ origin, wrapBlobs: (blobs) => disk.wrap(blobs) }, held)
    disk.full = true
    const asked = Array.from({ length: 10 }, () => mirror.archive(NEW_PROVIDER, '2.0.0', PLATFORM))
    for (const answer of await Promise.all(asked)) assertFull(answer)
    expect(origin.count('archive')).toBeLessThanOrEqual(1)
  })
})

/** A real file system in memory, of 3 MB if nothing else is said; undefined where mounting is not permitted. */
async function mountSmallDisk(size = '3m'): Promise<(AsyncDisposable & { path: string }) | undefined> {
  const folder = await mkdtempDisposable(join(tmpdir(), 'test-full-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder.path], { stdio: 'ignore' })
  } catch {
    await folder.remove()
    return undefined
  }
  const unmount = async (): Promise<void> => {
    execFileSync('umount', ['-l', folder.path])
    await folder.remove()
  }
  return { path: folder.path, [Symbol.asyncDispose]: unmount }
}

const probe = await mountSmallDisk()
await probe?.[Symbol.asyncDispose]()
if (probe === undefined) console.warn('SKIPPED: no real full disk here: mounting a tmpfs is not permitted')

describe.skipIf(probe === undefined)('a data folder on a real disk of 3 MB (B73)', () => {
  async function startOnSmallDisk(dataDir: string): Promise<TestMirror> {
    return startWarmMirror({ origin, config: { dataDir, stateDir: './state' } }, held)
  }

  test('an archive that does not fit is 507, its space is free at once, and what fits is served', async () => {
    await using disk = await mountSmallDisk()
    const dataDir = disk?.path ?? ''
    const big = await origin.publish({ provider: NEW_PROVIDER, version: '3.0.0', archiveBytes: 5_000_000 })
    const small = await origin.publish({ provider: NEW_PROVIDER, version: '3.1.0', archiveBytes: 700_000 })
    await using mirror = await startOnSmallDisk(dataDir)
    for (const platform of [PLATFORM, 'darwin_arm64']) {
      assertFull(await mirror.archive(NEW_PROVIDER, '3.0.0', platform))
      await expect.poll(() => readdir(join(dataDir, 'tmp'))).toEqual([])
    }
    expect((await mirror.version(NEW_PROVIDER, '3.0.0')).status).toBe(200)
    assertRight(await askArchive(mirror), held)
    expect((await mirror.ask('/readyz')).status).toBe(200)
    const fitting = await mirror.archive(NEW_PROVIDER, '3.1.0', PLATFORM)
    expect(sha256(fitting.body)).toBe(small.package(PLATFORM).sha256)

    execFileSync('mount', ['-o', 'remount,size=20m', dataDir])
    const grown = await mirror.archive(NEW_PROVIDER, '3.0.0', PLATFORM)
    expect(sha256(grown.body)).toBe(big.package(PLATFORM).sha256)
  })

  test('with not a byte left, everything that needs none goes on, and space ends it at once', async () => {
    await using disk = await mountSmallDisk()
    const dataDir = disk?.path ?? ''
    const release = await origin.publish({ provider: NEW_PROVIDER, version: '4.0.0', archiveBytes: 400_000 })
    await using mirror = await startOnSmallDisk(dataDir)
    const filler = join(dataDir, 'filler')
    await writeFile(filler, Buffer.alloc(4_000_000)).catch(() => undefined)
    const assertGoesOn = async (): Promise<void> => {
      const document = await mirror.version(NEW_PROVIDER, '4.0.0')
      expect(document.json().archives[PLATFORM].hashes[0]).toBe(`zh:${release.package(PLATFORM).sha256}`)
      expect((await mirror.index(NEW_PROVIDER)).status).toBe(200)
      assertFull(await mirror.archive(NEW_PROVIDER, '4.0.0', PLATFORM))
      assertRight(await askArchive(mirror), held)
      expect((await mirror.ask('/readyz')).status).toBe(200)
      await expect.poll(() => readdir(join(dataDir, 'tmp'))).toEqual([])
    }
    await assertGoesOn()
    await rm(filler)
    const answer = await mirror.archive(NEW_PROVIDER, '4.0.0', PLATFORM)
    expect(sha256(answer.body)).toBe(release.package(PLATFORM).sha256)
  })

  test('a restart on a full disk serves what is held', async () => {
    await using disk = await mountSmallDisk()
    const dataDir = disk?.path ?? ''
    await using mirror = await startOnSmallDisk(dataDir)
    await writeFile(join(dataDir, 'filler'), Buffer.alloc(4_000_000)).catch(() => undefined)
    await mirror.restart()
    assertRight(await askArchive(mirror), held)
    expect((await mirror.ask('/readyz')).status).toBe(200)
  })
})

describe.skipIf(probe === undefined)('a disk of which minFree must stay free (B73)', () => {
  const MIN_FREE = 2_000_000

  async function startWithMinFree(dataDir: string): Promise<TestMirror> {
    const config = { dataDir, stateDir: './state', archives: { minFree: `${MIN_FREE}B` } }
    const folder = await mkdtempDisposable(join(tmpdir(), 'test-min-free-'))
    const pins = join(folder.path, 'state', 'records', 'pins')
    await mkdir(pins, { recursive: true })
    const items = [`${origin.hosts[0]}/${PROVIDER} ${VERSION}`]
    await writeFile(join(pins, 'ci.json'), JSON.stringify({ format: 1, updatedAt: new Date().toISOString(), items }))
    const mirror = await startWarmMirror({ origin, folder: folder.path, config }, held)
    const close = mirror[Symbol.asyncDispose].bind(mirror)
    mirror[Symbol.asyncDispose] = async () => {
      await close()
      await folder.remove()
    }
    return mirror
  }

  async function freeOn(disk: string): Promise<number> {
    const { bavail, bsize } = await statfs(disk)
    return bavail * bsize
  }

  test('archives go for those that come, pinned ones stay, and so much stays free', async () => {
    await using disk = await mountSmallDisk('8m')
    const dataDir = disk?.path ?? ''
    const publications = Array.from({ length: 8 }, (_, patch) =>
      origin.publish({
        provider: NEW_PROVIDER,
        version: `5.0.${patch}`,
        archiveBytes: 1_000_000,
        platforms: [PLATFORM],
      }),
    )
    const releases = await Promise.all(publications)
    await using mirror = await startWithMinFree(dataDir)
    for (const [patch, release] of releases.entries()) {
      const answer = await mirror.archive(NEW_PROVIDER, `5.0.${patch}`, PLATFORM)
      expect(sha256(answer.body)).toBe(release.package(PLATFORM).sha256)
      expect(await freeOn(dataDir)).toBeGreaterThan(MIN_FREE - 1_100_000)
    }
    await expect.poll(() => freeOn(dataDir)).toBeGreaterThanOrEqual(MIN_FREE)
    origin.reset()
    assertRight(await askArchive(mirror), held)
    expect(origin.count('archive')).toBe(0)
    expect(mirror.logText).toContain('evicted to make space')
  })

  test('fuller than that from the start: what is held is served, what must be written is 507 that says why, until there is space', async () => {
    await using disk = await mountSmallDisk('8m')
    const dataDir = disk?.path ?? ''
    const publication = { provider: NEW_PROVIDER, version: '6.0.0', archiveBytes: 1_000_000, platforms: [PLATFORM] }
    const release = await origin.publish(publication)
    await using mirror = await startWithMinFree(dataDir)
    const filler = join(dataDir, 'filler')
    await writeFile(filler, Buffer.alloc((await freeOn(dataDir)) - MIN_FREE + 100_000))
    await mirror.restart()
    assertRight(await askArchive(mirror), held)
    expect((await mirror.version(NEW_PROVIDER, '6.0.0')).status).toBe(200)
    const refused = await mirror.archive(NEW_PROVIDER, '6.0.0', PLATFORM)
    assertFull(refused)
    expect(refused.json().error).toMatch(/archives\.minFree is 2 MB, and the disk has .* free.* are pinned/)
    expect((await mirror.ask('/readyz')).status).toBe(200)
    await expect.poll(() => readdir(join(dataDir, 'tmp'))).toEqual([])
    await rm(filler)
    const answer = await mirror.archive(NEW_PROVIDER, '6.0.0', PLATFORM)
    expect(sha256(answer.body)).toBe(release.package(PLATFORM).sha256)
  })

  test('an archive that the disk can never hold is refused before it comes, and nothing is evicted for it', async () => {
    await using disk = await mountSmallDisk('8m')
    const dataDir = disk?.path ?? ''
    await origin.publish({ provider: NEW_PROVIDER, version: '7.0.0', archiveBytes: 7_000_000, platforms: [PLATFORM] })
    await using mirror = await startWithMinFree(dataDir)
    const refused = await mirror.archive(NEW_PROVIDER, '7.0.0', PLATFORM)
    assertFull(refused)
    expect(refused.json().error).toContain('for which the disk has no room, whatever is evicted')
    assertRight(await askArchive(mirror), held)
    expect(mirror.logText).not.toContain('evicted to make space')
    await expect.poll(() => readdir(join(dataDir, 'tmp'))).toEqual([])
  })
})

test('an archive that is larger than maxSize is refused before it comes, in words that say so, and nothing goes for it', async () => {
  await origin.publish({ provider: NEW_PROVIDER, version: '8.0.0', archiveBytes: 3_000_000, platforms: [PLATFORM] })
  await using mirror = await startWarmMirror({ origin, config: { archives: { maxSize: '2MB' } } }, held)
  const refused = await mirror.archive(NEW_PROVIDER, '8.0.0', PLATFORM)
  assertFull(refused)
  expect(refused.json().error).toMatch(
    /^This has 3\S* MB, more than everything together may take: archives\.maxSize is 2 MB/,
  )
  origin.reset()
  assertRight(await askArchive(mirror), held)
  expect(origin.count('archive')).toBe(0)
})
