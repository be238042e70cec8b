import { beforeAll, describe, expect, it } from 'vitest'
import { parsePlatform } from '../../../src/protocol/platform.ts'
import { assertVersion } from '../../../src/protocol/version.ts'
import { createOriginKey, type OriginKey } from '../../origin/origin-key.ts'
import { everything, failureOf, gadget, newCall, v1, widget } from '../parts-fixture.ts'
import { moduleId } from '../scripted-module-upstream.ts'
import { KEY_MADE_AT } from '../scripted-upstream.ts'
import { createCare } from './care-fixture.ts'

const linux = parsePlatform('linux_amd64')
const arm = parsePlatform('linux_arm64')
const v2 = assertVersion('2.0.0')
const WIDGET = 'registry.example.test/acme/widget'
const net = moduleId('net')

let key: OriginKey
beforeAll(async () => {
  key = await createOriginKey({ createdAt: KEY_MADE_AT })
})

type Care = Awaited<ReturnType<typeof createCare>>

async function download({ archives }: Care, address = widget, version = v1, platform = linux): Promise<string> {
  const { value } = await archives.open(everything, { address, version, platform }, newCall())
  await using blob = value
  return blob.digest
}

/** Two platforms of 1.0.0 and one of 2.0.0, signed. */
async function filled() {
  const care = await createCare()
  await care.upstream.publish('1.0.0', { key })
  await care.upstream.publish('2.0.0', { key })
  const digests = [await download(care), await download(care, widget, v1, arm), await download(care, widget, v2)]
  return { ...care, digests }
}

const names = [`${WIDGET} 1.0.0 linux_amd64`, `${WIDGET} 1.0.0 linux_arm64`, `${WIDGET} 2.0.0 linux_amd64`]

describe('purging', () => {
  it.each([
    ['one package', { version: v1, platform: arm }, [1]],
    ['a version', { version: v1 }, [0, 1]],
    ['a provider', {}, [0, 1, 2]],
  ])('%s removes that and nothing else, with its files', async (_, scope, gone) => {
    const care = await filled()
    const sizes = await Promise.all(care.digests.map(async (digest) => (await care.blobs.stat(digest))?.size ?? 0))
    const result = await care.purge.purge({ kind: 'package', address: widget, ...scope }, { forget: false })
    expect(result).toMatchObject({ removed: gone.map((index) => names[index]), pinned: [] })
    expect(result.bytes).toBe(gone.reduce((sum, index) => sum + (sizes[index] ?? 0), 0))
    const kept = names.filter((_, index) => !gone.includes(index))
    expect(care.inventory.all().map(({ name }) => name)).toEqual(kept)
    for (const [index, digest] of care.digests.entries())
      expect((await care.blobs.stat(digest)) === undefined).toBe(gone.includes(index))
  })

  it('leaves the promise that the version never changes', async () => {
    const care = await filled()
    await care.purge.purge({ kind: 'package', address: widget }, { forget: false })
    expect(await download(care)).toBe(care.digests[0])
    await care.purge.purge({ kind: 'package', address: widget }, { forget: false })
    await care.upstream.publish('1.0.0', { key, generation: 2 })
    expect(await failureOf(download(care))).toMatchObject({ code: 'CHECKSUM_MISMATCH' })
  })

  it('with forget drops it: what the origin has now is the first copy, in this process too', async () => {
    const care = await filled()
    await care.upstream.publish('1.0.0', { key, generation: 2 })
    await care.purge.purge({ kind: 'package', address: widget, version: v1 }, { forget: true })
    expect(await care.catalogue.version(widget, v1)).toMatchObject({ release: undefined, pin: undefined })
    expect(await download(care)).toBe(care.upstream.digest('1.0.0', 'linux_amd64'))
    expect((await care.catalogue.version(widget, v1)).release?.generation).toBe(1)
  })

  it('with forget of a version keeps that the provider was signed', async () => {
    const care = await filled()
    await care.purge.purge({ kind: 'package', address: widget, version: v1 }, { forget: true })
    await care.upstream.publish('1.0.0')
    expect(await failureOf(download(care))).toMatchObject({ code: 'SIGNATURE_REQUIRED' })
    await care.purge.purge({ kind: 'package', address: widget }, { forget: true })
    expect(await care.catalogue.trust(widget)).toBeUndefined()
    await download(care)
  })

  it('leaves what a set of pins holds, names it, and does not forget its evidence', async () => {
    const care = await filled()
    await care.pins.put('ci', [names[0] ?? ''])
    const result = await care.purge.purge({ kind: 'package', address: widget }, { forget: true })
    expect(result).toMatchObject({ pinned: [names[0]], removed: [names[1], names[2]] })
    const { release, pin, archives } = await care.catalogue.version(widget, v1)
    expect([release?.version, pin?.generation, [...archives.keys()]]).toEqual(['1.0.0', 1, ['linux_amd64']])
    expect(await care.catalogue.trust(widget)).toBeDefined()
    expect((await care.catalogue.version(widget, v2)).release).toBeUndefined()
    expect(await care.blobs.stat(care.digests[0] ?? '')).toBeDefined()
  })

  it('keeps a file that another provider needs', async () => {
    const care = await filled()
    await download(care, gadget)
    const result = await care.purge.purge({ kind: 'package', address: widget, version: v1 }, { forget: false })
    expect(result.removed).toHaveLength(2)
    expect(await care.blobs.stat(care.digests[0] ?? '')).toBeDefined()
    expect(await care.blobs.stat(care.digests[1] ?? '')).toBeUndefined()
  })

  it('forgets the hashes of files that are gone', async () => {
    const care = await filled()
    await expect.poll(() => care.records.get(['hashes', care.digests[2] ?? ''])).toBeDefined()
    await care.purge.purge({ kind: 'package', address: widget, version: v2 }, { forget: false })
    expect(await care.records.get(['hashes', care.digests[2] ?? ''])).toBeUndefined()
  })

  it('removes records that cannot be read too', async () => {
    const care = await filled()
    const record = ['providers', widget.hostname, 'acme', 'widget', 'versions', '1.0.0', 'archives', 'linux_amd64']
    await care.records.put(record, { format: 9 })
    const again = await createCare(care)
    await again.purge.purge({ kind: 'package', address: widget, version: v1 }, { forget: false })
    expect(await care.records.get(record)).toBeUndefined()
  })

  it.each([
    ['a provider', { kind: 'package', address: gadget }],
    ['a version', { kind: 'package', address: widget, version: assertVersion('9.0.0') }],
    ['a module', { kind: 'module', ...net }],
  ] as const)('%s that is not held says so', async (_, scope) => {
    const care = await filled()
    for (const forget of [false, true])
      expect(await failureOf(care.purge.purge(scope, { forget }))).toMatchObject({ code: 'ITEM_NOT_FOUND' })
  })

  it('forgets evidence without an archive, and refuses to forget that of one platform', async () => {
    const care = await createCare()
    await care.upstream.publish('1.0.0')
    await care.releases.get(widget, v1, newCall())
    const scope = { kind: 'package', address: widget, version: v1 } as const
    const platform = care.purge.purge({ ...scope, platform: linux }, { forget: true })
    expect(await failureOf(platform)).toMatchObject({ code: 'REQUEST_INVALID' })
    expect(await care.purge.purge(scope, { forget: true })).toEqual({ removed: [], pinned: [], bytes: 0 })
    expect((await care.catalogue.version(widget, v1)).release).toBeUndefined()
  })

  it('a module removes its versions, but those that are pinned', async () => {
    const care = await createCare()
    const other = moduleId('net', '2.0.0')
    const { value } = await care.module.modules.locate(everything, net, newCall())
    care.module.upstream.text = '# two\n'
    await care.module.modules.locate(everything, other, newCall())
    await care.pins.put('ci', ['registry.example.test/acme/net/aws 2.0.0'])
    const result = await care.purge.purge({ kind: 'module', address: net.address }, { forget: false })
    expect(result).toEqual({
      removed: ['registry.example.test/acme/net/aws 1.0.0'],
      pinned: ['registry.example.test/acme/net/aws 2.0.0'],
      bytes: value.size,
    })
    expect(await care.blobs.stat(value.digest)).toBeUndefined()
  })
  it('a module version must come again as it was, until it is forgotten, in this process too', async () => {
    const care = await createCare()
    const { modules, upstream } = care.module
    const { value } = await modules.locate(everything, net, newCall())
    const scope = { kind: 'module' as const, address: net.address }
    await care.purge.purge(scope, { forget: false })
    upstream.text = '# other files\n'
    expect(await failureOf(modules.locate(everything, net, newCall()))).toMatchObject({ code: 'RELEASE_CHANGED' })
    await care.purge.purge(scope, { forget: true })
    care.module.clock.advance(60_000)
    expect((await modules.locate(everything, net, newCall())).value.digest).not.toBe(value.digest)
    await care.purge.purge(scope, { forget: true })
    expect(await failureOf(care.purge.purge(scope, { forget: true }))).toMatchObject({ code: 'ITEM_NOT_FOUND' })
  })
})
