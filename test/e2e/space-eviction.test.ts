import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { PublishedPackage } from '../origin/release.ts'
import { blobBytes, DiskWatch } from './disk-usage.ts'
import { sha256 } from './held-archive.ts'
import { type SpawnedMirror, spawnMirror } from './mirror-fixture.ts'

const PLATFORM = 'linux_amd64'
const ARCHIVE_BYTES = 1_000_000
const MAX_SIZE = 10_000_000
/** Three times as much as may be kept. */
const PROVIDERS = Array.from({ length: 30 }, (_, index) => `acme/provider${index}`)
const PINNED = PROVIDERS.slice(0, 2)
const CLIENTS = 20
const PATIENT = { timeout: 30_000 }

let origin: TestOrigin
const archives = new Map<string, PublishedPackage>()

beforeAll(async () => {
  origin = await startOrigin()
  for (const provider of PROVIDERS) {
    const publication = { provider, version: '1.0.0', platforms: [PLATFORM], archiveBytes: ARCHIVE_BYTES }
    archives.set(provider, (await origin.publish(publication)).package(PLATFORM))
  }
})
afterAll(() => origin[Symbol.asyncDispose]())

interface Outcomes {
  right: number
  hits: number
  readonly failures: string[]
}

/** A client that asks for one archive after the other, with the document or a HEAD before it, until `isOver`. */
async function run(mirror: SpawnedMirror, seed: number, rounds: number, outcomes: Outcomes): Promise<void> {
  let state = seed
  const random = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state % below
  }
  for (let round = 0; round < rounds; round++) {
    const provider = PROVIDERS[random(PROVIDERS.length)] ?? ''
    if (round % 3 === 0) expect((await mirror.version(provider, '1.0.0')).status).toBe(200)
    if (round % 3 === 1) await mirror.archive(provider, '1.0.0', PLATFORM, { method: 'HEAD' })
    const answer = await mirror.archive(provider, '1.0.0', PLATFORM)
    if (answer.status !== 200) outcomes.failures.push(`${provider}: ${answer.status} ${answer.body}`)
    else if (sha256(answer.body) !== archives.get(provider)?.sha256) outcomes.failures.push(`${provider}: wrong bytes`)
    else outcomes.right += 1
    if (answer.headers['terramirror-cache'] === 'hit') outcomes.hits += 1
  }
}

async function runClients(mirror: SpawnedMirror, rounds: number): Promise<Outcomes> {
  const outcomes: Outcomes = { right: 0, hits: 0, failures: [] }
  const seeds = Array.from({ length: CLIENTS }, (_, index) => 7_919 * (index + 1))
  await Promise.all(seeds.map((seed) => run(mirror, seed, rounds, outcomes)))
  return outcomes
}

async function gauge(mirror: SpawnedMirror, name: string): Promise<number> {
  const [, value] = new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'm').exec(await mirror.metrics()) ?? []
  return Number(value)
}

/** By how many bytes the mirror is wrong about its disk. */
async function error(mirror: SpawnedMirror): Promise<number> {
  return (await gauge(mirror, 'terramirror_disk_used_bytes')) - blobBytes(mirror.dataDir)
}

async function holdsPinned(mirror: SpawnedMirror): Promise<boolean> {
  const answers = await Promise.all(PINNED.map((provider) => mirror.archive(provider, '1.0.0', PLATFORM)))
  return answers.every(({ headers }) => headers['terramirror-cache'] === 'hit')
}

// The second one too in `npm run test:large`.
test.each(process.env.HEAVY === undefined ? ['verified'] : ['verified', 'progressive'])(
  'a working set three times maxSize under 20 clients, delivery %s: the limit holds, no request fails, pinned items stay, and the sum is right to the byte after kill -9 (B73)',
  async (delivery) => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'test-space-'))
    const pins = join(folder.path, 'data', 'state', 'records', 'pins')
    await mkdir(pins, { recursive: true })
    const items = PINNED.map((provider) => `${origin.hosts[0]}/${provider} 1.0.0 ${PLATFORM}`)
    await writeFile(join(pins, 'ci.json'), JSON.stringify({ format: 1, updatedAt: new Date().toISOString(), items }))
    const config = { archives: { maxSize: `${MAX_SIZE}B`, delivery } }
    await using mirror = await spawnMirror({ origin, folder: folder.path, config })
    for (const provider of PINNED) await mirror.archive(provider, '1.0.0', PLATFORM)
    origin.reset()
    // Slow enough for more downloads at a time than may be kept.
    origin.fault({ kind: 'archive' }, { trickle: 4_000_000 })

    using watch = new DiskWatch(mirror.dataDir)
    const outcomes = await runClients(mirror, 8)
    expect(outcomes.failures).toEqual([])
    expect(outcomes.right).toBe(8 * CLIENTS)
    expect(outcomes.hits).toBeGreaterThan(0)
    const largest = Math.ceil(Math.max(...[...archives.values()].map(({ body }) => body.size)) / 4_096) * 4_096
    expect(watch.peak).toBeGreaterThan(0.8 * MAX_SIZE)
    expect(watch.peak).toBeLessThanOrEqual(MAX_SIZE + largest)
    expect(await holdsPinned(mirror)).toBe(true)
    expect(origin.count(`archive ${PINNED[0]}`) + origin.count(`archive ${PINNED[1]}`)).toBe(0)
    expect(await gauge(mirror, 'terramirror_evicted_bytes_total')).toBeGreaterThan(ARCHIVE_BYTES)

    const interrupted = runClients(mirror, 50).catch(() => undefined)
    await origin.until(() => origin.inFlight >= 5)
    await mirror.kill()
    await interrupted
    await mirror.start()
    await expect.poll(() => error(mirror), PATIENT).toBe(0)
    expect(blobBytes(mirror.dataDir)).toBeGreaterThan(0)

    const after = await runClients(mirror, 5)
    expect(after.failures).toEqual([])
    expect(watch.peak).toBeLessThanOrEqual(MAX_SIZE + largest)
    expect(await holdsPinned(mirror)).toBe(true)
    await expect.poll(() => gauge(mirror, 'terramirror_disk_reserved_bytes'), PATIENT).toBe(0)
    await expect.poll(() => error(mirror), PATIENT).toBe(0)
  },
  240_000,
)
