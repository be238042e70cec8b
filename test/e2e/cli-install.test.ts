import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startOrigin } from '../origin/origin.ts'
import { startMirror } from './mirror-fixture.ts'
import { createMirrorWorkspace, HOST, hashesIn, requestsSeen } from './mirror-workspace.ts'
import { CURRENT_PLATFORM, credentialsConfig, networkMirrorConfig, terraformAvailable } from './terraform-cli.ts'

const MINUTE_MS = 60_000
/** index.json, VERSION.json, HEAD and GET of the archive. */
const COLD_REQUESTS = 4

describe.skipIf(terraformAvailable() === undefined)('terraform init through the mirror', () => {
  test('installs a signed provider, with the four requests of the contract and one of each at the origin', async () => {
    await using origin = await startOrigin()
    const release = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    await using terraform = await createMirrorWorkspace(mirror)

    const run = await terraform.run(['init'])
    expect(run.output).toContain('(verified checksum)')
    expect(run.code).toBe(0)
    expect(await terraform.installed()).toEqual([`${HOST}/acme/widget/1.0.0/${CURRENT_PLATFORM}`])
    expect(hashesIn(await terraform.lockFile())).toEqual([release.package(CURRENT_PLATFORM).h1])
    await expect
      .poll(() => requestsSeen(mirror))
      .toEqual([
        'GET acme/widget index.json',
        'GET acme/widget 1.0.0.json',
        `HEAD acme/widget 1.0.0 ${CURRENT_PLATFORM}`,
        `GET acme/widget 1.0.0 ${CURRENT_PLATFORM}`,
      ])
    expect(origin.counts).toMatchObject({
      'versions acme/widget': 1,
      'sums acme/widget 1.0.0': 1,
      'signature acme/widget 1.0.0': 1,
    })
    expect(origin.count('archive')).toBe(1)
  })

  test('installs ten providers in one run, each once from the origin', async () => {
    await using origin = await startOrigin()
    // Among them the names that mirrors stumbled over (field-reports B05).
    const types = ['widget', 'widget-beta', 'null', 'a1', 'foo-rc1', 'http', 'tls', 'random', 'time', 'archive']
    await Promise.all(types.map((type) => origin.publish({ provider: `acme/${type}`, version: '4.57.0' })))
    await using mirror = await startMirror({ origin })
    const providers = Object.fromEntries(types.map((type) => [type, { source: `${HOST}/acme/${type}` }]))
    await using terraform = await createMirrorWorkspace(mirror, { providers })

    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(await terraform.installed()).toEqual(
      types.map((type) => `${HOST}/acme/${type}/4.57.0/${CURRENT_PLATFORM}`).toSorted(),
    )
    expect(origin.count('archive')).toBe(types.length)
    expect(origin.count('discovery')).toBe(1)
  })

  test('installs a pre-release by its exact constraint, and never without', async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.1.0' })
    await origin.publish({ provider: 'acme/widget', version: '1.2.0-beta.1' })
    await using mirror = await startMirror({ origin })
    await using exact = await createMirrorWorkspace(mirror, { version: '1.2.0-beta.1' })
    await using open = await createMirrorWorkspace(mirror, { version: '>= 1.0.0' })

    await exact.run(['init'])
    expect(await exact.installed()).toEqual([`${HOST}/acme/widget/1.2.0-beta.1/${CURRENT_PLATFORM}`])
    await open.run(['init'])
    expect(await open.installed()).toEqual([`${HOST}/acme/widget/1.1.0/${CURRENT_PLATFORM}`])
  })

  test.each(['1.2.0+build.7', '2.0.0-rc.1+exp.sha.5114f85'])('installs version %s', async (version) => {
    await using origin = await startOrigin()
    const release = await origin.publish({ provider: 'acme/widget', version })
    await using mirror = await startMirror({ origin })
    await using terraform = await createMirrorWorkspace(mirror, { version })

    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(await terraform.installed()).toEqual([`${HOST}/acme/widget/${version}/${CURRENT_PLATFORM}`])
    expect(hashesIn(await terraform.lockFile())).toEqual([release.package(CURRENT_PLATFORM).h1])
  })

  test('init -upgrade finds a new version as soon as the list is older than its lifetime', async () => {
    let now = Date.now()
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin, now: () => now })
    await using terraform = await createMirrorWorkspace(mirror, { version: '>= 1.0.0' })
    await terraform.run(['init'])
    await origin.publish({ provider: 'acme/widget', version: '1.1.0' })

    now += 4 * MINUTE_MS
    await terraform.run(['init', '-upgrade'])
    expect(await terraform.lockFile()).toContain('"1.0.0"')
    expect(origin.count('versions')).toBe(1)

    now += 2 * MINUTE_MS
    const run = await terraform.run(['init', '-upgrade'])
    expect(run.code, run.output).toBe(0)
    expect(await terraform.lockFile()).toContain('"1.1.0"')
    expect(origin.count('versions')).toBe(2)
  })

  test('a second init with lock and .terraform asks index.json only, and nothing at the origin', async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    await using terraform = await createMirrorWorkspace(mirror)
    await terraform.run(['init'])
    await expect.poll(() => requestsSeen(mirror)).toHaveLength(COLD_REQUESTS)
    origin.reset()

    const run = await terraform.run(['init'])
    expect(run.output).toContain('Using previously-installed')
    await expect.poll(() => requestsSeen(mirror).slice(COLD_REQUESTS)).toEqual(['GET acme/widget index.json'])
    expect(origin.requests).toEqual([])
  })

  test('a warm plugin cache of the client is used: with a lock, index.json is all that it asks', async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    await using cache = await mkdtempDisposable(join(tmpdir(), 'plugin-cache-'))
    const env = { TF_PLUGIN_CACHE_DIR: cache.path }
    await using first = await createMirrorWorkspace(mirror, { env })
    await first.run(['init'])
    await expect.poll(() => requestsSeen(mirror)).toHaveLength(COLD_REQUESTS)

    await using second = await createMirrorWorkspace(mirror, { env, lockFile: await first.lockFile() })
    const run = await second.run(['init', '-lockfile=readonly'])
    expect(run.code, run.output).toBe(0)
    await expect.poll(() => requestsSeen(mirror).slice(COLD_REQUESTS)).toEqual(['GET acme/widget index.json'])
  })

  test('two cold clients at once cost the origin one archive (B45)', async () => {
    await using origin = await startOrigin()
    const release = await origin.publish({ provider: 'acme/widget', version: '1.0.0', archiveBytes: 2_000_000 })
    // Slow enough that the second client comes while the first one's download runs.
    origin.fault({ kind: 'archive' }, { trickle: 1_000_000 })
    await using mirror = await startMirror({ origin })
    await using one = await createMirrorWorkspace(mirror)
    await using two = await createMirrorWorkspace(mirror)

    const runs = await Promise.all([one.run(['init']), two.run(['init'])])
    for (const { code, output } of runs) expect(code, output).toBe(0)
    expect(origin.count('archive')).toBe(1)
    expect(origin.count('versions')).toBe(1)
    for (const { lockFile } of [one, two]) {
      expect(hashesIn(await lockFile())).toEqual([release.package(CURRENT_PLATFORM).h1])
    }
  })

  test('capitals and Unicode in an address lead to the one provider that the origin knows (B15, B16)', async () => {
    await using origin = await startOrigin({ hosts: ['xn--bcher-kva.example.test'] })
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    for (const source of ['bücher.example.test/Acme/Widget', 'BÜCHER.example.test/acme/widget']) {
      await using terraform = await createMirrorWorkspace(mirror, { providers: { widget: { source } } })
      const run = await terraform.run(['init'])
      expect(run.code, run.output).toBe(0)
    }
    expect(origin.count('archive')).toBe(1)
    expect(origin.count('versions')).toBe(1)
  })

  test("the client's credentials for the mirror reach neither the origin nor the log (B55)", async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    const label = new URL(mirror.url).host
    await using bearer = await createMirrorWorkspace(mirror, {
      cliConfig: networkMirrorConfig(mirror.baseUrl) + credentialsConfig(label, 's3cr3t-token'),
    })
    await using basic = await createMirrorWorkspace(mirror, {
      cliConfig: networkMirrorConfig(mirror.baseUrl.replace('//', '//someone:s3cr3t-password@')),
    })

    for (const terraform of [bearer, basic]) {
      const run = await terraform.run(['init'])
      expect(run.code, run.output).toBe(0)
    }
    expect(origin.requests.length).toBeGreaterThan(0)
    for (const { headers } of origin.requests) expect(headers.authorization).toBeUndefined()
    expect(mirror.logText).not.toContain('s3cr3t')
  })

  test('a provider or platform that the origin does not have is told as that (B12)', async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/elsewhere', version: '1.0.0', platforms: ['plan9_386'] })
    await using mirror = await startMirror({ origin })
    const absent = { widget: { source: `${HOST}/acme/absent` } }
    const elsewhere = { widget: { source: `${HOST}/acme/elsewhere` } }
    await using first = await createMirrorWorkspace(mirror, { providers: absent })
    await using second = await createMirrorWorkspace(mirror, { providers: elsewhere })

    expect((await first.run(['init'])).output).toContain('was not found in any of the search locations')
    expect((await second.run(['init'])).output).toMatch(/does not have a package available for your current platform/)
    expect(origin.count('archive')).toBe(0)
  })
})
