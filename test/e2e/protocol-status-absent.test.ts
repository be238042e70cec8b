import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Behaviour } from '../origin/fault.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { startMirror } from './mirror-fixture.ts'
import { expectAnswers } from './status-answers.ts'

/* The rows of the status table (design, section 3) about what is not there, and about who cannot say. */

let origin: TestOrigin

beforeAll(async () => {
  origin = await startOrigin()
})
beforeEach(() => origin.reset())
afterAll(() => origin[Symbol.asyncDispose]())

describe('what we do not serve is absent, without asking anybody', () => {
  const rows: [string, string, number][] = [
    ['an origin that is not allowed', 'elsewhere.example/acme/widget', 404],
    ['an allowed name on another port', 'registry.example.test:8443/acme/widget', 404],
    ['a namespace outside the grammar', 'registry.example.test/ac--me/widget', 404],
    ['a type outside the grammar', 'registry.example.test/acme/-widget', 404],
    ['the legacy namespace', 'registry.example.test/-/widget', 404],
  ]
  test.each(rows)('%s: 404, an empty document, 404', async (_situation, provider, index) => {
    await using mirror = await startMirror({ origin })
    await expectAnswers(mirror, { provider }, { index, version: 'empty', archive: 404 })
    expect(origin.connections).toBe(0)
  })

  test('a version or platform outside the grammar: an empty document, 404', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    await expectAnswers(mirror, { version: 'latest' }, { index: 200, version: 'empty', archive: 404 })
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux')).json().code).toBe('INVALID_ADDRESS')
    expect((await mirror.archive('acme/widget', '1.0.0', 'LINUX_amd64')).status).toBe(404)
  })
})

describe('absence is told on the word of the origin', () => {
  test('a provider that the origin does not have: 404, an empty document, 404', async () => {
    await using mirror = await startMirror({ origin })
    const asked = { provider: 'acme/nothing' }
    await expectAnswers(mirror, asked, { index: 404, version: 'empty', archive: 404, code: 'PROVIDER_NOT_FOUND' })
    const remembered = await mirror.index('acme/nothing')
    expect(remembered.json()).toMatchObject({ code: 'PROVIDER_NOT_FOUND', upstream_status: 404 })
    expect(remembered.headers['terramirror-cache']).toBe('negative')
    expect(origin.count('versions acme/nothing')).toBe(1)
  })

  test('a host without any Terraform service: 404, an empty document, 404', async () => {
    origin.fault({ kind: 'discovery' }, { status: 404 })
    await using mirror = await startMirror({ origin })
    await expectAnswers(mirror, {}, { index: 404, version: 'empty', archive: 404, code: 'NO_PROVIDER_SERVICE' })
  })

  test('a host that offers modules only: 404, an empty document, 404', async () => {
    origin.fault({ kind: 'discovery' }, { body: '{"modules.v1":"/m/"}', contentType: 'application/json' })
    await using mirror = await startMirror({ origin })
    await expectAnswers(mirror, {}, { index: 404, version: 'empty', archive: 404, code: 'NO_PROVIDER_SERVICE' })
  })

  test('a version that a fresh list does not have, after one refresh: an empty document, 404', async () => {
    await origin.publish({ provider: 'acme/gear', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    await mirror.index('acme/gear')
    const asked = { provider: 'acme/gear', version: '9.9.9' }
    await expectAnswers(mirror, asked, { index: 200, version: 'empty', archive: 404, code: 'VERSION_NOT_FOUND' })
    expect(origin.count('versions acme/gear')).toBe(2)
  })

  test('a platform that is not published: left out, 404', async () => {
    await origin.publish({ provider: 'acme/gear', version: '1.0.0', platforms: ['linux_amd64'] })
    await using mirror = await startMirror({ origin })
    const asked = { provider: 'acme/gear', platform: 'windows_arm64' }
    const code = 'PLATFORM_NOT_FOUND'
    await expectAnswers(mirror, asked, { index: 200, version: 200, download: 404, archive: 404, code })
  })
})

describe('an outage is never told as absence: with nothing held', () => {
  const rows: [string, Behaviour, number, string?][] = [
    ['500 for everything', { status: 500 }, 502, 'UPSTREAM_STATUS'],
    ['503 for everything', { status: 503 }, 502, 'UPSTREAM_STATUS'],
    ['401 for everything', { status: 401 }, 502, 'UPSTREAM_STATUS'],
    ['403 for everything', { status: 403 }, 502, 'UPSTREAM_STATUS'],
    ['410 for everything', { status: 410 }, 502, 'UPSTREAM_STATUS'],
    ['broken connections', { drop: true }, 502, 'UPSTREAM_UNREACHABLE'],
    ['a web page', { body: '<html>Welcome</html>', contentType: 'text/html' }, 502],
    ['something that is not JSON', { body: 'it works!', contentType: 'application/json' }, 502],
    ['JSON that is no list', { body: '[]', contentType: 'application/json' }, 502],
    ['a body that ends early', { torn: 0.5 }, 502],
    ['a redirect in a circle', { redirect: ({ url }) => url }, 502],
    ['429 with a long pause', { status: 429, headers: { 'retry-after': '30' } }, 503, 'UPSTREAM_RATE_LIMITED'],
    ['429 without a word', { status: 429 }, 503, 'UPSTREAM_RATE_LIMITED'],
    [
      '403 with an exhausted limit',
      { status: 403, headers: { 'x-ratelimit-remaining': '0' } },
      503,
      'UPSTREAM_RATE_LIMITED',
    ],
  ]
  test.each(rows)('%s', async (_situation, behaviour, status, code) => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    origin.fault({ kind: 'versions' }, behaviour)
    const expected = { index: status, version: status, archive: status, ...(code === undefined ? {} : { code }) }
    await expectAnswers(mirror, {}, expected)
    const statusOfOrigin = behaviour.status
    if (statusOfOrigin === undefined) return
    const { upstream_status, upstream_url } = (await mirror.index('acme/widget')).json()
    expect(upstream_status).toBe(statusOfOrigin)
    expect(upstream_url).toBe('https://registry.example.test/v1/providers/acme/widget/versions')
  })

  const discoveryRows: [string, Behaviour, number][] = [
    ['500', { status: 500 }, 502],
    ['403', { status: 403 }, 502],
    ['a web page', { body: '<html/>', contentType: 'text/html' }, 502],
    ['429', { status: 429 }, 503],
  ]
  test.each(discoveryRows)('service discovery gives %s', async (_situation, behaviour, status) => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    origin.fault({ kind: 'discovery' }, behaviour)
    await expectAnswers(mirror, {}, { index: status, version: status, archive: status })
  })

  test('nobody listens', async () => {
    await using lost = await startOrigin()
    await using mirror = await startMirror({ origin: lost })
    await lost.stop()
    const code = 'UPSTREAM_UNREACHABLE'
    await expectAnswers(mirror, {}, { index: 502, version: 502, archive: 502, code })
  })

  test('silence: 504 in under 9 seconds', { timeout: 20_000 }, async () => {
    await using mirror = await startMirror({ origin })
    origin.fault({}, { hang: true })
    const startedAt = performance.now()
    await expectAnswers(mirror, {}, { index: 504, version: 504, archive: 504, code: 'UPSTREAM_TIMEOUT' })
    expect(performance.now() - startedAt).toBeLessThan(9_000)
  })
})
