import { describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { createOriginKey } from '../origin/origin-key.ts'
import { startMirror } from './mirror-fixture.ts'
import { createMirrorWorkspace, errorsLogged, HOST } from './mirror-workspace.ts'
import { CURRENT_PLATFORM, hostConfig, networkMirrorConfig, terraformAvailable } from './terraform-cli.ts'

/** What is wrong at the origin, and what the log of the mirror must say. */
interface Tampering {
  readonly what: string
  readonly cause: RegExp
  readonly publish: (origin: TestOrigin) => Promise<unknown>
}

const widget = { provider: 'acme/widget', version: '1.0.0' } as const

const TAMPERINGS: readonly Tampering[] = [
  {
    what: 'one byte of the archive is wrong',
    cause: /CHECKSUM_MISMATCH: .*has SHA-256 [0-9a-f]{64}, but [0-9a-f]{64} is published/,
    async publish(origin) {
      await origin.publish(widget)
      origin.fault({ kind: 'archive' }, { wrongBytes: true })
    },
  },
  {
    what: 'the archive is one of another version',
    cause: /CHECKSUM_MISMATCH: .*has SHA-256 [0-9a-f]{64}, but [0-9a-f]{64} is published/,
    async publish(origin) {
      await origin.publish(widget)
      const older = await origin.publish({ ...widget, version: '0.9.0' })
      origin.fault({ kind: 'archive', version: '1.0.0' }, { body: await older.package(CURRENT_PLATFORM).bytes() })
    },
  },
  {
    what: 'the archive ends early, and cleanly',
    cause: /CHECKSUM_MISMATCH|UPSTREAM_/,
    async publish(origin) {
      await origin.publish(widget)
      origin.fault({ kind: 'archive' }, { shortChunked: 0.6 })
    },
  },
  {
    what: 'another key signed than the one listed',
    cause: /SIGNATURE_INVALID/,
    async publish(origin) {
      await origin.publish({ ...widget, key: await createOriginKey(), listedKeys: [origin.key] })
    },
  },
  {
    what: 'the key is revoked',
    cause: /SIGNATURE_INVALID: .*revoked/i,
    publish: async (origin) => origin.publish({ ...widget, key: await createOriginKey({ revoked: true }) }),
  },
  {
    what: 'nobody signed',
    cause: /SIGNATURE_(REQUIRED|MISSING)/,
    publish: (origin) => origin.publish({ ...widget, key: null }),
  },
  {
    what: 'the signature is of another text',
    cause: /SIGNATURE_INVALID/,
    async publish(origin) {
      await origin.publish(widget)
      origin.fault({ kind: 'signature' }, { body: await origin.key.sign(Buffer.from('of something else')) })
    },
  },
  {
    what: 'SHA256SUMS was changed after it was signed',
    cause: /SIGNATURE_INVALID|CHECKSUM_MISMATCH/,
    async publish(origin) {
      const { sums } = await origin.publish(widget)
      origin.fault({ kind: 'sums' }, { body: sums.toString().replaceAll(/^[0-9a-f]{64}/gm, '0'.repeat(64)) })
    },
  },
]

describe.skipIf(terraformAvailable() === undefined)('terraform while somebody tampers with the origin', () => {
  test.each(TAMPERINGS)('$what: init fails, nothing is installed, the log names the cause', async (tampering) => {
    await using origin = await startOrigin()
    await tampering.publish(origin)
    await using mirror = await startMirror({ origin })
    await using terraform = await createMirrorWorkspace(mirror, { version: '1.0.0' })

    const run = await terraform.run(['init'])
    expect(run.code).toBe(1)
    expect(run.output).toMatch(/\b502\b/)
    expect(await terraform.installed()).toEqual([])
    expect(await terraform.lockFile()).toBe('')
    await expect.poll(() => errorsLogged(mirror)).toMatch(tampering.cause)
  })

  test('direct beside the mirror is no way round its refusal', async () => {
    await using origin = await startOrigin()
    const key = await createOriginKey()
    await origin.publish({ ...widget, key, listedKeys: [origin.key] })
    await using honest = await startOrigin()
    await honest.publish(widget)
    await using mirror = await startMirror({ origin })
    await using terraform = await createMirrorWorkspace(mirror, {
      cliConfig: networkMirrorConfig(mirror.baseUrl, { direct: true }) + hostConfig(HOST, honest.services()),
      caPem: honest.caPem,
    })

    const run = await terraform.run(['init'])
    expect(run.code).toBe(1)
    expect(await terraform.installed()).toEqual([])
    expect(honest.count('archive')).toBe(0)
  })

  test('what was refused installs once the origin is honest again, without a restart', async () => {
    await using origin = await startOrigin()
    await origin.publish(widget)
    await using mirror = await startMirror({ origin })
    await using terraform = await createMirrorWorkspace(mirror)
    const fault = origin.fault({ kind: 'archive' }, { wrongBytes: true })
    expect(await terraform.run(['init'])).toMatchObject({ code: 1 })
    fault.clear()

    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
  })

  test('bytes that were cached before the origin went bad are served on, and stay those in lock files (B22)', async () => {
    let now = Date.now()
    await using origin = await startOrigin()
    await origin.publish(widget)
    await using mirror = await startMirror({ origin, now: () => now })
    await using first = await createMirrorWorkspace(mirror)
    await first.run(['init'])
    await origin.publish(widget)
    now += 3_600_000

    await using second = await createMirrorWorkspace(mirror, { lockFile: await first.lockFile() })
    const run = await second.run(['init', '-lockfile=readonly'])
    expect(run.code, run.output).toBe(0)
    await expect
      .poll(() => errorsLogged(mirror))
      .toMatch(/RELEASE_CHANGED: .*was [0-9a-f]{64}, and is now [0-9a-f]{64}/)
  })
})
