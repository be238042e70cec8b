import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { createServer } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'

const HOST = 'registry.example.test'
const HOST_WITH_PORT = 'ported.example.test:8443'
const PUNYCODE_HOST = 'xn--bcher-kva.example'

let origin: TestOrigin
/** For tests that look at nothing but their own answers. */
let shared: TestMirror

beforeAll(async () => {
  origin = await startOrigin({ hosts: [HOST, 'other.example.test', HOST_WITH_PORT, PUNYCODE_HOST] })
  shared = await startMirror({ origin })
})
beforeEach(() => origin.reset())
afterAll(async () => {
  await shared[Symbol.asyncDispose]()
  await origin[Symbol.asyncDispose]()
})

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** Installs as a client does: by the link that the document gives, resolved against the document's own URL. */
async function install(mirror: TestMirror, provider: string, version: string, platform = 'linux_amd64') {
  const index = await mirror.index(provider)
  const document = await mirror.version(provider, version)
  const { url } = document.json().archives[platform]
  const path = `/providers/${provider}/${encodeURIComponent(version)}.json`
  const archive = await mirror.ask(new URL(url, new URL(path, mirror.url)).pathname)
  return { index, document, url, archive }
}

describe('names that look like versions or platforms (B05)', () => {
  const rows: [string, string][] = [
    ['google-beta', '4.57.0-beta.1'],
    ['null', '3.2.2'],
    ['a1', '1.0.0'],
    ['foo-rc1', '1.0.0-rc1'],
    ['x_y', '0.1.0'],
    ['linux_amd64', '1.0.0'],
    ['1', '1.0.0-linux.amd64'],
    ['versions', '1.0.0'],
    ['index', '1.0.0-index.json'],
    ['json', '1.0.0-alpha.json'],
  ]
  test.each(rows)('%s %s is listed, described and served', async (type, version) => {
    const provider = `${HOST}/acme/${type}`
    const release = await origin.publish({ provider, version, platforms: ['linux_amd64', 'darwin_arm64'] })
    const { index, document, archive } = await install(shared, provider, version)
    expect(index.json()).toEqual({ versions: { [version]: {} } })
    expect(Object.keys(document.json().archives)).toEqual(['darwin_arm64', 'linux_amd64'])
    expect(archive.body.equals(await release.package('linux_amd64').bytes())).toBe(true)
  })

  test('a version with build metadata is asked literally and encoded', async () => {
    const release = await origin.publish({ provider: 'acme/built', version: '1.1.0+b1' })
    await using mirror = await startMirror({ origin })
    const { url, archive } = await install(mirror, `${HOST}/acme/built`, '1.1.0+b1')
    expect(url).toContain('%2B')
    const bytes = await release.package('linux_amd64').bytes()
    expect(archive.body.equals(bytes)).toBe(true)
    expect((await mirror.ask(`/providers/${HOST}/acme/built/1.1.0+b1.json`)).status).toBe(200)
    const literal = await mirror.ask(`/providers/${HOST}/acme/built/1.1.0+b1/linux_amd64/any-name.zip`)
    expect(literal.body.equals(bytes)).toBe(true)
    expect(origin.count('archive acme/built')).toBe(1)
  })
})

describe('one bad entry of a list hides no good one (B07)', () => {
  test.each([
    ['v2.5.3-alpha1', '2.5.2'],
    ['latest', '1.0.0'],
    ['1.2.3.4', '1.0.0'],
    ['', '1.0.0'],
  ])('%j is left out with one warning, %s is listed', async (bad, good) => {
    const provider = `acme/listed${bad.length}`
    await origin.publish({ provider, version: good })
    const list = { versions: [good, bad].map((version) => ({ version, protocols: ['5.0'], platforms: [] })) }
    origin.fault({ kind: 'versions', provider }, { body: JSON.stringify(list) })
    await using mirror = await startMirror({ origin })
    const index = await mirror.index(provider)
    expect(index.status).toBe(200)
    expect(index.json()).toEqual({ versions: { [good]: {} } })
    const warnings = mirror.logLines.filter(({ problems }) => problems !== undefined)
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toMatchObject({ level: 'warn', provider: `${HOST}/${provider}` })
    expect(JSON.stringify(warnings[0])).toContain(JSON.stringify(JSON.stringify(bad)).slice(1, -1))
  })

  test('a spelling that is not canonical is shown canonically, and asked of the origin as it spells it', async () => {
    await origin.publish({ provider: 'acme/short', version: '1.1' })
    await using mirror = await startMirror({ origin })
    expect((await mirror.index('acme/short')).json()).toEqual({ versions: { '1.1.0': {} } })
    expect((await mirror.version('acme/short', '1.1.0')).status).toBe(200)
    expect((await mirror.archive('acme/short', '1.1.0', 'linux_amd64')).status).toBe(200)
    expect(origin.count('download acme/short 1.1 linux_amd64')).toBeGreaterThan(0)
    expect(origin.count('download acme/short 1.1.0')).toBe(0)
  })
})

describe('the list is the list of the origin, not of the cache (B02)', () => {
  test('with one version cached, all of them are listed', async () => {
    for (const version of ['1.0.0', '1.1.0', '2.0.0-rc.1']) await origin.publish({ provider: 'acme/many', version })
    await using mirror = await startMirror({ origin })
    await install(mirror, `${HOST}/acme/many`, '1.0.0')
    const { versions } = (await mirror.index('acme/many')).json()
    expect(Object.keys(versions)).toEqual(['1.0.0', '1.1.0', '2.0.0-rc.1'])
  })

  test('a document names every published platform, cached or not', async () => {
    const release = await origin.publish({ provider: 'acme/wide', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    await install(mirror, `${HOST}/acme/wide`, '1.0.0')
    const { archives } = (await mirror.version('acme/wide', '1.0.0')).json()
    expect(Object.keys(archives).sort()).toEqual(release.packages.map(({ platform }) => platform).sort())
    expect(origin.count('archive acme/wide')).toBe(1)
  })
})

describe('whoever speaks the wrong protocol or path is told the right base URL (B03)', () => {
  const paths = [
    '/v1/providers/acme/widget/versions',
    '/v1/providers/hashicorp/aws/5.0.0/download/linux/amd64',
    `/${HOST}/acme/widget/index.json`,
    `/${HOST}/acme/widget/1.0.0.json`,
    `/providers/${HOST}/acme/widget`,
    `/providers/${HOST}/acme/widget/versions`,
    '/providers/',
    '/providers',
    '/providers/acme/widget/index.json',
    '/anything/else',
  ]
  test.each(paths)('%s', async (path) => {
    const answer = await shared.ask(path)
    expect(answer.status).toBe(404)
    expect(answer.json().code).toBe('ROUTE_NOT_FOUND')
    const base = /versions$|download/.test(path) ? 'v1/providers/REGISTRY/' : 'providers/'
    expect(answer.json().base_url).toBe(`${shared.url}${base}`)
    expect(answer.json().error).toContain(` = "${shared.url}${base}"`)
    const requestId = answer.headers['x-request-id']
    await vi.waitFor(() => {
      const lines = shared.logLines.filter((line) => line.requestId === requestId)
      expect(lines).toMatchObject([{ level: 'warn', msg: 'request', route: 'not found' }])
    }, 15_000)
    expect(origin.connections).toBe(0)
  })

  test('the public URL, where it is configured, is the one that is named', async () => {
    const port = await findFreePort()
    const publicUrl = `https://localhost:${port}/terraform/`
    await using mirror = await startMirror({ origin, config: { listen: { port }, publicUrl } })
    expect((await mirror.ask('/acme/widget/index.json')).json().base_url).toBe(`${publicUrl}providers/`)
    const registryBase = `${publicUrl}v1/providers/REGISTRY/`
    expect((await mirror.ask('/v1/providers/acme/widget/versions')).json().base_url).toBe(registryBase)
  })
})

describe('addresses of a time before namespaces (B13)', () => {
  test.each(['aws', 'google-beta'])('-/%s is 404 with a hint and leaves nothing behind', async (type) => {
    await using mirror = await startMirror({ origin })
    const answer = await mirror.index(`${HOST}/-/${type}`)
    expect(answer.status).toBe(404)
    expect(answer.json().hint).toContain(`terraform state replace-provider ${HOST}/-/${type}`)
    expect((await mirror.version(`${HOST}/-/${type}`, '1.0.0')).json()).toEqual({ archives: {} })
    expect(origin.connections).toBe(0)
    expect((await readdir(mirror.dataDir, { recursive: true })).filter((path) => /(^|\/)-$/.test(path))).toEqual([])
  })
})

describe('one host, one spelling (B16)', () => {
  test.each([HOST_WITH_PORT, HOST_WITH_PORT.replace(':', '%3A'), HOST_WITH_PORT.toUpperCase()])(
    '%s reaches the origin that is configured with its port',
    async (host) => {
      await origin.publish({ provider: `${HOST_WITH_PORT}/acme/widget`, version: '1.0.0' })
      await using mirror = await startMirror({ origin })
      const answer = await mirror.ask(`/providers/${host}/acme/widget/index.json`)
      expect(answer.json()).toEqual({ versions: { '1.0.0': {} } })
      expect(origin.requests.map(({ headers }) => headers.host)).toEqual([HOST_WITH_PORT, HOST_WITH_PORT])
    },
  )

  test('the default port is no port', async () => {
    await origin.publish({ provider: 'acme/default', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    for (const host of [HOST, `${HOST}:443`, `${HOST}%3A0443`]) {
      expect((await mirror.ask(`/providers/${host}/acme/default/index.json`)).status).toBe(200)
    }
    expect(origin.count('versions acme/default')).toBe(1)
  })

  test('Unicode, punycode and any letter case share one entry', async () => {
    await origin.publish({ provider: `${PUNYCODE_HOST}/acme/widget`, version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    for (const host of [PUNYCODE_HOST, 'b%C3%BCcher.example', 'B%C3%9CCHER.example', 'XN--BCHER-KVA.Example']) {
      const answer = await mirror.ask(`/providers/${host}/acme/widget/index.json`)
      expect(answer.json()).toEqual({ versions: { '1.0.0': {} } })
    }
    expect(origin.count(`versions ${PUNYCODE_HOST}/acme/widget`)).toBe(1)
  })

  test('letter case of an address makes no second copy', async () => {
    await origin.publish({ provider: 'acme/cased', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    for (const provider of ['acme/cased', 'Acme/Cased', 'ACME/CASED']) {
      expect((await mirror.index(provider)).status).toBe(200)
      expect((await mirror.archive(provider, '1.0.0', 'linux_amd64')).status).toBe(200)
    }
    expect(origin.count('versions acme/cased')).toBe(1)
    expect(origin.count('archive acme/cased')).toBe(1)
    expect(origin.requests.filter(({ url }) => /[A-Z]/.test(url.replace('SHA256SUMS', '')))).toEqual([])
  })

  test('two hosts are two origins: what one lacks is not looked for at the other', async () => {
    await origin.publish({ provider: 'other.example.test/acme/only', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    expect((await mirror.index(`${HOST}/acme/only`)).status).toBe(404)
    expect(origin.count('versions other.example.test/acme/only')).toBe(0)
    expect((await mirror.index('other.example.test/acme/only')).status).toBe(200)
  })
})

describe('links to archives (B53)', () => {
  test.each(['1.0.0', '2.0.0-beta.1+meta.5'])('are relative, plain and without a query (%s)', async (version) => {
    const provider = `acme/linked${version.length}`
    await origin.publish({ provider, version })
    const { archives } = (await shared.version(provider, version)).json()
    for (const { url } of Object.values<{ url: string }>(archives)) {
      expect(url).toMatch(/^(?:[A-Za-z0-9._~-]|%2B)+(?:\/(?:[A-Za-z0-9._~-]|%2B)+)*$/)
    }
  })

  test('an archive is served with and without credentials, which reach nobody', async () => {
    await origin.publish({ provider: 'acme/open', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    for (const authorization of ['Bearer planted-client-token', 'Basic cGxhbnRlZDpjbGllbnQ=', '']) {
      const headers: Record<string, string> = authorization === '' ? {} : { authorization }
      expect((await mirror.archive('acme/open', '1.0.0', 'linux_amd64', { headers })).status).toBe(200)
    }
    expect(origin.requests.filter(({ headers }) => headers.authorization !== undefined)).toEqual([])
  })
})
