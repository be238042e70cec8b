import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { loneNetworkPermitted, openLoneNetwork } from './lone-network.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'
import { createMirrorWorkspace, HOST, hashesIn } from './mirror-workspace.ts'
import { fetchPackage, registryBase, registryConfig } from './registry-door.ts'
import { CURRENT_PLATFORM, terraformAvailable } from './terraform-cli.ts'
import { startTlsFront } from './tls-front.ts'

/* Under which names clients reach the provider registry door. */

const OTHER = 'other.example.test'
const PORTED = 'ported.example.test:8443'

let origin: TestOrigin
let mirror: TestMirror

beforeAll(async () => {
  origin = await startOrigin({ hosts: [HOST, OTHER, PORTED] })
  for (const provider of ['acme/widget', 'acme/gadget', `${OTHER}/acme/sprocket`, `${PORTED}/acme/widget`]) {
    await origin.publish({ provider, version: '1.0.0' })
  }
  mirror = await startMirror({ origin, config: { defaultOrigin: HOST } })
})
afterAll(async () => {
  await mirror[Symbol.asyncDispose]()
  await origin[Symbol.asyncDispose]()
})

describe('the discovery document of our own host', () => {
  test('leads both services to the default origin, relative to itself (B70)', async () => {
    for (const method of ['GET', 'HEAD']) {
      const answer = await mirror.ask('/.well-known/terraform.json', { method })
      expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/json'])
      if (method === 'HEAD') continue
      expect(answer.json()).toEqual({
        'providers.v1': `../v1/providers/${HOST}/`,
        'modules.v1': `../v1/modules/${HOST}/`,
      })
    }
  })

  test('is absent if the default origin is not served', async () => {
    await using other = await startMirror({ origin })
    const answer = await other.ask('/.well-known/terraform.json')
    expect([answer.status, answer.json().code]).toEqual([404, 'ORIGIN_NOT_ALLOWED'])
    expect(answer.json().error).toContain('registry.terraform.io')
  })
})

test('another mirror behind this door passes on what the origin signed, and verifies it again', async () => {
  const release = await origin.publish({ provider: 'acme/chained', version: '1.0.0' })
  const services = { 'providers.v1': registryBase(mirror.url) }
  await using outer = await startMirror({
    origin: { hosts: [HOST], address: origin.address, caPem: mirror.caPem },
    config: { origins: { [HOST]: { services, allowPrivateAddresses: true } } },
  })
  origin.reset()
  const { document, sums, signature, archive } = await fetchPackage(outer, 'acme/chained', '1.0.0', CURRENT_PLATFORM)
  expect(document.signing_keys).toEqual(release.document(CURRENT_PLATFORM)?.signing_keys)
  expect(sums.body.equals(release.sums)).toBe(true)
  expect(signature.body.equals(release.signature ?? Buffer.alloc(0))).toBe(true)
  expect(archive.body.equals(await release.package(CURRENT_PLATFORM).bytes())).toBe(true)
  expect(await outer.metrics()).toMatch(/verdicts_total\{verdict="signed-checksums"\} 4/)
  expect(origin.count('archive')).toBe(1)
})

describe.skipIf(terraformAvailable() === undefined)('terraform with other host names', () => {
  test('a source address with our own host installs, under that other address', async () => {
    const host = `localhost:${new URL(mirror.url).port}`
    await using terraform = await createMirrorWorkspace(mirror, {
      providers: { widget: { source: `${host}/acme/widget` } },
      cliConfig: '',
    })
    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(run.output).toContain(`(self-signed, key ID ${origin.key.keyId})`)
    expect(await terraform.installed()).toEqual([`${host}/acme/widget/1.0.0/${CURRENT_PLATFORM}`])
    expect(await terraform.lockFile()).toContain(`provider "${host}/acme/widget"`)
  })

  test('behind a path prefix it works where the front redirects discovery below the prefix', async () => {
    const config = { listen: { port: 0, tls: 'off' }, defaultOrigin: HOST }
    await using plain = await startMirror({ origin, config })
    await using front = await startTlsFront({
      prefix: '/some/prefix',
      target: plain.url.replace('localhost', '127.0.0.1'),
      redirectDiscovery: true,
    })
    const { host } = new URL(front.url)
    await using terraform = await createMirrorWorkspace(plain, {
      providers: { widget: { source: `${host}/acme/widget` } },
      cliConfig: '',
      caPem: front.caPem,
    })
    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(await terraform.installed()).toEqual([`${host}/acme/widget/1.0.0/${CURRENT_PLATFORM}`])
    expect(front.strays).toEqual([])
  })

  test('an origin with a port, which no network mirror can be asked for, installs by this door', async () => {
    await using terraform = await createMirrorWorkspace(mirror, {
      providers: { widget: { source: `${PORTED}/acme/widget` } },
      cliConfig: registryConfig(mirror.url, PORTED),
    })
    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(await terraform.installed()).toEqual([`${PORTED}/acme/widget/1.0.0/${CURRENT_PLATFORM}`])
  })

  test.skipIf(!loneNetworkPermitted())(
    'in a network from which only the mirror is reachable, a configuration with three providers initialises (B50)',
    async () => {
      await using folder = await mkdtempDisposable(join(tmpdir(), 'lone-network-'))
      const port = Number(new URL(mirror.url).port)
      await using network = await openLoneNetwork(join(folder.path, 'mirror.sock'), port, origin.port)
      const sources = [`${HOST}/acme/gadget`, `${HOST}/acme/widget`, `${OTHER}/acme/sprocket`]
      await using terraform = await createMirrorWorkspace(mirror, {
        providers: Object.fromEntries(sources.map((source) => [source.split('/')[2] ?? '', { source }])),
        cliConfig: registryConfig(mirror.url) + registryConfig(mirror.url, OTHER),
        runner: network.runner,
      })
      const run = await terraform.run(['init'])
      expect(run.code, run.output).toBe(0)
      expect(await terraform.installed()).toEqual(sources.map((source) => `${source}/1.0.0/${CURRENT_PLATFORM}`).sort())
      expect(hashesIn(await terraform.lockFile())).toHaveLength(3 * 5)
    },
  )
})
