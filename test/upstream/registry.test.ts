import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { isMirrorError } from '../../src/errors.ts'
import { silentLog } from '../../src/log.ts'
import { parseHostname } from '../../src/protocol/hostname.ts'
import { formatPlatform, type Platform, parsePlatform } from '../../src/protocol/platform.ts'
import { parseProviderAddressText } from '../../src/protocol/provider-address.ts'
import type { PlatformClaim, ReleaseClaim } from '../../src/protocol/release-claim.ts'
import { Discovery } from '../../src/upstream/discovery.ts'
import { RegistryUpstream } from '../../src/upstream/registry/registry-upstream.ts'
import { failure, hang, MemoryOriginClient } from './memory-origin-client.ts'

const HOST = parseHostname('registry.acme.example')
const ADDRESS = parseProviderAddressText('registry.acme.example/acme/widget')
const PROVIDER = 'https://registry.acme.example/v1/providers/acme/widget/'
const FILES = 'https://files.acme.example/1.0.0'
const SUMS = `${FILES}/SHA256SUMS`
const SIGNATURE = `${FILES}/SHA256SUMS.sig`
const FOURTEEN = [
  ...['linux_amd64', 'linux_arm64', 'linux_386', 'linux_arm', 'darwin_amd64', 'darwin_arm64'],
  ...['windows_amd64', 'windows_arm64', 'windows_386', 'windows_arm'],
  ...['freebsd_amd64', 'freebsd_arm64', 'freebsd_386', 'freebsd_arm'],
]

function setUp() {
  const client = new MemoryOriginClient()
  const discovery = new Discovery({
    hostname: HOST,
    client,
    overrides: { 'providers.v1': 'https://registry.acme.example/v1/providers/' },
    memory: { get: async () => undefined, set: async () => {} },
    freshForMs: 1000,
    graceMs: 100,
    now: Date.now,
    log: silentLog(),
  })
  return { client, upstream: new RegistryUpstream({ hostname: HOST, client, discovery, maxArchiveBytes: 1000 }) }
}

function request(signal = AbortSignal.timeout(10_000)) {
  return { signal, hops: ['mirror-a', 'mirror-b'] }
}

function query(
  platforms: readonly string[],
  options: { spelling?: string; extend?: boolean; patience?: AbortSignal } = {},
) {
  const { spelling = '1.0.0', extend = true, patience = AbortSignal.timeout(5_000) } = options
  return { address: ADDRESS, spelling, platforms: platforms.map(parsePlatform), extend, patience }
}

function documentUrl(platform: string, spelling = '1.0.0'): string {
  return `${PROVIDER}${spelling}/download/${platform.replace('_', '/')}`
}

function downloadDocument({ os, arch }: Platform, more: object = {}) {
  const filename = `terraform-provider-widget_1.0.0_${os}_${arch}.zip`
  return {
    ...{ os, arch, filename, protocols: ['5.0'], shasum: 'a'.repeat(64) },
    ...{ download_url: `${FILES}/${filename}`, shasums_url: SUMS, shasums_signature_url: SIGNATURE },
    ...{ signing_keys: { gpg_public_keys: [{ ascii_armor: 'KEY' }] } },
    ...more,
  }
}

function publish(client: MemoryOriginClient, platforms: readonly string[], more: object = {}) {
  for (const name of platforms) {
    client.on(documentUrl(name), { body: downloadDocument(parsePlatform(name), more) })
  }
}

function publishSums(client: MemoryOriginClient, platforms: readonly string[]) {
  const lines = platforms.map((name) => `${'a'.repeat(64)}  terraform-provider-widget_1.0.0_${name}.zip\r\n`)
  const manifest = `${'b'.repeat(64)}  terraform-provider-widget_1.0.0_manifest.json\n`
  client.on(SUMS, { mediaType: 'application/octet-stream', body: `# sums\n\n${manifest}${lines.join('')}` })
  client.on(SIGNATURE, { mediaType: 'application/octet-stream', body: Buffer.from([0x88, 0x00]) })
}

function kinds(claim: ReleaseClaim): Record<string, PlatformClaim['kind']> {
  return Object.fromEntries(claim.platforms.map((platform) => [formatPlatform(platform.platform), platform.kind]))
}

function codes(claim: ReleaseClaim): Record<string, string> {
  return Object.fromEntries(
    claim.platforms.flatMap((entry) =>
      entry.kind === 'failed' ? [[formatPlatform(entry.platform), entry.error.code]] : [],
    ),
  )
}

function codeOf(value: unknown): string | undefined {
  return isMirrorError(value) ? value.code : undefined
}

describe('versions', () => {
  const LIST = `${PROVIDER}versions`

  test('are asked below the service, as a trusted service of the origin, with the hops', async () => {
    const { client, upstream } = setUp()
    client.on(LIST, { mediaType: '', body: { versions: [{ version: '1.0.0' }] } })
    const { versions } = await upstream.versions(ADDRESS, request())
    expect(versions.map(({ version }) => version)).toEqual(['1.0.0'])
    const expected = { trusted: true, maxBytes: 5_000_000, hops: ['mirror-a', 'mirror-b'] }
    expect(client.requests).toMatchObject([expected])
    expect(String(client.requests[0]?.url)).toBe(LIST)
  })

  test('percent-encode what the address holds', async () => {
    const { client, upstream } = setUp()
    client.on('https://registry.acme.example/v1/providers/b%C3%BCcher/widget/versions', { body: { versions: [] } })
    const { versions } = await upstream.versions({ ...ADDRESS, namespace: 'bücher' }, request())
    expect(versions).toEqual([])
  })

  test('one bad version does not hide the others (B07)', async () => {
    const { client, upstream } = setUp()
    client.on(LIST, { body: { versions: [{ version: '2.5.2' }, { version: 'v2.5.3-alpha1' }] } })
    const { versions, problems } = await upstream.versions(ADDRESS, request())
    expect(versions.map(({ version }) => version)).toEqual(['2.5.2'])
    expect(problems).toHaveLength(1)
  })

  test('404 is the word that there is no such provider', async () => {
    const { client, upstream } = setUp()
    client.on(LIST, { redirect: '/gone?sig=secret' })
    client.on('https://registry.acme.example/gone?sig=secret', { status: 404, body: '' })
    const error = await upstream.versions(ADDRESS, request()).catch((reason: unknown) => reason)
    const upstreamUrl = 'https://registry.acme.example/gone'
    const fields = { address: 'registry.acme.example/acme/widget', upstreamUrl, upstreamStatus: 404 }
    expect(error).toMatchObject({ code: 'PROVIDER_NOT_FOUND', fields })
    expect(String(error)).not.toContain('secret')
  })

  test.each([401, 403, 410, 304])('status %i is an outage', async (status) => {
    const { client, upstream } = setUp()
    client.on(LIST, { status, body: { errors: ['no\nentry, see https://x.example/y?token=secret'] } })
    const error = await upstream.versions(ADDRESS, request()).catch((reason: unknown) => reason)
    const fields = { upstreamStatus: status, upstreamUrl: LIST, detail: 'no entry, see https://x.example/y' }
    expect(error).toMatchObject({ code: 'UPSTREAM_STATUS', fields })
    expect(String(error).includes('check the token')).toBe(status === 401 || status === 403)
  })

  test.each<[string, string, string | object]>([
    ['a web page', 'text/html', '<html></html>'],
    ['JSON labelled as a web page', 'text/html', { versions: [] }],
    ['text', 'text/plain', 'hello'],
    ['other JSON', 'application/json', { hello: 1 }],
  ])('%s is UPSTREAM_INVALID that names the URL (B04)', async (_name, mediaType, body) => {
    const { client, upstream } = setUp()
    client.on(LIST, { mediaType, body })
    const error = await upstream.versions(ADDRESS, request()).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'UPSTREAM_INVALID', message: expect.stringContaining(LIST) })
    if (mediaType !== 'application/json') expect(String(error)).toContain(mediaType)
  })
})

describe('release', () => {
  test('all platforms are asked at once, the sums and the signature once', async () => {
    const { client, upstream } = setUp()
    let waiting = 0
    const all = Promise.withResolvers<void>()
    for (const name of FOURTEEN) {
      client.on(documentUrl(name), async () => {
        waiting++
        if (waiting === FOURTEEN.length) all.resolve()
        await all.promise // a client that asks one by one never gets here
        return { body: downloadDocument(parsePlatform(name)) }
      })
    }
    publishSums(client, FOURTEEN)
    const claim = await upstream.release(query(FOURTEEN), request())

    expect(client.maxInFlight).toBeGreaterThanOrEqual(14)
    expect(claim.platforms.map((entry) => formatPlatform(entry.platform))).toEqual(FOURTEEN)
    expect(claim.platforms.every((entry) => entry.kind === 'published' && entry.checksums === 0)).toBe(true)
    expect(claim.checksums).toMatchObject([{ sumsUrl: SUMS, signatureUrl: SIGNATURE }])
    expect(claim.checksums[0]?.signature).toEqual(Buffer.from([0x88, 0x00]))
    expect(client.count(SUMS)).toBe(1)
    expect(client.count(SIGNATURE)).toBe(1)
    expect(client.requests).toHaveLength(16)
  })

  test('documents go out as trusted services, files do not, and all carry hops and limits', async () => {
    const { client, upstream } = setUp()
    publish(client, ['linux_amd64'])
    publishSums(client, ['linux_amd64'])
    await upstream.release(query(['linux_amd64']), request())
    const asked = Object.fromEntries(client.requests.map((entry) => [String(entry.url), entry]))
    expect(asked[documentUrl('linux_amd64')]).toMatchObject({ trusted: true, maxBytes: 4_000_000 })
    expect(asked[SUMS]).toMatchObject({ accept: '*/*', maxBytes: 4_000_000 })
    expect(asked[SIGNATURE]).toMatchObject({ accept: '*/*', maxBytes: 256_000 })
    expect(asked[SUMS]?.trusted ?? asked[SIGNATURE]?.trusted).toBeUndefined()
    for (const entry of client.requests) expect(entry.hops).toEqual(['mirror-a', 'mirror-b'])
  })

  test('sums are under way before the slowest platform has answered', async () => {
    const { client, upstream } = setUp()
    const slow = Promise.withResolvers<void>()
    publish(client, ['linux_amd64'])
    publishSums(client, [])
    client.on(documentUrl('darwin_arm64'), async () => {
      await slow.promise
      return { body: downloadDocument(parsePlatform('darwin_arm64')) }
    })
    const claim = upstream.release(query(['linux_amd64', 'darwin_arm64']), request())
    await vi.waitFor(() => expect(client.count(SUMS) + client.count(SIGNATURE)).toBe(2))
    slow.resolve()
    expect(kinds(await claim)).toEqual({ linux_amd64: 'published', darwin_arm64: 'published' })
  })

  test('each distinct pair of checksums stands once', async () => {
    const { client, upstream } = setUp()
    publish(client, ['linux_amd64', 'linux_arm64'])
    publish(client, ['darwin_arm64'], { shasums_url: `${FILES}/OTHER` })
    publish(client, ['windows_amd64'], { shasums_signature_url: '' })
    publish(client, ['freebsd_amd64'], { shasums_url: null })
    publishSums(client, [])
    const asked = ['linux_amd64', 'linux_arm64', 'darwin_arm64', 'windows_amd64', 'freebsd_amd64']
    const { platforms, checksums } = await upstream.release(query(asked), request())
    const pairs = platforms.map((entry) => {
      if (entry.kind !== 'published') return entry.kind
      const claim = entry.checksums === undefined ? undefined : checksums[entry.checksums]
      return [claim?.sumsUrl, claim?.signatureUrl]
    })
    expect(pairs).toEqual([
      [SUMS, SIGNATURE],
      [SUMS, SIGNATURE],
      [`${FILES}/OTHER`, SIGNATURE],
      [SUMS, undefined],
      [undefined, undefined],
    ])
    expect(checksums).toHaveLength(3)
    expect(checksums.find((claim) => claim.signatureUrl === undefined)?.signature).toBeUndefined()
  })

  test('a platform whose document is 404 is absent, in the words of the origin (B11, B31)', async () => {
    const { client, upstream } = setUp()
    publish(client, ['darwin_arm64'])
    publishSums(client, ['darwin_arm64'])
    const text = `signing key\u0000 not found at https://x.example/k?sig=secret ${'x'.repeat(500)}`
    client.on(documentUrl('linux_amd64'), { status: 404, body: { errors: [text, 7] } })
    client.on(documentUrl('linux_arm64'), { status: 404, body: { message: 'Not Found' } })
    client.on(documentUrl('linux_arm'), { status: 404, body: 'Not Found' })
    const asked = ['linux_amd64', 'linux_arm64', 'linux_arm', 'darwin_arm64']
    const claim = await upstream.release(query(asked), request())
    expect(kinds(claim)).toEqual({
      ...{ linux_amd64: 'absent', linux_arm64: 'absent', linux_arm: 'absent' },
      darwin_arm64: 'published',
    })
    const [first, second, third] = claim.platforms
    expect(first).toMatchObject({
      upstreamUrl: documentUrl('linux_amd64'),
      detail: expect.stringMatching(/^signing key not found at https:\/\/x\.example\/k x{20,}$/),
    })
    expect(first?.kind === 'absent' && first.detail?.length).toBe(200)
    expect(second).toMatchObject({ detail: 'Not Found' })
    expect(third).not.toHaveProperty('detail')

    publish(client, ['linux_amd64'])
    const later = await upstream.release(query(['linux_amd64']), request())
    expect(kinds(later)).toMatchObject({ linux_amd64: 'published' })
  })

  test('other answers for one platform fail that platform only', async () => {
    const { client, upstream } = setUp()
    publish(client, ['linux_amd64'])
    publishSums(client, [])
    client.on(documentUrl('linux_arm64'), { status: 403, body: '' })
    client.on(documentUrl('linux_386'), { status: 500, body: '' })
    client.on(documentUrl('linux_arm'), { mediaType: 'text/html', body: '<html>' })
    client.on(documentUrl('darwin_arm64'), () => Promise.reject(failure('UPSTREAM_UNREACHABLE', new URL(PROVIDER))))
    client.on(documentUrl('darwin_amd64'), { body: downloadDocument(parsePlatform('linux_amd64')) })
    const asked = ['linux_amd64', 'linux_arm64', 'linux_386', 'linux_arm', 'darwin_arm64', 'darwin_amd64']
    const claim = await upstream.release(query(asked), request())
    expect(kinds(claim)).toMatchObject({ linux_amd64: 'published' })
    expect(codes(claim)).toEqual({
      ...{ linux_arm64: 'UPSTREAM_STATUS', linux_386: 'UPSTREAM_STATUS', linux_arm: 'UPSTREAM_INVALID' },
      ...{ darwin_arm64: 'UPSTREAM_UNREACHABLE', darwin_amd64: 'UPSTREAM_INVALID' },
    })
  })

  test('missing checksums are told with their status, and the platforms all the same (B39)', async () => {
    const { client, upstream } = setUp()
    publish(client, ['linux_amd64'])
    client.on(SIGNATURE, { status: 403, body: '' })
    const claim = await upstream.release(query(['linux_amd64']), request())
    expect(kinds(claim)).toEqual({ linux_amd64: 'published' })
    expect(claim.checksums[0]).toMatchObject({
      sums: {
        code: 'UPSTREAM_STATUS',
        message: expect.stringContaining('checksums 404'),
        fields: { upstreamUrl: SUMS },
      },
      signature: { code: 'UPSTREAM_STATUS', fields: { upstreamStatus: 403 } },
    })
  })

  test('URLs resolve against the final URL of the document (B52)', async () => {
    const { client, upstream } = setUp()
    const final = 'https://cdn.example/t/widget/1.0.0/doc.json'
    const relative = { download_url: 'amd64/x.zip', shasums_url: '/s/SUMS', shasums_signature_url: '../SUMS.sig' }
    client.on(documentUrl('linux_amd64'), { redirect: final })
    client.on(final, { body: downloadDocument(parsePlatform('linux_amd64'), relative) })
    const claim = await upstream.release(query(['linux_amd64']), request())
    const archiveUrl = 'https://cdn.example/t/widget/1.0.0/amd64/x.zip'
    expect(claim.platforms).toMatchObject([{ kind: 'published', archiveUrl, documentUrl: final }])
    const expected = { sumsUrl: 'https://cdn.example/s/SUMS', signatureUrl: 'https://cdn.example/t/widget/SUMS.sig' }
    expect(claim.checksums).toMatchObject([expected])
  })

  test('build metadata goes out with a literal plus sign', async () => {
    const { client, upstream } = setUp()
    client.on(documentUrl('linux_amd64', '0.2.1+1'), { body: downloadDocument(parsePlatform('linux_amd64')) })
    const claim = await upstream.release(query(['linux_amd64'], { spelling: '0.2.1+1' }), request())
    expect(kinds(claim)).toEqual({ linux_amd64: 'published' })
    expect(String(client.requests[0]?.url)).toContain('/0.2.1+1/download/')
  })

  test('an unusable discovery is thrown, not claimed', async () => {
    const client = new MemoryOriginClient()
    const memory = { get: async () => undefined, set: async () => {} }
    const options = { hostname: HOST, client, overrides: {}, memory, freshForMs: 1, graceMs: 1 }
    const discovery = new Discovery({ ...options, now: Date.now, log: silentLog() })
    const upstream = new RegistryUpstream({ hostname: HOST, client, discovery, maxArchiveBytes: 1 })
    await expect(upstream.release(query([]), request())).rejects.toMatchObject({ code: 'NO_PROVIDER_SERVICE' })
    await expect(upstream.versions(ADDRESS, request())).rejects.toMatchObject({ code: 'NO_PROVIDER_SERVICE' })
  })
})

describe('platforms that only SHA256SUMS names', () => {
  test('are asked too, after those that were asked; one that is 404 is no news', async () => {
    const { client, upstream } = setUp()
    publish(client, ['linux_amd64', 'linux_riscv64', 'openbsd_amd64'])
    publishSums(client, ['linux_amd64', 'openbsd_amd64', 'linux_riscv64', 'plan9_386'])
    const claim = await upstream.release(query(['linux_amd64', 'darwin_arm64']), request())
    expect(claim.platforms.map((entry) => [formatPlatform(entry.platform), entry.kind])).toEqual([
      ['linux_amd64', 'published'],
      ['darwin_arm64', 'absent'],
      ['openbsd_amd64', 'published'],
      ['linux_riscv64', 'published'],
    ])
    expect(client.count(documentUrl('plan9_386'))).toBe(1)
    expect(client.count(documentUrl('linux_amd64'))).toBe(1)
    expect(client.count(SUMS)).toBe(1)
  })

  test('are left alone if the query says so', async () => {
    const { client, upstream } = setUp()
    publish(client, ['linux_amd64', 'openbsd_amd64'])
    publishSums(client, ['linux_amd64', 'openbsd_amd64'])
    const claim = await upstream.release(query(['linux_amd64'], { extend: false }), request())
    expect(kinds(claim)).toEqual({ linux_amd64: 'published' })
    expect(client.count(documentUrl('openbsd_amd64'))).toBe(0)
  })

  test('are asked although another platform hangs, and only until the patience ends', async () => {
    const { client, upstream } = setUp()
    const patience = new AbortController()
    publish(client, ['linux_amd64', 'openbsd_amd64'])
    publishSums(client, ['linux_amd64', 'openbsd_amd64', 'solaris_amd64'])
    client.on(documentUrl('darwin_arm64'), hang)
    client.on(documentUrl('solaris_amd64'), hang)
    const asked = query(['darwin_arm64', 'linux_amd64'], { patience: patience.signal })
    const claim = upstream.release(asked, request())
    await vi.waitFor(() => expect(client.count(documentUrl('openbsd_amd64'))).toBe(1))
    await vi.waitFor(() => expect(client.inFlight).toBe(2))
    patience.abort()
    expect(codes(await claim)).toEqual({ darwin_arm64: 'UPSTREAM_TIMEOUT', solaris_amd64: 'UPSTREAM_TIMEOUT' })
    expect(kinds(await claim)).toMatchObject({ linux_amd64: 'published', openbsd_amd64: 'published' })
  })

  test('are bounded to 64 in all, whatever the sums or the list say', async () => {
    const names = Array.from({ length: 200 }, (_, i) => `linux_a${i}`)
    const extra = setUp()
    publish(extra.client, ['linux_amd64', ...names])
    publishSums(extra.client, names)
    const claim = await extra.upstream.release(query(['linux_amd64']), request())
    expect(claim.platforms).toHaveLength(64)

    const listed = setUp()
    publish(listed.client, names)
    publishSums(listed.client, [])
    const large = await listed.upstream.release(query(names), request())
    expect(listed.client.requests).toHaveLength(66)
    expect(large.platforms).toHaveLength(200)
    expect(Object.values(codes(large))).toEqual(Array.from({ length: 136 }, () => 'UPSTREAM_INVALID'))
  })

  test('a list without platforms: the usual ones are tried, the sums name the rest, a 404 is no news', async () => {
    const { client, upstream } = setUp()
    publish(client, ['linux_amd64', 'darwin_arm64', 'solaris_amd64'])
    client.on(documentUrl('windows_386'), { status: 403, body: '' })
    publishSums(client, ['linux_amd64', 'darwin_arm64', 'solaris_amd64'])
    const claim = await upstream.release(query([]), request())
    expect(kinds(claim)).toEqual({
      ...{ linux_amd64: 'published', darwin_arm64: 'published', solaris_amd64: 'published' },
      windows_386: 'failed',
    })
    for (const name of FOURTEEN) expect(client.count(documentUrl(name))).toBe(1)
  })
})

describe('patience', () => {
  test('ends with what is there; the rest is UPSTREAM_TIMEOUT and its requests are aborted', async () => {
    const { client, upstream } = setUp()
    const patience = new AbortController()
    publish(client, ['linux_amd64'])
    client.on(documentUrl('darwin_arm64'), hang)
    client.on(SUMS, hang)
    client.on(SIGNATURE, { body: 'sig' })
    const asked = query(['darwin_arm64', 'linux_amd64'], { patience: patience.signal })
    const claim = upstream.release(asked, request())
    await vi.waitFor(() => expect(client.count(SIGNATURE)).toBe(1))
    await vi.waitFor(() => expect(client.inFlight).toBe(2))
    patience.abort()

    const { platforms, checksums } = await claim
    expect(platforms).toMatchObject([
      { kind: 'failed', error: { code: 'UPSTREAM_TIMEOUT', fields: { upstreamUrl: documentUrl('darwin_arm64') } } },
      { kind: 'published' },
    ])
    expect(codeOf(checksums[0]?.sums)).toBe('UPSTREAM_TIMEOUT')
    expect(checksums[0]?.signature).toEqual(Buffer.from('sig'))
    expect(client.inFlight).toBe(0)
  })

  test('ends a client that words the abort in its own way', async () => {
    const { client, upstream } = setUp()
    client.on(documentUrl('linux_amd64'), async ({ signal }) => {
      await sleep(60_000, undefined, { signal }) // rejects with an AbortError
      return { body: '' }
    })
    const asked = query(['linux_amd64'], { patience: AbortSignal.timeout(20) })
    expect(codes(await upstream.release(asked, request()))).toEqual({ linux_amd64: 'UPSTREAM_TIMEOUT' })
  })

  test('also ends with the request itself', async () => {
    const { client, upstream } = setUp()
    client.on(documentUrl('linux_amd64'), hang)
    const claim = await upstream.release(query(['linux_amd64']), request(AbortSignal.timeout(20)))
    expect(codes(claim)).toEqual({ linux_amd64: 'UPSTREAM_TIMEOUT' })
  })

  test('a fault of our own is not dressed up as an answer of the origin', async () => {
    const { client, upstream } = setUp()
    client.on(documentUrl('linux_amd64'), () => Promise.reject(new TypeError('a bug')))
    await expect(upstream.release(query(['linux_amd64']), request())).rejects.toThrow(TypeError)
  })
})

test('an archive is opened under its limit, with hops and signal', async () => {
  const { client, upstream } = setUp()
  const asked = request()
  const stream = await upstream.openArchive({ archiveUrl: `${FILES}/x.zip?sig=1` }, asked)
  expect(stream.size).toBe(3)
  expect(client.archives).toEqual([{ url: `${FILES}/x.zip?sig=1`, ...asked, maxBytes: 1000 }])
})
