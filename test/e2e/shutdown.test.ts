import { once } from 'node:events'
import { readdir, stat } from 'node:fs/promises'
import { Agent } from 'node:https'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { PublishedPackage } from '../origin/release.ts'
import { openDownload } from './download.ts'
import { sha256 } from './held-archive.ts'
import { type SpawnedMirror, spawnMirror } from './mirror-fixture.ts'

const PROVIDER = 'acme/widget'
const PLATFORM = 'linux_amd64'
/** Far less than the grace that running downloads get (30 s), far more than a busy machine needs. */
const PROMPT_MS = 15_000

let origin: TestOrigin
let archive: PublishedPackage

beforeAll(async () => {
  origin = await startOrigin()
  const publication = { provider: PROVIDER, platforms: [PLATFORM], archiveBytes: 30_000_000 }
  archive = (await origin.publish({ ...publication, version: '1.0.0' })).package(PLATFORM)
})

afterEach(() => origin.reset())

afterAll(() => origin[Symbol.asyncDispose]())

function archivePath(mirror: SpawnedMirror): string {
  return mirror.archivePath(PROVIDER, '1.0.0', PLATFORM)
}

/** Sends a signal; the promise settles with the exit code and how long the process took. */
function signal(
  { child }: SpawnedMirror,
  name: NodeJS.Signals,
): { ended: Promise<{ code: number | null; ms: number }> } {
  const started = performance.now()
  const ended = once(child, 'exit').then(([code]) => ({ code, ms: performance.now() - started }))
  child.kill(name)
  return { ended }
}

/** Waits until the mirror takes no new connection any more. */
async function untilRefusing(mirror: SpawnedMirror): Promise<void> {
  const ask = () =>
    mirror.ask('/readyz').then(
      () => 'answered',
      (error: NodeJS.ErrnoException) => error.code,
    )
  await expect.poll(ask, { timeout: PROMPT_MS }).toBe('ECONNREFUSED')
}

async function assertReleased(mirror: SpawnedMirror): Promise<void> {
  expect(await readdir(join(mirror.dataDir, 'tmp'))).toEqual([])
  await expect(stat(join(mirror.dataDir, 'lock'))).rejects.toThrow('ENOENT')
  expect(mirror.logLines.at(-1)).toMatchObject({ level: 'info', msg: 'stopped' })
  expect(mirror.logLines.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([])
}

describe.each<NodeJS.Signals>(['SIGTERM', 'SIGINT'])('%s (B75)', (name) => {
  test('lets a running download end with all its bytes, takes no new connection, and exits with 0 right after', async () => {
    await using mirror = await spawnMirror({ origin })
    await mirror.ask(archivePath(mirror))
    using agent = new DisposableAgent({ keepAlive: true })
    const downloads = [
      await openDownload(mirror, archivePath(mirror)),
      await openDownload(mirror, archivePath(mirror), { agent }),
    ]
    for (const download of downloads) {
      await download.until(1)
      download.pause()
    }
    const { ended } = signal(mirror, name)
    await untilRefusing(mirror)
    const resumed = performance.now()
    for (const download of downloads) download.resume()
    for (const { end } of downloads) {
      expect(await end).toEqual({ bytes: archive.body.size, sha256: archive.sha256, complete: true })
    }
    expect((await ended).code).toBe(0)
    expect(performance.now() - resumed).toBeLessThan(PROMPT_MS)
    await assertReleased(mirror)
  })

  test('exits promptly with connections that are idle, silent, or never shook hands', async () => {
    await using mirror = await spawnMirror({ origin })
    const port = Number(new URL(mirror.url).port)
    using agent = new DisposableAgent({ keepAlive: true })
    await (await openDownload(mirror, '/healthz', { agent })).end
    const bare = connect(port, '127.0.0.1')
    const silent = connectTls({ port, host: '127.0.0.1', servername: 'localhost', ca: mirror.caPem })
    await Promise.all([once(bare, 'connect'), once(silent, 'secureConnect')])
    using _ = destroyAll([bare, silent])
    const { code, ms } = await signal(mirror, name).ended
    expect(code).toBe(0)
    expect(ms).toBeLessThan(PROMPT_MS)
    await assertReleased(mirror)
  })
})

class DisposableAgent extends Agent implements Disposable {
  [Symbol.dispose](): void {
    this.destroy()
  }
}

function destroyAll(sockets: readonly Socket[]): Disposable {
  for (const socket of sockets) socket.on('error', () => undefined)
  return {
    [Symbol.dispose]: () => {
      for (const socket of sockets) socket.destroy()
    },
  }
}

test('a client that waits for a cold archive when the process is told to stop gets all its bytes (B75)', async () => {
  const release = await origin.publish({
    provider: PROVIDER,
    version: '2.0.0',
    platforms: [PLATFORM],
    archiveBytes: 900_000,
  })
  await using mirror = await spawnMirror({ origin })
  origin.fault({ kind: 'archive' }, { trickle: 600_000 })
  const waiting = mirror.archive(PROVIDER, '2.0.0', PLATFORM)
  await origin.until(() => origin.count('archive') === 1)
  const { ended } = signal(mirror, 'SIGTERM')
  await untilRefusing(mirror)
  const answer = await waiting
  expect(sha256(answer.body)).toBe(release.package(PLATFORM).sha256)
  expect((await ended).code).toBe(0)
  await assertReleased(mirror)
})

test('a fetch for which nobody waits is given up: the process exits promptly, and nothing unfinished stays', async () => {
  await origin.publish({ provider: PROVIDER, version: '3.0.0', platforms: [PLATFORM], archiveBytes: 900_000 })
  await using mirror = await spawnMirror({ origin })
  origin.fault({ kind: 'archive' }, { trickle: 20_000 })
  const head = await mirror.archive(PROVIDER, '3.0.0', PLATFORM, { method: 'HEAD' })
  expect(head.status).toBe(200)
  await origin.until(() => origin.count('archive') === 1)
  const { code, ms } = await signal(mirror, 'SIGTERM').ended
  expect(code).toBe(0)
  expect(ms).toBeLessThan(PROMPT_MS)
  await assertReleased(mirror)
})

test.each<[NodeJS.Signals, NodeJS.Signals]>([
  ['SIGTERM', 'SIGTERM'],
  ['SIGTERM', 'SIGINT'],
])('a second signal (%s, then %s) ends the process at once, whoever is still being served', async (first, second) => {
  await using mirror = await spawnMirror({ origin })
  await mirror.ask(archivePath(mirror))
  const download = await openDownload(mirror, archivePath(mirror))
  await download.until(1)
  download.pause()
  signal(mirror, first)
  await untilRefusing(mirror)
  const { ms } = await signal(mirror, second).ended
  expect(ms).toBeLessThan(PROMPT_MS)
  download.resume()
  expect((await download.end).complete).toBe(false)
})

test('one Ctrl-C that comes twice, by npm beside the terminal, lets running downloads finish', async () => {
  await using mirror = await spawnMirror({ origin })
  await mirror.ask(archivePath(mirror))
  const download = await openDownload(mirror, archivePath(mirror))
  await download.until(1)
  download.pause()
  signal(mirror, 'SIGINT')
  const { ended } = signal(mirror, 'SIGINT')
  await untilRefusing(mirror)
  download.resume()
  expect((await download.end).complete).toBe(true)
  expect((await ended).code).toBe(0)
})

test('a stopped mirror starts again over its folder and serves what it holds', async () => {
  await using mirror = await spawnMirror({ origin })
  await mirror.ask(archivePath(mirror))
  await mirror.restart()
  await origin.stop()
  const answer = await mirror.ask(archivePath(mirror))
  await origin.start()
  expect(sha256(answer.body)).toBe(archive.sha256)
})
