import { readFile } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import {
  CURRENT_PLATFORM,
  createWorkspace,
  credentialsConfig,
  hostConfig,
  networkMirrorConfig,
  terraformAvailable,
} from '../e2e/terraform-cli.ts'
import { startOrigin, type TestOrigin } from './origin.ts'
import { createOriginKey } from './origin-key.ts'

let origin: TestOrigin

beforeAll(async () => {
  origin = await startOrigin()
})

afterEach(() => origin.reset())

afterAll(() => origin[Symbol.asyncDispose]())

describe.skipIf(terraformAvailable() === undefined)('the real terraform, straight at the origin', () => {
  const host = 'registry.example.test'
  const workspace = (version: string) =>
    createWorkspace({
      providers: { widget: { source: `${host}/acme/widget`, version } },
      cliConfig: hostConfig(host, origin.services()),
      caPem: origin.caPem,
    })

  test('init installs a signed provider, names the key and locks every platform', async () => {
    const release = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using terraform = await workspace('1.0.0')
    const run = await terraform.run(['init'])

    expect(run.output).toContain(`self-signed, key ID ${origin.key.keyId}`)
    expect(run.code).toBe(0)
    expect(await terraform.installed()).toEqual([`${host}/acme/widget/1.0.0/${CURRENT_PLATFORM}`])
    const lock = await terraform.lockFile()
    for (const archive of release.packages) expect(lock).toContain(`"zh:${archive.sha256}"`)
    expect(lock).toContain(`"${release.package(CURRENT_PLATFORM).h1}"`)
  })

  test('providers lock takes the archives of two platforms', async () => {
    const release = await origin.publish({ provider: 'acme/widget', version: '1.1.0' })
    await using terraform = await workspace('1.1.0')
    const run = await terraform.run(['providers', 'lock', '-platform=linux_amd64', '-platform=darwin_arm64'])
    expect(run.output).toContain('Success')
    const lock = await terraform.lockFile()
    for (const platform of ['linux_amd64', 'darwin_arm64']) expect(lock).toContain(`"${release.package(platform).h1}"`)
    expect(origin.count('archive acme/widget 1.1.0')).toBe(2)
  })

  test.each([
    ['an expired key is accepted', { expired: true }, 0],
    ['a revoked key is refused', { revoked: true }, 1],
    ['a weak key is accepted', { algorithm: 'rsa1024' as const }, 0],
  ])('%s', async (_, options, code) => {
    const key = await createOriginKey(options)
    await origin.publish({ provider: 'acme/widget', version: '3.0.0', key })
    await using terraform = await workspace('3.0.0')
    expect(await terraform.run(['init'])).toMatchObject({ code })
  })

  test('a workspace is reset to before init, with or without its lock', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using terraform = await workspace('1.0.0')
    await terraform.run(['init'])
    await terraform.reset({ keepLock: true })
    expect(await terraform.installed()).toEqual([])
    expect(await terraform.lockFile()).not.toBe('')
    await terraform.reset()
    expect(await terraform.lockFile()).toBe('')
    expect(await readFile(`${terraform.dir}/main.tf`, 'utf8')).toContain('acme/widget')
  })

  test('the configuration builders lead the CLI to a mirror, with its token, and to the origin beside it', async () => {
    await using terraform = await createWorkspace({
      providers: { widget: { source: `${host}/acme/widget` } },
      cliConfig:
        networkMirrorConfig(`${origin.url()}mirror/`, { include: [`${host}/*/*`], direct: true }) +
        hostConfig(host, origin.services()) +
        credentialsConfig(origin.address, 't0ken'),
      caPem: origin.caPem,
    })
    await terraform.run(['init'])
    const index = origin.requests.find(({ url }) =>
      url.endsWith('/mirror/registry.example.test/acme/widget/index.json'),
    )
    expect(index?.headers.authorization).toBe('Bearer t0ken')
    expect(origin.count('versions acme/widget')).toBe(1)
  })

  test('a run that does not end is ended, and says so', async () => {
    await using terraform = await workspace('1.0.0')
    origin.fault({ kind: 'versions' }, { hang: true })
    await expect(terraform.run(['init'], { timeoutMs: 1000 })).rejects.toThrow('did not end within 1000 ms')
    await origin.until(() => origin.inFlight === 0)
  })

  test('a certificate that the workspace does not trust is refused', async () => {
    await using terraform = await createWorkspace({
      providers: { widget: { source: `${host}/acme/widget` } },
      cliConfig: hostConfig(host, origin.services()),
    })
    const run = await terraform.run(['init'])
    expect(run.code).toBe(1)
    expect(run.output).toContain('certificate signed by unknown authority')
  })
})
