import { describe, expect, it } from 'vitest'
import { type PackageHash, parsePackageHash, zipHash } from '../../src/protocol/package-hash.ts'
import { formatPlatform, parsePlatform } from '../../src/protocol/platform.ts'
import {
  createParts,
  everything,
  failureOf,
  fakeHasher,
  newCall,
  settle,
  type TestParts,
  v1,
  widget,
} from './parts-fixture.ts'
import { hang, outage, PLATFORMS } from './scripted-upstream.ts'

function h1(letter: string): PackageHash {
  const hash = parsePackageHash(`h1:${letter.repeat(43)}=`)
  if (hash === undefined) throw new Error('not a hash')
  return hash
}

async function listed({ mirror }: TestParts): Promise<Record<string, readonly PackageHash[]>> {
  const { value } = await mirror.listPackages(everything, widget, v1, newCall())
  return Object.fromEntries(value.map(({ platform, hashes }) => [formatPlatform(platform), hashes]))
}

async function download({ mirror }: TestParts, platform = 'linux_amd64'): Promise<void> {
  const id = { address: widget, version: v1, platform: parsePlatform(platform) }
  const { value } = await mirror.openArchive(everything, id, newCall())
  await value[Symbol.asyncDispose]()
}

describe('the packages of a version', () => {
  it('are those of every platform, held or not, each with its own zh, and no archive is asked for', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0')
    expect(await listed(parts)).toEqual(
      Object.fromEntries(PLATFORMS.map((name) => [name, [zipHash(parts.upstream.digest('1.0.0', name))]])),
    )
    expect(parts.upstream.count('archive')).toBe(0)
  })

  it('have the h1 that the origin states, until the bytes are held: then the one that was computed', async () => {
    const hasher = { ...fakeHasher(), hash: async () => ({ hashes: [h1('T')] }) }
    const parts = createParts({ hasher })
    await parts.upstream.publish('1.0.0', { statedHashes: [h1('S')] })
    const zh = zipHash(parts.upstream.digest('1.0.0', 'linux_amd64'))
    expect((await listed(parts)).linux_amd64).toEqual([zh, h1('S')])
    await download(parts)
    await expect.poll(async () => (await listed(parts)).linux_amd64).toEqual([zh, h1('T')])
    expect((await listed(parts)).darwin_arm64?.[1]).toBe(h1('S'))
    expect(parts.lines.some(({ msg }) => String(msg).includes('wrong h1'))).toBe(true)
  })

  it('that are held and not hashed yet, as after a restart, are hashed because somebody asks', async () => {
    const before = createParts()
    await before.upstream.publish('1.0.0')
    await download(before)
    await settle()
    await before.records.delete(['hashes', before.upstream.digest('1.0.0', 'linux_amd64')])
    const hasher = { ...fakeHasher(), hash: async () => ({ hashes: [h1('T')] }) }
    const parts = createParts({ ...before, hasher })
    await expect.poll(async () => (await listed(parts)).linux_amd64?.[1]).toBe(h1('T'))
  })

  it('without a document are listed by the line of the checksums that names them', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0')
    parts.upstream.platformFaults.set('darwin_arm64', outage())
    const digest = parts.upstream.digest('1.0.0', 'darwin_arm64')
    expect((await listed(parts)).darwin_arm64).toEqual([zipHash(digest)])
  })

  it('cannot be told while one of them is neither known nor named: that is the outage, not its absence', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0', { sums: false })
    parts.upstream.platformFaults.set('darwin_arm64', outage())
    expect(await failureOf(listed(parts))).toMatchObject({ code: 'UPSTREAM_UNREACHABLE' })
  })

  it('sealed, are those whose archive is held', async () => {
    const before = createParts()
    await before.upstream.publish('1.0.0')
    await download(before, 'darwin_arm64')
    const sealed = createParts({ ...before, upstreamFor: () => undefined })
    expect(Object.keys(await listed(sealed))).toEqual(['darwin_arm64'])
  })

  it('of an origin that this caller may not see are not told', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0')
    const nothing = { id: 'nothing', allowsOrigin: () => false }
    const listing = parts.mirror.listPackages(nothing, widget, v1, newCall())
    expect(await failureOf(listing)).toMatchObject({ code: 'ORIGIN_NOT_ALLOWED' })
    expect(parts.upstream.asked).toEqual([])
  })
})

it('tells the use of an archive that was handed out, however it was, and of no other', async () => {
  const parts = createParts()
  await parts.upstream.publish('1.0.0')
  await listed(parts)
  const linux = { address: widget, version: v1, platform: parsePlatform('linux_amd64') }
  await parts.mirror.describeArchive(everything, linux, newCall())
  expect(parts.used).toEqual([])
  await download(parts)
  const { value } = await parts.mirror.followArchive(everything, linux, newCall(), { sized: true })
  await value[Symbol.asyncDispose]()
  const nowhere = { ...linux, platform: parsePlatform('plan9_mips') }
  await failureOf(parts.mirror.openArchive(everything, nowhere, newCall()))
  expect(new Set(parts.used)).toEqual(new Set(['registry.example.test/acme/widget 1.0.0 linux_amd64']))
  expect(parts.used).toHaveLength(2)
})

it.each([
  [
    'list of versions',
    async (parts: TestParts) => {
      parts.upstream.beforeVersions = hang
      await parts.mirror.listVersions(everything, widget, newCall())
    },
  ],
  [
    'check of a release',
    async (parts: TestParts) => {
      parts.upstream.beforeRelease = (_, signal) => hang(signal)
      await listed(parts)
    },
  ],
])('closing waits for a %s that is on its way, until the process stops it', async (_, ask) => {
  const parts = createParts()
  await parts.upstream.publish('1.0.0')
  await parts.mirror.listVersions(everything, widget, newCall())
  await download(parts)
  parts.clock.advance(365 * 86_400_000)
  await ask(parts)
  let closed = false
  const closing = parts.mirror.close().then(() => {
    closed = true
  })
  await settle()
  expect(closed).toBe(false)
  parts.shutdown.abort()
  await closing
})
