import { describe, expect, it } from 'vitest'
import { parsePlatform } from '../../src/protocol/platform.ts'
import { assertVersion } from '../../src/protocol/version.ts'
import { createParts, everything, failureOf, freshness, newCall, type TestParts, v1, widget } from './parts-fixture.ts'
import { outage, PLATFORMS, providerNotFound } from './scripted-upstream.ts'

const linux = parsePlatform('linux_amd64')

function list({ versions }: TestParts) {
  return versions.list(everything, widget, newCall())
}

function find({ versions }: TestParts, version = '1.0.0') {
  return versions.find(widget, assertVersion(version), newCall())
}

/** Holds one archive of 1.0.0. */
async function holding(options: Parameters<typeof createParts>[0] = {}): Promise<TestParts> {
  const parts = createParts(options)
  await parts.upstream.publish('1.0.0')
  const { value } = await parts.archives.open(everything, { address: widget, version: v1, platform: linux }, newCall())
  await value[Symbol.asyncDispose]()
  parts.upstream.asked.length = 0
  return parts
}

describe('the versions with what is known of each', () => {
  function describeAll({ versions }: TestParts) {
    return versions.describe(everything, widget, newCall())
  }

  it('are told by their records where the origin lists them no more, and by nothing without a record', async () => {
    const parts = await holding()
    parts.upstream.beforeVersions = () => {
      throw outage()
    }
    parts.clock.advance(freshness.freshForMs)
    const away = createParts({ ...parts })
    const platforms = PLATFORMS.map(parsePlatform)
    const held = { version: '1.0.0', protocols: ['5.0'], platforms }
    expect(await describeAll(away)).toMatchObject({ value: { versions: [held], warnings: [] }, outcome: 'stale' })
    const sealed = createParts({ ...parts, upstreamFor: () => undefined })
    expect((await describeAll(sealed)).value.versions).toEqual([{ ...held, platforms: [linux] }])

    await parts.records.delete(['providers', 'registry.example.test', 'acme', 'widget', 'versions', '1.0.0', 'release'])
    const lost = createParts({ ...parts, upstreamFor: () => undefined })
    expect(await failureOf(describeAll(lost))).toMatchObject({ code: 'NOT_CACHED' })
    expect(await failureOf(describeAll(createParts({ ...parts })))).toMatchObject({ code: 'UPSTREAM_UNREACHABLE' })
  })
})

describe('the versions that a client may choose', () => {
  it('are those of the origin, ascending, asked for once while they are fresh', async () => {
    const parts = createParts()
    for (const version of ['1.10.0', '1.9.0', '1.10.0-beta.1']) await parts.upstream.publish(version)
    expect(await list(parts)).toEqual({ value: ['1.9.0', '1.10.0-beta.1', '1.10.0'], outcome: 'miss' })
    expect(await list(parts)).toMatchObject({ outcome: 'hit' })
    expect(parts.upstream.count('versions')).toBe(1)
  })

  it('are joined with those that are held, although the origin dropped them', async () => {
    const parts = await holding()
    parts.upstream.withdraw('1.0.0')
    await parts.upstream.publish('2.0.0')
    parts.clock.advance(freshness.freshForMs)
    expect(await list(parts)).toEqual({ value: ['1.0.0', '2.0.0'], outcome: 'miss' })
  })

  it('are those that are held while the origin is down or has dropped the provider, and marked so', async () => {
    const parts = await holding()
    parts.clock.advance(freshness.freshForMs)
    parts.upstream.beforeVersions = () => {
      throw providerNotFound(widget)
    }
    expect(await list(parts)).toMatchObject({
      value: ['1.0.0'],
      outcome: 'stale',
      reason: { code: 'PROVIDER_NOT_FOUND' },
    })
    const next = createParts({ ...parts })
    parts.upstream.beforeVersions = () => {
      throw outage()
    }
    expect(await list(next)).toMatchObject({
      value: ['1.0.0'],
      outcome: 'stale',
      reason: { code: 'UPSTREAM_UNREACHABLE' },
    })
  })

  it('with nothing held: a 404 is a 404, an outage an outage', async () => {
    const parts = createParts()
    expect(await failureOf(list(parts))).toMatchObject({ code: 'PROVIDER_NOT_FOUND' })
    parts.clock.advance(freshness.notFoundForMs)
    parts.upstream.beforeVersions = () => {
      throw outage()
    }
    expect(await failureOf(list(parts))).toMatchObject({ code: 'UPSTREAM_UNREACHABLE' })
  })

  it('sealed, are only those that are held', async () => {
    const before = await holding()
    await before.upstream.publish('2.0.0')
    expect(await list(createParts({ ...before, upstreamFor: () => undefined }))).toMatchObject({
      value: ['1.0.0'],
      outcome: 'hit',
    })
    expect(await failureOf(list(createParts({ upstreamFor: () => undefined })))).toMatchObject({ code: 'NOT_CACHED' })
    expect(before.upstream.asked).toEqual([])
  })

  it('of an origin that this caller may not see are not told', async () => {
    const parts = await holding()
    const nothing = { id: 'nothing', allowsOrigin: () => false }
    const listing = parts.versions.list(nothing, widget, newCall())
    expect(await failureOf(listing)).toMatchObject({ code: 'ORIGIN_NOT_ALLOWED' })
  })

  it('what the origin lists and cannot be read is told in the log', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0')
    const honest = parts.upstream.versions.bind(parts.upstream)
    parts.upstream.versions = async (...args) => ({ ...(await honest(...args)), problems: ['left out "latest"'] })
    await list(parts)
    expect(parts.lines).toMatchObject([{ level: 'warn', problems: ['left out "latest"'] }])
  })
})

describe('a version that the remembered list does not have', () => {
  it('causes one refresh: it may be brand-new', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0')
    await list(parts)
    await parts.upstream.publish('1.1.0')
    parts.clock.advance(1)
    expect(await find(parts, '1.1.0')).toMatchObject({ version: '1.1.0', spelling: '1.1.0' })
    expect(parts.upstream.count('versions')).toBe(2)
  })

  it('is not found, if the fresh list does not have it either', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0')
    expect(await failureOf(find(parts, '9.9.9'))).toMatchObject({
      code: 'VERSION_NOT_FOUND',
      fields: { address: 'registry.example.test/acme/widget', version: '9.9.9' },
    })
    // It was fresh: asked for by this very request.
    expect(parts.upstream.count('versions')).toBe(1)
  })

  it('cannot make the origin be asked more often than every five seconds, whatever versions are made up', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0')
    await list(parts)
    for (let second = 0; second < 20; second++) {
      for (const patch of [1, 2, 3]) await failureOf(find(parts, `9.${second}.${patch}`))
      parts.clock.advance(1_000)
    }
    expect(parts.upstream.count('versions') - 1).toBeLessThanOrEqual(4)
    expect(parts.upstream.count('versions') - 1).toBeGreaterThanOrEqual(3)
  })

  it('is an outage, not absent, while the origin cannot be asked: for the second request as for the first', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0')
    await list(parts)
    parts.clock.advance(1_000)
    parts.upstream.beforeVersions = () => {
      throw outage()
    }
    for (let second = 0; second < 30; second++) {
      expect(await failureOf(find(parts, '1.1.0'))).toMatchObject({ code: 'UPSTREAM_UNREACHABLE' })
      expect(await find(parts, '1.0.0')).toMatchObject({ version: '1.0.0' })
      parts.clock.advance(1_000)
    }
    // And the origin is left alone for the time of the back-off.
    expect(parts.upstream.count('versions') - 1).toBeLessThanOrEqual(3)
  })

  it('a clock that is set back neither locks refreshes out nor lets all of them in', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0')
    await list(parts)
    await failureOf(find(parts, '1.1.0'))
    await parts.upstream.publish('1.1.0')
    parts.clock.advance(-86_400_000)
    expect(await find(parts, '1.1.0')).toMatchObject({ version: '1.1.0' })
    const before = parts.upstream.count('versions')
    for (const patch of [1, 2, 3, 4, 5]) await failureOf(find(parts, `9.0.${patch}`))
    expect(parts.upstream.count('versions') - before).toBeLessThanOrEqual(1)
  })
})
