import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Chaos } from './chaos.ts'

/** What one look at a mirror at rest found. */
export interface Rest {
  readonly step: number
  readonly life: number
  readonly heapMB: number
  readonly externalMB: number
  readonly rssMB: number
  readonly sockets: number
  readonly descriptors: number
}

/** Idle connections to origins are closed after 4 s, the worker for hashes after 30 s. */
const REST_WITHIN_MS = 45_000
const MAX_HEAP_MB = 120
const MAX_RSS_MB = 450
/** Growth of the heap between two looks in one life that caches do not explain. */
const MAX_HEAP_GROWTH_MB = 40

/** Fails unless everything that was opened is closed when nothing is going on. Nothing may be under way. */
export async function assertAtRest(chaos: Chaos, earlier: readonly Rest[]): Promise<Rest> {
  const { mirror, world } = chaos
  mirror.closeClient()
  await until(chaos, 'the origin is not left alone', async () => world.origin.inFlight === 0)
  await until(
    chaos,
    'a download or a request to an origin is counted as running',
    async () => (await countRunning(chaos)) === 0,
  )
  mirror.closeClient()
  await until(
    chaos,
    'unfinished files are left in tmp/',
    async () => (await filesBelow(mirror.dataDir, 'tmp')).length === 0,
  )
  await until(chaos, 'files of the data folder are open', async () =>
    hasOnlyJournals((await mirror.openFiles()).filter((file) => file.startsWith(mirror.dataDir))),
  )
  // The public port and the one of the admin API, and the channel to this process.
  await until(chaos, 'sockets are open', async () => (await countSockets(chaos)) <= 4)
  // An immediate is over in a moment; a check of a release that an answer has begun is over a little later.
  await until(chaos, 'timers keep the mirror alive', async () => countTimers((await mirror.usage()).resources) <= 2)
  const { heapBytes, externalBytes, rssBytes } = await mirror.usage()
  const rest: Rest = {
    step: chaos.step,
    life: mirror.life,
    heapMB: toMB(heapBytes),
    externalMB: toMB(externalBytes),
    rssMB: toMB(rssBytes),
    sockets: await countSockets(chaos),
    descriptors: (await mirror.openFiles()).length,
  }
  if (rest.heapMB > MAX_HEAP_MB || rest.rssMB > MAX_RSS_MB) chaos.fail(`memory: ${JSON.stringify(rest)}`)
  const first = earlier.find(({ life }) => life === rest.life)
  if (first !== undefined && rest.heapMB - first.heapMB > MAX_HEAP_GROWTH_MB) {
    chaos.fail(`the heap grows: ${JSON.stringify([first, rest])}`)
  }
  if (first !== undefined && rest.descriptors > first.descriptors + 3) {
    chaos.fail(`file descriptors grow: ${JSON.stringify([first, rest])}; ${(await mirror.openFiles()).join(' ')}`)
  }
  return rest
}

/** Fails unless a stopped mirror leaves a folder without anything unfinished or unfit under a served name. */
export async function assertSoundFolder(chaos: Chaos): Promise<void> {
  const { dataDir } = chaos.mirror
  const unfinished = await filesBelow(dataDir, 'tmp')
  if (unfinished.length > 0) chaos.fail(`after a stop in good order tmp/ holds ${unfinished}`)
  if ((await readdir(dataDir)).includes('lock')) chaos.fail('after a stop in good order the lock is still there')
  const damaged = chaos.damagedDigests
  for (const file of await filesBelow(dataDir, 'blobs')) {
    const digest = createHash('sha256')
      .update(await readFile(file))
      .digest('hex')
    if (digest !== basename(file) && !damaged.has(basename(file))) chaos.fail(`${file} holds ${digest}`)
  }
}

async function until(chaos: Chaos, complaint: string, condition: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + REST_WITHIN_MS
  while (!(await condition())) {
    if (performance.now() > end || chaos.violation !== undefined) {
      const files = (await chaos.mirror.openFiles()).join(' ')
      return chaos.fail(`${REST_WITHIN_MS} ms at rest, and ${complaint}; open: ${files}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Whatever the mirror's own metrics say is under way. */
async function countRunning({ mirror }: Chaos): Promise<number> {
  const text = (await mirror.ask('/metrics')).body.toString()
  const gauges = text.matchAll(/^terramirror_(?:downloads|upstream_requests)_in_flight(?:\{.*\})? (\S+)$/gm)
  return [...gauges].reduce((sum, [, value]) => sum + Math.abs(Number(value)), 0)
}

async function countSockets({ mirror }: Chaos): Promise<number> {
  return (await mirror.openFiles()).filter((file) => file.startsWith('socket:')).length
}

function countTimers(resources: readonly string[]): number {
  return resources.filter((name) => name === 'Timeout' || name === 'Immediate').length
}

/** A journal stays open while its user runs: once. */
function hasOnlyJournals(files: readonly string[]): boolean {
  return files.every((file) => file.endsWith('.ndjson')) && new Set(files).size === files.length
}

async function filesBelow(dataDir: string, folder: string): Promise<string[]> {
  const entries = await readdir(join(dataDir, folder), { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}

function toMB(bytes: number): number {
  return Math.round(bytes / 100_000) / 10
}
