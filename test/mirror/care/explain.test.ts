import { beforeAll, describe, expect, it } from 'vitest'
import { Explain } from '../../../src/mirror/care/explain.ts'
import type { Explanation } from '../../../src/mirror/care/finding.ts'
import { parsePlatform } from '../../../src/protocol/platform.ts'
import { createOriginKey, type OriginKey } from '../../origin/origin-key.ts'
import type { PartsOptions } from '../parts-fixture.ts'
import { everything, failureOf, freshness, newCall, v1, widget } from '../parts-fixture.ts'
import { moduleId } from '../scripted-module-upstream.ts'
import { KEY_MADE_AT, outage } from '../scripted-upstream.ts'
import { createCare, defaultHost } from './care-fixture.ts'

const linux = parsePlatform('linux_amd64')
const id = { address: widget, version: v1, platform: linux }

let key: OriginKey
beforeAll(async () => {
  key = await createOriginKey({ createdAt: KEY_MADE_AT })
})

async function explained(options: PartsOptions = {}, { isSealed = false } = {}) {
  const care = await createCare(options, { isSealed })
  const { catalogue, versions, releases, archives, blobs, clock, moduleCatalogue, module } = care
  const explain = new Explain({
    ...{ isSealed, defaultHost, catalogue, versions, releases, archives, blobs, now: clock.now },
    ...{ checked: { checkedAt: () => clock.nowMs - 60_000 }, freshForMs: freshness.freshForMs },
    ...{ moduleCatalogue, modules: module.modules, moduleLists: module.lists },
  })
  return { ...care, explain, ask: (version?: string) => explain.explain(everything, 'acme/widget', version) }
}

/** As `about verdict [CODE]`. */
function verdicts({ findings }: Explanation): string[] {
  return findings.map(({ about, verdict, code }) => [about, verdict, code].filter(Boolean).join(' '))
}

async function download({ archives }: Pick<Awaited<ReturnType<typeof explained>>, 'archives'>): Promise<string> {
  const { value } = await archives.open(everything, id, newCall())
  await using blob = value
  return blob.digest
}

describe('a provider is explained', () => {
  it('that is hidden, by the policy', async () => {
    const { explain } = await explained()
    const view = { id: 'none', allowsOrigin: () => false }
    expect(await explain.explain(view, 'acme/widget', '1.0.0')).toMatchObject({
      address: 'registry.example.test/acme/widget',
      version: '1.0.0',
      summary: expect.stringMatching(/is hidden: this mirror does not serve registry.example.test/),
      findings: [{ about: 'policy', verdict: 'hidden', code: 'ORIGIN_NOT_ALLOWED' }],
    })
  })

  it('that nobody has asked for, without asking anybody', async () => {
    const { ask, upstream } = await explained()
    await upstream.publish('1.0.0')
    expect((await ask()).summary).toMatch(/has not been asked for lately.*nothing of it is held/)
    expect((await ask('1.0.0')).summary).toMatch(/is not known here: nobody has asked for it/)
    expect(upstream.asked).toEqual([])
  })

  it('that is listed, and then stale', async () => {
    const parts = await explained()
    await parts.upstream.publish('1.0.0')
    await parts.versions.list(everything, widget, newCall())
    expect(await parts.ask()).toMatchObject({ summary: expect.stringMatching(/is listed; nothing of it is held/) })
    expect(verdicts(await parts.ask())).toEqual(['policy ok', 'list ok', 'archive missing'])
    parts.clock.advance(freshness.freshForMs)
    const old = await parts.ask()
    expect(verdicts(old)).toContain('list stale')
    expect(old.findings[1]).toMatchObject({ text: expect.stringContaining('It is from 5 minutes ago') })
    parts.upstream.beforeVersions = () => Promise.reject(outage())
    await parts.versions.list(everything, widget, newCall())
    expect(await parts.ask()).toMatchObject({
      summary: expect.stringContaining('its origin cannot be asked (UPSTREAM_UNREACHABLE)'),
    })
  })

  it("that is not there, by its origin's word", async () => {
    const parts = await explained()
    await failureOf(parts.versions.list(everything, widget, newCall()))
    expect(verdicts(await parts.ask())).toContain('list missing PROVIDER_NOT_FOUND')
    expect((await parts.ask()).summary).toMatch(/is not there by its origin's word/)
    expect((await parts.ask('1.0.0')).summary).toMatch(/is not there: its origin does not list it/)
  })
})

describe('a version is explained', () => {
  it('that is served, with its signer, generation, archives and checks', async () => {
    const parts = await explained()
    await parts.upstream.publish('1.0.0', { key })
    const digest = await download(parts)
    const answer = await parts.ask('1.0.0')
    expect(answer.summary).toMatch(/1\.0\.0 is listed and served; 1 archive of it is held\.$/)
    const platforms = ['linux_amd64', 'linux_arm64', 'darwin_arm64']
    expect(verdicts(answer)).toEqual([
      ...['policy ok', 'list ok', 'release ok', 'first copy ok', 'origin ok'],
      ...platforms.flatMap((name) => [
        `platform ${name} ok`,
        `archive ${name} ${name === 'linux_amd64' ? 'ok' : 'missing'}`,
      ]),
      'trust ok',
    ])
    const find = (about: string) => answer.findings.find((each) => each.about === about)
    expect(find('platform linux_amd64')).toMatchObject({
      text: expect.stringContaining(digest),
      authentication: { rule: 'signed-checksums', signer: { keyId: expect.stringMatching(/^[0-9A-F]{16}$/) } },
    })
    expect(find('release')?.text).toMatch(/first seen 2026.*generation 1: 3 files, 3 platforms\.$/)
    expect(find('archive linux_amd64')?.text).toContain('found sound 60 seconds ago')
  })

  it('that is refused, with the reason, although nothing of it is recorded', async () => {
    const parts = await explained({ signatures: 'required' })
    await parts.upstream.publish('1.0.0')
    await failureOf(download(parts))
    const answer = await parts.ask('1.0.0')
    expect(answer.summary).toMatch(/is refused \(SIGNATURE_REQUIRED\)/)
    expect(verdicts(answer)).toContain('origin refused SIGNATURE_REQUIRED')
  })

  it('that was released anew, with both digests', async () => {
    const parts = await explained()
    await parts.upstream.publish('1.0.0')
    const held = await download(parts)
    await parts.upstream.publish('1.0.0', { generation: 2 })
    await parts.releases.refresh(widget, v1, newCall())
    const answer = await parts.ask('1.0.0')
    expect(answer.summary).toMatch(/is served as it was first installed; its origin offers other bytes by now/)
    const changed = answer.findings.find(({ verdict }) => verdict === 'changed')
    expect(changed).toMatchObject({ about: 'release', code: 'RELEASE_CHANGED' })
    expect(changed?.text).toContain(held)
    expect(changed?.text).toContain(parts.upstream.digest('1.0.0', 'linux_amd64'))
  })

  it('of which an archive could not be fetched, or is gone', async () => {
    const parts = await explained()
    await parts.upstream.publish('1.0.0')
    parts.upstream.pieces = () => [{ kind: 'bytes', bytes: Buffer.from('wrong') }]
    await failureOf(download(parts))
    expect(verdicts(await parts.ask('1.0.0'))).toContain('archive linux_amd64 refused CHECKSUM_MISMATCH')
    parts.upstream.pieces = (bytes) => [{ kind: 'bytes', bytes }]
    const digest = await download(parts)
    expect(verdicts(await parts.ask('1.0.0'))).toContain('archive linux_amd64 ok')
    await parts.blobs.delete(digest)
    const answer = await parts.ask('1.0.0')
    expect(verdicts(answer)).toContain('archive linux_amd64 damaged')
    expect(answer.summary).toMatch(/a file of it is gone or damaged/)
  })

  it('that is served while its origin is away, or has withdrawn it', async () => {
    const parts = await explained()
    await parts.upstream.publish('1.0.0')
    await parts.upstream.publish('2.0.0')
    await download(parts)
    parts.clock.advance(freshness.freshForMs)
    parts.upstream.beforeVersions = () => Promise.reject(outage())
    await parts.versions.list(everything, widget, newCall())
    expect((await parts.ask('1.0.0')).summary).toMatch(/is served from what is known.*UPSTREAM_UNREACHABLE/)
    parts.upstream.beforeVersions = () => undefined
    parts.upstream.withdraw('1.0.0')
    await parts.versions.renew(widget, newCall())
    expect((await parts.ask('1.0.0')).summary).toMatch(/though its origin does not list it any more/)
    expect((await parts.ask('9.0.0')).summary).toMatch(/is not there: its origin does not list it/)
  })

  it('of a sealed mirror, by what is held', async () => {
    const online = await explained()
    await online.upstream.publish('1.0.0')
    await download(online)
    const { ask } = await explained(online, { isSealed: true })
    expect((await ask('1.0.0')).summary).toMatch(/is served from what is held: 1 archive\.$/)
    expect((await ask('2.0.0')).summary).toMatch(/is not there: it is not held, and this mirror is sealed/)
    expect((await ask()).summary).toMatch(/is served from what is held/)
  })

  it('of a sealed mirror, never promising that it fetches', async () => {
    const online = await explained()
    await online.upstream.publish('1.0.0')
    const digest = await download(online)
    await online.catalogue.look(widget, v1)
    const { ask, blobs } = await explained(online, { isSealed: true })
    await blobs.delete(digest as never)
    const { summary, findings } = await ask('1.0.0')
    const told = [summary, ...findings.map(({ text }) => text)].join('\n')
    expect(told).toMatch(/copy it from where it is whole/)
    expect(told).not.toMatch(/fetched again|makes this mirror fetch/)
  })

  it.each([
    ['acme', '1.0.0', 'INVALID_ADDRESS'],
    ['acme/widget', 'one', 'INVALID_ADDRESS'],
  ])('unless %s %s is none', async (address, version, code) => {
    const { explain } = await explained()
    expect(await failureOf(explain.explain(everything, address, version))).toMatchObject({ code })
  })
})

describe('a module version is explained', () => {
  const net = moduleId('net')

  it('that is held, whose tag was then moved', async () => {
    const { explain, module } = await explained()
    const { upstream, modules, clock } = module
    const commit = 'abcdef1234'.repeat(4)
    const moved = '1'.repeat(40)
    Object.assign(upstream, { commit, current: commit, location: 'git::https://git.example.test/net.git//sub?ref=v1' })
    await modules.locate(everything, net, newCall())
    const before = await explain.explain(everything, 'acme/net/aws', '1.0.0')
    expect(verdicts(before)).toEqual(['policy ok', 'list ok', 'release ok', 'archive ok', 'origin ok'])
    expect(before.findings[2]?.text).toContain(commit)
    upstream.current = moved
    clock.advance(freshness.freshForMs)
    await modules.locate(everything, net, newCall())
    await modules.idle()
    const after = await explain.explain(everything, 'acme/net/aws', '1.0.0')
    expect(after.summary).toMatch(/its origin offers other bytes by now/)
    expect(after.findings.at(-1)).toMatchObject({
      about: 'origin',
      verdict: 'changed',
      text: expect.stringContaining(moved),
    })
  })

  it('that could not be fetched', async () => {
    const { explain, module } = await explained()
    module.upstream.beforeOpen = () => Promise.reject(outage())
    await failureOf(module.modules.locate(everything, net, newCall()))
    const answer = await explain.explain(everything, 'registry.example.test/acme/net/aws', '1.0.0')
    expect(answer.summary).toMatch(/cannot be told: its origin could not be asked \(UPSTREAM_UNREACHABLE\)/)
    expect(await explain.explain(everything, 'acme/net/aws')).toMatchObject({
      version: null,
      summary: expect.stringMatching(/is listed/),
    })
  })
})
