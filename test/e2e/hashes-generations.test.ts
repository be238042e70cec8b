import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { RecordedRequest } from '../origin/origin-request.ts'
import type { Release } from '../origin/release.ts'
import { sha256 } from './held-archive.ts'
import { startMirror } from './mirror-fixture.ts'
import { digestsIn, digestsOf } from './release-digests.ts'
import { TestClock } from './test-clock.ts'

const MINUTE = 60_000

let origin: TestOrigin
let clock: TestClock

beforeEach(async () => {
  clock = new TestClock()
  origin = await startOrigin()
})
afterEach(() => origin[Symbol.asyncDispose]())

describe('the first copy of a version wins (B22)', () => {
  test('after a re-release: the held archive is served on, a metric and a warning tell both digests', async () => {
    const first = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin, now: clock.now })
    expect(await digestsIn(mirror)).toEqual(digestsOf(first))
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)

    const second = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    clock.advance(10 * MINUTE)
    expect(await digestsIn(mirror)).toEqual(digestsOf(first))
    await vi.waitFor(
      async () => expect(await mirror.metrics()).toMatch(/^terramirror_release_changes_total 1$/m),
      15_000,
    )
    const warnings = mirror.logLines.filter(({ err }) => JSON.stringify(err ?? '').includes('RELEASE_CHANGED'))
    const changes = first.packages.map(({ platform, filename, sha256: held }) => ({
      level: 'warn',
      err: expect.objectContaining({ filename, held, offered: second.package(platform).sha256 }),
    }))
    expect(changes.map((change) => expect.objectContaining(change))).toContainEqual(warnings[0])

    expect(await digestsIn(mirror)).toEqual(digestsOf(first))
    const archive = await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    expect(sha256(archive.body)).toBe(first.package('linux_amd64').sha256)
    // Another platform of the first generation is not to be had any more; the second is not slipped in for it.
    const other = await mirror.archive('acme/widget', '1.0.0', 'darwin_arm64')
    expect(other.status).toBe(502)
    expect(other.body.toString()).toContain(first.package('darwin_arm64').sha256)
    await mirror.restart()
    expect(await digestsIn(mirror)).toEqual(digestsOf(first))
  })

  test.each([
    ['other bytes under the same SHA256SUMS', { wrongBytes: true }],
    ['no archive any more', { status: 404 }],
  ] as const)('after the origin has %s: the held archive is served on', async (_what, behaviour) => {
    const release = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin, now: clock.now })
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
    clock.advance(24 * 60 * MINUTE)
    origin.fault({ kind: 'archive' }, behaviour)
    const archive = await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    expect(sha256(archive.body)).toBe(release.package('linux_amd64').sha256)
    expect((await mirror.archive('acme/widget', '1.0.0', 'darwin_arm64')).status).toBe(502)
  })

  test('a re-release before anybody installed it is taken, whole', async () => {
    const first = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin, now: clock.now })
    expect(await digestsIn(mirror)).toEqual(digestsOf(first))
    const second = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    clock.advance(10 * MINUTE)
    expect(await digestsIn(mirror)).toEqual(digestsOf(second))
    const archive = await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    expect(sha256(archive.body)).toBe(second.package('linux_amd64').sha256)
  })

  test('a re-release within the lifetime of the document is found when the archive is asked for', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin, now: clock.now })
    await digestsIn(mirror)
    const second = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    const archive = await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    expect(sha256(archive.body)).toBe(second.package('linux_amd64').sha256)
    expect(await digestsIn(mirror)).toEqual(digestsOf(second))
  })
})

describe('generations are never mixed (B24)', () => {
  /** Serves one of two whole generations, chosen anew for each request. Returns how to end it. */
  function alternate(old: Release, choose: (request: RecordedRequest) => boolean): () => void {
    const faults = old.packages.map(({ platform }) =>
      origin.fault({ kind: 'download', platform, when: choose }, { body: JSON.stringify(old.document(platform)) }),
    )
    faults.push(origin.fault({ kind: 'sums', when: choose }, { body: old.sums }))
    faults.push(origin.fault({ kind: 'signature', when: choose }, { body: old.signature ?? '' }))
    return () => {
      for (const fault of faults) fault.clear()
    }
  }

  async function publishTwice(): Promise<{ old: Release; current: Release }> {
    const old = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    return { old, current: await origin.publish({ provider: 'acme/widget', version: '1.0.0' }) }
  }

  const mixes: [string, (request: RecordedRequest) => boolean][] = [
    ['SHA256SUMS of the old one', ({ kind }) => kind === 'sums'],
    ['the signature of the old one', ({ kind }) => kind === 'signature'],
    ['one document of the old one', ({ platform }) => platform === 'linux_amd64'],
    ['all documents of the old one', ({ kind }) => kind === 'download'],
    ['SHA256SUMS and signature of the old one', ({ kind }) => kind !== 'download'],
  ]
  test.each(mixes)('%s with the rest of the new one: no mixture is ever answered', async (_what, choose) => {
    const { old, current } = await publishTwice()
    await using mirror = await startMirror({ origin, now: clock.now })
    const settle = alternate(old, choose)
    const mixed = await mirror.version('acme/widget', '1.0.0')
    if (mixed.status === 200) {
      const digests = Object.values(await digestsIn(mirror))
      const known = [old, current].map((release) => Object.values(digestsOf(release)))
      expect(known.some((each) => digests.every((digest) => each.includes(digest)))).toBe(true)
    } else {
      expect([mixed.status, mixed.json().upstream_status]).toEqual([502, undefined])
    }
    settle()
    clock.advance(MINUTE)
    expect(await digestsIn(mirror)).toEqual(digestsOf(current))
    const archive = await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    expect(sha256(archive.body)).toBe(current.package('linux_amd64').sha256)
  })

  test('an origin that alternates with every request: what is answered verifies as a whole', async () => {
    const { old, current } = await publishTwice()
    let requests = 0
    const settle = alternate(old, () => requests++ % 2 === 0)
    await using mirror = await startMirror({ origin, now: clock.now })
    const known = [old, current].map((release) => Object.values(digestsOf(release)))
    for (let round = 0; round < 5; round++) {
      const answer = await mirror.version('acme/widget', '1.0.0')
      expect([200, 502]).toContain(answer.status)
      if (answer.status === 502) continue
      const archives = Object.values<{ hashes: string[] }>(answer.json().archives)
      const digests = archives.map(({ hashes }) => String(hashes[0]).slice(3))
      expect(known.some((each) => digests.every((digest) => each.includes(digest)))).toBe(true)
      const archive = await mirror.archive('acme/widget', '1.0.0', 'linux_arm64')
      if (archive.status === 200) expect(digests).toContain(sha256(archive.body))
      clock.advance(MINUTE)
    }
    settle()
    clock.advance(MINUTE)
    const settled = await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    if (settled.status === 200) {
      expect((await digestsIn(mirror)).linux_amd64).toBe(sha256(settled.body))
    }
  })

  test('a mixture that is over at the second look costs nobody an error', async () => {
    const { old, current } = await publishTwice()
    await using mirror = await startMirror({ origin, now: clock.now })
    const once = origin.fault({ kind: 'sums', times: 1 }, { body: old.sums })
    expect(await digestsIn(mirror)).toEqual(digestsOf(current))
    expect(once.struck).toBe(1)
    expect(origin.count('sums')).toBe(2)
  })
})
