import { glob, mkdtempDisposable, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { Release } from '../origin/release.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'
import { createMirrorWorkspace, HOST, hashesIn, requireWidget } from './mirror-workspace.ts'
import { askDownload, fetchEvidence, fetchPackage, registryBase, registryConfig } from './registry-door.ts'
import {
  CURRENT_PLATFORM,
  createWorkspace,
  hostConfig,
  networkMirrorConfig,
  terraformAvailable,
} from './terraform-cli.ts'
import { startTlsFront } from './tls-front.ts'

/* The provider registry door and the real CLI: one origin, one mirror, and the same lock files as without it. */

const OTHER_PLATFORM = CURRENT_PLATFORM === 'darwin_arm64' ? 'linux_amd64' : 'darwin_arm64'
const TWO_PLATFORMS = [CURRENT_PLATFORM, OTHER_PLATFORM].map((each) => `-platform=${each}`)
const WIDGET = `${HOST}/acme/widget/1.0.0/${CURRENT_PLATFORM}`

let origin: TestOrigin
let release: Release
let mirror: TestMirror

describe.skipIf(terraformAvailable() === undefined)('terraform through the provider registry door', () => {
  beforeAll(async () => {
    origin = await startOrigin()
    release = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    mirror = await startMirror({ origin })
  })
  afterAll(async () => {
    await mirror[Symbol.asyncDispose]()
    await origin[Symbol.asyncDispose]()
  })

  test('init installs what the origin signed, and names its key; the lock file is that of a direct install', async () => {
    const direct = await lockAtOrigin(['init'])
    await using terraform = await createMirrorWorkspace(mirror, { cliConfig: registryConfig(mirror.url) })
    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(run.output).toContain(`(self-signed, key ID ${origin.key.keyId})`)
    expect(await terraform.installed()).toEqual([WIDGET])
    expect(await terraform.lockFile()).toBe(direct)
    expect(hashesIn(direct)).toHaveLength(1 + release.packages.length)
    await expect
      .poll(() => mirror.logLines.filter(({ route }) => String(route).startsWith('/v1/')).map(lastOfRoute))
      .toEqual(['GET versions', 'GET :arch', 'GET :filename', 'GET :filename', 'HEAD :filename', 'GET :filename'])
    expect(origin.count('archive')).toBe(1)
  })

  test('a provider that came by this door is warm for the network mirror, and the reverse', async () => {
    origin.reset()
    await using terraform = await createMirrorWorkspace(mirror, { cliConfig: networkMirrorConfig(mirror.baseUrl) })
    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(await terraform.installed()).toEqual([WIDGET])
    expect(origin.count('archive')).toBe(0)

    await origin.publish({ provider: 'acme/gadget', version: '1.0.0' })
    expect((await mirror.archive('acme/gadget', '1.0.0', 'linux_amd64')).status).toBe(200)
    const requests = origin.requests.length
    expect((await fetchPackage(mirror, 'acme/gadget', '1.0.0', 'linux_amd64')).archive.status).toBe(200)
    expect(origin.requests.length).toBe(requests)
  })

  test('providers lock for two platforms: byte for byte the file that it makes at the origin (B78)', async () => {
    const args = ['providers', 'lock', ...TWO_PLATFORMS]
    const direct = await lockAtOrigin(args)
    origin.reset()
    await using terraform = await createMirrorWorkspace(mirror, { cliConfig: registryConfig(mirror.url) })
    const run = await terraform.run(args)
    expect(run.code, run.output).toBe(0)
    expect(await terraform.lockFile()).toBe(direct)
    expect(hashesIn(direct)).toHaveLength(2 + release.packages.length)
    expect(origin.count('archive')).toBe(1)
  })

  test('providers mirror fills a directory with the archives of the origin (B78)', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'test-providers-mirror-'))
    await using terraform = await createMirrorWorkspace(mirror, { cliConfig: registryConfig(mirror.url) })
    const run = await terraform.run(['providers', 'mirror', ...TWO_PLATFORMS, folder.path])
    expect(run.code, run.output).toBe(0)
    const found: string[] = []
    for await (const path of glob('**/*.*', { cwd: folder.path })) found.push(path)
    const files = [CURRENT_PLATFORM, OTHER_PLATFORM].map((each) => release.package(each))
    const base = join(HOST, 'acme', 'widget')
    expect(found.filter((path) => /\.(zip|json)$/.test(path)).sort()).toEqual(
      ['1.0.0.json', 'index.json', ...files.map(({ filename }) => filename)].map((name) => join(base, name)).sort(),
    )
    for (const file of files) {
      const bytes = await readFile(join(folder.path, base, file.filename))
      expect(bytes.equals(await file.bytes()), file.filename).toBe(true)
    }
  })

  test('both doors in one configuration: the network mirror takes the providers, the other one "providers lock"', async () => {
    const cliConfig = networkMirrorConfig(mirror.baseUrl) + registryConfig(mirror.url)
    await using terraform = await createMirrorWorkspace(mirror, { cliConfig })
    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(run.output).toContain('(verified checksum)')
    expect((await terraform.lockFile()).match(/(h1|zh):/g)).toEqual(['h1:'])
    await terraform.reset()
    await terraform.run(['providers', 'lock', ...TWO_PLATFORMS])
    expect(await terraform.lockFile()).toBe(await lockAtOrigin(['providers', 'lock', ...TWO_PLATFORMS]))
  })

  test('with the origin stopped everything works that was held, and documents of all platforms', async () => {
    const lock = await lockAtOrigin(['providers', 'lock', ...TWO_PLATFORMS])
    for (const { platform } of release.packages)
      expect((await askDownload(mirror, 'acme/widget', '1.0.0', platform)).status).toBe(200)
    await origin.stop()
    try {
      for (const restart of [false, true]) {
        if (restart) await mirror.restart()
        await using terraform = await createMirrorWorkspace(mirror, { cliConfig: registryConfig(mirror.url) })
        const run = await terraform.run(['init'])
        expect(run.code, run.output).toBe(0)
        await using locked = await createMirrorWorkspace(mirror, { cliConfig: registryConfig(mirror.url) })
        const locking = await locked.run(['providers', 'lock', ...TWO_PLATFORMS])
        expect(locking.code, locking.output).toBe(0)
        expect(await locked.lockFile()).toBe(lock)
        for (const { platform } of release.packages) {
          const { document, sums, signature } = await fetchEvidence(mirror, 'acme/widget', '1.0.0', platform)
          expect(document.shasum).toBe(release.package(platform).sha256)
          expect(sums.body.equals(release.sums)).toBe(true)
          expect(signature.body.equals(release.signature ?? Buffer.alloc(0))).toBe(true)
        }
      }
    } finally {
      await origin.start()
    }
  })

  test.each(['/some/prefix', '/t/0123-token~x/a%20b'])(
    'works below %s, and no link leads out of it',
    async (prefix) => {
      await origin.publish({ provider: 'acme/prefixed', version: '1.0.1+build.7' })
      await using plain = await startMirror({ origin, config: { listen: { port: 0, tls: 'off' } } })
      await using front = await startTlsFront({ prefix, target: plain.url.replace('localhost', '127.0.0.1') })
      await using terraform = await createMirrorWorkspace(plain, {
        providers: { prefixed: { source: `${HOST}/acme/prefixed`, version: '1.0.1+build.7' } },
        cliConfig: hostConfig(HOST, { 'providers.v1': registryBase(front.url) }),
        caPem: front.caPem,
      })
      const run = await terraform.run(['init'])
      expect(run.code, run.output).toBe(0)
      expect(await terraform.installed()).toEqual([`${HOST}/acme/prefixed/1.0.1+build.7/${CURRENT_PLATFORM}`])
      expect(front.strays).toEqual([])
    },
  )
})

function lastOfRoute({ method, route }: Record<string, unknown>): string {
  return `${method} ${String(route).split('/').at(-1)}`
}

/** The lock file that the CLI writes when it asks the origin itself, past every mirror. */
async function lockAtOrigin(args: readonly string[]): Promise<string> {
  const cliConfig = hostConfig(HOST, origin.services())
  await using terraform = await createWorkspace({ providers: requireWidget(), cliConfig, caPem: origin.caPem })
  const run = await terraform.run(args)
  expect(run.code, run.output).toBe(0)
  origin.reset()
  return await terraform.lockFile()
}
