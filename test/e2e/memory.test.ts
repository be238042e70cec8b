import { readdir, readFile, writeFile } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { PublishedPackage } from '../origin/release.ts'
import { type Download, openDownload } from './download.ts'
import { type SpawnedMirror, spawnMirror } from './mirror-fixture.ts'

const PROVIDER = 'acme/huge'
const PLATFORM = 'linux_amd64'
const ARCHIVE_BYTES = 200_000_000
const MB = 1_000_000

let origin: TestOrigin
let archive: PublishedPackage

beforeAll(async () => {
  origin = await startOrigin()
  const release = await origin.publish({
    provider: PROVIDER,
    version: '1.0.0',
    platforms: [PLATFORM],
    archiveBytes: ARCHIVE_BYTES,
  })
  archive = release.package(PLATFORM)
})

afterEach(() => origin.reset())

afterAll(() => origin[Symbol.asyncDispose]())

/** Memory of a process as Linux counts it, in bytes (proc_pid_status(5)): now, and the most since `resetPeak`. */
async function residentBytes({ child }: SpawnedMirror): Promise<{ now: number; peak: number }> {
  const status = await readFile(`/proc/${child.pid}/status`, 'utf8')
  const field = (name: string): number => 1024 * Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1])
  return { now: field('VmRSS'), peak: field('VmHWM') }
}

/** Makes the peak begin anew at what is used now (proc_pid_clear_refs(5)). */
async function resetPeak({ child }: SpawnedMirror): Promise<void> {
  await writeFile(`/proc/${child.pid}/clear_refs`, '5')
}

/** The peak of the resident memory while `action` runs. */
async function peakDuring(mirror: SpawnedMirror, action: () => Promise<void>): Promise<number> {
  await resetPeak(mirror)
  await action()
  return (await residentBytes(mirror)).peak
}

async function downloadAtOnce(mirror: SpawnedMirror, clients: number, bytesPerSecond: number): Promise<void> {
  const path = mirror.archivePath(PROVIDER, '1.0.0', PLATFORM)
  const downloads = await Promise.all(
    Array.from({ length: clients }, (): Promise<Download> => openDownload(mirror, path, { bytesPerSecond })),
  )
  for (const { end } of downloads) {
    expect(await end).toEqual({ bytes: archive.body.size, sha256: archive.sha256, complete: true })
  }
}

function inMb(bytes: number): string {
  return `${Math.round(bytes / MB)} MB`
}

const HEAVY = process.env.HEAVY !== undefined

// Archives of hundreds of megabytes: `npm run test:large`.
test.runIf(HEAVY)(
  'memory grows neither with the archive nor with the number of clients (B43)',
  { timeout: 180_000 },
  async () => {
    await using mirror = await spawnMirror({ origin })
    await mirror.index(PROVIDER)
    await mirror.version(PROVIDER, '1.0.0')
    const { now: before } = await residentBytes(mirror)
    const cold = await peakDuring(mirror, () => downloadAtOnce(mirror, 1, 200 * MB))
    expect(origin.count('archive')).toBe(1)

    // A fresh process: else what the download has used and given back would hide what serving takes.
    await mirror.restart()
    const one = await peakDuring(mirror, () => downloadAtOnce(mirror, 1, 60 * MB))
    const eight = await peakDuring(mirror, () => downloadAtOnce(mirror, 8, 60 * MB))
    console.info(
      `resident: ${inMb(before)} after the documents; peaks with an archive of ${inMb(ARCHIVE_BYTES)}: ` +
        `${inMb(cold)} while it is fetched, ${inMb(one)} with one client, ${inMb(eight)} with eight`,
    )
    expect(cold - before).toBeLessThan(150 * MB)
    expect(eight - one).toBeLessThan(24 * MB)
  },
)

test.runIf(HEAVY)(
  'memory stays flat while 100 clients follow one download, each at its own speed',
  {
    timeout: 120_000,
  },
  async () => {
    await using mirror = await spawnMirror({ origin, config: { archives: { delivery: 'progressive' } } })
    const path = mirror.archivePath(PROVIDER, '1.0.0', PLATFORM)
    await mirror.version(PROVIDER, '1.0.0')
    const before = (await residentBytes(mirror)).now
    const slow: Download[] = []
    const peak = await peakDuring(mirror, async () => {
      const fast = downloadAtOnce(mirror, 1, 60 * MB)
      for (let client = 0; client < 98; client++) {
        slow.push(await openDownload(mirror, path, { bytesPerSecond: 5_000 * (client + 1) }))
      }
      await fast
    })
    for (const { received } of slow) expect(received).toBeLessThan(ARCHIVE_BYTES / 2)
    for (const download of slow) download.abort()
    console.info(
      `resident: ${inMb(before)} before, ${inMb(peak)} with 100 followers of an archive of ${inMb(ARCHIVE_BYTES)}`,
    )
    expect(peak - before).toBeLessThan(220 * MB)
    expect(origin.count('archive')).toBe(1)
    const whole = await openDownload(mirror, path)
    expect((await whole.end).sha256).toBe(archive.sha256)
  },
)

async function openFiles({ child }: SpawnedMirror): Promise<number> {
  return (await readdir(`/proc/${child.pid}/fd`)).length
}

test('no file or socket stays open after 200 requests, many of them given up', async () => {
  const provider = 'acme/small'
  const release = await origin.publish({ provider, version: '1.0.0', platforms: [PLATFORM], archiveBytes: 3 * MB })
  await using mirror = await spawnMirror({ origin })
  const path = mirror.archivePath(provider, '1.0.0', PLATFORM)
  const ask = async (index: number): Promise<void> => {
    if (index % 8 < 2) expect((await mirror.ask(path, { method: 'HEAD' })).status).toBe(200)
    else if (index % 8 < 4) {
      const download = await openDownload(mirror, path)
      await download.until(1)
      download.abort()
      await download.end
    } else if (index % 8 === 4) expect((await mirror.ask(path, { headers: { range: 'bytes=5-9' } })).status).toBe(206)
    else if (index % 8 === 5) expect((await mirror.ask(`${path}/nothing`)).status).toBe(404)
    else if (index % 8 === 6) expect((await mirror.version(provider, '1.0.0')).status).toBe(200)
    else expect((await (await openDownload(mirror, path)).end).sha256).toBe(release.package(PLATFORM).sha256)
  }
  for (let index = 0; index < 8; index++) await ask(index)
  const before = await openFiles(mirror)
  for (let index = 0; index < 200; index += 20) {
    await Promise.all(Array.from({ length: 20 }, (_, offset) => ask(index + offset)))
  }
  await expect.poll(() => openFiles(mirror), { timeout: 5_000 }).toBeLessThanOrEqual(before)
  expect(origin.count('archive')).toBe(1)
})
