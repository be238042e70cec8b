import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { isMirrorError } from '../../src/errors.ts'
import { silentLog } from '../../src/log.ts'
import { type Hostname, parseHostname } from '../../src/protocol/hostname.ts'
import { formatPlatform, parsePlatform } from '../../src/protocol/platform.ts'
import { parseProviderAddressText } from '../../src/protocol/provider-address.ts'
import type { PlatformClaim } from '../../src/protocol/release-claim.ts'
import { Discovery } from '../../src/upstream/discovery.ts'
import type { OriginClient } from '../../src/upstream/http-client.ts'
import { createOriginClient } from '../../src/upstream/origin-client.ts'
import { RegistryUpstream } from '../../src/upstream/registry/registry-upstream.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'

/* Discovery and registry over real sockets, with the real client. */

const HOST = parseHostname('registry.example.test')
const ADDRESS = parseProviderAddressText('registry.example.test/acme/widget')
const PLATFORMS = ['linux_amd64', 'linux_arm64', 'darwin_arm64', 'windows_amd64']

let origin: TestOrigin
const clients: OriginClient[] = []

beforeAll(async () => {
  origin = await startOrigin()
  await origin.publish({ provider: 'acme/widget', version: '1.0.0', platforms: [...PLATFORMS, 'openbsd_amd64'] })
})
afterEach(async () => {
  origin.reset()
  await Promise.all(clients.splice(0).map((client) => client.close()))
})
afterAll(() => origin[Symbol.asyncDispose]())

function connect(hostname: Hostname = HOST) {
  const client = createOriginClient({
    hostname,
    address: { host: '127.0.0.1', port: origin.port },
    ...{ allowHttp: false, allowPrivateAddresses: false, ca: [origin.caPem], hosts: new Map() },
    ...{ userAgent: 'test', terraformVersion: '1.11.4', instanceId: 'mirror-a' },
    ...{ connectTimeoutMs: 2000, idleTimeoutMs: 5000, minBytesPerSecond: 0, retries: 0, concurrency: 32 },
    observer: { sending() {}, answered() {}, received() {}, retried() {} },
    log: silentLog(),
  })
  clients.push(client)
  const memory = { get: async () => undefined, set: async () => {} }
  const options = { hostname, client, overrides: {}, memory, freshForMs: 60_000, graceMs: 1500 }
  const discovery = new Discovery({ ...options, now: Date.now, log: silentLog() })
  return { discovery, upstream: new RegistryUpstream({ hostname, client, discovery, maxArchiveBytes: 1e9 }) }
}

function request() {
  return { signal: AbortSignal.timeout(20_000), hops: [] }
}

function query(platforms: readonly string[], patience = AbortSignal.timeout(15_000)) {
  return { address: ADDRESS, spelling: '1.0.0', platforms: platforms.map(parsePlatform), extend: true, patience }
}

function name(claim: PlatformClaim): string {
  return `${formatPlatform(claim.platform)} ${claim.kind}`
}

test.each([
  [3, undefined],
  [4, 'UPSTREAM_INVALID'],
])('%i redirects of the discovery document: %s (D3)', async (redirects, code) => {
  const { discovery } = connect()
  let step = 0
  const redirect = () => `/.well-known/terraform.json?step=${++step}`
  origin.fault({ kind: 'discovery', times: redirects }, { redirect })
  const found = discovery.serviceBase('providers.v1', request()).then(
    ({ url }) => url.href,
    (error: unknown) => (isMirrorError(error) ? error.code : error),
  )
  expect(await found).toBe(code ?? 'https://registry.example.test/v1/providers/')
})

test('versions, a release with what only its sums name, and an archive come over the wire', async () => {
  const { upstream } = connect()
  const { versions } = await upstream.versions(ADDRESS, request())
  expect(versions.map(({ spelling }) => spelling)).toEqual(['1.0.0'])

  const claim = await upstream.release(query([...PLATFORMS, 'plan9_386']), request())
  const published = PLATFORMS.map((platform) => `${platform} published`)
  expect(claim.platforms.map(name)).toEqual([...published, 'plan9_386 absent', 'openbsd_amd64 published'])
  expect(claim.checksums).toHaveLength(1)
  expect(Buffer.isBuffer(claim.checksums[0]?.sums) && Buffer.isBuffer(claim.checksums[0]?.signature)).toBe(true)
  expect([origin.count('discovery'), origin.count('sums'), origin.count('signature')]).toEqual([1, 1, 1])

  const [first] = claim.platforms
  if (first?.kind !== 'published') throw new Error('not published')
  const chunks: Buffer[] = []
  for await (const piece of await upstream.openArchive(first, request())) {
    if (piece.kind === 'bytes') chunks.push(piece.bytes)
  }
  expect(Buffer.concat(chunks).subarray(0, 2).toString()).toBe('PK')
})

test('when the patience ends, the hanging requests end with it', async () => {
  const { upstream } = connect()
  const patience = new AbortController()
  origin.fault({ kind: 'download', platform: 'darwin_arm64' }, { hang: true })
  origin.fault({ kind: 'signature' }, { hang: true })
  const claimed = upstream.release(query(PLATFORMS, patience.signal), request())
  await origin.until(() => origin.count('download') === 5 && origin.inFlight === 2)
  patience.abort()
  const { platforms, checksums } = await claimed
  // Answers that are still on the wire when the patience ends may count as missing too.
  const failed = platforms.flatMap((claim) =>
    claim.kind === 'failed' ? [[formatPlatform(claim.platform), claim.error.code]] : [],
  )
  expect(failed).toContainEqual(['darwin_arm64', 'UPSTREAM_TIMEOUT'])
  expect(failed.every(([, code]) => code === 'UPSTREAM_TIMEOUT')).toBe(true)
  expect(platforms.some((claim) => claim.kind === 'published')).toBe(true)
  expect(checksums).toMatchObject([{ signature: { code: 'UPSTREAM_TIMEOUT' } }])
  await origin.until(() => origin.inFlight === 0)
})
