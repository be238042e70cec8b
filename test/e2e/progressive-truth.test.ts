import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Behaviour } from '../origin/fault.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { PublishedPackage } from '../origin/release.ts'
import { type DownloadEnd, openDownload } from './download.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'

const PROVIDER = 'acme/widget'
const PLATFORM = 'linux_amd64'
const BYTES = 400_000
const ROUNDS = 20
const CLIENTS = 4

let origin: TestOrigin
let mirror: TestMirror

beforeAll(async () => {
  origin = await startOrigin()
  const upstream = { retries: 1, idleTimeout: '1s', minRate: '0B' }
  mirror = await startMirror({ origin, config: { archives: { delivery: 'progressive' }, upstream } })
})
afterAll(async () => {
  await mirror[Symbol.asyncDispose]()
  await origin[Symbol.asyncDispose]()
})

/** The same sequence for the same seed. */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** One way in which an origin misbehaves with an archive; sometimes none. */
function misbehave(random: () => number): Behaviour {
  const fraction = random()
  const endings: Behaviour[] = [
    {},
    { shortChunked: 1 },
    { torn: fraction },
    { tornChunked: fraction },
    { shortChunked: fraction },
    { stall: fraction },
  ]
  return {
    ...endings[Math.floor(random() * endings.length)],
    ...(random() < 0.4 && { wrongBytes: true }),
    ...(random() < 0.4 && { ignoreRange: true }),
    ...(random() < 0.2 && { headers: { etag: `"${Math.floor(random() * 3)}"` } }),
    trickle: 1_000_000 + random() * 4_000_000,
  }
}

/** Status 0: the connection was torn before the head came, as it is for who joins a download that just broke. */
async function download(path: string, ms: number): Promise<DownloadEnd & { status: number }> {
  await new Promise((resolve) => setTimeout(resolve, ms))
  try {
    const { status, end } = await openDownload(mirror, path)
    return { status, ...(await end) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error
    return { status: 0, bytes: 0, sha256: '', complete: false }
  }
}

test('whatever an origin does to an archive, nobody completes a download of other bytes than the published ones', async () => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 32))
  console.info(`SEED=${seed}`)
  const random = createRandom(seed)
  const archives: PublishedPackage[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const publication = { provider: PROVIDER, version: `1.0.${round}`, platforms: [PLATFORM], archiveBytes: BYTES }
    archives.push((await origin.publish(publication)).package(PLATFORM))
  }
  const seen = { torn: 0, complete: 0, refused: 0 }
  for (const [round, archive] of archives.entries()) {
    for (let request = 0; request < 2; request++) origin.fault({ kind: 'archive', times: 1 }, misbehave(random))
    const path = mirror.archivePath(PROVIDER, `1.0.${round}`, PLATFORM)
    const ends = await Promise.all(Array.from({ length: CLIENTS }, () => download(path, random() * 150)))
    for (const { status, complete, bytes, sha256 } of ends) {
      if (status >= 400) seen.refused++
      else if (complete) {
        expect({ bytes, sha256 }, `round ${round}`).toEqual({ bytes: archive.body.size, sha256: archive.sha256 })
        seen.complete++
      } else seen.torn++
    }
    origin.reset()
    // It may join, and be torn off by, a download that the faults have struck.
    for (let left = 3; (await download(path, 0)).sha256 !== archive.sha256; left--) {
      expect(left, `round ${round} never served well`).toBeGreaterThan(0)
    }
  }
  console.info(JSON.stringify(seen))
  // The faults did strike, and what was served well was served well.
  expect(Math.min(seen.torn, seen.complete)).toBeGreaterThan(0)
})
