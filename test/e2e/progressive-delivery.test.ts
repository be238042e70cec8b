import { readdir } from 'node:fs/promises'
import { connect } from 'node:tls'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Behaviour } from '../origin/fault.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { PublishedPackage } from '../origin/release.ts'
import { type Download, openDownload } from './download.ts'
import { FullDisk, type Place } from './full-disk.ts'
import { sha256 } from './held-archive.ts'
import { type MirrorOptions, startMirror, type TestMirror } from './mirror-fixture.ts'

const PROVIDER = 'acme/widget'
const PLATFORM = 'linux_amd64'
const HELD_BACK = 65_536
const BYTES = 1_500_000
/** Slow enough that a client is there before the end, on a busy machine too. */
const SLOWLY = { trickle: 2_000_000 }

let origin: TestOrigin
let archive: PublishedPackage

beforeAll(async () => {
  origin = await startOrigin()
  const publication = { provider: PROVIDER, version: '1.0.0', platforms: [PLATFORM], archiveBytes: BYTES }
  archive = (await origin.publish(publication)).package(PLATFORM)
  return () => origin[Symbol.asyncDispose]()
})
afterEach(() => origin.reset())

function startProgressive(options: Partial<MirrorOptions> = {}): Promise<TestMirror> {
  const { config = {}, ...rest } = options
  const upstream = { retries: 0, idleTimeout: '1s' }
  return startMirror({ origin, config: { archives: { delivery: 'progressive' }, upstream, ...config }, ...rest })
}

function open(mirror: TestMirror, options?: { bytesPerSecond: number }): Promise<Download> {
  return openDownload(mirror, mirror.archivePath(PROVIDER, '1.0.0', PLATFORM), options)
}

function ask(mirror: TestMirror, headers: Record<string, string> = {}, method = 'GET') {
  return mirror.archive(PROVIDER, '1.0.0', PLATFORM, { headers, method })
}

async function assertWhole(download: Download, expected = archive): Promise<void> {
  expect(await download.end).toEqual({ bytes: expected.body.size, sha256: expected.sha256, complete: true })
}

/** Nothing of an unfinished download is left. */
async function assertClean(mirror: TestMirror): Promise<void> {
  await expect.poll(() => readdir(`${mirror.dataDir}/tmp`)).toEqual([])
}

describe('an archive that is handed on while it comes in', () => {
  test('reaches any number of clients long before the origin is through, from its first byte, by one request', async () => {
    await using mirror = await startProgressive()
    origin.fault({ kind: 'archive' }, { ...SLOWLY })
    const early = await Promise.all(Array.from({ length: 10 }, () => open(mirror)))
    await early[0]?.until(300_000)
    expect(origin.requests.filter(({ outcome, kind }) => kind === 'archive' && outcome === 'answered')).toEqual([])
    const late = await open(mirror)
    await late.until(300_000)
    const leaving = await open(mirror)
    leaving.abort()
    for (const { status, headers } of [...early, late]) {
      expect(status).toBe(200)
      expect(headers['content-length']).toBe(String(archive.body.size))
      expect(headers['cache-control']).toContain('no-transform')
      // Nothing by which a part of it could be completed later.
      expect([headers.etag, headers['accept-ranges']]).toEqual([undefined, undefined])
    }
    for (const download of [...early, late]) await assertWhole(download)
    const outcomes = [...early, late].map(({ headers }) => headers['terramirror-cache'])
    expect(outcomes.toSorted()).toEqual([...Array(10).fill('coalesced'), 'miss'])
    expect(origin.count('archive')).toBe(1)
    const held = await ask(mirror)
    expect([held.headers['terramirror-cache'], held.headers.etag]).toEqual(['hit', `"${archive.sha256}"`])
    await assertClean(mirror)
  })

  test('goes out chunked where the origin states no length, and never to a client that could not see it break off', async () => {
    await using mirror = await startProgressive()
    origin.fault({ kind: 'archive' }, { shortChunked: 1, ...SLOWLY })
    const download = await open(mirror)
    expect(download.headers['content-length']).toBeUndefined()
    expect(download.headers['transfer-encoding']).toBe('chunked')
    const old = askByHttp10(mirror)
    await assertWhole(download)
    expect(await old).toContain(`Content-Length: ${archive.body.size}\r\n`)
    expect(origin.count('archive')).toBe(1)
  })

  test('is not slowed by a client that takes nothing, nor are the others, and that client gets all of it in the end', async () => {
    await using mirror = await startProgressive()
    const publication = { provider: PROVIDER, version: '2.0.0', platforms: [PLATFORM], archiveBytes: 30_000_000 }
    const large = (await origin.publish(publication)).package(PLATFORM)
    origin.fault({ kind: 'archive', version: '2.0.0' }, { trickle: 60_000_000 })
    const path = mirror.archivePath(PROVIDER, '2.0.0', PLATFORM)
    const stalled = await openDownload(mirror, path)
    stalled.pause()
    await assertWhole(await openDownload(mirror, path), large)
    expect(stalled.received).toBeLessThan(20_000_000)
    stalled.resume()
    await assertWhole(stalled, large)
  })

  test('is fetched to its end when its only client leaves', async () => {
    await using mirror = await startProgressive()
    origin.fault({ kind: 'archive' }, { ...SLOWLY })
    const download = await open(mirror)
    await download.until(100_000)
    download.abort()
    await origin.until(() => origin.requests.some(({ kind, outcome }) => kind === 'archive' && outcome === 'answered'))
    expect(sha256((await ask(mirror)).body)).toBe(archive.sha256)
    expect([origin.count('archive'), origin.aborted]).toEqual([1, 0])
  })

  test('is resumed at the origin without any client noticing', async () => {
    await using mirror = await startProgressive({ config: { upstream: { retries: 2 } } })
    origin.fault({ kind: 'archive', times: 1 }, { torn: 0.5, ...SLOWLY })
    await assertWhole(await open(mirror))
    expect(origin.count('archive')).toBe(2)
  })

  test('HEAD begins its download and does not wait; a range waits until it is verified', async () => {
    await using mirror = await startProgressive()
    origin.fault({ kind: 'archive' }, { ...SLOWLY })
    const head = await ask(mirror, {}, 'HEAD')
    expect([head.status, head.headers['content-length'], head.headers['accept-ranges']]).toEqual([
      200,
      undefined,
      undefined,
    ])
    const range = await ask(mirror, { range: 'bytes=0-99' })
    expect([range.status, range.headers.etag]).toEqual([206, `"${archive.sha256}"`])
    expect(range.body.equals((await archive.bytes()).subarray(0, 100))).toBe(true)
    expect(origin.count('archive')).toBe(1)
  })

  test('HEAD tells no validator of it, by which the rest could be put behind a part of wrong bytes', async () => {
    await using mirror = await startProgressive()
    const fault = origin.fault({ kind: 'archive' }, { wrongBytes: true, ...SLOWLY })
    const head = await ask(mirror, {}, 'HEAD')
    const download = await open(mirror)
    const { bytes, complete } = await download.end
    expect(complete).toBe(false)
    fault.clear()
    const validator = head.headers.etag === undefined ? undefined : { 'if-range': head.headers.etag }
    const rest = await ask(mirror, { range: `bytes=${bytes}-`, ...validator })
    expect([rest.status, sha256(rest.body)]).toEqual([200, archive.sha256])
    expect(head.headers.etag).toBeUndefined()
    expect((await ask(mirror, {}, 'HEAD')).headers.etag).toBe(`"${archive.sha256}"`)
  })

  test('a range that could be put behind an unverified part is served only by its validator', async () => {
    await using mirror = await startProgressive()
    await ask(mirror)
    const rest = `bytes=${BYTES / 2}-`
    expect((await ask(mirror, { range: rest })).status).toBe(200)
    expect((await ask(mirror, { range: rest, 'if-range': `"${archive.sha256}"` })).status).toBe(206)
    expect((await ask(mirror, { range: 'bytes=0-' })).status).toBe(206)
  })
})

/** The head of the answer to a client of the last century. */
function askByHttp10(mirror: TestMirror): Promise<string> {
  const { port } = new URL(mirror.url)
  const socket = connect({ host: '127.0.0.1', port: Number(port), servername: 'localhost', ca: mirror.caPem })
  socket.write(`GET ${mirror.archivePath(PROVIDER, '1.0.0', PLATFORM)} HTTP/1.0\r\n\r\n`)
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
  })
  return new Promise((resolve, reject) => {
    socket.on('error', reject)
    socket.on('close', () => resolve(text.slice(0, text.indexOf('\r\n\r\n') + 2)))
  })
}

describe('a download that fails after its first bytes were handed out', () => {
  const behaviours: [string, Behaviour, string][] = [
    ['has wrong bytes', { wrongBytes: true }, 'CHECKSUM_MISMATCH'],
    ['has wrong bytes and no length', { wrongBytes: true, shortChunked: 1 }, 'CHECKSUM_MISMATCH'],
    ['ends early and clean', { shortChunked: 0.9 }, 'CHECKSUM_MISMATCH'],
    ['breaks off', { torn: 0.9 }, 'UPSTREAM_UNREACHABLE'],
    ['falls silent', { stall: 0.9 }, 'UPSTREAM_TIMEOUT'],
  ]
  test.each(behaviours)('tears every client off if it %s; the next request begins anew', async (_, behaviour, code) => {
    await using mirror = await startProgressive()
    const fault = origin.fault({ kind: 'archive' }, { ...SLOWLY, ...behaviour })
    const downloads = await Promise.all([open(mirror), open(mirror, { bytesPerSecond: 400_000 }), open(mirror)])
    await assertTorn(downloads)
    await assertClean(mirror)
    await expect.poll(() => tornLines(mirror)).toEqual([code, code, code])
    fault.clear()
    expect(sha256((await ask(mirror)).body)).toBe(archive.sha256)
  })

  test('tears them off if the origin changes the bytes in mid-transfer, and what it then sends is served', async () => {
    await using mirror = await startProgressive({ config: { upstream: { retries: 2 } } })
    origin.fault({ kind: 'archive' }, { ignoreRange: true })
    origin.fault({ kind: 'archive', times: 1 }, { torn: 0.7, wrongBytes: true, ignoreRange: true, ...SLOWLY })
    const torn = await open(mirror)
    await assertTorn([torn])
    expect(sha256((await ask(mirror)).body)).toBe(archive.sha256)
    expect(origin.count('archive')).toBe(2)
    expect(await tornLines(mirror)).toEqual(['UPSTREAM_INVALID'])
    await assertClean(mirror)
  })

  test.each<Place>(['append', 'commit'])('tears them off if the disk is full at %s', async (place) => {
    const disk = new FullDisk(place)
    await using mirror = await startProgressive({ wrapBlobs: (blobs) => disk.wrap(blobs) })
    origin.fault({ kind: 'archive' }, { ...SLOWLY })
    disk.full = true
    await assertTorn([await open(mirror), await open(mirror)])
    await assertClean(mirror)
    disk.full = false
    expect(sha256((await ask(mirror)).body)).toBe(archive.sha256)
  })

  async function assertTorn(downloads: readonly Download[]): Promise<void> {
    for (const { status, end } of downloads) {
      expect(status).toBe(200)
      const { complete, bytes } = await end
      expect(complete).toBe(false)
      expect(bytes).toBeLessThanOrEqual(BYTES - HELD_BACK + 200)
    }
  }

  function tornLines(mirror: TestMirror): unknown[] {
    return mirror.logLines
      .filter(({ msg, aborted, err }) => msg === 'request' && aborted === true && err !== undefined)
      .map(({ err }) => (err as { code: string }).code)
  }
})

describe('before the first byte is handed out a failure is a status, as in verified delivery', () => {
  test.each<[string, Behaviour, number]>([
    ['an error of the origin', { status: 500 }, 502],
    ['a body that breaks off at once', { torn: 0.01 }, 502],
    ['silence', { stall: 0.01 }, 504],
  ])('%s', async (_, behaviour, status) => {
    await using mirror = await startProgressive()
    origin.fault({ kind: 'archive' }, behaviour)
    expect((await ask(mirror)).status).toBe(status)
  })

  test('wrong bytes of an archive that is not larger than what is held back', async () => {
    await using mirror = await startProgressive()
    await origin.publish({ provider: 'acme/small', version: '1.0.0', archiveBytes: 40_000 })
    origin.fault({ kind: 'archive' }, { wrongBytes: true })
    expect((await mirror.archive('acme/small', '1.0.0', PLATFORM)).json().code).toBe('CHECKSUM_MISMATCH')
  })
})

test('an archive that nobody signed is not handed on before it is judged as a whole', async () => {
  const publication = { provider: 'acme/unsigned', version: '1.0.0', platforms: [PLATFORM], archiveBytes: BYTES }
  await origin.publish({ ...publication, key: null })
  await using mirror = await startProgressive({
    config: { archives: { delivery: 'progressive' }, verification: { signatures: 'whenListed' } },
  })
  origin.fault({ kind: 'archive' }, { ...SLOWLY })
  const download = await openDownload(mirror, mirror.archivePath('acme/unsigned', '1.0.0', PLATFORM))
  // Its head comes when the origin is through.
  expect(origin.requests.some(({ kind, outcome }) => kind === 'archive' && outcome === 'answered')).toBe(true)
  expect(download.headers.etag).toBeDefined()
  expect((await download.end).complete).toBe(true)
})
