import { describe, expect, test } from 'vitest'
import { startOrigin } from '../origin/origin.ts'
import { startMirror } from './mirror-fixture.ts'
import { createMirrorWorkspace, errorsLogged, HOST, hashesIn, requestsSeen } from './mirror-workspace.ts'
import { CURRENT_PLATFORM, terraformAvailable } from './terraform-cli.ts'

const HOUR_MS = 3_600_000
const OTHER = CURRENT_PLATFORM === 'darwin_arm64' ? 'linux_amd64' : 'darwin_arm64'

describe.skipIf(terraformAvailable() === undefined)('terraform while the origin is away', () => {
  test.each([
    ['at once', 0, false],
    ['a day later', 24 * HOUR_MS, false],
    ['after a restart of the mirror', 0, true],
    ['after a restart, a month later', 30 * 24 * HOUR_MS, true],
  ])('what is cached installs without the origin: %s (B33)', async (_, passedMs, restarted) => {
    let now = Date.now()
    await using origin = await startOrigin()
    const release = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin, now: () => now })
    await using first = await createMirrorWorkspace(mirror)
    await first.run(['init'])
    await origin.stop()
    now += passedMs
    if (restarted) await mirror.restart()

    await using second = await createMirrorWorkspace(mirror, { version: '1.0.0' })
    const run = await second.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(await second.installed()).toEqual([`${HOST}/acme/widget/1.0.0/${CURRENT_PLATFORM}`])
    expect(hashesIn(await second.lockFile())).toEqual([release.package(CURRENT_PLATFORM).h1])
  })

  test.each(['1.0.0', '1.2.0-beta.1+build.7'])(
    'another platform of %s is still told of; only its archive fails, and the log says why',
    async (version) => {
      await using origin = await startOrigin()
      const release = await origin.publish({ provider: 'acme/widget', version })
      await using mirror = await startMirror({ origin, config: { upstream: { retries: 0 } } })
      await using terraform = await createMirrorWorkspace(mirror, { version })
      await terraform.run(['init'])
      const lock = await terraform.lockFile()
      await origin.stop()
      await mirror.restart()

      const document = await mirror.version('acme/widget', version)
      expect(document.status).toBe(200)
      const { archives } = document.json()
      expect(Object.keys(archives).toSorted()).toEqual(release.packages.map(({ platform }) => platform).toSorted())
      expect(archives[OTHER].hashes).toEqual([`zh:${release.package(OTHER).sha256}`])

      const before = requestsSeen(mirror).length
      const run = await terraform.run(['providers', 'lock', `-net-mirror=${mirror.baseUrl}`, `-platform=${OTHER}`])
      expect(run.code).toBe(1)
      expect(run.output).toContain(`Could not retrieve providers for locking`)
      expect(run.output).toMatch(/\b502\b/)
      expect(await terraform.lockFile()).toBe(lock)
      await expect.poll(() => requestsSeen(mirror).slice(before)).toContain(`GET acme/widget ${version} ${OTHER}`)
      await expect
        .poll(() => errorsLogged(mirror))
        .toMatch(/UPSTREAM_UNREACHABLE: .*registry\.example\.test.*ECONNREFUSED/)
    },
  )

  test('a provider that is not cached fails with an outage, never with "not found"', async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await origin.publish({ provider: 'acme/gadget', version: '1.0.0' })
    await using mirror = await startMirror({ origin, config: { upstream: { retries: 0 } } })
    await using warm = await createMirrorWorkspace(mirror)
    await warm.run(['init'])
    await origin.stop()

    await using terraform = await createMirrorWorkspace(mirror, {
      providers: { gadget: { source: `${HOST}/acme/gadget` } },
    })
    const run = await terraform.run(['init'])
    expect(run.code).toBe(1)
    expect(run.output).toMatch(/\b502\b/)
    expect(run.output).not.toContain('was not found')
  })

  test('an origin that accepts and never answers does not keep a cached provider from its users', async () => {
    let now = Date.now()
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin, now: () => now })
    await using first = await createMirrorWorkspace(mirror)
    await first.run(['init'])
    origin.fault({}, { hang: true })
    now += HOUR_MS

    await using second = await createMirrorWorkspace(mirror)
    const run = await second.run(['init'])
    expect(run.code, run.output).toBe(0)
    // The grace is 1.5 s and a refresh may take 7.5 s; in between no busy machine gets.
    for (const { msg, ms } of mirror.logLines) if (msg === 'request') expect(ms).toBeLessThan(5_000)
  })

  test.each([
    ['one version', '1.0.0'],
    ['the whole provider', undefined],
  ])('a lock file outlives its version when the origin withdraws %s (B40)', async (_, withdrawn) => {
    let now = Date.now()
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    if (withdrawn !== undefined) await origin.publish({ provider: 'acme/widget', version: '1.1.0' })
    await using mirror = await startMirror({ origin, now: () => now })
    await using first = await createMirrorWorkspace(mirror, { version: '1.0.0' })
    await first.run(['init'])
    origin.withdraw('acme/widget', withdrawn)
    now += HOUR_MS

    for (const restarted of [false, true]) {
      if (restarted) await mirror.restart()
      await using second = await createMirrorWorkspace(mirror, { version: '1.0.0', lockFile: await first.lockFile() })
      const run = await second.run(['init', '-lockfile=readonly'])
      expect(run.code, run.output).toBe(0)
      expect(await second.installed()).toEqual([`${HOST}/acme/widget/1.0.0/${CURRENT_PLATFORM}`])
    }
    expect(origin.count('archive')).toBe(1)
  })
})
