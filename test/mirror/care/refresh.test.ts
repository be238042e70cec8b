import { beforeAll, describe, expect, it } from 'vitest'
import { parsePlatform } from '../../../src/protocol/platform.ts'
import { createOriginKey, type OriginKey } from '../../origin/origin-key.ts'
import { everything, failureOf, freshness, gadget, newCall, type TestParts, v1, widget } from '../parts-fixture.ts'
import { moduleId } from '../scripted-module-upstream.ts'
import { KEY_MADE_AT, outage } from '../scripted-upstream.ts'
import { createCare, servedBy } from './care-fixture.ts'

const linux = parsePlatform('linux_amd64')
const arm = parsePlatform('linux_arm64')
const id = { address: widget, version: v1 }
const request = { address: 'acme/widget', version: '1.0.0' }

let key: OriginKey
beforeAll(async () => {
  key = await createOriginKey({ createdAt: KEY_MADE_AT })
})

async function download({ archives }: TestParts, platform = linux): Promise<string> {
  const { value } = await archives.open(everything, { ...id, platform }, newCall())
  await using blob = value
  return blob.digest
}

/** A version with an archive that is held, which its origin has then released anew. */
async function released(options: Parameters<typeof createCare>[0] = {}, publication = {}) {
  const parts = await createCare(options)
  await parts.upstream.publish('1.0.0', publication)
  const held = await download(parts)
  const files = (name: string) => parts.upstream.digest('1.0.0', name)
  const before = Object.fromEntries(['linux_amd64', 'linux_arm64', 'darwin_arm64'].map((name) => [name, files(name)]))
  await parts.upstream.publish('1.0.0', { ...publication, generation: 2 })
  const after = Object.fromEntries(Object.keys(before).map((name) => [name, files(name)]))
  return { ...parts, held, before, after }
}

describe('refreshing a list', () => {
  it('asks the origin at once, though the list is fresh, and tells what is new in it', async () => {
    const { upstream, refresh, versions } = await createCare()
    await upstream.publish('1.0.0')
    await versions.list(everything, widget, newCall())
    await upstream.publish('1.10.0')
    await upstream.publish('1.9.0')
    const result = { address: 'registry.example.test/acme/widget', version: null, changes: [] }
    expect(await refresh.refresh({ address: 'acme/widget' }, { accept: false })).toEqual({
      ...{ ...result, outcome: 'grown', added: ['1.9.0', '1.10.0'] },
    })
    expect((await versions.list(everything, widget, newCall())).value).toContain('1.9.0')
    expect(await refresh.refresh({ address: 'registry.example.test/acme/widget' }, { accept: true })).toEqual({
      ...{ ...result, outcome: 'unchanged', added: [] },
    })
    expect(upstream.count('versions')).toBe(3)
  })

  it('fails with the outage, though the list is known, and also just after a failure', async () => {
    const { upstream, refresh, versions } = await createCare()
    await upstream.publish('1.0.0')
    await versions.list(everything, widget, newCall())
    upstream.beforeVersions = () => Promise.reject(outage())
    for (let turn = 0; turn < 2; turn++)
      expect(await failureOf(refresh.refresh({ address: 'acme/widget' }, { accept: false }))).toMatchObject({
        code: 'UPSTREAM_UNREACHABLE',
      })
    upstream.beforeVersions = () => undefined
    expect(await refresh.refresh({ address: 'acme/widget' }, { accept: false })).toMatchObject({ outcome: 'unchanged' })
  })

  it('of a module tells what is new beside what is held', async () => {
    const { refresh, module } = await createCare()
    await module.modules.locate(everything, moduleId('net'), newCall())
    expect(await refresh.refresh({ address: 'acme/net/aws' }, { accept: false })).toMatchObject({
      ...{ address: 'registry.example.test/acme/net/aws', outcome: 'unchanged', added: [] },
    })
  })

  it.each([
    ['acme', 'INVALID_ADDRESS'],
    ['a/b/c/d/e', 'INVALID_ADDRESS'],
    ['acme/wid\0get', 'HOSTILE_INPUT'],
    ['', 'INVALID_ADDRESS'],
  ])('of %j is refused', async (address, code) => {
    const { refresh } = await createCare()
    expect(await failureOf(refresh.refresh({ address }, { accept: false }))).toMatchObject({ code })
  })

  it('is refused by a sealed mirror, which asks nobody', async () => {
    const { refresh, upstream } = await createCare({}, { isSealed: true })
    expect(await failureOf(refresh.refresh(request, { accept: true }))).toMatchObject({ code: 'REQUEST_INVALID' })
    expect(upstream.asked).toEqual([])
  })
})

describe('refreshing a version', () => {
  it('asks for all of its documents, though it is fresh and complete', async () => {
    const parts = await createCare()
    await parts.upstream.publish('1.0.0', { platforms: ['linux_amd64'] })
    await download(parts)
    parts.upstream.asked.length = 0
    expect(await parts.refresh.refresh(request, { accept: false })).toMatchObject({ outcome: 'unchanged', added: [] })
    expect(parts.upstream.asked).toEqual(['versions', 'release linux_amd64'])
    await parts.upstream.publish('1.0.0', { platforms: ['linux_amd64', 'linux_arm64'] })
    expect(await parts.refresh.refresh(request, { accept: false })).toMatchObject({
      ...{ version: '1.0.0', outcome: 'grown', added: ['linux_arm64'], changes: [] },
    })
  })

  it('fails while the origin cannot confirm it', async () => {
    const { refresh, upstream } = await released()
    upstream.beforeRelease = () => Promise.reject(outage())
    for (const accept of [false, true])
      expect(await failureOf(refresh.refresh(request, { accept }))).toMatchObject({ code: 'UPSTREAM_UNREACHABLE' })
  })

  it('that was released anew tells every changed file with both digests, and changes nothing', async () => {
    const parts = await released()
    const failure = await failureOf(parts.refresh.refresh(request, { accept: false }))
    const changes = Object.keys(parts.before).map((name) => ({
      ...{ filename: `widget_1.0.0_${name}.zip`, held: parts.before[name], offered: parts.after[name] },
    }))
    expect(failure).toMatchObject({ code: 'ACCEPT_REQUIRED', fields: { version: '1.0.0', changes } })
    expect(failure.message).toContain(parts.before.linux_amd64)
    expect(failure.message).toContain(parts.after.linux_amd64)
    expect(failure.message).toContain('2 more files')
    expect(await servedBy(parts, id)).toEqual({ told: parts.before, given: { linux_amd64: parts.held } })
    expect(await download(parts)).toBe(parts.held)
  })

  it('with a yes is replaced: clients are told of the new files and get them, the old ones are gone', async () => {
    const parts = await released()
    const edition = parts.catalogue.editions.of('registry.example.test/acme/widget')
    expect(await parts.refresh.refresh(request, { accept: true })).toMatchObject({
      ...{ outcome: 'replaced', added: [], changes: expect.arrayContaining([expect.anything()]) },
    })
    expect(edition.isCurrent).toBe(false)
    expect(await servedBy(parts, id)).toEqual({ told: parts.after, given: {} })
    expect(await parts.blobs.stat(parts.held)).toBeUndefined()
    expect(await download(parts)).toBe(parts.after.linux_amd64)
    const packages = await parts.mirror.listPackages(everything, widget, v1, newCall())
    expect(packages.value.map(({ hashes: [zh] }) => zh)).toEqual(Object.values(parts.after).map((each) => `zh:${each}`))
    const { release, pin, archives } = await parts.catalogue.version(widget, v1)
    expect([release?.generation, pin?.generation, archives.get('linux_amd64')?.generation]).toEqual([2, 2, 2])
  })

  it('stays pinned to what was accepted: the next change wants a yes again', async () => {
    const parts = await released()
    await parts.refresh.refresh(request, { accept: true })
    await parts.upstream.publish('1.0.0', { generation: 3 })
    expect(await failureOf(parts.refresh.refresh(request, { accept: false }))).toMatchObject({
      code: 'ACCEPT_REQUIRED',
    })
    parts.clock.advance(freshness.freshForMs)
    const { value } = await parts.releases.get(widget, v1, newCall())
    expect(value.release.generation).toBe(2)
  })

  it('keeps archives whose bytes did not change, by the evidence of the new generation', async () => {
    const bytes = (platform: string) => Buffer.from(platform === 'linux_arm64' ? 'same' : platform)
    const parts = await released({}, { bytes, key })
    const same = await download(parts, arm)
    await parts.upstream.publish('1.0.0', {
      bytes: (name: string) => Buffer.from(`${bytes(name)}${name === 'linux_arm64' ? '' : 2}`),
      key,
    })
    expect(await parts.refresh.refresh(request, { accept: true })).toMatchObject({ outcome: 'replaced' })
    const { release, archives } = await parts.catalogue.version(widget, v1)
    expect([...archives.keys()]).toEqual(['linux_arm64'])
    expect(archives.get('linux_arm64')).toMatchObject({
      ...{ digest: same, generation: 2, authentication: release?.platforms.linux_arm64?.authentication },
    })
  })

  it('tells a file that is not published any more as such', async () => {
    const parts = await createCare()
    await parts.upstream.publish('1.0.0', { platforms: ['linux_amd64', 'linux_arm64'] })
    await download(parts)
    await parts.upstream.publish('1.0.0', { platforms: ['linux_amd64'] })
    const held = parts.catalogue
    expect(await failureOf(parts.refresh.refresh(request, { accept: false }))).toMatchObject({
      fields: { changes: [{ filename: 'widget_1.0.0_linux_arm64.zip', offered: null }] },
    })
    await parts.refresh.refresh(request, { accept: true })
    expect(Object.keys((await held.version(widget, v1)).release?.platforms ?? {})).toEqual(['linux_amd64'])
  })

  it('is never replaced by something less authentic: what was signed stays, unless the new one is', async () => {
    const parts = await released({}, { key })
    await parts.upstream.publish('1.0.0', { generation: 3 })
    expect(await failureOf(parts.refresh.refresh(request, { accept: true }))).toMatchObject({
      code: 'SIGNATURE_REQUIRED',
    })
    expect(await servedBy(parts, id)).toEqual({ told: parts.before, given: { linux_amd64: parts.held } })
    const other = await createOriginKey({ createdAt: KEY_MADE_AT })
    await parts.upstream.publish('1.0.0', { generation: 3, key })
    parts.upstream.claim = (claim) => ({
      ...claim,
      platforms: claim.platforms.map((each) =>
        each.kind === 'published' ? { ...each, signingKeys: [{ asciiArmor: other.asciiArmor, document: {} }] } : each,
      ),
    })
    expect(await failureOf(parts.refresh.refresh(request, { accept: true }))).toMatchObject({
      code: 'SIGNATURE_INVALID',
    })
    expect(await download(parts)).toBe(parts.held)
  })

  it('is not replaced while a platform does not answer: it would be gone, though it may be there', async () => {
    const parts = await released()
    parts.upstream.platformFaults.set('darwin_arm64', outage())
    expect(await failureOf(parts.refresh.refresh(request, { accept: true }))).toMatchObject({
      code: 'UPSTREAM_UNREACHABLE',
    })
    expect(await servedBy(parts, id)).toEqual({ told: parts.before, given: { linux_amd64: parts.held } })
  })

  it('that nobody has installed is taken over as ever, and told as replaced', async () => {
    const parts = await createCare()
    await parts.upstream.publish('1.0.0')
    await parts.releases.get(widget, v1, newCall())
    await parts.upstream.publish('1.0.0', { generation: 2 })
    expect(await parts.refresh.refresh(request, { accept: false })).toMatchObject({ outcome: 'replaced' })
  })

  it('whose release record was lost wants a yes too, and gets a new generation by it', async () => {
    const parts = await released()
    await parts.records.delete(['providers', widget.hostname, 'acme', 'widget', 'versions', '1.0.0', 'release'])
    const again = await createCare(parts)
    expect(await failureOf(again.refresh.refresh(request, { accept: false }))).toMatchObject({
      ...{ code: 'ACCEPT_REQUIRED', fields: { changes: [{ held: parts.held, offered: parts.after.linux_amd64 }] } },
    })
    await again.refresh.refresh(request, { accept: true })
    expect((await again.catalogue.version(widget, v1)).release?.generation).toBe(2)
    expect(await download(again)).toBe(parts.after.linux_amd64)
  })

  it('does not touch a provider of the same name at another host', async () => {
    const parts = await createCare()
    await parts.upstream.publish('1.0.0')
    const other = { address: gadget, version: v1, platform: linux }
    await (await parts.archives.open(everything, other, newCall())).value[Symbol.asyncDispose]()
    await download(parts)
    const before = await servedBy(parts, other)
    await parts.upstream.publish('1.0.0', { generation: 2 })
    await parts.refresh.refresh(request, { accept: true })
    expect((await servedBy(parts, other)).told).toEqual(before.told)
  })

  it('is replaced under clients that download it: none is recorded with bytes of the old generation', async () => {
    const parts = await released()
    const gate = Promise.withResolvers<void>()
    await parts.upstream.publish('1.0.0')
    parts.upstream.beforeArchive = () => gate.promise
    const running = parts.archives.open(everything, { ...id, platform: arm }, newCall())
    await expect.poll(() => parts.upstream.count('archive')).toBe(2)
    await parts.upstream.publish('1.0.0', { generation: 2 })
    await parts.refresh.refresh(request, { accept: true })
    gate.resolve()
    const { value } = await running
    await value[Symbol.asyncDispose]()
    expect(value.digest).toBe(parts.after.linux_arm64)
    expect((await servedBy(parts, id)).given).toEqual({ linux_arm64: parts.after.linux_arm64 })
  })
})

describe('refreshing a module version', () => {
  const net = moduleId('net')
  const request = { address: 'acme/net/aws', version: '1.0.0' }
  const commit = 'abcdef1234'.repeat(4)
  const moved = '1'.repeat(40)

  async function held(module: object = {}) {
    const parts = await createCare()
    Object.assign(parts.module.upstream, module)
    const { value } = await parts.module.modules.locate(everything, net, newCall())
    return { ...parts, ...parts.module, value }
  }

  it('that is as it was tells so', async () => {
    const { refresh, value, modules } = await held()
    expect(await refresh.refresh(request, { accept: true })).toMatchObject({ outcome: 'unchanged', changes: [] })
    expect((await modules.locate(everything, net, newCall())).value.digest).toBe(value.digest)
  })

  it.each([
    ['an archive with other files', { text: '# two\n' }, {}],
    [
      'a tag that was moved',
      { text: '# two\n', commit: moved, current: moved },
      { commit, current: commit, location: 'git::https://git.example.test/net.git//sub?ref=v1' },
    ],
  ])('(%s) wants a yes, with both digests', async (_, change, before) => {
    const { refresh, value, modules, upstream, blobs } = await held(before)
    Object.assign(upstream, change)
    const failure = await failureOf(refresh.refresh(request, { accept: false }))
    expect(failure).toMatchObject({ code: 'ACCEPT_REQUIRED', fields: { changes: [{ held: value.digest }] } })
    expect((await modules.locate(everything, net, newCall())).value.digest).toBe(value.digest)
    const stored = []
    for await (const { digest } of blobs.list()) stored.push(digest)
    expect(stored).toEqual([value.digest])

    const result = await refresh.refresh(request, { accept: true })
    const { value: now } = await modules.locate(everything, net, newCall())
    expect(result).toMatchObject({ outcome: 'replaced', changes: [{ held: value.digest, offered: now.digest }] })
    expect(failure).toMatchObject({ fields: { changes: [{ offered: now.digest }] } })
    expect(now.digest).not.toBe(value.digest)
    expect(await blobs.stat(value.digest)).toBeUndefined()
    const old = modules.openArchive(everything, net, value.digest, newCall())
    expect(await failureOf(old)).toMatchObject({ code: 'VERSION_NOT_FOUND' })
  })

  it('of a branch moves on without a yes, and what clients were told of stays', async () => {
    const branch = {
      commit,
      current: commit,
      moving: true,
      location: 'git::https://git.example.test/net.git//sub?ref=main',
    }
    const { refresh, value, upstream, blobs } = await held(branch)
    Object.assign(upstream, { text: '# two\n', commit: moved, current: moved })
    expect(await refresh.refresh(request, { accept: false })).toMatchObject({ outcome: 'replaced' })
    expect(await blobs.stat(value.digest)).toBeDefined()
  })

  it('that is not held says so', async () => {
    const { refresh } = await createCare()
    expect(await failureOf(refresh.refresh(request, { accept: true }))).toMatchObject({ code: 'ITEM_NOT_FOUND' })
  })

  it('is not undone by whoever was fetching its lost archive anew', async () => {
    const { refresh, value, modules, upstream, blobs } = await held()
    await blobs.delete(value.digest)
    const gate = Promise.withResolvers<void>()
    upstream.beforeOpen = () => gate.promise
    const running = modules.locate(everything, net, newCall())
    await expect.poll(() => upstream.opened).toBe(2)
    upstream.beforeOpen = async () => undefined
    const before = upstream.text
    upstream.text = '# two\n'
    await refresh.refresh(request, { accept: true })
    upstream.text = before
    gate.resolve()
    await running
    const { value: now } = await modules.locate(everything, net, newCall())
    expect(now.digest).not.toBe(value.digest)
  })
})
