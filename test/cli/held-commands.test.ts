import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { PinPage, PinSet, PurgeResult, RefreshResult } from '../../src/admin/schema/changes.ts'
import { Explanation } from '../../src/admin/schema/explain.ts'
import { ModulePage, OriginList, PackagePage, Statistics } from '../../src/admin/schema/stock.ts'
import { AdminStandIn, problem } from './admin-stand-in.ts'
import { runCommand } from './run-command.ts'
import { heldModule, heldPackage, TIME } from './samples.ts'

let api: AdminStandIn

beforeEach(async () => {
  api = await AdminStandIn.start()
})
afterEach(() => api[Symbol.asyncDispose]())

const run = (...args: string[]) => runCommand([...args, ...api.options])
const json = ({ stdout }: { stdout: string }) => JSON.parse(stdout)

/** Answers packages in two pages. */
function answerTwoPages(): void {
  api.route('GET packages', ({ query }) => ({
    body: PackagePage.parse(
      query.cursor === undefined
        ? { items: [heldPackage()], next: 'c1' }
        : { items: [heldPackage({ platform: 'darwin_arm64' })], next: null },
    ),
  }))
}

describe('terramirror list', () => {
  test('is a table with size, ages, hits and pins; tells that there is more', async () => {
    answerTwoPages()
    const { code, stdout, stderr } = await run('list')
    expect(code).toBe(0)
    expect(stdout.split('\n')[0]).toMatch(/^PROVIDER +VERSION +PLATFORM +SIZE +CACHED +LAST USED +HITS +PINS$/)
    expect(stdout.split('\n')[1]).toMatch(
      /^registry\.terraform\.io\/hashicorp\/aws +5\.100\.0 +linux_amd64 +123 MB +\d+ \w+ ago +never +7 +prod$/,
    )
    expect(stderr).toContain("--cursor 'c1'")
  })

  test('--all follows the pages, in the table as in JSON', async () => {
    answerTwoPages()
    const table = await run('list', '--all')
    expect(table.stdout.match(/hashicorp\/aws/g)).toHaveLength(2)
    expect(table.stderr).toBe('')
    const document = json(await run('list', '--all', '--json'))
    expect(PackagePage.parse(document)).toEqual(document)
    expect(document).toMatchObject({ items: [{ platform: 'linux_amd64' }, { platform: 'darwin_arm64' }], next: null })
    expect(json(await run('list', '--json'))).toMatchObject({ items: [{}], next: 'c1' })
  })

  test('passes filters on', async () => {
    api.answer('GET packages', PackagePage, { items: [], next: null })
    const { code, stdout, stderr } = await run(
      'list',
      'aws',
      '--origin',
      'a.example',
      '--namespace',
      'n',
      '--limit',
      '7',
    )
    expect([code, stdout, stderr]).toEqual([0, '', 'terramirror: no such package is held\n'])
    expect(api.seen[0]?.query).toEqual({ q: 'aws', origin: 'a.example', namespace: 'n', limit: '7' })
    expect(json(await run('list', '--json'))).toEqual({ items: [], next: null })
  })

  test('--modules lists modules', async () => {
    api.answer('GET modules', ModulePage, { items: [heldModule()], next: null })
    const { stdout } = await run('list', '--modules', '--name', 'vpc', '--type', 'aws')
    expect(stdout).toMatch(/^MODULE .*\nregistry\.terraform\.io\/terraform-aws-modules\/vpc\/aws +5\.1\.0 +54\.3 kB/)
    expect(api.seen[0]?.query).toMatchObject({ name: 'vpc', type: 'aws' })
  })

  test.each([
    [['--limit', '0'], 'from 1 to 500'],
    [['--limit', '501'], 'from 1 to 500'],
    [['--name', 'vpc'], 'say --modules'],
  ])('%j is wrong use', async (args, reason) => {
    const { code, stderr } = await run('list', ...args)
    expect([code, stderr]).toEqual([2, expect.stringContaining(reason)])
  })

  test('a list that leads back to itself ends', async () => {
    api.answer('GET packages', PackagePage, { items: [], next: 'again' })
    const { code, stderr } = await run('list', '--all')
    expect([code, stderr]).toEqual([1, expect.stringContaining('gives the same page again')])
  })
})

describe('terramirror show', () => {
  test('tells hashes, signer, origin, usage and pins of a package', async () => {
    api.answer('GET packages', PackagePage, {
      items: [heldPackage(), heldPackage({ version: '5.99.0' }), heldPackage({ platform: 'darwin_arm64' })],
      next: null,
    })
    const { code, stdout } = await run('show', 'hashicorp/aws', '5.100.0', 'linux_amd64')
    expect(code).toBe(0)
    for (const piece of [
      /^item +registry\.terraform\.io\/hashicorp\/aws 5\.100\.0 linux_amd64$/m,
      /^hashes +zh:abab.*\n +h1:abc=$/m,
      /signed with key 34365D9472D7468F, HashiCorp Security/,
      /^from +https:\/\/releases\.hashicorp\.com\//m,
      /^last used +never$/m,
      /^pins +prod$/m,
    ]) {
      expect(stdout).toMatch(piece)
    }
    expect(stdout).not.toMatch(/5\.99\.0|darwin/)
    expect(api.seen[0]?.query).toEqual({ namespace: 'hashicorp', type: 'aws', limit: '500' })
    expect(json(await run('show', 'hashicorp/aws 5.100.0', '--json')).items).toHaveLength(2)
  })

  test('tells what a module calls, and what of it is not mirrored', async () => {
    api.answer('GET modules', ModulePage, { items: [heldModule()], next: null })
    const { stdout } = await run('show', 'registry.terraform.io/terraform-aws-modules/vpc/aws@5.1.0')
    expect(stdout).toMatch(/^calls +registry\.terraform\.io\/acme\/flow\/aws ~> 1\.0$/m)
    expect(stdout).toMatch(/^calls, not mirrored +git::https:\/\/example\.com\/x\.git$/m)
    expect(stdout).toMatch(/^providers +registry\.terraform\.io\/hashicorp\/aws >= 5\.0$/m)
    expect(api.seen[0]?.query).toMatchObject({ origin: 'registry.terraform.io', name: 'vpc', type: 'aws' })
  })

  test('of nothing says so', async () => {
    api.answer('GET packages', PackagePage, { items: [], next: null })
    const { code, stderr } = await run('show', 'hashicorp/aws')
    expect([code, stderr]).toEqual([1, expect.stringContaining('nothing is held of hashicorp/aws')])
  })
})

describe('terramirror purge', () => {
  const removed = {
    removed: ['registry.terraform.io/hashicorp/aws 5.100.0 linux_amd64'],
    pinned: [],
    bytes: 123_456_789,
  }

  test('without a terminal wants --yes, and removes nothing', async () => {
    const { code, stderr } = await run('purge', 'hashicorp/aws', '5.100.0')
    expect([code, stderr]).toEqual([2, expect.stringContaining('say --yes')])
    expect(api.seen).toEqual([])
  })

  test('with --yes removes what is named, at the origin that holds it', async () => {
    api.answer('GET packages', PackagePage, { items: [heldPackage()], next: null })
    api.answer('DELETE packages/registry.terraform.io/hashicorp/aws/5.100.0/linux_amd64', PurgeResult, removed)
    const { code, stdout } = await run('purge', 'hashicorp/aws', '5.100.0', 'linux_amd64', '--yes')
    expect([code, stdout]).toEqual([0, `removed  ${removed.removed[0]}\n1 removed, 123 MB freed\n`])
    expect(api.seen.at(-1)?.query).toEqual({ forget: 'false' })
  })

  test('asks for the origin where there are two', async () => {
    const items = [heldPackage(), heldPackage({ origin: 'registry.opentofu.org' })]
    api.answer('GET packages', PackagePage, { items, next: null })
    const { code, stderr } = await run('purge', 'hashicorp/aws', '--yes')
    expect(code).toBe(2)
    expect(stderr).toContain('say registry.terraform.io/hashicorp/aws or registry.opentofu.org/hashicorp/aws')
  })

  test('what is pinned stays, and the exit code tells', async () => {
    const result = { removed: [], pinned: ['localhost:8443/acme/vpc/aws 1.0.0'], bytes: 0 }
    api.answer('DELETE modules/localhost:8443/acme/vpc/aws', PurgeResult, result)
    const { code, stdout } = await run('purge', 'localhost:8443/acme/vpc/aws', '--yes', '--forget')
    expect([code, stdout]).toEqual([1, expect.stringContaining('1 kept, because they are pinned')])
    expect(api.seen.at(-1)?.query).toEqual({ forget: 'true' })
    expect(json(await run('purge', 'localhost:8443/acme/vpc/aws', '--yes', '--json'))).toEqual(result)
  })
})

describe('terramirror refresh', () => {
  const changed = {
    address: 'registry.terraform.io/acme/widget',
    version: '1.0.0',
    outcome: 'changed' as const,
    added: [],
    changes: [{ filename: 'widget.zip', held: 'aa'.repeat(32), offered: 'bb'.repeat(32) }],
  }

  test('of a version that was published anew shows both digests, and fails without --accept', async () => {
    api.answer('POST refresh', RefreshResult, changed, 409)
    const { code, stdout } = await run('refresh', 'acme/widget', '1.0.0')
    expect(code).toBe(1)
    expect(stdout).toContain(`held:    ${'aa'.repeat(32)}`)
    expect(stdout).toContain(`offered: ${'bb'.repeat(32)}`)
    expect(stdout).toContain('--accept')
    expect(api.seen.at(-1)?.body).toEqual({ address: 'acme/widget', version: '1.0.0', accept: false })
    expect(json(await run('refresh', 'acme/widget', '1.0.0', '--json'))).toEqual(changed)
  })

  test('with --accept replaces it', async () => {
    api.answer('POST refresh', RefreshResult, { ...changed, outcome: 'replaced' })
    const { code, stdout } = await run('refresh', 'acme/widget@1.0.0', '--accept')
    expect([code, stdout]).toEqual([0, expect.stringContaining(`was:    ${'aa'.repeat(32)}`)])
    expect(api.seen.at(-1)?.body).toMatchObject({ accept: true })
  })

  test('of a list names new versions', async () => {
    const result = { ...changed, version: null, outcome: 'grown' as const, added: ['1.1.0'], changes: [] }
    api.answer('POST refresh', RefreshResult, result)
    expect((await run('refresh', 'acme/widget')).stdout).toBe(
      'registry.terraform.io/acme/widget: 1 new versions\n  new: 1.1.0\n',
    )
  })

  test('a problem of the API is told as such, also where a good answer may have its status', async () => {
    api.route('POST refresh', () => ({ status: 409, body: problem('ACCEPT_REQUIRED', 'needs a yes') }))
    const { code, stderr } = await run('refresh', 'acme/widget', '1.0.0')
    expect([code, stderr]).toEqual([1, expect.stringContaining('needs a yes (ACCEPT_REQUIRED')])
  })

  test.each([[['acme/widget', '--accept']], [['acme/widget', '1.0.0', 'linux_amd64']], [['widget']]])(
    '%j is wrong use',
    async (args) => {
      expect((await run('refresh', ...args)).code).toBe(2)
    },
  )
})

describe('terramirror pin', () => {
  const prod = {
    name: 'prod',
    updatedAt: TIME,
    items: ['registry.terraform.io/hashicorp/aws'],
    held: 3,
    bytes: 5_000_000,
  }

  test('set sends items, jobs and lock files', async () => {
    api.answer('PUT pins/prod', PinSet, prod)
    const args = ['hashicorp/aws 5.100.0', 'acme.example/a/b', '--job', 'j1', '--lock-file', '/dev/null']
    const { code, stdout } = await run('pin', 'set', 'prod', ...args)
    expect([code, stdout]).toEqual([0, 'pinned as prod: 1 name, 3 held, 5 MB\n'])
    expect(api.seen.at(-1)?.body).toEqual({
      items: ['hashicorp/aws 5.100.0', 'acme.example/a/b'],
      jobs: ['j1'],
      lockFiles: [''],
    })
  })

  test('set of nothing, or of no address, is wrong use', async () => {
    expect((await run('pin', 'set', 'prod')).code).toBe(2)
    expect((await run('pin', 'set', 'prod', 'aws')).code).toBe(2)
    expect(api.seen).toEqual([])
  })

  test('list, and pin alone, show the sets; show shows one; delete deletes it', async () => {
    api.answer('GET pins', PinPage, { items: [prod], next: null })
    api.answer('GET pins/prod', PinSet, prod)
    api.route('GET pins/other', () => ({ status: 404, body: problem('ITEM_NOT_FOUND', 'no such set') }))
    api.route('DELETE pins/prod', () => ({ body: {} }))
    for (const args of [['pin'], ['pin', 'list']]) {
      expect((await run(...args)).stdout).toMatch(/^NAME +HELD +SIZE +UPDATED\nprod +3 +5 MB +\d+ \w+ ago\n$/)
    }
    expect((await run('pin', 'show', 'prod')).stdout).toMatch(/^items +registry\.terraform\.io\/hashicorp\/aws$/m)
    expect(json(await run('pin', 'show', 'prod', '--json'))).toEqual(prod)
    expect((await run('pin', 'show', 'other')).code).toBe(1)
    expect((await run('pin', 'delete', 'prod')).code).toBe(0)
  })
})

describe('terramirror explain', () => {
  test('has a mark, a verdict and the evidence of each finding', async () => {
    api.answer('GET explain', Explanation, {
      address: 'registry.terraform.io/hashicorp/aws',
      version: '5.100.0',
      summary: 'It is served for linux_amd64.',
      findings: [
        { about: 'policy', verdict: 'ok', text: 'The origin is allowed.' },
        { about: 'release', verdict: 'ok', text: 'Known.', authentication: heldPackage().authentication, at: TIME },
        {
          about: 'list',
          verdict: 'stale',
          text: 'The origin\ndid not answer.',
          code: 'UPSTREAM_TIMEOUT',
          upstreamUrl: 'https://x/',
        },
        { about: 'archive', verdict: 'missing', text: 'Not held.' },
        { about: 'archive', verdict: 'missing', text: 'The origin has none.', code: 'PLATFORM_NOT_FOUND' },
      ],
    })
    const { code, stdout } = await run('explain', 'hashicorp/aws', '5.100.0')
    expect(code).toBe(0)
    expect(stdout.split('\n')).toEqual([
      'registry.terraform.io/hashicorp/aws 5.100.0',
      'It is served for linux_amd64.',
      '',
      'ok  policy   The origin is allowed.',
      'ok  release  Known.',
      expect.stringMatching(/^ {13}authenticated by checksums signed with key 34365D9472D7468F/),
      `             at ${TIME}`,
      '!   list     stale: The origin (UPSTREAM_TIMEOUT)',
      '             did not answer.',
      '             https://x/',
      '-   archive  missing: Not held.',
      '!   archive  missing: The origin has none. (PLATFORM_NOT_FOUND)',
      '',
    ])
    expect(api.seen.at(-1)?.query).toEqual({ address: 'hashicorp/aws', version: '5.100.0' })
  })
})

test('terramirror stats tells what was saved, how full it is and what is used most', async () => {
  const statistics = {
    startedAt: TIME,
    mode: 'online' as const,
    packages: { count: 12, bytes: 3_000_000_000 },
    modules: { count: null, bytes: null },
    disk: { used: 3_100_000_000, reserved: 8_000_000, maxSize: 100_000_000_000, free: 50_000_000_000, minFree: null },
    answers: { hit: 90, miss: 10 },
    hitRatio: 0.9,
    sentBytes: 30_000_000_000,
    receivedBytes: 3_000_000_000,
    savedBytes: 27_000_000_000,
    top: [{ item: 'registry.terraform.io/hashicorp/aws 5.100.0 linux_amd64', hits: 80, lastUsedAt: TIME }],
    evictions: { items: 0, bytes: 0 },
    quarantine: { files: 0, bytes: 0 },
  }
  api.answer('GET stats', Statistics, statistics)
  const { code, stdout } = await run('stats')
  expect(code).toBe(0)
  for (const piece of [
    /^packages +12, 3 GB$/m,
    /^modules +not counted yet$/m,
    /^disk +3\.1 GB used of 100 GB$/m,
    /^ +8 MB reserved for what is coming in$/m,
    /^answers +90 hit, 10 miss$/m,
    /^hit ratio +90\.0 %$/m,
    /^saved +27 GB/m,
    /^ +80 +\d+ \w+ ago +registry\.terraform\.io\/hashicorp\/aws 5\.100\.0 linux_amd64$/m,
  ]) {
    expect(stdout).toMatch(piece)
  }
  expect(json(await run('stats', '--json'))).toEqual(statistics)
})

test('terramirror origins tells their health, last error, and when they are asked again', async () => {
  const rest = { signatures: 'required' as const, packages: 3, modules: 0 }
  const retryAt = new Date(Date.now() + 200_000).toISOString()
  api.answer('GET origins', OriginList, {
    items: [
      { host: 'registry.terraform.io', health: 'well', lastAnswerAt: TIME, lastError: null, retryAt: null, ...rest },
      {
        host: 'registry.acme.example',
        health: 'backingOff',
        lastAnswerAt: null,
        lastError: { at: TIME, error: 'it did not answer', code: 'UPSTREAM_TIMEOUT' },
        retryAt,
        ...rest,
      },
    ],
    next: null,
  })
  const { stdout } = await run('origins')
  expect(stdout).toMatch(/^registry\.terraform\.io +well +\d+ \w+ ago +required +3 +0$/m)
  expect(stdout).toMatch(
    /^registry\.acme\.example +left alone, asked again in 3 min +never +required .*: it did not answer \(UPSTREAM_TIMEOUT\)$/m,
  )
})
