import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packModule } from '../../src/mirror/module-archive.ts'
import { MemoryBlobStore } from '../../src/store/memory/memory-blob-store.ts'
import { gitHttpBackend } from '../origin/git-host.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { MAIN } from '../programs.ts'
import { GitRepository } from '../upstream/module-source/git-source-fixture.ts'
import { type SpawnedMirror, spawnMirror } from './mirror-fixture.ts'
import { HOST } from './mirror-workspace.ts'
import { askModule, locationOf } from './module-door.ts'

/*
 * Long histories and large files. `npm run test:large` runs them at full size: 200 MB of history, a module of 100 MB. Only
 * then memory is looked at: less does not show in that of Node.js.
 */

const MB = 1_000_000
const HEAVY = process.env.HEAVY !== undefined
const HISTORY_MB = HEAVY ? 200 : 20
const MODULE_MB = HEAVY ? 100 : 1
/** What V8 takes before it cleans up (66 and 42 were seen), less than what comes in. */
const MAX_GROWTH_MB = 80
/** With the flag that `npm start` and the image give: without it garbage takes more, whatever the size. */
const AS_STARTED = [process.execPath, '--max-semi-space-size=2', MAIN] as const
const ready = gitHttpBackend() !== undefined

let origin: TestOrigin
let long: GitRepository
let large: GitRepository

beforeAll(async () => {
  if (!ready) return
  origin = await startOrigin()
  long = await GitRepository.make()
  await importHistory(long, HISTORY_MB)
  large = await GitRepository.make()
  await importHistory(large, 1, MODULE_MB)
  origin.serveGit('acme/long', { path: long.path })
  origin.serveGit('acme/dumb', { path: long.path, style: 'dumb' })
  origin.serveGit('acme/large', { path: large.path })
  for (const name of ['long', 'dumb', 'large'])
    origin.publishModule({
      module: `acme/${name}/aws`,
      version: '1.0.0',
      location: `git::https://${HOST}/git/acme/${name}.git?ref=v1`,
    })
})
afterAll(async () => {
  if (!ready) return
  await large[Symbol.asyncDispose]()
  await long[Symbol.asyncDispose]()
  await origin[Symbol.asyncDispose]()
})

describe.skipIf(!ready)('large modules', () => {
  test('of a long history one commit is fetched, where the server can give it alone; all of it where it cannot', async () => {
    await using mirror = await spawnMirror({ origin })
    await untilHeld(mirror, 'acme/long/aws')
    expect(await receivedMb(mirror)).toBeLessThan(3)
    const before = await peakMb(mirror)
    await untilHeld(mirror, 'acme/dumb/aws')
    expect(await receivedMb(mirror)).toBeGreaterThan(HISTORY_MB)
    if (HEAVY) expect(await growthMb(mirror, before)).toBeLessThan(MAX_GROWTH_MB)
  }, 300_000)

  test('beyond the limit a repository is refused, with the limit, and nothing stays', async () => {
    await using mirror = await spawnMirror({ origin, config: { archives: { maxArchiveSize: '5MB' } } })
    const answer = await askModule(mirror, 'acme/dumb/aws', '1.0.0')
    expect([answer.status, answer.json().code], answer.body.toString()).toEqual([502, 'UPSTREAM_TOO_LARGE'])
    expect(answer.json().error).toMatch(/registry\.example\.test sends more than the limit of 5000000 bytes/)
    expect((await readdir(join(mirror.dataDir, 'tmp'))).filter((name) => name.startsWith('work-'))).toEqual([])
  }, 300_000)

  test.runIf(HEAVY)(
    'memory is flat while a large module is fetched, packed and served',
    async () => {
      await using mirror = await spawnMirror({ origin, program: AS_STARTED })
      await untilHeld(mirror, 'acme/long/aws')
      const before = await peakMb(mirror)
      const path = await untilHeld(mirror, 'acme/large/aws')
      const archive = await mirror.ask(path)
      expect(archive.body.length).toBeGreaterThan(MODULE_MB * MB)
      expect(await growthMb(mirror, before)).toBeLessThan(MAX_GROWTH_MB)
    },
    300_000,
  )

  test('packing holds nobody up', async () => {
    const bytes = randomBytes(2 * MB)
    const file = {
      size: bytes.length,
      executable: false,
      read: async function* () {
        yield bytes
      },
    }
    const tree = {
      revision: { kind: 'archive', digest: '' } as const,
      files: new Map([['a', file]]),
      notes: [],
      [Symbol.asyncDispose]: async () => undefined,
    }
    await using blob = await new MemoryBlobStore().create()
    const others = new AbortController()
    let turns = 0
    const packing = packModule(tree, blob, new AbortController().signal).finally(() => others.abort())
    while (!others.signal.aborted) {
      await new Promise((resolve) => setImmediate(resolve))
      turns++
    }
    await packing
    // Between its pieces everybody has a turn.
    expect(turns).toBeGreaterThanOrEqual(8)
  })
})

/** A history of so many megabytes, one commit for each, and a last commit with a file of `lastMb` and the tag `v1`. */
async function importHistory(repository: GitRepository, megabytes: number, lastMb = 0): Promise<void> {
  const child = spawn('git', ['-c', 'core.compression=0', 'fast-import', '--quiet', '--depth=0'], {
    cwd: repository.path,
    stdio: ['pipe', 'inherit', 'inherit'],
  })
  const ended = once(child, 'exit')
  const write = async (bytes: string | Buffer): Promise<void> => {
    if (!child.stdin.write(bytes)) await once(child.stdin, 'drain')
  }
  const commit = async (name: string, size: number): Promise<void> => {
    const who = 'a <a@example.test> 1700000000 +0000'
    await write(
      `commit refs/heads/main\nauthor ${who}\ncommitter ${who}\ndata 1\nc\nM 100644 inline ${name}\ndata ${size}\n`,
    )
    for (let left = size; left > 0; left -= MB) await write(randomBytes(Math.min(left, MB)))
    await write('\n')
  }
  for (let count = 0; count < megabytes; count++) await commit('data.bin', MB)
  if (lastMb > 0) await commit('large.bin', lastMb * MB)
  await write('reset refs/tags/v1\nfrom refs/heads/main\n\n')
  child.stdin.end()
  expect((await ended)[0]).toBe(0)
}

/** Path of the archive. */
async function untilHeld(mirror: SpawnedMirror, module: string): Promise<string> {
  return locationOf(await askModule(mirror, module, '1.0.0'), module, '1.0.0').path
}

/** The most memory that the process had since the last call (proc_pid_status(5)), in megabytes. */
async function peakMb({ child }: SpawnedMirror): Promise<number> {
  const [, kB = ''] = /^VmHWM:\s+(\d+) kB$/m.exec(await readFile(`/proc/${child.pid}/status`, 'utf8')) ?? []
  await writeFile(`/proc/${child.pid}/clear_refs`, '5')
  return (Number(kB) * 1024) / MB
}

async function growthMb(mirror: SpawnedMirror, before: number): Promise<number> {
  const peak = await peakMb(mirror)
  console.log(`memory of the mirror: ${before.toFixed(0)} MB before, at most ${peak.toFixed(0)} MB`)
  return peak - before
}

async function receivedMb(mirror: SpawnedMirror): Promise<number> {
  const values = (await mirror.metrics()).matchAll(/^terramirror_upstream_received_bytes_total\{.*\} (\S+)$/gm)
  return [...values].reduce((sum, [, value]) => sum + Number(value), 0) / MB
}
