import { describe, expect, it } from 'vitest'
import { ended } from '../jobs/jobs-fixture.ts'
import { failureOf } from '../parts-fixture.ts'
import { hang, outage, PLATFORMS } from '../scripted-upstream.ts'
import { createWarm, planned, request, type WarmParts, warmed } from './warm-fixture.ts'

const HOST = 'registry.example.test'
const linux = 'linux_amd64'

/** Item names are long: those of the usual host without it. */
function short(outcomes: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(outcomes).map(([item, outcome]) => [item.replace(`${HOST}/`, ''), outcome]))
}

async function withWidgets(...versions: string[]): Promise<WarmParts> {
  const parts = createWarm()
  for (const version of versions) await parts.providers.publish('acme/widget', version)
  return parts
}

/** Terraform code that needs providers. */
function requires(providers: Record<string, string | undefined>): string {
  const lines = Object.entries(providers).map(
    ([source, version], n) =>
      `p${n} = { source = "${HOST}/${source}"${version === undefined ? '' : `, version = "${version}"`} }`,
  )
  return `terraform {\n  required_providers {\n${lines.join('\n')}\n  }\n}\n`
}

/** Terraform code that calls modules. */
function calls(modules: Record<string, string | undefined>): string {
  return Object.entries(modules)
    .map(
      ([source, version], n) =>
        `module "m${n}" {\n  source = "${source}"\n${version === undefined ? '' : `  version = "${version}"\n`}}\n`,
    )
    .join('')
}

describe('providers', () => {
  it.each([
    ['latest', '2.1.0'],
    ['~> 1.0', '1.5.0'],
    ['>= 1.0, != 1.5.0, < 2', '1.2.0'],
    ['1.2.0', '1.2.0'],
    ['3.0.0-rc.1', '3.0.0-rc.1'],
  ])('%s is the version that Terraform would choose: %s', async (version, chosen) => {
    const parts = await withWidgets('1.2.0', '1.5.0', '2.1.0', '3.0.0-rc.1')
    const { outcomes } = await warmed(parts, { providers: [{ source: 'acme/widget', version }] })
    expect(short(outcomes)).toEqual({ [`acme/widget ${chosen} ${linux}`]: 'done' })
  })

  it('come for the platforms of the item, else of the request, and all that are published for *', async () => {
    const parts = await withWidgets('1.0.0', '2.0.0', '3.0.0')
    const { outcomes } = await warmed(parts, {
      providers: [
        { source: 'acme/widget', version: '1.0.0' },
        { source: `${HOST}/acme/widget`, version: '2.0.0', platforms: ['darwin_arm64'] },
        { source: 'acme/widget', version: '3.0.0', platforms: ['*'] },
      ],
      platforms: ['linux_arm64'],
    })
    expect(short(outcomes)).toEqual({
      'acme/widget 1.0.0 linux_arm64': 'done',
      'acme/widget 2.0.0 darwin_arm64': 'done',
      ...Object.fromEntries(PLATFORMS.map((platform) => [`acme/widget 3.0.0 ${platform}`, 'done'])),
    })
  })

  it('are fetched once however often they are asked for, and are held the next time', async () => {
    const parts = await withWidgets('1.0.0')
    const wish = { source: 'acme/widget', version: 'latest' }
    const providers = [wish, wish, { ...wish, version: '1.0.0' }, { ...wish, version: '~> 1.0' }]
    const first = await warmed(parts, { providers })
    expect(first.job.progress).toMatchObject({ done: 1, total: 1, bytes: first.items[0]?.bytes })
    expect(first.items[0]?.bytes).toBeGreaterThan(10)
    const { outcomes, job } = await warmed(parts, { providers })
    expect(short(outcomes)).toEqual({ [`acme/widget 1.0.0 ${linux}`]: 'held' })
    expect(job.progress).toMatchObject({ bytes: 0, totalBytes: null })
    expect(parts.providers.archivesAsked).toBe(1)
  })

  it('that are driven out before the job ends have failed, and the reason names the limit; also after a restart', async () => {
    const first = `${HOST}/acme/widget 1.0.0 ${linux}`
    const parts = createWarm({ isGone: (name) => name === first })
    for (const version of ['1.0.0', '2.0.0']) await parts.providers.publish('acme/widget', version)
    const providers = ['1.0.0', '2.0.0'].map((version) => ({ source: 'acme/widget', version }))
    const { outcomes, job } = await warmed(parts, { providers })
    expect(short(outcomes)).toEqual({
      [`acme/widget 1.0.0 ${linux}`]: 'failed',
      [`acme/widget 2.0.0 ${linux}`]: 'done',
    })
    expect(job.outcomes).toMatchObject({ done: 1, failed: 1 })
    const { items } = await parts.jobs.items(job.id, { limit: 10, outcome: 'failed' })
    expect(items[0]?.reason).toContain('archives.maxSize')
    expect(await parts.jobs.itemsOf(job.id)).toEqual([`${HOST}/acme/widget 2.0.0 ${linux}`])
  })

  it('that do not exist are not published, and what there is instead is told', async () => {
    const parts = await withWidgets('1.0.0')
    const { items } = await warmed(parts, {
      providers: [
        { source: 'acme/widget', version: '~> 9.0' },
        { source: 'acme/nothing', version: 'latest' },
        { source: 'acme/widget', version: '1.0.0', platforms: ['plan9_amd64'] },
      ],
    })
    expect(items).toEqual([
      expect.objectContaining({
        item: `${HOST}/acme/widget ~> 9.0`,
        outcome: 'notPublished',
        reason: expect.stringContaining('the newest is 1.0.0'),
        code: 'VERSION_NOT_FOUND',
      }),
      expect.objectContaining({
        item: `${HOST}/acme/nothing latest`,
        outcome: 'notPublished',
        code: 'PROVIDER_NOT_FOUND',
      }),
      expect.objectContaining({ outcome: 'notPublished', code: 'PLATFORM_NOT_FOUND' }),
    ])
  })

  it('that are not in reach fail with the reason, and the others come', async () => {
    const parts = await withWidgets('1.0.0')
    const broken = await parts.providers.publish('acme/broken', '1.0.0')
    broken.beforeArchive = () => Promise.reject(outage())
    const { job, outcomes, items } = await warmed(parts, {
      providers: ['acme/broken', 'acme/widget'].map((source) => ({ source, version: 'latest' })),
    })
    expect(job.state).toBe('done')
    expect(short(outcomes)).toEqual({
      [`acme/broken 1.0.0 ${linux}`]: 'failed',
      [`acme/widget 1.0.0 ${linux}`]: 'done',
    })
    expect(items[0]).toMatchObject({ code: 'UPSTREAM_UNREACHABLE', reason: 'no route' })
  })

  it('of hosts that the mirror hides are refused, and nobody is asked', async () => {
    const parts = createWarm()
    await parts.providers.publish('hidden.example.test/acme/widget', '1.0.0')
    const wish = {
      providers: [{ source: 'hidden.example.test/acme/widget', version: 'latest' }],
      modules: [{ source: 'hidden.example.test/acme/net/aws', version: '1.0.0' }],
      lockFiles: ['provider "hidden.example.test/acme/widget" {\n  version = "1.0.0"\n}\n'],
    }
    const names = {
      'hidden.example.test/acme/widget latest': 'refused',
      'hidden.example.test/acme/net/aws 1.0.0': 'refused',
      [`hidden.example.test/acme/widget 1.0.0 ${linux}`]: 'refused',
    }
    const { outcomes, items } = await warmed(parts, wish)
    expect(outcomes).toEqual(names)
    expect(items[0]).toMatchObject({ code: 'ORIGIN_NOT_ALLOWED' })
    expect((await planned(parts, wish)).outcomes).toEqual(names)
    expect([...parts.providers.asked, ...parts.modulesUpstream.asked]).toEqual([])
  })

  it('that a sealed mirror does not hold are refused, and what it holds is held', async () => {
    const online = await withWidgets('1.0.0', '2.0.0')
    await warmed(online, { providers: [{ source: 'acme/widget', version: '1.0.0' }] })
    const { records, blobs } = online
    const sealed = createWarm({ sealed: true, records, blobs })
    const wish = {
      providers: ['1.0.0', '2.0.0', 'latest'].map((version) => ({ source: 'acme/widget', version })),
      modules: [{ source: 'acme/net/aws', version: 'latest' }],
      lockFiles: [`provider "${HOST}/acme/widget" {\n  version = "2.0.0"\n}\n`],
    }
    const expected = {
      'acme/net/aws latest': 'refused',
      'acme/widget 2.0.0': 'refused',
      [`acme/widget 2.0.0 ${linux}`]: 'refused',
      [`acme/widget 1.0.0 ${linux}`]: 'held',
    }
    const { outcomes, items } = await warmed(sealed, wish)
    expect(short(outcomes)).toEqual(expected)
    expect(items.map(({ code }) => code).filter((code) => code !== undefined)).toEqual(Array(3).fill('NOT_CACHED'))
    expect(short((await planned(sealed, wish)).outcomes)).toEqual(expected)
  })
})

describe('modules', () => {
  it('come with what they call, each at the version that their own files want, and circles end', async () => {
    const parts = await withWidgets('1.0.0', '2.0.0')
    await parts.providers.publish('acme/gadget', '1.0.0')
    const { modulesUpstream } = parts
    modulesUpstream.publish('acme/a/aws', '1.0.0', { 'main.tf': calls({ [`${HOST}/acme/b/aws`]: '~> 1.0' }) })
    modulesUpstream.publish('acme/b/aws', '1.0.0', { 'main.tf': '' })
    modulesUpstream.publish('acme/b/aws', '1.1.0', {
      'main.tf':
        calls({ [`${HOST}/acme/a/aws`]: '1.0.0' }) + requires({ 'acme/widget': '~> 1.0', 'acme/gadget': undefined }),
    })
    modulesUpstream.publish('acme/b/aws', '2.0.0', { 'main.tf': '' })
    const wish = { modules: [{ source: 'acme/a/aws', version: 'latest' }] }
    const { outcomes } = await warmed(parts, wish)
    const all = {
      'acme/a/aws 1.0.0': 'done',
      'acme/b/aws 1.1.0': 'done',
      [`acme/widget 1.0.0 ${linux}`]: 'done',
      [`acme/gadget 1.0.0 ${linux}`]: 'done',
    }
    expect(short(outcomes)).toEqual(all)
    const alone = await warmed(parts, { ...wish, followModules: false })
    expect(short(alone.outcomes)).toEqual({ 'acme/a/aws 1.0.0': 'held' })
  })

  it('are followed by the folder that is called alone, and a requested one by its root and all submodules', async () => {
    const parts = await withWidgets('1.0.0')
    await parts.providers.publish('acme/gadget', '1.0.0')
    await parts.providers.publish('acme/unused', '1.0.0')
    const { modulesUpstream } = parts
    modulesUpstream.publish('acme/net/aws', '1.0.0', {
      'main.tf': requires({ 'acme/widget': undefined }),
      'modules/sub/main.tf': requires({ 'acme/gadget': undefined }),
      'examples/all/main.tf': requires({ 'acme/unused': undefined }),
    })
    const called = await warmed(parts, { modules: [{ source: 'acme/net/aws//modules/sub', version: '1.0.0' }] })
    expect(short(called.outcomes)).toEqual({ 'acme/net/aws 1.0.0': 'done', [`acme/gadget 1.0.0 ${linux}`]: 'done' })
    const whole = await warmed(parts, { modules: [{ source: 'acme/net/aws', version: '1.0.0' }] })
    expect(short(whole.outcomes)).toEqual({
      'acme/net/aws 1.0.0': 'held',
      [`acme/gadget 1.0.0 ${linux}`]: 'held',
      [`acme/widget 1.0.0 ${linux}`]: 'done',
    })
  })

  it('agree on one version of a provider, as far as there is one; else each gets its own', async () => {
    const parts = await withWidgets('1.0.0', '2.0.0', '3.0.0')
    const { modulesUpstream } = parts
    modulesUpstream.publish('acme/net/aws', '1.0.0', {
      'main.tf': requires({ 'acme/widget': '>= 1.0' }) + calls({ [`${HOST}/acme/low/aws`]: undefined }),
    })
    modulesUpstream.publish('acme/low/aws', '1.0.0', { 'main.tf': requires({ 'acme/widget': '< 3' }) })
    const agreed = await warmed(parts, { modules: [{ source: 'acme/net/aws', version: '1.0.0' }] })
    expect(short(agreed.outcomes)).toMatchObject({ [`acme/widget 2.0.0 ${linux}`]: 'done' })
    modulesUpstream.publish('acme/apart/aws', '1.0.0', {
      'main.tf': requires({ 'acme/widget': '>= 3' }) + calls({ [`${HOST}/acme/low/aws`]: undefined }),
    })
    const apart = await warmed(parts, { modules: [{ source: 'acme/apart/aws', version: '1.0.0' }] })
    expect(short(apart.outcomes)).toMatchObject({
      [`acme/widget 3.0.0 ${linux}`]: 'done',
      [`acme/widget 2.0.0 ${linux}`]: 'held',
    })
  })

  it('that lie in git or at a URL are told as not mirrored', async () => {
    const parts = createWarm()
    parts.modulesUpstream.publish('acme/net/aws', '1.0.0', {
      'main.tf': calls({
        'git::https://user:secret@git.example.test/a.git?ref=v1': undefined,
        'github.com/acme/b': undefined,
      }),
    })
    const { items } = await warmed(parts, { modules: [{ source: 'acme/net/aws', version: '1.0.0' }] })
    const refused = items.filter(({ outcome }) => outcome === 'refused')
    expect(refused.map(({ item }) => item).sort()).toEqual(['git::https://git.example.test/a.git', 'github.com/acme/b'])
    for (const { reason } of refused) expect(reason).toMatch(/^not mirrored: /)
    expect(JSON.stringify(items)).not.toContain('secret')
  })

  it('are followed ten deep at most', async () => {
    const parts = createWarm()
    for (let n = 1; n <= 12; n++) {
      parts.modulesUpstream.publish(`acme/deep${n}/aws`, '1.0.0', {
        'main.tf': calls({ [`${HOST}/acme/deep${n + 1}/aws`]: '1.0.0' }),
      })
    }
    const { outcomes, job } = await warmed(parts, { modules: [{ source: 'acme/deep1/aws', version: '1.0.0' }] })
    expect(job.outcomes).toMatchObject({ done: 10, refused: 1 })
    expect(short(outcomes)['acme/deep11/aws 1.0.0']).toBe('refused')
  })

  it('whose folder is not there fail to be followed, and are here all the same', async () => {
    const parts = createWarm()
    parts.modulesUpstream.publish('acme/net/aws', '1.0.0', { 'main.tf': '' })
    const { outcomes } = await warmed(parts, { modules: [{ source: 'acme/net/aws//modules/none', version: '1.0.0' }] })
    expect(short(outcomes)).toEqual({ 'acme/net/aws 1.0.0': 'done', 'acme/net/aws 1.0.0 //modules/none': 'failed' })
  })
})

describe('a configuration', () => {
  it('brings what all its folders want together: local modules, registry modules and what those call', async () => {
    const parts = await withWidgets('1.0.0', '1.5.0', '2.0.0')
    await parts.providers.publish('acme/gadget', '1.0.0')
    parts.modulesUpstream.publish('acme/net/aws', '1.0.0', { 'main.tf': requires({ 'acme/widget': '!= 1.5.0' }) })
    const { outcomes } = await warmed(parts, {
      configuration: {
        'main.tf':
          requires({ 'acme/widget': '>= 1.0' }) + calls({ './modules/near': undefined, './modules/far': undefined }),
        'modules/near/main.tf': requires({ 'acme/widget': '< 2' }) + calls({ '../far': undefined }),
        'modules/far/main.tf.json': JSON.stringify({
          module: { net: { source: 'acme/net/aws', version: '~> 1.0' }, loop: { source: '../near' } },
          terraform: { required_providers: { gadget: { source: `${HOST}/acme/gadget` } } },
        }),
        'unrelated/main.tf': requires({ 'acme/nothing': undefined }),
      },
    })
    expect(short(outcomes)).toEqual({
      'acme/net/aws 1.0.0': 'done',
      [`acme/widget 1.0.0 ${linux}`]: 'done',
      [`acme/gadget 1.0.0 ${linux}`]: 'done',
    })
  })

  it('may call local modules beside its root, which may call others there', async () => {
    const parts = await withWidgets('1.0.0', '2.0.0')
    const { outcomes } = await warmed(parts, {
      configuration: {
        'main.tf': calls({ '../../modules/near': undefined }),
        '../../modules/near/main.tf': calls({ '../far': undefined }),
        '../../modules/far/main.tf': requires({ 'acme/widget': '< 2' }),
      },
    })
    expect(short(outcomes)).toEqual({ [`acme/widget 1.0.0 ${linux}`]: 'done' })
  })

  it('whose wishes contradict each other fails as Terraform would, and says what is wanted', async () => {
    const parts = await withWidgets('1.0.0', '2.0.0')
    const { items } = await warmed(parts, {
      configuration: {
        'main.tf': requires({ 'acme/widget': '~> 1.0' }) + calls({ './sub': undefined }),
        'sub/main.tf': requires({ 'acme/widget': '~> 2.0' }),
      },
    })
    expect(items).toMatchObject([{ item: `${HOST}/acme/widget ~> 1.0, ~> 2.0`, outcome: 'notPublished' }])
  })

  it('keeps to the lock file beside it, as long as that meets its wishes', async () => {
    const parts = await withWidgets('1.0.0', '2.0.0')
    const lockFiles = [`provider "${HOST}/acme/widget" {\n  version = "1.0.0"\n}\n`]
    const kept = await warmed(parts, {
      configuration: { 'main.tf': requires({ 'acme/widget': undefined }) },
      lockFiles,
    })
    expect(short(kept.outcomes)).toEqual({ [`acme/widget 1.0.0 ${linux}`]: 'done' })
    const moved = await warmed(parts, { configuration: { 'main.tf': requires({ 'acme/widget': '> 1' }) }, lockFiles })
    expect(short(moved.outcomes)).toEqual({
      [`acme/widget 1.0.0 ${linux}`]: 'held',
      [`acme/widget 2.0.0 ${linux}`]: 'done',
    })
  })

  it('tells of local modules that are not a part of it, and of git sources', async () => {
    const parts = createWarm()
    const { items } = await warmed(parts, {
      configuration: { 'main.tf': calls({ '../shared': undefined, 'git@git.example.test:acme/net.git': undefined }) },
    })
    expect(items).toMatchObject([
      {
        item: 'git@git.example.test:acme/net.git',
        outcome: 'refused',
        reason: expect.stringMatching(/^not mirrored: /),
      },
      { item: '../shared', outcome: 'failed', reason: expect.stringContaining('not a part of the request') },
    ])
  })
})

describe('a lock file', () => {
  const lock = (version: string, ...hashes: string[]): string =>
    `provider "${HOST}/acme/widget" {\n  version = "${version}"\n  hashes = [${hashes.map((hash) => `"${hash}"`).join(', ')}]\n}\n`
  const h1 = `h1:${'A'.repeat(43)}=`
  const hasher = {
    hash: async () => ({ hashes: [h1 as never] }),
    [Symbol.asyncDispose]: async () => undefined,
  }

  it('brings exactly its versions, and agrees by the digest or by h1:', async () => {
    const parts = createWarm({ hasher })
    const widget = await parts.providers.publish('acme/widget', '1.0.0')
    await parts.providers.publish('acme/widget', '2.0.0')
    const zip = `zh:${widget.digest('1.0.0', linux)}`
    for (const hashes of [[zip], [`zh:${'0'.repeat(64)}`, zip], [h1]]) {
      const { outcomes } = await warmed(parts, { lockFiles: [lock('1.0.0', ...hashes)] })
      expect(Object.values(outcomes)).toEqual([hashes[0] === zip && hashes.length === 1 ? 'done' : 'held'])
    }
  })

  it('with other hashes than the archive has fails that item, and shows both', async () => {
    const parts = createWarm({ hasher })
    const widget = await parts.providers.publish('acme/widget', '1.0.0')
    const [zip, other] = [`zh:${widget.digest('1.0.0', linux)}`, `h1:${'B'.repeat(43)}=`]
    const { items } = await warmed(parts, {
      lockFiles: [lock('1.0.0', zip), lock('1.0.0', other, `zh:${'0'.repeat(64)}`)],
    })
    expect(items).toMatchObject([
      { item: `${HOST}/acme/widget 1.0.0 ${linux}`, outcome: 'failed', code: 'CHECKSUM_MISMATCH' },
    ])
    for (const hash of [zip, h1, other]) expect(items[0]?.reason).toContain(hash)
  })

  it('that may know another platform alone is told how to know this one', async () => {
    const parts = createWarm({ hasher })
    await parts.providers.publish('acme/widget', '1.0.0')
    const other = `h1:${'B'.repeat(43)}=`
    const advice = /providers lock -platform/
    const { items } = await warmed(parts, { lockFiles: [lock('1.0.0', other)] })
    expect(items[0]?.reason).toMatch(advice)
    const full = await warmed(parts, { lockFiles: [lock('1.0.0', other, `zh:${'0'.repeat(64)}`)] })
    expect(full.items[0]?.reason).not.toMatch(advice)
  })

  it('that Terraform would refuse is refused before there is a job, with file, line and reason', async () => {
    const { jobs, warm } = createWarm()
    const started = jobs.start(
      warm.kind,
      request({ lockFiles: [lock('1.0.0', 'x:'), 'provider "a" {\n  version = 1\n}'] }),
    )
    expect(await failureOf(started)).toMatchObject({
      code: 'CONFIGURATION_FILE_INVALID',
      fields: { file: 'lock file 2', line: expect.any(Number), reason: expect.any(String) },
    })
    expect(jobs.list({ limit: 1 }).items).toEqual([])
  })
})

describe('a request that is wrong', () => {
  it('is refused as a whole with every address, constraint and platform that is none', async () => {
    const { warm } = createWarm()
    const plan = warm.plan(
      request({
        providers: [
          { source: 'acme', version: 'latest' },
          { source: 'acme/widget', version: 'newest' },
          { source: 'acme/net/aws', version: 'latest' },
        ],
        modules: [{ source: 'git::https://git.example.test/a.git', version: 'latest' }],
        platforms: ['linux'],
      }),
      AbortSignal.timeout(5_000),
    )
    const failure = await failureOf(plan)
    expect(failure).toMatchObject({ code: 'REQUEST_INVALID' })
    const { problems } = failure.fields as { problems: string[] }
    expect(problems.map((problem) => problem.split(':')[0])).toEqual([
      'platforms',
      'providers.0',
      'providers.1',
      'providers.2',
      'modules.0',
    ])
  })

  it.each([
    [{ 'main.tf': 'resource {' }, 'CONFIGURATION_FILE_INVALID'],
    [{ 'sub/main.tf': '' }, 'CONFIGURATION_FILE_INVALID'],
    [{ '../main.tf': '' }, 'CONFIGURATION_FILE_INVALID'],
    [{ '../..': '' }, 'REQUEST_INVALID'],
    [{ '/etc/main.tf': '' }, 'REQUEST_INVALID'],
  ])('as the configuration %j, is refused with %s', async (configuration, code) => {
    const { warm } = createWarm()
    expect(await failureOf(warm.plan(request({ configuration }), AbortSignal.timeout(5_000)))).toMatchObject({ code })
  })
})

describe('a dry run', () => {
  it('tells what would be fetched, what is held with its size, and what cannot come, and fetches no archive', async () => {
    const parts = await withWidgets('1.0.0', '2.0.0')
    parts.modulesUpstream.publish('acme/net/aws', '1.0.0', { 'main.tf': requires({ 'acme/widget': '2.0.0' }) })
    parts.modulesUpstream.publish('acme/new/aws', '1.0.0', { 'main.tf': '' })
    const first = await warmed(parts, {
      providers: [{ source: 'acme/widget', version: '1.0.0' }],
      modules: [{ source: 'acme/net/aws', version: '1.0.0' }],
      followModules: false,
    })
    const asked = parts.providers.archivesAsked
    const { plan } = await planned(parts, {
      providers: [
        { source: 'acme/widget', version: '1.0.0' },
        { source: 'acme/widget', version: '~> 9.0' },
        { source: 'acme/widget', version: '1.0.0', platforms: ['plan9_amd64'] },
      ],
      modules: ['acme/net/aws', 'acme/new/aws'].map((source) => ({ source, version: 'latest' })),
    })
    const sizes = Object.fromEntries(first.items.map(({ item, bytes }) => [item, bytes]))
    const [net, widget] = [`${HOST}/acme/net/aws 1.0.0`, `${HOST}/acme/widget 1.0.0 ${linux}`]
    expect(plan).toEqual({
      items: [
        { item: net, outcome: 'held', size: sizes[net] },
        { item: `${HOST}/acme/new/aws 1.0.0`, outcome: 'fetch', reason: 'what it calls is known when it is here' },
        expect.objectContaining({ item: `${HOST}/acme/widget ~> 9.0`, outcome: 'notPublished' }),
        { item: widget, outcome: 'held', size: sizes[widget] },
        expect.objectContaining({ item: `${HOST}/acme/widget 1.0.0 plan9_amd64`, outcome: 'notPublished' }),
        { item: `${HOST}/acme/widget 2.0.0 ${linux}`, outcome: 'fetch' },
      ],
      bytes: 0,
      unknownSizes: 2,
    })
    expect(parts.providers.archivesAsked).toBe(asked)
    expect(parts.modulesUpstream.asked.filter((each) => each.startsWith('files'))).toHaveLength(1)
  })

  it('tells that an archive is another one than the lock file holds, where its digest alone can tell', async () => {
    const parts = await withWidgets('1.0.0')
    const lock = (hash: string): string =>
      `provider "${HOST}/acme/widget" {\n  version = "1.0.0"\n  hashes = ["${hash}"]\n}\n`
    const wrong = await planned(parts, { lockFiles: [lock(`zh:${'0'.repeat(64)}`)] })
    expect(wrong.plan.items).toMatchObject([
      { outcome: 'failed', reason: expect.stringContaining(`zh:${'0'.repeat(64)}`) },
    ])
    const open = await planned(parts, { lockFiles: [lock(`h1:${'A'.repeat(43)}=`)] })
    expect(open.plan.items).toMatchObject([{ outcome: 'fetch' }])
    expect(parts.providers.archivesAsked).toBe(0)
  })
})

it('what was decided before a restart is not done again, and what it calls is followed all the same', async () => {
  const first = await withWidgets()
  const publish = async ({ providers, modulesUpstream }: WarmParts) => {
    modulesUpstream.publish('acme/net/aws', '1.0.0', { 'main.tf': requires({ 'acme/widget': undefined }) })
    return [await providers.publish('acme/widget', '1.0.0'), await providers.publish('acme/broken', '1.0.0')] as const
  }
  const [widget, broken] = await publish(first)
  broken.beforeArchive = () => Promise.reject(outage())
  widget.beforeArchive = (_, signal) => hang(signal)
  const wish = request({
    modules: [{ source: 'acme/net/aws', version: 'latest' }],
    providers: [{ source: 'acme/broken', version: 'latest' }],
  })
  const { id } = await first.jobs.start(first.warm.kind, wish)
  await expect.poll(() => first.providers.archivesAsked, { timeout: 20_000 }).toBe(2)
  await expect.poll(() => first.jobs.get(id).outcomes.failed, { timeout: 20_000 }).toBe(1)
  await first.jobs.close()
  expect(first.jobs.get(id)).toMatchObject({ state: 'running', outcomes: { done: 1, failed: 1 } })

  const { store, records, blobs } = first
  const second = createWarm({ store, records, blobs })
  await publish(second)
  await second.jobs.resumeAll()
  expect(await ended(second.jobs, id)).toMatchObject({ state: 'done', outcomes: { done: 2, failed: 1 } })
  expect(second.providers.archivesAsked).toBe(1)
  expect(second.modulesUpstream.asked.filter((each) => each.startsWith('files'))).toEqual([])
})
