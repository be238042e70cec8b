import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Behaviour } from '../origin/fault.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'

const PROVIDER = 'acme/widget'
const PLATFORM = 'linux_amd64'

let origin: TestOrigin

beforeAll(async () => {
  origin = await startOrigin()
})

afterEach(() => origin.reset())

afterAll(() => origin[Symbol.asyncDispose]())

/** Silence counts after half a second, so that a stall is noticed soon. */
function startImpatientMirror(): Promise<TestMirror> {
  return startMirror({ origin, config: { upstream: { idleTimeout: '500ms', retries: 3 } } })
}

function publish(version: string) {
  return origin.publish({ provider: PROVIDER, version, archiveBytes: 3_000_000 })
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** The digests of all blobs that are visible on disk. */
async function blobsOf(mirror: TestMirror): Promise<string[]> {
  const entries = await readdir(join(mirror.dataDir, 'blobs'), { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name)
}

async function assertNothingUnfinished(mirror: TestMirror): Promise<void> {
  await expect.poll(() => readdir(join(mirror.dataDir, 'tmp'))).toEqual([])
}

/** What the archive requests suffer, one after another; after them the origin is honest. */
const passing: [string, Behaviour[]][] = [
  ['torn at 60 %, with Content-Length', [{ torn: 0.6 }]],
  ['torn at 60 %, chunked', [{ tornChunked: 0.6 }]],
  ['torn before the first byte', [{ torn: 0 }]],
  ['short, chunked, with a clean end', [{ shortChunked: 0.6 }]],
  ['stalled at 60 %', [{ stall: 0.6 }]],
  ['silent from the start', [{ hang: true }]],
  ['dropped without an answer', [{ drop: true }]],
  ['503', [{ status: 503 }]],
  ['429 for a moment', [{ status: 429, headers: { 'retry-after': '1' } }]],
  ['wrong bytes', [{ wrongBytes: true }]],
  ['wrong bytes of a torn answer, so that the rest fits to nothing', [{ wrongBytes: true, torn: 0.6 }]],
  ['torn, and the rest is the whole again (ranges ignored)', [{ torn: 0.6 }, { ignoreRange: true }]],
  [
    'torn, no range, torn again',
    [
      { torn: 0.6, ignoreRange: true },
      { torn: 0.8, ignoreRange: true },
    ],
  ],
  ['404 while a CDN catches up', [{ status: 404 }]],
  ['three faults, as many as are retried', [{ torn: 0.3 }, { status: 502 }, { stall: 0.5 }]],
  ['gzip on top of the zip', [{ gzip: true }]],
]

describe('an archive whose transfer fails for a while reaches the client right, and never as a failure (B47)', () => {
  test.each(passing.map(([name, behaviours], index) => ({ name, behaviours, version: `1.0.${index}` })))(
    '$name',
    async ({ behaviours, version }) => {
      const release = await publish(version)
      await using mirror = await startImpatientMirror()
      // The newest fault wins while it lasts.
      const faults = behaviours.toReversed().map((behaviour) => origin.fault({ kind: 'archive', times: 1 }, behaviour))
      const answer = await mirror.archive(PROVIDER, version, PLATFORM)
      const { sha256: digest, body } = release.package(PLATFORM)
      expect(answer.status).toBe(200)
      expect(answer.headers['content-length']).toBe(String(body.size))
      expect(sha256(answer.body)).toBe(digest)
      expect(faults.map(({ struck }) => struck)).toEqual(behaviours.map(() => 1))
      await assertNothingUnfinished(mirror)
      await origin.stop()
      expect(sha256((await mirror.archive(PROVIDER, version, PLATFORM)).body)).toBe(digest)
      await origin.start()
    },
  )
})

const lasting: [string, Behaviour, { status: number; code: string }][] = [
  ['wrong bytes', { wrongBytes: true }, { status: 502, code: 'CHECKSUM_MISMATCH' }],
  ['a short archive with a clean end', { shortChunked: 0.9 }, { status: 502, code: 'CHECKSUM_MISMATCH' }],
  ['a web page instead', { body: '<html>log in</html>' }, { status: 502, code: 'CHECKSUM_MISMATCH' }],
  ['torn every time', { torn: 0.1, ignoreRange: true }, { status: 502, code: 'UPSTREAM_UNREACHABLE' }],
  ['silence', { hang: true }, { status: 504, code: 'UPSTREAM_TIMEOUT' }],
  ['503', { status: 503 }, { status: 502, code: 'UPSTREAM_STATUS' }],
  ['403', { status: 403 }, { status: 502, code: 'UPSTREAM_STATUS' }],
]

describe('an archive that fails for good is a clear error, leaves nothing, and works once the origin does (B47)', () => {
  test.each(
    lasting.map(([name, behaviour, expected], index) => ({ name, behaviour, expected, version: `2.0.${index}` })),
  )('$name', async ({ behaviour, expected, version }) => {
    const release = await publish(version)
    const { sha256: digest } = release.package(PLATFORM)
    await using mirror = await startImpatientMirror()
    const fault = origin.fault({ kind: 'archive' }, behaviour)
    const failed = await mirror.archive(PROVIDER, version, PLATFORM)
    expect(failed.status).toBe(expected.status)
    expect(failed.json()).toMatchObject({
      code: expected.code,
      upstream_url: expect.stringContaining('/releases/registry.example.test/acme/widget/'),
      request_id: failed.headers['x-request-id'],
    })
    expect(await blobsOf(mirror)).not.toContain(digest)
    await assertNothingUnfinished(mirror)
    expect((await mirror.version(PROVIDER, version)).status).toBe(200)

    fault.clear()
    const repaired = await mirror.archive(PROVIDER, version, PLATFORM)
    expect(repaired.status).toBe(200)
    expect(sha256(repaired.body)).toBe(digest)
    expect(await blobsOf(mirror)).toContain(digest)
  })

  test('the refusal of wrong bytes names both digests, and no file under either name is stored', async () => {
    const release = await publish('3.0.0')
    const archive = release.package(PLATFORM)
    const wrong = Buffer.from(await archive.bytes())
    const victim = Math.floor(wrong.length / 2)
    wrong.writeUInt8(wrong.readUInt8(victim) ^ 0xff, victim)
    await using mirror = await startImpatientMirror()
    origin.fault({ kind: 'archive' }, { wrongBytes: true })
    const { error } = (await mirror.archive(PROVIDER, '3.0.0', PLATFORM)).json()
    expect(error).toContain(archive.sha256)
    expect(error).toContain(sha256(wrong))
    const blobs = await blobsOf(mirror)
    expect(blobs).not.toContain(archive.sha256)
    expect(blobs).not.toContain(sha256(wrong))
    const refused = mirror.logLines.find(({ route, status }) => String(route).includes(':filename') && status === 502)
    expect(refused?.err).toMatchObject({ expected: archive.sha256, actual: sha256(wrong) })
  })
})
