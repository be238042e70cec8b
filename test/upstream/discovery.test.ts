import { existsSync, readFileSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { pino } from 'pino'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { MirrorError } from '../../src/errors.ts'
import { silentLog } from '../../src/log.ts'
import { parseHostname } from '../../src/protocol/hostname.ts'
import { Discovery, type DiscoveryOptions } from '../../src/upstream/discovery.ts'
import type { DiscoveryStore } from '../../src/upstream/discovery-memory.ts'
import { failure, hang, MemoryOriginClient, type Reply } from './memory-origin-client.ts'

const HOST = parseHostname('registry.acme.example')
const WELL_KNOWN = 'https://registry.acme.example/.well-known/terraform.json'
const BASE = 'https://registry.acme.example/v1/providers/'
const GOOD: Reply = { body: { 'providers.v1': '/v1/providers/' } }
const FRESH_FOR_MS = 1000

afterEach(() => {
  vi.restoreAllMocks()
})

class MapMemory implements DiscoveryStore {
  readonly entries = new Map<string, string>()
  async get(key: string): Promise<unknown> {
    const text = this.entries.get(key)
    return text === undefined ? undefined : JSON.parse(text)
  }
  async set(key: string, value: unknown): Promise<void> {
    this.entries.set(key, JSON.stringify(value))
  }
}

class Clock {
  at = 1_000_000
  readonly now = () => this.at
}

function setUp(overrides: Partial<DiscoveryOptions> = {}) {
  const client = new MemoryOriginClient()
  const memory = new MapMemory()
  const clock = new Clock()
  const logged: Record<string, unknown>[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => logged.push(JSON.parse(line)) })
  const options = { hostname: HOST, client, overrides: {}, memory, freshForMs: FRESH_FOR_MS, graceMs: 30, log }
  const create = (more: Partial<DiscoveryOptions> = {}) =>
    new Discovery({ ...options, now: clock.now, ...overrides, ...more })
  return { client, memory, clock, logged, create, discovery: create() }
}

function askModules(discovery: Discovery) {
  const request = { signal: AbortSignal.timeout(10_000), hops: [] }
  return discovery.serviceBase('modules.v1', request).then(({ url }) => url.href)
}

function ask(discovery: Discovery, signal = AbortSignal.timeout(10_000), hops: readonly string[] = []) {
  return discovery.serviceBase('providers.v1', { signal, hops }).then(({ url }) => url.href)
}

/** Fetches the good document once, then lets it expire. */
async function setUpExpired() {
  const parts = setUp()
  parts.client.on(WELL_KNOWN, GOOD)
  expect(await ask(parts.discovery)).toBe(BASE)
  parts.clock.at += FRESH_FOR_MS
  return parts
}

describe('modules', () => {
  const MODULES = 'https://registry.acme.example/m/'

  test('what is missing is named by what was asked for', async () => {
    const { client, discovery } = setUp()
    const fields = { upstreamUrl: WELL_KNOWN, upstreamStatus: 404 }
    await expect(askModules(discovery)).rejects.toMatchObject({ code: 'NO_MODULE_SERVICE', fields })
    client.on(WELL_KNOWN, GOOD)
    await expect(askModules(discovery)).rejects.toMatchObject({ code: 'NO_MODULE_SERVICE' })
    client.on(WELL_KNOWN, { body: { 'modules.v1': '/m/' } })
    expect(await askModules(discovery)).toBe(MODULES)
    await expect(ask(discovery)).rejects.toMatchObject({ code: 'NO_PROVIDER_SERVICE' })
  })

  test('an unusable service is a fault of the document for as long as it stands there, and of no other service', async () => {
    const { client, discovery, clock } = setUp()
    client.on(WELL_KNOWN, { body: { 'providers.v1': '/v1/providers/', 'modules.v1': 'ftp://registry.acme.example/' } })
    await expect(askModules(discovery)).rejects.toMatchObject({ code: 'UPSTREAM_INVALID' })
    expect(await ask(discovery)).toBe(BASE)
    client.on(WELL_KNOWN, { body: { 'modules.v1': '/m/', 'providers.v1': '/v1/providers/' } })
    expect(await askModules(discovery)).toBe(MODULES)
    clock.at += FRESH_FOR_MS
    client.on(WELL_KNOWN, { body: { 'providers.v1': '/v1/providers/', 'modules.v1': 'ftp://registry.acme.example/' } })
    expect(await askModules(discovery)).toBe(MODULES)
  })
})

describe('the request', () => {
  test('goes to the well-known URL with the limits of the clients, the hops and no foreign trust', async () => {
    const { client, discovery } = setUp()
    client.on(WELL_KNOWN, GOOD)
    expect(await ask(discovery, undefined, ['mirror-a'])).toBe(BASE)
    const expected = { url: WELL_KNOWN, accept: 'application/json', maxBytes: 1024 * 1024, maxRedirects: 3 }
    expect(client.requests).toHaveLength(1)
    expect(client.requests[0]).toMatchObject({ ...expected, hops: ['mirror-a'] })
    expect(client.requests[0]?.trusted).toBeUndefined()
  })

  test('keeps a port', async () => {
    const { client, create } = setUp()
    client.on('https://registry.acme.example:8443/.well-known/terraform.json', GOOD)
    const discovery = create({ hostname: parseHostname('registry.acme.example:8443') })
    expect(await ask(discovery)).toBe('https://registry.acme.example:8443/v1/providers/')
  })

  test('follows three redirects, not four (D3)', async () => {
    const { client, discovery } = setUp()
    client.on(WELL_KNOWN, { redirect: '/1' })
    client.on('https://registry.acme.example/1', { redirect: '/2' })
    client.on('https://registry.acme.example/2', { redirect: 'https://other.example/x/3' })
    client.on('https://other.example/x/3', GOOD)
    expect(await ask(discovery)).toBe('https://other.example/v1/providers/')

    const longer = setUp()
    longer.client.on(WELL_KNOWN, { redirect: '/0' })
    longer.client.on('https://registry.acme.example/0', { redirect: '/1' })
    longer.client.on('https://registry.acme.example/1', { redirect: '/2' })
    longer.client.on('https://registry.acme.example/2', { redirect: '/3' })
    longer.client.on('https://registry.acme.example/3', GOOD)
    await expect(ask(longer.discovery)).rejects.toMatchObject({ code: 'UPSTREAM_INVALID' })
  })

  test('is limited to 1 MiB', async () => {
    const { client, discovery } = setUp()
    client.on(WELL_KNOWN, { body: { 'providers.v1': '/', padding: 'x'.repeat(1024 * 1024) } })
    await expect(ask(discovery)).rejects.toMatchObject({ code: 'UPSTREAM_TOO_LARGE' })
  })
})

describe('the base URL', () => {
  test.each([
    ['/v1/providers/', BASE],
    ['v1/providers/', 'https://registry.acme.example/.well-known/v1/providers/'],
    ['https://third.example/tf/', 'https://third.example/tf/'],
    ['https://third.example/tf', 'https://third.example/tf/'],
    ['http://third.example/tf/?token=secret#x', 'http://third.example/tf/'],
  ])('%s resolves to %s', async (value, expected) => {
    const { client, discovery } = setUp()
    client.on(WELL_KNOWN, { body: { 'providers.v1': value } })
    expect(await ask(discovery)).toBe(expected)
  })

  test('a relative one resolves against the final URL, on another host and without trailing slash (B52)', async () => {
    for (const value of ['../api/tf/', '../api/tf']) {
      const { client, discovery } = setUp()
      client.on(WELL_KNOWN, { redirect: 'https://cdn.example/docs/terraform.json' })
      client.on('https://cdn.example/docs/terraform.json', { body: { 'providers.v1': value } })
      expect(await ask(discovery)).toBe('https://cdn.example/api/tf/')
    }
  })

  test('an override is used without any request', async () => {
    const { client, create } = setUp()
    const fixed = create({ overrides: { 'providers.v1': 'https://mirror.acme.example/tf' } })
    expect(await ask(fixed)).toBe('https://mirror.acme.example/tf/')
    expect(await ask(create({ overrides: { 'providers.v1': '/tf/' } }))).toBe('https://registry.acme.example/tf/')
    expect(client.requests).toHaveLength(0)
    const wrong = create({ overrides: { 'providers.v1': 'https://user:secret@mirror.acme.example/' } })
    await expect(ask(wrong)).rejects.toMatchObject({ code: 'CONFIGURATION' })
    await expect(ask(wrong)).rejects.not.toThrow(/secret/)
  })

  test('an override of another service changes nothing', async () => {
    const { client, create } = setUp()
    client.on(WELL_KNOWN, GOOD)
    expect(await ask(create({ overrides: { 'modules.v1': 'https://mirror.acme.example/m/' } }))).toBe(BASE)
  })
})

describe('what is no registry', () => {
  test.each<[string, Reply]>([
    ['a web page', { mediaType: 'text/html', body: '<html></html>' }],
    ['JSON under another media type', { mediaType: 'text/plain', body: { 'providers.v1': '/' } }],
    ['an array', { body: [] }],
    ['trailing data', { body: '{"providers.v1":"/"} x' }],
    ['a URL with user name and password', { body: { 'providers.v1': 'https://user:secret@x.example/' } }],
  ])('%s is UPSTREAM_INVALID', async (_name, reply) => {
    const { client, discovery, memory } = setUp()
    client.on(WELL_KNOWN, reply)
    await expect(ask(discovery)).rejects.toMatchObject({ code: 'UPSTREAM_INVALID' })
    expect(memory.entries.size).toBe(0)
  })

  test.each([401, 403, 418, 204])('status %i is an outage, with its number', async (status) => {
    const { client, discovery } = setUp()
    client.on(WELL_KNOWN, { status, body: '' })
    const fields = { upstreamStatus: status, upstreamUrl: WELL_KNOWN }
    await expect(ask(discovery)).rejects.toMatchObject({ code: 'UPSTREAM_STATUS', fields })
  })

  test('404 from a host that never served is "no services", asked anew each time', async () => {
    const { client, discovery } = setUp()
    const expected = { code: 'NO_PROVIDER_SERVICE', message: expect.stringContaining('offers no Terraform services') }
    await expect(ask(discovery)).rejects.toMatchObject({ ...expected, fields: { upstreamStatus: 404 } })
    await expect(ask(discovery)).rejects.toMatchObject(expected)
    expect(client.count(WELL_KNOWN)).toBe(2)
    client.on(WELL_KNOWN, GOOD)
    expect(await ask(discovery)).toBe(BASE)
  })

  test('a document without providers.v1 says what the host does offer, and is asked anew each time', async () => {
    const { client, discovery } = setUp()
    client.on(WELL_KNOWN, { body: { 'modules.v1': '/m/', 'providers.v2': '/p/', 'providers.v1': 7 } })
    const expected = { code: 'NO_PROVIDER_SERVICE', message: expect.stringContaining('modules.v1, providers.v2') }
    await expect(ask(discovery)).rejects.toMatchObject(expected)
    client.on(WELL_KNOWN, { status: 404, body: '' })
    await expect(ask(discovery)).rejects.toMatchObject({ code: 'UPSTREAM_STATUS', fields: { upstreamStatus: 404 } })
    client.on(WELL_KNOWN, GOOD)
    expect(await ask(discovery)).toBe(BASE)
  })
})

describe('freshness', () => {
  test('a fresh document is not asked for again; an expired one is', async () => {
    const { client, clock, discovery } = setUp()
    client.on(WELL_KNOWN, GOOD)
    await ask(discovery)
    clock.at += FRESH_FOR_MS - 1
    await ask(discovery)
    expect(client.count(WELL_KNOWN)).toBe(1)
    clock.at += 1
    client.on(WELL_KNOWN, { body: { 'providers.v1': '/v2/' } })
    expect(await ask(discovery)).toBe('https://registry.acme.example/v2/')
    expect(client.count(WELL_KNOWN)).toBe(2)
  })

  test('a clock that was set back does not keep a document fresh for ever', async () => {
    const { client, clock, discovery } = setUp()
    client.on(WELL_KNOWN, GOOD)
    await ask(discovery)
    clock.at -= 10 * FRESH_FOR_MS
    await ask(discovery)
    expect(client.count(WELL_KNOWN)).toBe(2)
  })

  test('however many ask, there is one request', async () => {
    const { client, discovery } = setUp()
    client.on(WELL_KNOWN, async () => {
      await turn()
      return GOOD
    })
    const answers = await Promise.all(Array.from({ length: 50 }, () => ask(discovery)))
    expect(new Set(answers)).toEqual(new Set([BASE]))
    expect(client.count(WELL_KNOWN)).toBe(1)
  })

  test('an impatient caller gets UPSTREAM_TIMEOUT and takes nothing from the others', async () => {
    const { client, discovery } = setUp()
    const gate = Promise.withResolvers<Reply>()
    client.on(WELL_KNOWN, () => gate.promise)
    const caller = new AbortController()
    const impatient = ask(discovery, caller.signal)
    const patient = ask(discovery)
    await vi.waitFor(() => expect(client.inFlight).toBe(1))
    caller.abort()
    await expect(impatient).rejects.toMatchObject({ code: 'UPSTREAM_TIMEOUT', fields: { upstreamUrl: WELL_KNOWN } })
    expect(client.requests[0]?.signal.aborted).toBe(false)
    gate.resolve(GOOD)
    expect(await patient).toBe(BASE)
    await expect(ask(setUp().discovery, caller.signal)).rejects.toMatchObject({ code: 'UPSTREAM_TIMEOUT' })

    const stopping = AbortSignal.abort(new MirrorError('SHUTTING_DOWN', 'stopping', {}))
    await expect(ask(setUp().discovery, stopping)).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
  })

  test('the refresh has a deadline of 8 s of its own', async () => {
    const { client, discovery } = setUp()
    client.on(WELL_KNOWN, hang)
    const caller = AbortSignal.timeout(60_000)
    const deadline = AbortSignal.timeout(20)
    const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(deadline)
    await expect(ask(discovery, caller)).rejects.toMatchObject({ code: 'UPSTREAM_TIMEOUT' })
    expect(timeout).toHaveBeenCalledExactlyOnceWith(8000)
  })
})

describe('an origin in trouble, with something remembered', () => {
  test.each<[string, () => Reply | Promise<Reply>]>([
    ['404', () => ({ status: 404, body: '' })],
    ['403', () => ({ status: 403, body: '' })],
    ['500', () => ({ status: 500, body: '' })],
    ['a web page', () => ({ mediaType: 'text/html', body: '<html>' })],
    ['an unusable service URL', () => ({ body: { 'providers.v1': 'ftp://x.example/' } })],
    ['no connection', () => Promise.reject(failure('UPSTREAM_UNREACHABLE', new URL(WELL_KNOWN)))],
  ])('%s: the remembered document serves on, with one warning (B38)', async (_name, route) => {
    const { client, clock, discovery, logged } = await setUpExpired()
    client.on(WELL_KNOWN, route)
    expect(await ask(discovery)).toBe(BASE)
    expect(logged).toHaveLength(1)
    expect(logged[0]).toMatchObject({ level: 40, hostname: HOST, code: expect.stringMatching(/^UPSTREAM_/) })

    await ask(discovery)
    clock.at += 9_999
    await ask(discovery)
    expect(client.count(WELL_KNOWN)).toBe(2) // no new try for ten seconds
    clock.at += 1
    await ask(discovery)
    expect(client.count(WELL_KNOWN)).toBe(3)
    expect(logged).toHaveLength(2)
    clock.at += 10_000
    client.on(WELL_KNOWN, { body: { 'providers.v1': '/new/' } })
    expect(await ask(discovery)).toBe('https://registry.acme.example/new/')
  })

  test('hanging: the grace is paid once for a refresh, which goes on in the background', async () => {
    const { client, discovery, logged } = await setUpExpired()
    const gate = Promise.withResolvers<Reply>()
    client.on(WELL_KNOWN, () => gate.promise)
    expect(await ask(discovery)).toBe(BASE)
    expect(client.inFlight).toBe(1)

    // The grace of this refresh is over: whoever comes now is answered without any timer.
    let answered = false
    const second = ask(discovery).then(() => {
      answered = true
    })
    await turn()
    expect(answered).toBe(true)
    await second
    expect(client.count(WELL_KNOWN)).toBe(2)
    gate.resolve({ body: { 'providers.v1': '/new/' } })
    await vi.waitFor(async () => expect(await ask(discovery)).toBe('https://registry.acme.example/new/'))
    expect(client.count(WELL_KNOWN)).toBe(2)
    expect(logged).toEqual([])
  })

  test('a service that the origin withdraws in a good document is withdrawn', async () => {
    const { client, discovery } = await setUpExpired()
    client.on(WELL_KNOWN, { body: { 'modules.v1': '/m/' } })
    await expect(ask(discovery)).rejects.toMatchObject({ code: 'NO_PROVIDER_SERVICE' })
    // From then on an outage is an outage, not "no such service".
    client.on(WELL_KNOWN, { status: 500, body: '' })
    await expect(ask(discovery)).rejects.toMatchObject({ code: 'UPSTREAM_STATUS' })
  })
})

describe('memory', () => {
  test('survives a restart: fresh without a request, expired with the origin down', async () => {
    const { client, clock, discovery, create } = setUp()
    client.on(WELL_KNOWN, GOOD)
    await ask(discovery)
    client.on(WELL_KNOWN, { status: 404, body: '' })

    expect(await ask(create())).toBe(BASE)
    expect(client.count(WELL_KNOWN)).toBe(1)
    clock.at += 365 * 24 * 3_600_000
    expect(await ask(create())).toBe(BASE)
    expect(client.count(WELL_KNOWN)).toBe(2)
    client.on(WELL_KNOWN, hang)
    expect(await ask(create())).toBe(BASE)
  })

  test.each<[string, unknown]>([
    ['text', 'x'],
    ['another shape', { document: { url: WELL_KNOWN, services: { 'providers.v1': 1 } }, fetchedAt: 1_000_000 }],
    ['no time', { document: { url: WELL_KNOWN, services: { 'providers.v1': BASE } } }],
    ['an unusable URL', { document: { url: WELL_KNOWN, services: { 'providers.v1': 'file:///x' } }, fetchedAt: 1e6 }],
  ])('%s in it is nothing remembered', async (_name, content) => {
    const { client, memory, discovery } = setUp()
    await memory.set(`discovery/${HOST}`, content)
    await expect(ask(discovery)).rejects.toMatchObject({ code: 'NO_PROVIDER_SERVICE' })
    client.on(WELL_KNOWN, GOOD)
    expect(await ask(discovery)).toBe(BASE)
  })

  test('that fails is reported and costs no answer', async () => {
    const broken = { get: () => Promise.reject(new Error('disk')), set: () => Promise.reject(new Error('disk')) }
    const { client, create, logged } = setUp()
    client.on(WELL_KNOWN, GOOD)
    const discovery = create({ memory: broken })
    expect(await ask(discovery)).toBe(BASE)
    expect(await ask(discovery)).toBe(BASE)
    expect(logged.map((line) => line.msg)).toEqual([
      'the discovery document could not be read',
      'the discovery document could not be kept',
    ])
  })

  test('holds no secret of a service URL', async () => {
    const { client, memory, discovery } = setUp()
    const body = { 'providers.v1': '/p/?key=s3cret', 'tfe.v2': 'https://me:s3cret@x.example/' }
    client.on(WELL_KNOWN, { redirect: '/d.json?sig=s3cret' })
    client.on('https://registry.acme.example/d.json?sig=s3cret', { body })
    expect(await ask(discovery)).toBe('https://registry.acme.example/p/')
    expect([...memory.entries.values()].join()).not.toContain('s3cret')
  })
})

const vectors = new URL('../../../shared/vectors/responses/discovery.json', import.meta.url)
const held = existsSync(vectors)
if (!held) console.warn('SKIPPED: ../shared/vectors is not there')

test.skipIf(!held)('every real discovery document resolves as the clients do', async () => {
  const cases: { host: string; body: Record<string, unknown> | null }[] = JSON.parse(readFileSync(vectors, 'utf8'))
  const documents = cases.flatMap(({ host, body }) => (body === null ? [] : [{ host, body }]))
  expect(documents.length).toBeGreaterThan(10)
  for (const [index, { host, body }] of documents.entries()) {
    const hostname = parseHostname(/^[a-z.\d-]+\.[a-z]+$/.test(host) ? host : `host-${index}.example`)
    const url = `https://${hostname}/.well-known/terraform.json`
    const client = new MemoryOriginClient().on(url, { body })
    const { discovery } = setUp({ hostname, client, log: silentLog() })
    const value = body['providers.v1']
    if (typeof value !== 'string') {
      await expect(ask(discovery), host).rejects.toMatchObject({ code: 'NO_PROVIDER_SERVICE' })
      continue
    }
    const expected = new URL(value, url).href
    expect(await ask(discovery), host).toBe(expected.endsWith('/') ? expected : `${expected}/`)
  }
})
