import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { loadConfig } from '../src/config/load.ts'
import type { Config } from '../src/config/schema.ts'
import { silentLog } from '../src/log.ts'
import { findOriginConfig, OriginUpstreams } from '../src/origin-upstreams.ts'
import { findOriginKey } from '../src/policy/origin-key.ts'
import { type Hostname, parseHostname } from '../src/protocol/hostname.ts'
import { parseProviderAddressText } from '../src/protocol/provider-address.ts'
import { MemoryMetadataCache } from '../src/store/memory/memory-metadata-cache.ts'
import type { UpstreamObserver } from '../src/upstream/observer.ts'
import { OriginStates } from '../src/upstream/origin-states.ts'
import { failureOf } from './mirror/parts-fixture.ts'
import { startOrigin, type TestOrigin } from './origin/origin.ts'
import { makeTempFolder } from './store/temp-folder.ts'

let stack: AsyncDisposableStack
let folder: string

beforeEach(async () => {
  stack = new AsyncDisposableStack()
  folder = stack.use(await makeTempFolder()).path
})
afterEach(() => stack.disposeAsync())

async function configOf(settings: object): Promise<Config> {
  const file = join(folder, 'config.yaml')
  await writeFile(file, stringify(settings))
  return loadConfig({ file, set: [], cwd: folder, env: {} })
}

const observer: UpstreamObserver = {
  sending: () => undefined,
  answered: () => undefined,
  received: () => undefined,
  retried: () => undefined,
}

function statesOf({ origins }: Config): OriginStates {
  return new OriginStates({ origins, keyOf: (name) => findOriginKey(Object.keys(origins), name), now: Date.now })
}

async function create(config: Config, states = statesOf(config)): Promise<OriginUpstreams> {
  const memory = new MemoryMetadataCache()
  const names = { instanceId: 'test', userAgent: 'Terramirror/test' }
  const upstreams = await OriginUpstreams.create({
    config,
    memory,
    workspaces: { create: () => Promise.reject(new Error('not used here')) },
    observer,
    states,
    ...names,
    now: Date.now,
    log: silentLog(),
  })
  return stack.use(upstreams)
}

function host(text: string): Hostname {
  return parseHostname(text)
}

async function startHosts(...hosts: string[]): Promise<{ origin: TestOrigin; caFile: string }> {
  const origin = stack.use(await startOrigin({ hosts }))
  const caFile = join(folder, 'origin-ca.pem')
  await writeFile(caFile, origin.caPem)
  return { origin, caFile }
}

function versions(upstreams: OriginUpstreams, provider: string) {
  const address = parseProviderAddressText(provider)
  return upstreams.for(address.hostname).versions(address, { signal: AbortSignal.timeout(30_000), hops: [] })
}

describe('the configuration of an origin', () => {
  it('is its own entry, else that of the longest pattern, whatever the order', async () => {
    const { origins } = await configOf({
      origins: {
        '*.example': { token: 'short' },
        '*.corp.example': { token: 'long' },
        'registry.corp.example': { token: 'own' },
        '*.registry.corp.example': { token: 'longest' },
      },
    })
    const tokenOf = (name: string) => findOriginConfig(origins, host(name))?.token
    expect(tokenOf('registry.corp.example')).toBe('own')
    expect(tokenOf('other.corp.example')).toBe('long')
    expect(tokenOf('a.registry.corp.example')).toBe('longest')
    expect(tokenOf('corp.example')).toBe('short')
    expect(findOriginConfig(origins, host('example.org'))).toBeUndefined()
    expect(findOriginConfig(origins, host('other.corp.example:8443'))).toBeUndefined()
  })

  it('is not what every object has', async () => {
    const { origins } = await configOf({})
    expect(findOriginConfig(origins, host('constructor'))).toBeUndefined()
  })
})

describe('the upstream of an origin', () => {
  it('is one for each host, made once', async () => {
    const upstreams = await create(await configOf({ origins: { '*.corp.example': {}, 'a.example': {} } }))
    const first = upstreams.for(host('x.corp.example'))
    expect(upstreams.for(host('x.corp.example'))).toBe(first)
    expect(upstreams.for(host('y.corp.example'))).not.toBe(first)
  })

  it('of a host that is not configured is refused', async () => {
    const upstreams = await create(await configOf({ origins: { 'a.example': {} } }))
    expect(() => upstreams.for(host('b.example'))).toThrow(
      expect.objectContaining({ code: 'ORIGIN_NOT_ALLOWED', fields: { hostname: 'b.example' } }),
    )
  })

  it('asks under the rules of its own entry: address, authority and token', async () => {
    const { origin, caFile } = await startHosts('a.corp.example', 'b.corp.example')
    for (const hostname of origin.hosts) await origin.publish({ provider: `${hostname}/acme/widget`, version: '1.0.0' })
    const { address } = origin
    const config = await configOf({
      origins: {
        '*.corp.example': { address, caFile, token: 'of-the-pattern' },
        'a.corp.example': { address, caFile, token: 'of-its-own' },
      },
    })
    const upstreams = await create(config)
    await versions(upstreams, 'a.corp.example/acme/widget')
    await versions(upstreams, 'b.corp.example/acme/widget')
    const tokens = origin.requests.map((request) => [request.host, request.headers.authorization])
    expect(new Set(tokens.map(String))).toEqual(
      new Set(['a.corp.example,Bearer of-its-own', 'b.corp.example,Bearer of-the-pattern']),
    )
  })

  it('trusts the authority of all upstreams beside its own', async () => {
    const { origin, caFile } = await startHosts('a.example')
    await origin.publish({ provider: 'a.example/acme/widget', version: '1.0.0' })
    const { address } = origin
    const trusting = await create(await configOf({ origins: { 'a.example': { address } }, upstream: { caFile } }))
    expect((await versions(trusting, 'a.example/acme/widget')).versions.length).toBe(1)
    const strict = await create(await configOf({ origins: { 'a.example': { address } }, upstream: { retries: 0 } }))
    expect(await failureOf(versions(strict, 'a.example/acme/widget'))).toMatchObject({ code: 'UPSTREAM_TLS' })
  })
})

describe('the health of an origin', () => {
  async function startWatched() {
    const { origin, caFile } = await startHosts('a.example')
    await origin.publish({ provider: 'a.example/acme/widget', version: '1.0.0' })
    const settings = { address: origin.address, caFile }
    const config = await configOf({ origins: { 'a.example': settings }, upstream: { retries: 0 } })
    const states = statesOf(config)
    const upstreams = await create(config, states)
    const address = parseProviderAddressText('a.example/acme/widget')
    const query = { address, spelling: '1.0.0', platforms: [{ os: 'linux', arch: 'amd64' }], extend: false }
    const release = async () => {
      const patience = AbortSignal.timeout(20_000)
      const claim = await upstreams.for(address.hostname).release({ ...query, patience }, request())
      return claim.platforms[0]
    }
    return { origin, states, upstreams, release }
  }

  function request() {
    return { signal: AbortSignal.timeout(30_000), hops: [] }
  }

  it('follows what it answers: lists, releases of which every platform fails, garbage, limits', async () => {
    const { origin, states, upstreams, release } = await startWatched()
    const health = () => states.list([])[0]?.health
    expect(health()).toBe('unknown')
    await versions(upstreams, 'a.example/acme/widget')
    expect(health()).toBe('well')
    {
      using _ = origin.fault({ kind: 'download' }, { status: 503 })
      await release()
      expect(states.list([])[0]).toMatchObject({ health: 'failing', lastError: { code: 'UPSTREAM_STATUS' } })
    }
    await release()
    expect(health()).toBe('well')
    {
      using _ = origin.fault({ kind: 'versions' }, { body: '<html>', contentType: 'text/html' })
      await failureOf(versions(upstreams, 'a.example/acme/widget'))
      expect(states.list([])[0]).toMatchObject({ health: 'failing', lastError: { code: 'UPSTREAM_INVALID' } })
    }
    using _ = origin.fault({ kind: 'versions' }, { status: 429, headers: { 'Retry-After': '60' } })
    await failureOf(versions(upstreams, 'a.example/acme/widget'))
    expect(health()).toBe('backingOff')
  })

  it('suffers from an archive that breaks off', async () => {
    const { origin, states, upstreams, release } = await startWatched()
    const published = await release()
    if (published?.kind !== 'published') throw new Error('it was not published')
    using _ = origin.fault({ kind: 'archive' }, { torn: 0.5 })
    const stream = await upstreams.for(host('a.example')).openArchive(published, request())
    expect(states.list([])[0]?.health).toBe('well')
    const reading = async () => {
      for await (const _ of stream);
    }
    await failureOf(reading())
    expect(states.list([])[0]?.health).toBe('failing')
  })

  it('says nothing of a query that a URL had', async () => {
    const { states, upstreams } = await startWatched()
    const archiveUrl = 'https://a.example/nothing.zip?signature=secret'
    await failureOf(upstreams.for(host('a.example')).openArchive({ archiveUrl }, request()))
    const { lastError } = states.list([])[0] ?? {}
    expect(lastError?.error).toContain('https://a.example/nothing.zip')
    expect(JSON.stringify(lastError)).not.toContain('secret')
  })
})

describe('a caFile', () => {
  const places = [
    { place: 'of all upstreams', settings: (caFile: string) => ({ upstream: { caFile } }) },
    { place: 'of an origin', settings: (caFile: string) => ({ origins: { 'a.example': { caFile } } }) },
    { place: 'of another host', settings: (caFile: string) => ({ hosts: { 'files.example': { caFile } } }) },
  ]

  it.each(places)('$place that cannot be read ends the start, by its name', async ({ settings }) => {
    const file = join(folder, 'missing.pem')
    expect(await failureOf(create(await configOf(settings(file))))).toMatchObject({
      code: 'CONFIGURATION',
      message: expect.stringContaining(file),
    })
  })

  it.each(places)('$place without a certificate ends the start, by its name', async ({ settings }) => {
    const file = join(folder, 'key.pem')
    await writeFile(file, '-----BEGIN PRIVATE KEY-----\n')
    expect(await failureOf(create(await configOf(settings(file))))).toMatchObject({
      code: 'CONFIGURATION',
      message: expect.stringContaining(file),
    })
  })
})

describe('connections', () => {
  it('of the host that was used longest ago are closed, when clients make up too many hosts below a pattern', async () => {
    const { origin, caFile } = await startHosts('first.corp.example')
    origin.fault({ kind: 'discovery' }, { hang: true })
    const upstreams = await create(
      await configOf({ origins: { '*.corp.example': { address: origin.address, caFile } } }),
    )
    const first = upstreams.for(host('first.corp.example'))
    const asking = failureOf(versions(upstreams, 'first.corp.example/acme/widget'))
    await origin.until(() => origin.inFlight === 1)
    for (let made = 0; made < 255; made++) upstreams.for(host(`made-up-${made}.corp.example`))
    expect(upstreams.for(host('first.corp.example'))).toBe(first)
    for (let made = 255; made < 511; made++) upstreams.for(host(`made-up-${made}.corp.example`))
    // Not the time-out that would come otherwise.
    expect(await asking).toMatchObject({ code: 'SHUTTING_DOWN' })
    await origin.until(() => origin.inFlight === 0)
    expect(upstreams.for(host('first.corp.example'))).not.toBe(first)
  })

  it('of a host that the configuration names are not closed for those that clients make up', async () => {
    const { origin, caFile } = await startHosts('a.corp.example')
    await origin.publish({ provider: 'a.corp.example/acme/widget', version: '1.0.0' })
    const settings = { address: origin.address, caFile }
    const upstreams = await create(await configOf({ origins: { '*.corp.example': {}, 'a.corp.example': settings } }))
    origin.fault({ kind: 'discovery' }, { delayMs: 1_000 })
    const asking = versions(upstreams, 'a.corp.example/acme/widget')
    await origin.until(() => origin.inFlight === 1)
    for (let made = 0; made < 300; made++) upstreams.for(host(`made-up-${made}.corp.example`))
    expect((await asking).versions.length).toBe(1)
  })

  it('are all closed at the end, those in use too', async () => {
    const { origin, caFile } = await startHosts('a.example', 'b.example')
    origin.fault({ kind: 'discovery' }, { hang: true })
    const { address } = origin
    const config = await configOf({ origins: { 'a.example': { address, caFile }, 'b.example': { address, caFile } } })
    const upstreams = await create(config)
    const asking = ['a.example', 'b.example'].map((name) => failureOf(versions(upstreams, `${name}/acme/widget`)))
    await origin.until(() => origin.inFlight === 2)
    await upstreams[Symbol.asyncDispose]()
    for (const error of await Promise.all(asking)) expect(error).toMatchObject({ code: 'SHUTTING_DOWN' })
    await origin.until(() => origin.inFlight === 0)
    await upstreams[Symbol.asyncDispose]()
  })
})
