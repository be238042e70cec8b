import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { JsonDocument, Release } from '../origin/release.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'

const HOST = 'registry.example.test'
const CDN = 'cdn.example.test'

let origin: TestOrigin

beforeEach(async () => {
  origin = await startOrigin()
})
afterEach(() => origin[Symbol.asyncDispose]())

/** Hosts that documents point to stand on loopback here, under `/at/HOST/` of another authority. */
function start(more: Record<string, unknown> = {}): Promise<TestMirror> {
  return startMirror({ origin, config: { origins: { [HOST]: { allowPrivateAddresses: true, ...more } } } })
}

async function expectInstallable(mirror: TestMirror, release: Release): Promise<void> {
  expect((await mirror.index('acme/widget')).json()).toEqual({ versions: { '1.0.0': {} } })
  const { archives } = (await mirror.version('acme/widget', '1.0.0')).json()
  expect(Object.keys(archives)).toHaveLength(4)
  const archive = await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
  expect(archive.body.equals(await release.package('linux_amd64').bytes())).toBe(true)
  for (const answer of [await mirror.index('acme/widget'), await mirror.version('acme/widget', '1.0.0')]) {
    expect(`${answer.body}${JSON.stringify(answer.headers)}`).not.toMatch(/127\.0\.0\.1|cdn\.example|https:/)
  }
}

/** Answers `path` of the origin with a JSON document. */
function answer(path: string, document: JsonDocument): void {
  const body = JSON.stringify(document)
  origin.fault({ when: ({ url }) => url === path }, { status: 200, contentType: 'application/json', body })
}

describe('where service discovery points (B52)', () => {
  const services: [string, () => string, string][] = [
    ['a path', () => '/v1/providers/', '/v1/providers/acme/widget/versions'],
    ['a path without its last slash', () => '/v1/providers', '/v1/providers/acme/widget/versions'],
    ['another path', () => '/api/tf/', '/api/tf/acme/widget/versions'],
    ['a relative path', () => '../api/tf/', '/api/tf/acme/widget/versions'],
    ['a relative path without its last slash', () => '../api/tf', '/api/tf/acme/widget/versions'],
    ['a path beside the document', () => 'tf/', '/.well-known/tf/acme/widget/versions'],
    ['a whole URL', () => `https://${HOST}/x/`, '/x/acme/widget/versions'],
    ['a whole URL at another host', () => `${origin.url(CDN)}x/`, `/at/${CDN}/x/acme/widget/versions`],
    ['a whole URL with a query', () => `https://${HOST}/x/?secret=1`, '/x/acme/widget/versions'],
  ]
  test.each(services)('%s', async (_what, service, path) => {
    answer('/.well-known/terraform.json', { 'providers.v1': service(), 'modules.v1': '/m/', 'other.v9': 7 })
    answer(path, { versions: [{ version: '3.2.1', protocols: ['5.0'], platforms: [] }] })
    await using mirror = await start()
    expect((await mirror.index('acme/widget')).json()).toEqual({ versions: { '3.2.1': {} } })
    expect(origin.requests.map(({ url }) => url)).toEqual(['/.well-known/terraform.json', path])
  })

  test('a relative path behind a redirect to another host belongs to that host', async () => {
    const target = `${origin.url(CDN)}deep/inside/discovery.json`
    origin.fault({ kind: 'discovery', host: HOST }, { redirect: target })
    answer(`/at/${CDN}/deep/inside/discovery.json`, { 'providers.v1': '../api/tf' })
    answer(`/at/${CDN}/deep/api/tf/acme/widget/versions`, { versions: [{ version: '3.2.1' }] })
    await using mirror = await start()
    expect((await mirror.index('acme/widget')).json()).toEqual({ versions: { '3.2.1': {} } })
  })

  test('services in the configuration are used instead, unasked', async () => {
    const release = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await start({ services: { 'providers.v1': `${origin.url(HOST)}v1/providers/` } })
    origin.fault({ kind: 'discovery' }, { status: 500 })
    await expectInstallable(mirror, release)
    expect(origin.count('discovery')).toBe(0)
  })
})

describe('links in documents are resolved against the document (B52)', () => {
  const base = `/releases/${HOST}/acme/widget/1.0.0`
  const shapes: [string, (document: JsonDocument) => JsonDocument][] = [
    ['relative to it', (each) => ({ ...each, download_url: `../../../../../../..${String(each.download_url)}` })],
    [
      'with dot segments and doubled slashes in a query',
      (each) => ({ ...each, download_url: `${String(each.download_url)}?next=//../x` }),
    ],
    [
      'at another host',
      (each) => ({ ...each, download_url: `${origin.url(CDN)}${String(each.download_url).slice(1)}` }),
    ],
    [
      'sums and signature at another host',
      (each) => ({
        ...each,
        shasums_url: `${origin.url(CDN)}${String(each.shasums_url).slice(1)}`,
        shasums_signature_url: `${origin.url(CDN)}${String(each.shasums_signature_url).slice(1)}`,
      }),
    ],
    ['without a scheme', (each) => ({ ...each, download_url: `//${HOST}${String(each.download_url)}` })],
    [
      'relative, and the sums by root',
      (each) => {
        const file = String(each.download_url).split('/').slice(-2).join('/')
        return { ...each, download_url: `../../../../../../..${base}/${file}` }
      },
    ],
  ]
  test.each(shapes)('%s', async (_what, document) => {
    const release = await origin.publish({ provider: 'acme/widget', version: '1.0.0', document })
    await using mirror = await start()
    await expectInstallable(mirror, release)
  })

  test('after a redirect of the document, against where it was found', async () => {
    const moved = '/moved/deep/down/document.json'
    const release = await origin.publish({ provider: 'acme/widget', version: '1.0.0', platforms: ['linux_amd64'] })
    const file = String(release.document('linux_amd64')?.download_url)
    answer(moved, {
      ...release.document('linux_amd64'),
      download_url: `../..${file.replace('/releases', '/../releases')}`,
    })
    origin.fault({ kind: 'download' }, { redirect: moved })
    await using mirror = await start()
    const archive = await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    expect(archive.body.equals(await release.package('linux_amd64').bytes())).toBe(true)
  })

  test.each([301, 302, 303, 307, 308])('archives and sums may redirect with %i', async (status) => {
    const release = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await start()
    origin.fault(
      { kind: ['archive', 'sums', 'signature'], host: HOST },
      { status, redirect: ({ url }) => `${origin.url(CDN)}${url.slice(1)}` },
    )
    await expectInstallable(mirror, release)
  })

  const outOfBounds: [string, Record<string, unknown>, () => string][] = [
    ['a private address', { allowPrivateAddresses: false }, () => `${origin.url(CDN)}x.zip`],
    ['a host outside allowedHosts', { allowedHosts: ['*.acme.example'] }, () => `${origin.url(CDN)}x.zip`],
    ['plain http', {}, () => `http://${HOST}/x.zip`],
    ['a metadata service', {}, () => 'https://169.254.169.254/latest/x.zip'],
  ]
  test.each(outOfBounds)('a link to %s is refused before anybody is called', async (_what, rules, link) => {
    const document = (each: JsonDocument): JsonDocument => ({ ...each, download_url: link() })
    await origin.publish({ provider: 'acme/widget', version: '1.0.0', document })
    await using mirror = await start(rules)
    const archive = await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    expect([archive.status, archive.json().code]).toEqual([502, 'UPSTREAM_REFUSED'])
    expect(origin.requests.filter(({ url }) => url.endsWith('x.zip'))).toEqual([])
  })
})

describe('a front that compresses changes nothing (B48)', () => {
  test.each([
    ['everything', {}],
    ['the list', { kind: 'versions' }],
    ['SHA256SUMS and its signature', { kind: ['sums', 'signature'] }],
    ['the archive', { kind: 'archive' }],
  ] as const)('%s with Content-Encoding: gzip', async (_what, matcher) => {
    const release = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await start()
    const packed = origin.fault(matcher, { gzip: true })
    await expectInstallable(mirror, release)
    expect(packed.struck).toBeGreaterThan(0)
  })

  test.each(['br', 'x-unknown'])('an archive in a coding that it is not in (%s) is refused', async (encoding) => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await start()
    origin.fault({ kind: 'archive' }, { headers: { 'content-encoding': encoding } })
    const archive = await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    expect([archive.status, archive.json().code]).toEqual([502, 'UPSTREAM_INVALID'])
  })

  test('archives are asked for as they are', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await start()
    await mirror.archive('acme/widget', '1.0.0', 'linux_amd64', { headers: { 'accept-encoding': 'gzip' } })
    const archives = origin.requests.filter(({ kind }) => kind === 'archive')
    expect(archives.map(({ headers }) => headers['accept-encoding'])).toEqual(['identity'])
  })
})
