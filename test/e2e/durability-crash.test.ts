import { createHash, randomInt } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { type SpawnedMirror, spawnMirror } from './mirror-fixture.ts'

const ARCHIVE_BYTES = 6_000_000
const PLATFORM = 'linux_amd64'

let origin: TestOrigin

beforeAll(async () => {
  origin = await startOrigin()
})

afterAll(() => origin[Symbol.asyncDispose]())

/** The same seed gives the same moments (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}

/** Polls until `condition` holds. */
async function until(condition: () => Promise<boolean>, everyMs: number): Promise<void> {
  const end = performance.now() + 20_000
  while (!(await condition())) {
    if (performance.now() > end) throw new Error('waited 20 s in vain')
    await delay(everyMs)
  }
}

/** Bytes of the largest unfinished file. */
async function unfinishedBytes(dataDir: string): Promise<number> {
  const files = await filesBelow(join(dataDir, 'tmp'))
  const sizes = await Promise.all(
    files.map((file) =>
      stat(file).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  )
  return Math.max(0, ...sizes)
}

async function isPublished(dataDir: string, digest: string): Promise<boolean> {
  return stat(join(dataDir, 'blobs', 'sha256', digest.slice(0, 2), digest)).then(
    () => true,
    () => false,
  )
}

async function assertSoundFolder({ dataDir }: SpawnedMirror, moment: string): Promise<void> {
  expect(await readdir(join(dataDir, 'tmp')), moment).toEqual([])
  expect(await readdir(join(dataDir, 'quarantine')), moment).toEqual([])
  for (const file of await filesBelow(join(dataDir, 'blobs'))) {
    const digest = createHash('sha256')
      .update(await readFile(file))
      .digest('hex')
    expect(file.endsWith(`/${digest}`), `${file} ${moment}`).toBe(true)
  }
  for (const file of await filesBelow(join(dataDir, 'records'))) {
    const record = JSON.parse(await readFile(file, 'utf8'))
    expect(record.format, `${file} ${moment}`).toBe(1)
  }
}

test('after kill -9 in mid-write at six random moments the next answer is right, and nothing torn or unfinished is left (B47)', {
  timeout: 180_000,
}, async () => {
  const seed = randomInt(2 ** 31)
  console.info(`seed of the moments: ${seed}`)
  const random = createRandom(seed)
  await using mirror = await spawnMirror({ origin })
  const provider = 'acme/widget'
  let killedUnfinished = 0
  let killedPublished = 0
  for (let round = 0; round < 6; round++) {
    const version = `1.${round}.0`
    const release = await origin.publish({ provider, version, platforms: [PLATFORM], archiveBytes: ARCHIVE_BYTES })
    const { sha256: digest, body } = release.package(PLATFORM)
    // Three kills fall within the download, one around fsync and rename, two while the records are written.
    const phase = round < 3 ? 'download' : round < 4 ? 'commit' : 'record'
    const fraction = random()
    const moment = `in round ${round} with seed ${seed}: ${phase} at ${fraction}`
    const fault = origin.fault({ kind: 'archive', times: 1 }, phase === 'download' ? { trickle: 12_000_000 } : {})
    await mirror.index(provider)
    const lost = mirror.archive(provider, version, PLATFORM).catch((error: unknown) => error)
    if (phase === 'download') {
      await until(async () => (await unfinishedBytes(mirror.dataDir)) > fraction * (body.size - 2_500_000), 5)
    } else {
      const nearlyWhole = async () => (await unfinishedBytes(mirror.dataDir)) > body.size - 1_100_000
      const published = () => isPublished(mirror.dataDir, digest)
      // What is between fsync and rename is over within a fraction of a millisecond.
      await until(async () => (phase === 'commit' && (await nearlyWhole())) || (await published()), 0.2)
      await delay(fraction * 15)
    }
    await mirror.kill()
    await lost
    fault.clear()
    if (await isPublished(mirror.dataDir, digest)) killedPublished += 1
    else if ((await readdir(join(mirror.dataDir, 'tmp'))).length > 0) killedUnfinished += 1

    await mirror.start()
    await assertSoundFolder(mirror, moment)
    const answer = await mirror.archive(provider, version, PLATFORM)
    expect(answer.status, moment).toBe(200)
    expect(createHash('sha256').update(answer.body).digest('hex'), moment).toBe(digest)
    const document = await mirror.version(provider, version)
    expect(document.json().archives[PLATFORM].hashes[0], moment).toBe(`zh:${digest}`)
  }
  console.info(`killed before the blob had its name: ${killedUnfinished}, after: ${killedPublished}`)
  // Else the kills came when nothing was going on, and the test has shown nothing.
  expect(killedUnfinished).toBeGreaterThanOrEqual(2)
  expect(killedPublished).toBeGreaterThanOrEqual(2)

  await mirror.restart()
  await origin.stop()
  for (let round = 0; round < 6; round++) {
    expect((await mirror.archive(provider, `1.${round}.0`, PLATFORM)).headers['terramirror-cache']).toBe('hit')
  }
  await assertSoundFolder(mirror, 'at the end')
})
