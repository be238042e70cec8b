import { describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { startMirror } from './mirror-fixture.ts'
import { createMirrorWorkspace, HOST, hashesIn, requestsSeen, requireWidget } from './mirror-workspace.ts'
import { CURRENT_PLATFORM, createWorkspace, hostConfig, terraformAvailable } from './terraform-cli.ts'

/** Two platforms that this machine is not. */
const OTHERS = ['darwin_arm64', 'linux_arm64', 'windows_amd64'].filter((each) => each !== CURRENT_PLATFORM).slice(0, 2)
const THREE = [CURRENT_PLATFORM, ...OTHERS]

describe.skipIf(terraformAvailable() === undefined)('lock files of terraform and the mirror', () => {
  test('providers lock -net-mirror locks three platforms, and twice gives equal files (B17)', async () => {
    await using origin = await startOrigin()
    const release = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    const args = ['providers', 'lock', `-net-mirror=${mirror.baseUrl}`, ...THREE.map((each) => `-platform=${each}`)]

    await using cold = await createMirrorWorkspace(mirror)
    const run = await cold.run(args)
    expect(run.code, run.output).toBe(0)
    const lock = await cold.lockFile()
    expect(hashesIn(lock).toSorted()).toEqual(THREE.map((each) => release.package(each).h1).toSorted())
    for (const platform of THREE) {
      await expect.poll(() => requestsSeen(mirror)).toContain(`GET acme/widget 1.0.0 ${platform}`)
    }

    // A repetition over the file, and anew, now that VERSION.json states h1 beside zh: zh comes first, since the client
    // unpacks before it checks where h1 does.
    const stated = async () => (await mirror.version('acme/widget', '1.0.0')).json().archives
    for (const platform of THREE) {
      const { sha256, h1 } = release.package(platform)
      await expect.poll(async () => (await stated())[platform].hashes).toEqual([`zh:${sha256}`, h1])
    }
    await cold.run(args)
    expect(await cold.lockFile()).toBe(lock)
    await using warm = await createMirrorWorkspace(mirror)
    await warm.run(args)
    expect(await warm.lockFile()).toBe(lock)
    expect(origin.count('archive')).toBe(3)

    await using terraform = await createMirrorWorkspace(mirror, { lockFile: lock })
    expect(await terraform.run(['init', '-lockfile=readonly'])).toMatchObject({ code: 0 })
  })

  test('a lock made straight from the origin installs with -lockfile=readonly, here and elsewhere (B17)', async () => {
    await using origin = await startOrigin()
    const release = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    const lock = await lockAtOrigin(origin, ['init'])
    expect(hashesIn(lock)).toHaveLength(1 + release.packages.length)
    await using mirror = await startMirror({ origin })

    await using here = await createMirrorWorkspace(mirror, { lockFile: lock })
    const run = await here.run(['init', '-lockfile=readonly'])
    expect(run.code, run.output).toBe(0)
    expect(await here.installed()).toEqual([`${HOST}/acme/widget/1.0.0/${CURRENT_PLATFORM}`])
    expect(await here.lockFile()).toBe(lock)

    // The lock knows the other platforms by zh alone: only the origin's very bytes fit.
    for (const platform of OTHERS) {
      await using elsewhere = await createMirrorWorkspace(mirror, { lockFile: lock })
      const run = await elsewhere.run(['providers', 'lock', `-net-mirror=${mirror.baseUrl}`, `-platform=${platform}`])
      expect(run.code, run.output).toBe(0)
      expect(hashesIn(await elsewhere.lockFile())).toContain(release.package(platform).h1)
    }
  })

  test('a lock made at the origin for two platforms holds through the mirror for both (B17)', async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/gadget', version: '2.3.4' })
    const [other = ''] = OTHERS
    const providers = { gadget: { source: `${HOST}/acme/gadget` } }
    const platforms = [`-platform=${CURRENT_PLATFORM}`, `-platform=${other}`]
    const lock = await lockAtOrigin(origin, ['providers', 'lock', ...platforms], providers)
    await using mirror = await startMirror({ origin })

    await using here = await createMirrorWorkspace(mirror, { providers, lockFile: lock })
    const run = await here.run(['init', '-lockfile=readonly'])
    expect(run.code, run.output).toBe(0)
    await using both = await createMirrorWorkspace(mirror, { providers, lockFile: lock })
    const again = await both.run(['providers', 'lock', `-net-mirror=${mirror.baseUrl}`, ...platforms])
    expect(again.code, again.output).toBe(0)
    expect(again.output).toContain('All checksums for this platform were already tracked')
    expect(await both.lockFile()).toBe(lock)
  })

  test("a lock that knows only another platform's bytes is not satisfied by the mirror either", async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    const [other = ''] = OTHERS
    await using mirror = await startMirror({ origin })
    await using terraform = await createMirrorWorkspace(mirror)
    await terraform.run(['providers', 'lock', `-net-mirror=${mirror.baseUrl}`, `-platform=${other}`])

    const run = await terraform.run(['init', '-lockfile=readonly'])
    expect(run.code).toBe(1)
    expect(run.output).toContain('match')
    expect(await terraform.installed()).toEqual([])
  })

  test('a lock made through the mirror grows to the full one at the origin, without a contradiction', async () => {
    await using origin = await startOrigin()
    const release = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    await using terraform = await createMirrorWorkspace(mirror)
    await terraform.run(['init'])
    const mirrored = await terraform.lockFile()

    const platforms = THREE.map((each) => `-platform=${each}`)
    const direct = hostConfig(HOST, origin.services())
    await using grown = await createMirrorWorkspace(mirror, {
      lockFile: mirrored,
      cliConfig: direct,
      caPem: origin.caPem,
    })
    const run = await grown.run(['providers', 'lock', ...platforms])
    expect(run.code, run.output).toBe(0)
    expect(await grown.lockFile()).toBe(await lockAtOrigin(origin, ['providers', 'lock', ...platforms]))
    expect(hashesIn(await grown.lockFile())).toEqual(expect.arrayContaining(hashesIn(mirrored)))
    expect(hashesIn(await grown.lockFile())).toContain(`zh:${release.package(CURRENT_PLATFORM).sha256}`)
  })
})

/** The lock file that the CLI writes when it asks the origin itself, past every mirror. */
async function lockAtOrigin(origin: TestOrigin, args: readonly string[], providers = requireWidget()): Promise<string> {
  await using terraform = await createWorkspace({
    providers,
    cliConfig: hostConfig(HOST, origin.services()),
    caPem: origin.caPem,
  })
  const run = await terraform.run(args)
  expect(run.code, run.output).toBe(0)
  origin.reset()
  return await terraform.lockFile()
}
