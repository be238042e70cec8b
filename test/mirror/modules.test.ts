import { describe, expect, it } from 'vitest'
import { everything, failureOf, freshness, newCall } from './parts-fixture.ts'
import { createModuleParts, moduleId, outage } from './scripted-module-upstream.ts'

const net = moduleId('net')

describe('a module that is slow to come', () => {
  it('is told as pending to whoever cannot wait; the work goes on and is found', async () => {
    const { modules, upstream } = createModuleParts()
    const gate = Promise.withResolvers<void>()
    upstream.beforeOpen = () => gate.promise
    expect(await failureOf(modules.locate(everything, net, newCall(50)))).toMatchObject({ code: 'MODULE_PENDING' })
    gate.resolve()
    await modules.idle()
    expect(await modules.locate(everything, net, newCall())).toMatchObject({ outcome: 'hit' })
    expect(upstream.opened).toBe(1)
  })

  it('tells those who come back what became of it, and is begun anew later', async () => {
    const { modules, upstream, clock } = createModuleParts()
    const gate = Promise.withResolvers<void>()
    upstream.beforeOpen = () => gate.promise
    await failureOf(modules.locate(everything, net, newCall(50)))
    gate.reject(outage())
    await modules.idle()
    for (let turn = 0; turn < 3; turn++)
      expect(await failureOf(modules.locate(everything, net, newCall()))).toMatchObject({
        code: 'UPSTREAM_UNREACHABLE',
      })
    expect(upstream.opened).toBe(1)
    upstream.beforeOpen = async () => undefined
    clock.advance(10_000)
    expect(await modules.locate(everything, net, newCall())).toMatchObject({ outcome: 'miss' })
  })

  it('that failed while all waited is begun anew by the next one at once', async () => {
    const { modules, upstream } = createModuleParts()
    upstream.beforeOpen = () => Promise.reject(outage())
    await failureOf(modules.locate(everything, net, newCall()))
    upstream.beforeOpen = async () => undefined
    expect(await modules.locate(everything, net, newCall())).toMatchObject({ outcome: 'miss' })
  })

  it('has a limit, beyond which it is told as an outage, whatever noticed it', async () => {
    const { modules, upstream } = createModuleParts({ filesMs: 50 })
    upstream.beforeOpen = (signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    expect(await failureOf(modules.locate(everything, net, newCall()))).toMatchObject({
      code: 'UPSTREAM_TIMEOUT',
      message: expect.stringContaining('acme/net/aws 1.0.0: its source did not answer completely within 0.05 seconds'),
    })
  })

  it('keeps no other from coming, but for eight at a time', async () => {
    const { modules, upstream } = createModuleParts()
    upstream.beforeOpen = () => new Promise((resolve) => setTimeout(resolve, 20))
    await Promise.all(
      Array.from({ length: 30 }, (_, count) => modules.locate(everything, moduleId(`net${count}`), newCall())),
    )
    expect([upstream.opened, upstream.mostAtOnce]).toEqual([30, 8])
  })
})

describe('the use of a module', () => {
  it('is told when its archive is opened; being told where it is counts as no hit', async () => {
    const { modules, used } = createModuleParts()
    const { value } = await modules.locate(everything, net, newCall())
    await modules.describeArchive(everything, net, value.digest)
    const { value: blob } = await modules.openArchive(everything, net, value.digest, newCall())
    await blob[Symbol.asyncDispose]()
    await failureOf(modules.openArchive(everything, net, 'a'.repeat(64) as typeof value.digest, newCall()))
    expect(used).toEqual(['registry.example.test/acme/net/aws 1.0.0 0', 'registry.example.test/acme/net/aws 1.0.0 1'])
  })
})

describe('the archive of a module that is being recorded', () => {
  it('is not removed before its record is written', async () => {
    const { modules, blobs, inventory, catalogue } = createModuleParts()
    const commits: string[] = []
    const save = catalogue.save.bind(catalogue)
    catalogue.save = async (address, record) => {
      const removed = await inventory.claims.removing(record.state.digest, () => blobs.delete(record.state.digest))
      commits.push(removed === undefined ? 'kept' : 'removed')
      await save(address, record)
    }
    const { value } = await modules.locate(everything, net, newCall())
    expect(commits).toEqual(['kept'])
    expect(await blobs.stat(value.digest)).toBeDefined()
    expect(inventory.claims.isClaimed(value.digest)).toBe(false)
  })
})

describe('a module whose archive was lost', () => {
  it('comes back as it was', async () => {
    const { modules, upstream, blobs } = createModuleParts()
    const { value } = await modules.locate(everything, net, newCall())
    expect(value).toMatchObject({ subfolder: 'sub', files: 1, source: 'https://files.example.test/a.tar.gz' })
    await blobs.delete(value.digest)
    const answer = await modules.openArchive(everything, net, value.digest, newCall())
    await answer.value[Symbol.asyncDispose]()
    expect([answer.value.digest, upstream.opened]).toEqual([value.digest, 2])
  })

  it('or not at all: other files under the same version are refused, with both digests', async () => {
    const { modules, upstream, blobs } = createModuleParts()
    const { value } = await modules.locate(everything, net, newCall())
    await blobs.delete(value.digest)
    upstream.text = '# two\n'
    expect(await failureOf(modules.locate(everything, net, newCall()))).toMatchObject({
      code: 'RELEASE_CHANGED',
      fields: { held: value.tarDigest, offered: expect.stringMatching(/^[0-9a-f]{64}$/) },
    })
    upstream.text = '# one\n'
    expect(await modules.locate(everything, net, newCall())).toMatchObject({ value: { digest: value.digest } })
  })
})

describe('a module whose location names a folder that is not in it', () => {
  it.each([
    ['nope', 'sub/main.tf'],
    ['su', 'sub/main.tf'],
    ['sub/main.tf', 'sub/main.tf'],
    // Clients look for what is written, and decode nothing.
    ['a%20b', 'a b/main.tf'],
    ['*/nope', 'sub/main.tf'],
  ])('(//%s, where %s is) is refused and not kept: once the registry corrects it, it comes', async (folder, path) => {
    const { modules, upstream, blobs } = createModuleParts()
    Object.assign(upstream, { path, location: `https://files.example.test/a.tar.gz//${folder}` })
    expect(await failureOf(modules.locate(everything, net, newCall()))).toMatchObject({
      code: 'MODULE_INVALID',
      message: expect.stringContaining(JSON.stringify(folder.replace('*/', ''))),
    })
    for await (const { digest } of blobs.list()) expect.fail(`${digest} is held`)
    Object.assign(upstream, { path: 'sub/main.tf', location: 'https://files.example.test/a.tar.gz//sub' })
    expect(await modules.locate(everything, net, newCall())).toMatchObject({
      outcome: 'miss',
      value: { subfolder: 'sub' },
    })
  })

  it('but is there in the very same letters, comes', async () => {
    const { modules, upstream } = createModuleParts()
    Object.assign(upstream, { path: 'a%20b/c/main.tf', location: 'https://files.example.test/a.tar.gz//a%20b/c' })
    expect((await modules.locate(everything, net, newCall())).value).toMatchObject({ subfolder: 'a%20b/c' })
  })
})

describe('a module of a repository', () => {
  const commit = 'abcdef1234'.repeat(4)

  it('by a branch is followed on also when the clock was set back', async () => {
    const { modules, upstream, clock } = createModuleParts()
    const location = 'git::https://git.example.test/net.git//sub?ref=main'
    Object.assign(upstream, { commit, current: commit, location, moving: true })
    const { value } = await modules.locate(everything, net, newCall())
    const moved = '1'.repeat(40)
    Object.assign(upstream, { commit: moved, current: moved, text: '# two\n' })
    // Still fresh: nobody is asked.
    expect((await modules.locate(everything, net, newCall())).value.digest).toBe(value.digest)
    clock.advance(-36_000_000)
    await modules.locate(everything, net, newCall())
    await modules.idle()
    expect((await modules.locate(everything, net, newCall())).value.revision).toMatchObject({ commit: moved })
  })

  it.each([
    ['a tag that names what it named', '?ref=v1', commit],
    ['a commit by its id', `?ref=${commit}`, undefined],
    ['a commit by the first digits of its id', `?ref=${commit.slice(0, 8)}`, undefined],
  ])('by %s did not move', async (_, query, current) => {
    const { modules, upstream, clock, observed, lines } = createModuleParts()
    Object.assign(upstream, { commit, current, location: `git::https://git.example.test/net.git${query}` })
    await modules.locate(everything, net, newCall())
    clock.advance(freshness.freshForMs)
    expect(await modules.locate(everything, net, newCall())).toMatchObject({ outcome: 'hit' })
    await modules.idle()
    expect([observed, lines.map(({ msg }) => msg)]).toEqual([[], ['fetched a module']])
  })

  it('by a tag that names another commit is reported with both, once in the time that it is fresh', async () => {
    const { modules, upstream, clock, observed, lines } = createModuleParts()
    const current = '1'.repeat(40)
    Object.assign(upstream, { commit, current, location: 'git::https://git.example.test/net.git?ref=v1' })
    await modules.locate(everything, net, newCall())
    clock.advance(freshness.freshForMs)
    for (let turn = 0; turn < 3; turn++) {
      expect((await modules.locate(everything, net, newCall())).value).toMatchObject({ revision: { commit } })
      await modules.idle()
    }
    expect(observed).toEqual(['changed'])
    const told = lines.filter(({ level }) => level === 'error')
    expect(told).toEqual([expect.objectContaining({ held: commit, offered: current })])
  })
})
