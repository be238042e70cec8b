import { createHash } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { RequestKind } from '../origin/origin-request.ts'
import { openDownload } from './download.ts'
import { type Answer, startMirror, type TestMirror } from './mirror-fixture.ts'

const CLIENTS = 50
const PLATFORMS = ['linux_amd64', 'linux_arm64', 'darwin_arm64', 'windows_amd64']

let origin: TestOrigin

beforeAll(async () => {
  origin = await startOrigin()
})

afterEach(() => origin.reset())

afterAll(() => origin[Symbol.asyncDispose]())

function times<T>(count: number, action: (index: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => action(index)))
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Each once, however often they came. */
function distinct(answers: readonly Answer[]): string[] {
  return [...new Set(answers.map(({ status, body }) => `${status} ${sha256(body)}`))]
}

/** Waits until the mirror has begun to answer all requests sent before: none of them is still on its way to it. */
async function untilArrived(mirror: TestMirror): Promise<void> {
  for (let i = 0; i < 3; i++) await mirror.ask('/healthz')
}

describe.each([
  ['acme/widget', 'verified'],
  ['other.example.test/beta/gadget-x', 'progressive'],
])('cold clients of %s, delivery %s (B45)', (provider, delivery) => {
  const config = { archives: { delivery } }

  test('50 that ask step by step cost one request for each thing, get equal bytes, and the first may leave', async () => {
    const release = await origin.publish({ provider, version: '1.0.0', archiveBytes: 2_000_000 })
    await using mirror = await startMirror({ origin, config })

    const indexes = await times(CLIENTS, () => mirror.index(provider))
    expect(distinct(indexes)).toHaveLength(1)
    expect(indexes[0]?.json()).toEqual({ versions: { '1.0.0': {} } })
    expect(origin.requests.map(({ kind }) => kind)).toEqual(['discovery', 'versions'])

    const documents = await times(CLIENTS, () => mirror.version(provider, '1.0.0'))
    expect(distinct(documents)).toHaveLength(1)
    const archives = documents[0]?.json().archives
    for (const { platform, sha256 } of release.packages) expect(archives[platform].hashes[0]).toBe(`zh:${sha256}`)
    const keys = Object.keys(origin.counts)
    expect(keys.map((key) => key.split(' ')[0]).toSorted()).toEqual(
      ['discovery', 'download', 'download', 'download', 'download', 'signature', 'sums', 'versions'].toSorted(),
    )
    expect(Object.values(origin.counts)).toEqual(keys.map(() => 1))

    origin.fault({ kind: 'archive' }, { trickle: 1_500_000 })
    const leaving = new AbortController()
    const first = mirror.archive(provider, '1.0.0', 'linux_amd64', { signal: leaving.signal })
    await origin.until(() => origin.count('archive') === 1)
    const others = times(CLIENTS - 1, () => mirror.archive(provider, '1.0.0', 'linux_amd64'))
    await untilArrived(mirror)
    leaving.abort()
    await expect(first).rejects.toThrow('aborted')
    const answers = await others
    expect(distinct(answers)).toEqual([`200 ${release.package('linux_amd64').sha256}`])
    expect(new Set(answers.map(({ headers }) => headers['terramirror-cache']))).toEqual(new Set(['coalesced']))
    expect(origin.count('archive')).toBe(1)
    expect(origin.aborted).toBe(0)
  })

  test('50 that ask for everything at once, in no order, cost one request for each thing too', async () => {
    const release = await origin.publish({ provider, version: '1.0.0', archiveBytes: 300_000 })
    await using mirror = await startMirror({ origin, config })
    const all = await times(CLIENTS, (client) =>
      Promise.all([
        mirror.archive(provider, '1.0.0', PLATFORMS[client % 4] ?? ''),
        mirror.version(provider, '1.0.0'),
        mirror.index(provider),
      ]),
    )
    for (const [client, [archive, version, index]] of all.entries()) {
      expect(index.json()).toEqual({ versions: { '1.0.0': {} } })
      expect(Object.keys(version.json().archives).toSorted()).toEqual(PLATFORMS.toSorted())
      expect(sha256(archive.body)).toBe(release.package(PLATFORMS[client % 4] ?? '').sha256)
    }
    expect(Object.keys(origin.counts)).toHaveLength(1 + 1 + 4 + 1 + 1 + 4)
    expect(Math.max(...Object.values(origin.counts))).toBe(1)
  })
})

const RETRIES = 1
const failures: [RequestKind, number, (mirror: TestMirror) => Promise<Answer>][] = [
  ['versions', 1, (mirror) => mirror.index('acme/widget')],
  ['download', 4, (mirror) => mirror.version('acme/widget', '1.0.0')],
  ['archive', 1, (mirror) => mirror.archive('acme/widget', '1.0.0', 'linux_arm64')],
]

test.each(failures)(
  'a failure at %s is told to all 50 who wait for it, and the next request tries anew (B45)',
  async (...[kind, things, ask]) => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin, config: { upstream: { retries: RETRIES } } })
    // The failure comes when all 50 have shaken hands, on a busy machine too.
    const fault = origin.fault({ kind }, { status: 500, delayMs: 1_500 })
    const answers = await times(CLIENTS, () => ask(mirror))
    for (const answer of answers) {
      expect(answer.status).toBe(502)
      expect(answer.json()).toMatchObject({
        code: 'UPSTREAM_STATUS',
        upstream_status: 500,
        upstream_url: expect.stringMatching(/^https:\/\/registry\.example\.test\//),
        error: expect.stringContaining('500'),
        request_id: answer.headers['x-request-id'],
      })
    }
    expect(fault.struck).toBe(things * (1 + RETRIES))

    fault.clear()
    const next = await times(CLIENTS, () => ask(mirror))
    expect(distinct(next)).toHaveLength(1)
    expect(next[0]?.status).toBe(200)
  },
)

test('a client that is cut while it waits costs nothing: the fetch goes on, and the retry joins it or comes from cache (B43)', async () => {
  const release = await origin.publish({ provider: 'acme/slow', version: '5.9.1', archiveBytes: 1_500_000 })
  // The whole takes three times the limit of silence: only silence counts.
  await using mirror = await startMirror({ origin, config: { upstream: { idleTimeout: '1s' } } })
  origin.fault({ kind: 'archive' }, { trickle: 500_000 })
  const ask = (signal?: AbortSignal) =>
    mirror.archive('acme/slow', '5.9.1', 'linux_amd64', signal === undefined ? {} : { signal })

  const impatient = new AbortController()
  const cut = ask(impatient.signal)
  await origin.until(() => origin.count('archive') === 1)
  impatient.abort()
  await expect(cut).rejects.toThrow('aborted')
  const retry = await ask()
  const later = await ask()
  for (const answer of [retry, later]) expect(sha256(answer.body)).toBe(release.package('linux_amd64').sha256)
  expect(retry.headers['terramirror-cache']).toBe('coalesced')
  expect(later.headers['terramirror-cache']).toBe('hit')
  expect(origin.count('archive')).toBe(1)
  expect(origin.aborted).toBe(0)
})

test('nobody needs to stay: a fetch whose only client was cut is finished, and found in the cache (B43)', async () => {
  const release = await origin.publish({ provider: 'acme/left', version: '1.0.0', archiveBytes: 400_000 })
  await using mirror = await startMirror({ origin })
  origin.fault({ kind: 'archive' }, { trickle: 400_000 })
  const impatient = new AbortController()
  const cut = mirror.archive('acme/left', '1.0.0', 'darwin_arm64', { signal: impatient.signal })
  await origin.until(() => origin.count('archive') === 1)
  impatient.abort()
  await expect(cut).rejects.toThrow('aborted')
  await origin.until(() => origin.requests.some(({ kind, outcome }) => kind === 'archive' && outcome === 'answered'))
  origin.fault({ kind: 'archive' }, { status: 500 })
  const retry = await mirror.archive('acme/left', '1.0.0', 'darwin_arm64')
  expect(sha256(retry.body)).toBe(release.package('darwin_arm64').sha256)
  expect(origin.count('archive')).toBe(1)
})

test('a client that is cut in mid-body takes the rest by range, without another request to the origin (B43)', async () => {
  const release = await origin.publish({
    provider: 'acme/large',
    version: '1.0.0',
    platforms: ['linux_amd64'],
    archiveBytes: 30_000_000,
  })
  const { sha256: digest, body } = release.package('linux_amd64')
  await using mirror = await startMirror({ origin })
  const path = mirror.archivePath('acme/large', '1.0.0', 'linux_amd64')
  const download = await openDownload(mirror, path)
  await download.until(1_000_000)
  download.abort()
  const { bytes, complete } = await download.end
  expect(complete).toBe(false)
  expect(bytes).toBeLessThan(body.size)

  const rest = await mirror.ask(path, {
    headers: { range: `bytes=${bytes}-`, 'if-range': download.headers.etag ?? '' },
  })
  expect(rest.status).toBe(206)
  expect(rest.headers['content-range']).toBe(`bytes ${bytes}-${body.size - 1}/${body.size}`)
  const whole = await mirror.ask(path)
  expect(sha256(whole.body)).toBe(digest)
  expect(rest.body.equals(whole.body.subarray(bytes))).toBe(true)
  expect(origin.count('archive')).toBe(1)
  const cut = mirror.logLines.find(({ msg, aborted }) => msg === 'request' && aborted === true)
  // What the client has taken, and at most what was on its way.
  expect(cut?.bytes).toBeGreaterThan(bytes / 2)
  expect(cut).not.toHaveProperty('err')
})

test('200 clients at once with all kinds of requests to a warm mirror are all served right, and none is refused', {
  timeout: 120_000,
}, async () => {
  const providers = ['acme/one', 'acme/two', 'other.example.test/acme/three']
  const versions = ['1.0.0', '2.0.0-rc.1']
  const digests = new Map<string, string>()
  await using mirror = await startMirror({ origin })
  for (const provider of providers) {
    for (const version of versions) {
      const release = await origin.publish({ provider, version, archiveBytes: 500_000 })
      for (const { platform, sha256 } of release.packages) digests.set(`${provider} ${version} ${platform}`, sha256)
    }
  }
  for (const name of digests.keys()) {
    const [provider = '', version = '', platform = ''] = name.split(' ')
    expect((await mirror.archive(provider, version, platform)).status).toBe(200)
  }
  origin.reset()
  const documents = new Map<string, string>()
  const assertSameDocument = (name: string, { status, body }: Answer): void => {
    expect(status, name).toBe(200)
    expect(body.toString(), name).toBe(documents.get(name) ?? body.toString())
    documents.set(name, body.toString())
  }
  const names = [...digests.keys()]
  const requests: ((name: string, digest: string) => Promise<void>)[] = [
    async (name, digest) => {
      const [provider = '', version = '', platform = ''] = name.split(' ')
      expect(sha256((await mirror.archive(provider, version, platform)).body)).toBe(digest)
    },
    async (name, digest) => {
      const [provider = '', version = '', platform = ''] = name.split(' ')
      const head = await mirror.archive(provider, version, platform, { method: 'HEAD' })
      expect(head).toMatchObject({ status: 200, headers: { etag: `"${digest}"` } })
    },
    async (name, digest) => {
      const [provider = '', version = '', platform = ''] = name.split(' ')
      const part = await mirror.archive(provider, version, platform, { headers: { range: 'bytes=1000-1999' } })
      expect(part).toMatchObject({ status: 206, headers: { etag: `"${digest}"`, 'content-length': '1000' } })
    },
    async (name) => {
      const [provider = ''] = name.split(' ')
      assertSameDocument(provider, await mirror.index(provider))
    },
    async (name) => {
      const [provider = '', version = ''] = name.split(' ')
      const answer = await mirror.version(provider, version)
      expect(Object.keys(answer.json().archives)).toHaveLength(PLATFORMS.length)
      // An h1 may be computed while we ask, so the documents may differ in that; the signed hash is always first.
      for (const platform of PLATFORMS) {
        const [first] = answer.json().archives[platform].hashes
        expect(first).toBe(`zh:${digests.get(`${provider} ${version} ${platform}`)}`)
      }
    },
    async () => expect((await mirror.ask('/readyz')).json()).toEqual({ status: 'ready' }),
    async () => expect((await mirror.ask('/providers/unknown.example.test/a/b/index.json')).status).toBe(404),
    async () => expect(await mirror.metrics()).toContain('terramirror_requests_total'),
  ]
  await times(200, async (client) => {
    const name = names[(client * 7) % names.length] ?? ''
    await requests[client % requests.length]?.(name, digests.get(name) ?? '')
  })
  expect(origin.counts).toEqual({})
})
