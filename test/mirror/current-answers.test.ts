import { describe, expect, it } from 'vitest'
import { MirrorError } from '../../src/errors.ts'
import type { Answer } from '../../src/mirror/call.ts'
import { Editions } from '../../src/mirror/editions.ts'
import { parsePackageHash } from '../../src/protocol/package-hash.ts'
import { parsePlatform } from '../../src/protocol/platform.ts'
import { formatProviderAddress } from '../../src/protocol/provider-address.ts'
import { assertVersion } from '../../src/protocol/version.ts'
import {
  createParts,
  everything,
  failureOf,
  fakeHasher,
  freshness,
  gadget,
  newCall,
  settle,
  type TestParts,
  v1,
  widget,
} from './parts-fixture.ts'
import { outage } from './scripted-upstream.ts'

const YEAR = 365 * 86_400_000

const questions = {
  'index.json': ({ mirror }: TestParts): Promise<Answer<unknown>> => mirror.listVersions(everything, widget, newCall()),
  'VERSION.json': ({ mirror }: TestParts): Promise<Answer<unknown>> =>
    mirror.listPackages(everything, widget, v1, newCall()),
}
type Question = keyof typeof questions

async function download({ mirror }: TestParts, version = v1, platform = 'linux_amd64'): Promise<void> {
  const id = { address: widget, version, platform: parsePlatform(platform) }
  const { value } = await mirror.openArchive(everything, id, newCall())
  await value[Symbol.asyncDispose]()
}

/** Version 1.0.0, of which everything has been asked for once. */
async function asked(options: Parameters<typeof createParts>[0] = {}): Promise<TestParts> {
  const parts = createParts(options)
  await parts.upstream.publish('1.0.0')
  for (const ask of Object.values(questions)) await ask(parts)
  return parts
}

/** The same, with one archive held and its hashes known. */
async function held(options: Parameters<typeof createParts>[0] = {}): Promise<TestParts> {
  const parts = await asked(options)
  await download(parts)
  const { digest } = (await parts.catalogue.version(widget, v1)).archives.get('linux_amd64') ?? {}
  if (digest === undefined) throw new Error('nothing is held')
  if (options?.hasher === undefined) await expect.poll(() => parts.hashes.find(digest)).toBeDefined()
  for (const ask of Object.values(questions)) await ask(parts)
  return parts
}

/** The answer that is kept, with the promise that it makes. */
async function keep(parts: TestParts, question: Question): Promise<Answer<unknown> & { isCurrent: () => boolean }> {
  const { isCurrent, ...answer } = await questions[question](parts)
  if (isCurrent === undefined) throw new Error(`the ${answer.outcome} says nothing of how long it holds`)
  return { ...answer, isCurrent }
}

const both: Question[] = ['index.json', 'VERSION.json']

describe.each(both)('an answer with %s that says that it is current', (question) => {
  it('is what asking again would give, without anybody being asked, to the last millisecond of its life', async () => {
    const parts = await asked()
    const kept = await keep(parts, question)
    parts.upstream.asked.length = 0
    parts.clock.advance(freshness.freshForMs - 1)
    expect(kept.isCurrent()).toBe(true)
    expect(await questions[question](parts)).toMatchObject({ value: kept.value, outcome: 'hit' })
    expect(parts.upstream.asked).toEqual([])
    parts.clock.advance(1)
    expect(kept.isCurrent()).toBe(false)
  })

  it('is not, once the clock was set back before it was made', async () => {
    const parts = await asked()
    const kept = await keep(parts, question)
    parts.clock.advance(-1)
    expect(kept.isCurrent()).toBe(false)
  })

  it('is not while it is a miss, coalesced, or stale: only a hit is sure to be given again', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0')
    const first = await Promise.all([questions[question](parts), questions[question](parts)])
    parts.clock.advance(freshness.freshForMs)
    const down = (): never => {
      throw outage()
    }
    parts.upstream.beforeVersions = down
    parts.upstream.beforeRelease = down
    const stale = [await questions[question](parts), await questions[question](parts)]
    expect([...first, ...stale].map(({ outcome }) => outcome)).toEqual(['miss', 'coalesced', 'stale', 'stale'])
    expect([...first, ...stale].filter(({ isCurrent }) => isCurrent !== undefined)).toEqual([])
  })

  it('is not after an archive of the provider came to be held', async () => {
    const parts = await asked()
    const kept = await keep(parts, question)
    await download(parts)
    expect(kept.isCurrent()).toBe(false)
  })

  it('stays so whatever happens to other providers', async () => {
    const parts = await asked()
    const kept = await keep(parts, question)
    await parts.mirror.listVersions(everything, gadget, newCall())
    expect(kept.isCurrent()).toBe(true)
  })

  it('sealed, stays so for years', async () => {
    const parts = createParts({ ...(await held()), upstreamFor: () => undefined })
    const kept = await keep(parts, question)
    parts.clock.advance(YEAR)
    expect(kept.isCurrent()).toBe(true)
    expect((await questions[question](parts)).value).toEqual(kept.value)
  })

  it('is not after anything about the provider was recorded, in the middle of being answered too', async () => {
    const parts = await held()
    const kept = await keep(parts, question)
    const { release } = await parts.catalogue.version(widget, v1)
    if (release === undefined) throw new Error('nothing is held')
    const answering = keep(parts, question)
    await parts.catalogue.saveRelease(widget, release)
    expect(kept.isCurrent()).toBe(false)
    expect((await answering).isCurrent()).toBe(false)
  })
})

describe('VERSION.json is not said to be current', () => {
  it('while the h1 of a held archive is still to be computed, and is from then on with it', async () => {
    const computed = Promise.withResolvers<void>()
    const h1 = parsePackageHash(`h1:${'T'.repeat(43)}=`)
    if (h1 === undefined) throw new Error('not a hash')
    const hasher = { ...fakeHasher(), hash: () => computed.promise.then(() => ({ hashes: [h1] })) }
    const parts = await held({ hasher })
    const ask = () => questions['VERSION.json'](parts)
    expect((await ask()).isCurrent).toBeUndefined()
    computed.resolve()
    await expect.poll(async () => (await ask()).isCurrent?.()).toBe(true)
    expect(JSON.stringify((await ask()).value)).toContain(h1)
  })

  it('longer than a missing platform is believed to be missing', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0')
    parts.upstream.platformFaults.set('darwin_arm64', 'absent')
    await questions['VERSION.json'](parts)
    const kept = await keep(parts, 'VERSION.json')
    parts.clock.advance(freshness.notFoundForMs)
    expect(kept.isCurrent()).toBe(false)
  })

  it('while its record could not be written: the next request tries again', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0')
    const put = parts.records.put.bind(parts.records)
    parts.records.put = () => Promise.reject(new MirrorError('STORAGE_FULL', 'full', { operation: 'write' }))
    expect((await questions['VERSION.json'](parts)).isCurrent).toBeUndefined()
    expect((await questions['VERSION.json'](parts)).isCurrent).toBeUndefined()
    parts.records.put = put
    await questions['VERSION.json'](parts)
    expect((await questions['VERSION.json'](parts)).isCurrent?.()).toBe(true)
  })

  it('when it is old and checked behind the back of the client; a refused change ends it', async () => {
    const parts = await held()
    const kept = await keep(parts, 'VERSION.json')
    parts.clock.advance(freshness.freshForMs)
    await parts.upstream.publish('1.0.0', { generation: 2 })
    expect((await questions['VERSION.json'](parts)).isCurrent).toBeUndefined()
    await parts.releases.idle()
    expect(parts.observed).toContain('changed')
    expect(kept.isCurrent()).toBe(false)
    expect((await keep(parts, 'VERSION.json')).value).toEqual(kept.value)
  })

  it('after a platform that was only inferred turned out to be missing, though no record changed', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0')
    parts.upstream.platformFaults.set('darwin_arm64', outage())
    await questions['VERSION.json'](parts)
    const kept = await keep(parts, 'VERSION.json')
    parts.upstream.platformFaults.set('darwin_arm64', 'absent')
    await parts.releases.refresh(widget, v1, newCall())
    expect(kept.isCurrent()).toBe(false)
    expect((await questions['VERSION.json'](parts)).value).not.toEqual(kept.value)
  })

  it('after the release grew', async () => {
    const parts = createParts()
    await parts.upstream.publish('1.0.0', { platforms: ['linux_amd64'] })
    await questions['VERSION.json'](parts)
    const kept = await keep(parts, 'VERSION.json')
    await parts.upstream.publish('1.0.0', { platforms: ['linux_amd64', 'linux_arm64'] })
    parts.clock.advance(freshness.freshForMs - 1)
    await parts.releases.refresh(widget, v1, newCall())
    expect(kept.isCurrent()).toBe(false)
  })
})

it('a list is not current after it was fetched anew, because somebody asked for a version that is new', async () => {
  const parts = await asked()
  const kept = await keep(parts, 'index.json')
  await parts.upstream.publish('1.1.0')
  parts.clock.advance(1)
  await parts.versions.find(widget, assertVersion('1.1.0'), newCall())
  expect(kept.isCurrent()).toBe(false)
  expect((await questions['index.json'](parts)).value).toEqual(['1.0.0', '1.1.0'])
})

it('a list is not current after the origin said that the provider is gone, though nothing is as old yet', async () => {
  const parts = await held()
  const kept = await keep(parts, 'index.json')
  parts.upstream.withdraw('1.0.0')
  parts.clock.advance(1)
  await failureOf(parts.mirror.listPackages(everything, widget, assertVersion('9.9.9'), newCall()))
  expect(kept.isCurrent()).toBe(false)
})

describe('editions', () => {
  it('one that is taken in the middle of a change is over after it', async () => {
    const parts = await held()
    const archive = (await parts.catalogue.version(widget, v1)).archives.get('linux_amd64')
    if (archive === undefined) throw new Error('nothing is held')
    const { catalogue, records } = createParts(parts)
    const children = records.children.bind(records)
    const gate = Promise.withResolvers<void>()
    records.children = async (prefix) => {
      if (prefix.at(-1) === 'versions') await gate.promise
      return children(prefix)
    }
    const saving = catalogue.saveArchive(widget, parsePlatform('linux_amd64'), archive)
    await settle()
    // The record is written, but the list of what can be installed is still to be changed.
    const last = catalogue.editions.of(formatProviderAddress(widget))
    gate.resolve()
    await saving
    expect(last.isCurrent).toBe(false)
  })

  it('one that is forgotten for lack of room counts as ended', () => {
    const editions = new Editions()
    const first = editions.of(formatProviderAddress(widget))
    for (let each = 0; each < 5_000; each++) editions.of(`registry.example.test/acme/p${each}`)
    expect(first.isCurrent).toBe(false)
    expect(editions.of(formatProviderAddress(widget)).isCurrent).toBe(true)
  })
})
