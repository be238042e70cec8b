import { beforeAll, describe, expect, it } from 'vitest'
import { MirrorError } from '../../src/errors.ts'
import { parsePlatform } from '../../src/protocol/platform.ts'
import { assertVersion } from '../../src/protocol/version.ts'
import { MemoryBlobStore } from '../../src/store/memory/memory-blob-store.ts'
import { createOriginKey, type OriginKey } from '../origin/origin-key.ts'
import { createParts, failureOf, freshness, newCall, type TestParts, v1, widget } from './parts-fixture.ts'
import { hang, KEY_MADE_AT, outage, PLATFORMS } from './scripted-upstream.ts'

const linux = parsePlatform('linux_amd64')
const darwin = parsePlatform('darwin_arm64')
const ALL = `release ${PLATFORMS.join(' ')}`

let key: OriginKey
beforeAll(async () => {
  key = await createOriginKey({ createdAt: KEY_MADE_AT })
})

function get({ releases }: TestParts, deadlineMs?: number) {
  return releases.get(widget, v1, newCall(deadlineMs))
}

function getPlatform({ releases }: TestParts, platform = linux) {
  return releases.getPlatform(widget, v1, platform, newCall())
}

/** As the first archive of a version does. */
async function pin({ catalogue, clock }: TestParts): Promise<void> {
  const pinnedAt = new Date(clock.now()).toISOString()
  await catalogue.savePin(widget, v1, { format: 1, generation: 1, pinnedAt })
}

/** A version that has been asked for once. */
async function known(options: Parameters<typeof createParts>[0] = {}): Promise<TestParts> {
  const parts = createParts(options)
  await parts.upstream.publish('1.0.0')
  await get(parts)
  parts.upstream.asked.length = 0
  return parts
}

describe('a version that nobody has asked for yet', () => {
  it('is asked for whole, once for all who ask, and recorded with its evidence', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0')
    const answers = await Promise.all([get(parts), get(parts)])
    expect(answers.map(({ outcome }) => outcome)).toEqual(['miss', 'coalesced'])
    expect(parts.upstream.asked).toEqual(['versions', ALL])
    const { release } = await parts.catalogue.version(widget, v1)
    expect(Object.keys(release?.platforms ?? {})).toEqual([...PLATFORMS])
    expect(release?.complete).toBe(true)
    const { authentication } = release?.platforms.linux_amd64 ?? {}
    const sums = authentication?.rule === 'unsigned-checksums' ? authentication.sums : ''
    expect((await parts.blobs.read(sums))?.toString()).toContain('widget_1.0.0_linux_amd64.zip')
    expect(parts.observed).toEqual(PLATFORMS.map(() => 'judged unsigned-checksums'))
  })

  it('is used while it is fresh, by the next process too', async () => {
    const parts = await known()
    expect(await get(parts)).toMatchObject({ outcome: 'hit' })
    parts.clock.advance(freshness.freshForMs - 1)
    expect(await get(parts)).toMatchObject({ outcome: 'hit' })
    expect(parts.upstream.asked).toEqual([])
    parts.clock.advance(1)
    expect(await get(parts)).toMatchObject({ outcome: 'miss' })
    parts.upstream.beforeRelease = () => {
      throw outage()
    }
    expect(await get(createParts({ ...parts }))).toMatchObject({ outcome: 'stale', value: { release: {} } })
  })

  it('that the origin does not have is told as such, and nothing is recorded', async () => {
    const parts = createParts()
    await parts.upstream.publish('2.0.0')
    expect(await failureOf(get(parts))).toMatchObject({ code: 'VERSION_NOT_FOUND' })
    expect(await parts.records.children([])).toEqual([])
  })

  it('is an outage while the origin is down, and asked again by the next request', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0')
    parts.upstream.beforeRelease = () => {
      throw outage()
    }
    expect(await failureOf(get(parts))).toMatchObject({ code: 'UPSTREAM_UNREACHABLE' })
    parts.upstream.beforeRelease = () => undefined
    expect(await get(parts)).toMatchObject({ outcome: 'miss' })
  })

  it('a caller that cannot wait is told so; the work goes on and the next one has it', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0')
    const gate = Promise.withResolvers<void>()
    parts.upstream.beforeRelease = () => gate.promise
    expect(await failureOf(get(parts, 20))).toMatchObject({ code: 'UPSTREAM_TIMEOUT' })
    gate.resolve()
    await parts.releases.idle()
    expect(await get(parts)).toMatchObject({ outcome: 'hit' })
    expect(parts.upstream.count('release')).toBe(1)
  })

  it('that cannot be authenticated is refused with the reason, and nothing is recorded', async () => {
    const parts = createParts({ signatures: 'required' })
    await parts.upstream.publish('1.0.0')
    expect(await failureOf(get(parts))).toMatchObject({ code: 'SIGNATURE_REQUIRED' })
    expect(await parts.records.children([])).toEqual([])
    expect(parts.observed).toContain('judged SIGNATURE_REQUIRED')
  })
})

describe('a pinned and complete release', () => {
  it('is served at once, although the origin hangs, and checked in the background with one platform', async () => {
    const parts = await known()
    await pin(parts)
    parts.clock.advance(freshness.freshForMs)
    const gate = Promise.withResolvers<void>()
    parts.upstream.beforeRelease = () => gate.promise
    expect(await get(parts)).toMatchObject({ outcome: 'hit' })
    gate.resolve()
    await parts.releases.idle()
    expect(parts.upstream.asked).toEqual(['versions', 'release linux_amd64'])
    // Confirmed: it is fresh again.
    expect(await get(parts)).toMatchObject({ outcome: 'hit' })
    await parts.releases.idle()
    expect(parts.upstream.asked.length).toBe(2)
  })

  it('grows when the list names another platform', async () => {
    const parts = await known()
    await pin(parts)
    parts.clock.advance(freshness.freshForMs)
    await parts.upstream.publish('1.0.0', { platforms: [...PLATFORMS, 'windows_amd64'] })
    await get(parts)
    await parts.releases.idle()
    expect(parts.upstream.asked).toEqual(['versions', `${ALL} windows_amd64`])
    const { release } = await parts.catalogue.version(widget, v1)
    expect(release).toMatchObject({ generation: 1, complete: true, platforms: { windows_amd64: {} } })
    expect(parts.observed).not.toContain('changed')
  })

  it('grows when only SHA256SUMS names another platform', async () => {
    const parts = await known()
    await pin(parts)
    parts.clock.advance(freshness.freshForMs)
    await parts.upstream.publish('1.0.0', { platforms: [...PLATFORMS, 'windows_amd64'], listed: PLATFORMS })
    await get(parts)
    await parts.releases.idle()
    expect(parts.upstream.asked).toEqual(['versions', 'release linux_amd64', ALL])
    const { release } = await parts.catalogue.version(widget, v1)
    expect(release?.platforms).toHaveProperty('windows_amd64')
  })

  it('that the origin released anew is refused, reported once a check with both digests, and served as it was', async () => {
    const parts = await known()
    await pin(parts)
    const held = parts.upstream.digest('1.0.0', 'linux_amd64')
    await parts.upstream.publish('1.0.0', { generation: 2 })
    const offered = parts.upstream.digest('1.0.0', 'linux_amd64')
    for (const checks of [1, 2]) {
      parts.clock.advance(freshness.freshForMs)
      await get(parts)
      await parts.releases.idle()
      expect((await get(parts)).value.release.platforms.linux_amd64?.digest).toBe(held)
      expect(parts.observed.filter((each) => each === 'changed').length).toBe(checks)
      const reports = parts.lines.filter(({ msg }) => msg === 'an origin changed a release')
      expect(reports.length).toBe(checks)
      expect(reports[0]).toMatchObject({ adopted: false, err: { code: 'RELEASE_CHANGED', held, offered } })
    }
    expect((await parts.catalogue.version(widget, v1)).release?.generation).toBe(1)
  })

  it('is served while the origin is down, and after it withdrew the version', async () => {
    const parts = await known()
    await pin(parts)
    parts.upstream.withdraw('1.0.0')
    await parts.upstream.publish('2.0.0')
    parts.clock.advance(freshness.freshForMs)
    expect(await get(parts)).toMatchObject({ outcome: 'hit' })
    await parts.releases.idle()
    expect(await get(parts)).toMatchObject({ outcome: 'stale', reason: { code: 'VERSION_NOT_FOUND' } })
    parts.upstream.beforeVersions = () => {
      throw outage()
    }
    parts.clock.advance(freshness.freshForMs)
    await get(parts)
    await parts.releases.idle()
    expect(await get(parts)).toMatchObject({ outcome: 'stale', reason: { code: 'UPSTREAM_UNREACHABLE' } })
  })

  it('asked for anew, every document is asked for: a probe would not bring new links', async () => {
    const parts = await known()
    await pin(parts)
    await parts.upstream.publish('1.0.0', { link: '?signature=new' })
    await parts.releases.refresh(widget, v1, newCall())
    expect(parts.upstream.asked).toEqual([ALL])
    expect((await getPlatform(parts, darwin)).archiveUrl).toContain('?signature=new')
  })
})

describe('a release that is not pinned', () => {
  it('and changed at the origin is adopted as the next generation, and reported', async () => {
    const parts = await known()
    await parts.upstream.publish('1.0.0', { generation: 2 })
    parts.clock.advance(freshness.freshForMs)
    const { value } = await get(parts)
    expect(value.release).toMatchObject({
      generation: 2,
      platforms: { linux_amd64: { digest: parts.upstream.digest('1.0.0', 'linux_amd64') } },
    })
    expect((await parts.catalogue.version(widget, v1)).release?.generation).toBe(2)
    expect(parts.observed.filter((each) => each === 'changed').length).toBe(1)
    expect(parts.lines.find(({ msg }) => msg === 'an origin changed a release')).toMatchObject({ adopted: true })
  })

  it('is served stale after the grace while the origin hangs', async () => {
    const parts = await known()
    parts.clock.advance(freshness.freshForMs)
    const gate = Promise.withResolvers<void>()
    parts.upstream.beforeRelease = () => gate.promise
    expect(await get(parts)).toMatchObject({ outcome: 'stale', reason: { code: 'UPSTREAM_TIMEOUT' } })
    gate.resolve()
    await parts.releases.idle()
    expect(await get(parts)).toMatchObject({ outcome: 'hit' })
  })

  it('is served stale at once after a failure, until the back-off has passed', async () => {
    const parts = await known()
    parts.clock.advance(freshness.freshForMs)
    parts.upstream.beforeRelease = () => {
      throw outage()
    }
    const stale = { outcome: 'stale', reason: { code: 'UPSTREAM_UNREACHABLE' } }
    expect(await get(parts)).toMatchObject({ ...stale, staleForMs: freshness.freshForMs })
    parts.clock.advance(freshness.backOffMs - 1)
    // Not the failure is what counts, but when it was last confirmed.
    expect(await get(parts)).toMatchObject({ ...stale, staleForMs: freshness.freshForMs + freshness.backOffMs - 1 })
    expect(parts.upstream.count('release')).toBe(1)
    parts.clock.advance(1)
    expect(await get(parts)).toMatchObject(stale)
    expect(parts.upstream.count('release')).toBe(2)
  })

  it('a clock that is set back keeps nothing fresh', async () => {
    const parts = await known()
    parts.clock.advance(-86_400_000)
    await get(parts)
    expect(parts.upstream.count('release')).toBe(1)
  })
})

describe('a release with a platform that is not there', () => {
  it('by the word of the origin, it is left out, told as absent, and asked again soon', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0')
    parts.upstream.platformFaults.set('darwin_arm64', 'absent')
    const { value } = await get(parts)
    expect(Object.keys(value.release.platforms)).toEqual(['linux_amd64', 'linux_arm64'])
    expect(value.release.complete).toBe(false)
    expect(await failureOf(getPlatform(parts, darwin))).toMatchObject({
      code: 'PLATFORM_NOT_FOUND',
      fields: { upstreamStatus: 404 },
    })
    parts.upstream.platformFaults.clear()
    parts.clock.advance(freshness.notFoundForMs - 1)
    await get(parts)
    expect(parts.upstream.count('release')).toBe(1)
    parts.clock.advance(1)
    expect((await get(parts)).value.release).toMatchObject({ complete: true, platforms: { darwin_arm64: {} } })
  })

  it('an outage that follows is not told as that absence', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0')
    parts.upstream.platformFaults.set('darwin_arm64', 'absent')
    await get(parts)
    parts.clock.advance(freshness.notFoundForMs)
    parts.upstream.beforeRelease = () => {
      throw outage()
    }
    expect(await failureOf(getPlatform(parts, darwin))).toMatchObject({ code: 'UPSTREAM_UNREACHABLE' })
    expect((await getPlatform(parts, linux)).digest).toBe(parts.upstream.digest('1.0.0', 'linux_amd64'))
  })

  it('nor is it, where the origin had no platform at all', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0')
    for (const platform of PLATFORMS) parts.upstream.platformFaults.set(platform, 'absent')
    expect((await get(parts)).value.release.platforms).toEqual({})
    parts.upstream.beforeRelease = () => {
      throw outage()
    }
    expect(await get(parts)).toMatchObject({ outcome: 'hit' })
    parts.clock.advance(freshness.notFoundForMs)
    expect(await failureOf(get(parts))).toMatchObject({ code: 'UPSTREAM_UNREACHABLE' })
    expect(await parts.records.children([])).toEqual([])
    // Nor is it told instead while the origin takes its time.
    parts.upstream.platformFaults.clear()
    parts.upstream.beforeRelease = () => new Promise((resolve) => setTimeout(resolve, 3 * freshness.graceMs))
    expect((await get(parts)).value.release.complete).toBe(true)
  })

  it('without an answer, one that the checksums name is inferred, and asked for when it is wanted', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0')
    parts.upstream.platformFaults.set('darwin_arm64', outage())
    const { value } = await get(parts)
    const digest = parts.upstream.digest('1.0.0', 'darwin_arm64')
    expect(value.inferred.get('darwin_arm64')).toMatchObject({ digest })
    expect(value.unanswered).toBeUndefined()
    expect(await failureOf(getPlatform(parts, darwin))).toMatchObject({ code: 'UPSTREAM_UNREACHABLE' })
    expect(parts.upstream.count('release')).toBe(2)
    parts.upstream.platformFaults.clear()
    expect(await getPlatform(parts, darwin)).toMatchObject({ digest })
  })

  it('without an answer nor checksums it stays open, and every request asks again', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0', { sums: false })
    const down = outage()
    parts.upstream.platformFaults.set('darwin_arm64', down)
    expect((await get(parts)).value.unanswered).toBe(down)
    expect((await get(parts)).value.unanswered).toBe(down)
    expect(parts.upstream.count('release')).toBe(2)
  })

  it('a release that cannot be told without the answer is waited for longer than the grace', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0', { sums: false })
    parts.upstream.platformFaults.set('darwin_arm64', outage())
    await get(parts)
    parts.upstream.platformFaults.clear()
    const { promise: gate, resolve } = Promise.withResolvers<void>()
    parts.upstream.beforeRelease = () => gate
    setTimeout(resolve, 3 * freshness.graceMs)
    expect((await get(parts)).value.unanswered).toBeUndefined()
  })

  it('a platform that is known stays known, and the release complete, when its document does not come', async () => {
    const parts = await known()
    parts.clock.advance(freshness.freshForMs)
    parts.upstream.platformFaults.set('darwin_arm64', outage())
    parts.upstream.platformFaults.set('linux_arm64', 'absent')
    const { value } = await get(parts)
    expect(Object.keys(value.release.platforms)).toEqual([...PLATFORMS])
    expect([value.inferred.size, value.problems.size, value.release.complete]).toEqual([0, 0, true])
  })

  it('one that nobody ever published is told as such', async () => {
    const parts = await known()
    const plan9 = parsePlatform('plan9_amd64')
    expect(await failureOf(getPlatform(parts, plan9))).toMatchObject({ code: 'PLATFORM_NOT_FOUND' })
  })
})

describe('parts that look like two generations', () => {
  /** The documents of one generation beside the checksums of another, `times` times. */
  function mix({ upstream }: TestParts, times: number): void {
    let left = times
    upstream.claim = (claim) => {
      if (left-- <= 0) return claim
      const platforms = claim.platforms.map((each) =>
        each.kind === 'published' ? { ...each, shasum: upstream.digest('0.9.0', 'linux_amd64') } : each,
      )
      return { ...claim, platforms }
    }
  }

  it('are asked for again, and the origin may settle in the meantime', async () => {
    const parts = createParts()
    await parts.upstream.publish('0.9.0')
    await parts.upstream.publish('1.0.0')
    mix(parts, 2)
    expect((await get(parts)).value.release.complete).toBe(true)
    expect(parts.upstream.count('release')).toBe(3)
  })

  it('are asked for three times at most, and then refused', async () => {
    const parts = createParts()
    await parts.upstream.publish('0.9.0')
    await parts.upstream.publish('1.0.0')
    mix(parts, 99)
    expect(await failureOf(get(parts))).toMatchObject({ code: 'CHECKSUM_MISMATCH' })
    expect(parts.upstream.count('release')).toBe(3)
  })
})

describe('a provider that was signed once', () => {
  it('is not accepted unsigned again, not even for another version, nor by the next process', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0', { key })
    await get(parts)
    expect(await parts.catalogue.trust(widget)).toMatchObject({ version: '1.0.0', keyId: key.keyId })
    await parts.upstream.publish('1.1.0')
    for (const each of [parts, createParts({ ...parts })]) {
      const unsigned = each.releases.get(widget, assertVersion('1.1.0'), newCall())
      parts.clock.advance(freshness.freshForMs)
      expect(await failureOf(unsigned)).toMatchObject({
        code: 'SIGNATURE_REQUIRED',
        fields: { reason: expect.stringContaining('signed before') },
      })
    }
  })

  it('is still served as signed when the origin drops the key of the same version', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0', { key })
    await get(parts)
    await parts.upstream.publish('1.0.0')
    parts.clock.advance(freshness.freshForMs)
    expect(await get(parts)).toMatchObject({
      outcome: 'stale',
      reason: { code: 'SIGNATURE_REQUIRED' },
      value: { release: { platforms: { linux_amd64: { authentication: { rule: 'signed-checksums' } } } } },
    })
  })

  it('the trust is on disk before the release: a crash in between forgets no signature', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0', { key })
    const order: string[] = []
    const put = parts.records.put.bind(parts.records)
    parts.records.put = async (recordKey, document) => {
      order.push(recordKey.at(-1) ?? '')
      await put(recordKey, document)
    }
    await get(parts)
    expect(order).toEqual(['trust', 'release'])
  })
})

/** A blob store on a disk that can be full. */
class FillingBlobStore extends MemoryBlobStore {
  full = false

  override async put(bytes: Uint8Array) {
    if (this.full) throw new MirrorError('STORAGE_FULL', 'no space left', { operation: 'write' })
    return super.put(bytes)
  }
}

describe('on a full disk', () => {
  it('documents are answered all the same, archives are not let in, and all is well when there is space', async () => {
    const blobs = new FillingBlobStore()
    const parts = createParts({ blobs })
    await parts.upstream.publish('1.0.0')
    blobs.full = true
    expect((await get(parts)).value.release.complete).toBe(true)
    expect((await get(parts)).value.release.complete).toBe(true)
    expect((await parts.catalogue.version(widget, v1)).release).toBeUndefined()
    const digest = parts.upstream.digest('1.0.0', 'linux_amd64')
    const enter = () =>
      parts.releases.whileCurrent(widget, v1, { platform: 'linux_amd64', digest, work: async () => 'in' })
    expect(await failureOf(enter())).toMatchObject({ code: 'STORAGE_FULL' })
    blobs.full = false
    await get(parts)
    expect(await enter()).toBe('in')
    expect((await parts.catalogue.version(widget, v1)).release?.complete).toBe(true)
  })

  it('a platform that could not be recorded beside those that were is not taken for a changed release', async () => {
    const blobs = new FillingBlobStore()
    const parts = createParts({ blobs })
    await parts.upstream.publish('1.0.0', { platforms: ['linux_amd64'] })
    await get(parts)
    await parts.upstream.publish('1.0.0')
    blobs.full = true
    parts.clock.advance(freshness.freshForMs)
    const { digest } = await getPlatform(parts, darwin)
    const work = async () => 'in'
    const entering = parts.releases.whileCurrent(widget, v1, { platform: 'darwin_arm64', digest, work })
    expect(await failureOf(entering)).toMatchObject({ code: 'STORAGE_FULL' })
  })
})

describe('sealed', () => {
  it('what is held is served and nothing is asked; the rest is not cached', async () => {
    const before = await known()
    const sealed = createParts({ ...before, upstreamFor: () => undefined })
    before.clock.advance(365 * 86_400_000)
    expect(await get(sealed)).toMatchObject({ outcome: 'hit' })
    const other = sealed.releases.get(widget, assertVersion('9.9.9'), newCall())
    expect(await failureOf(other)).toMatchObject({ code: 'NOT_CACHED' })
    expect(before.upstream.asked).toEqual([])
  })
})

it('work under way ends when the process stops', async () => {
  const parts = createParts()
  await parts.upstream.publish('1.0.0')
  parts.upstream.beforeRelease = (_, signal) => hang(signal)
  const waiting = failureOf(get(parts))
  while (parts.upstream.count('release') === 0) await new Promise((resolve) => setImmediate(resolve))
  parts.shutdown.abort(new MirrorError('SHUTTING_DOWN', 'stopping', {}))
  await parts.releases.idle()
  await waiting
})
