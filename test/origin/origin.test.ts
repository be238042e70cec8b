import { createHash } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as openpgp from 'openpgp'
import { Agent, request } from 'undici'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createTestAuthority, type TestAuthority } from '../tls-fixture.ts'
import { startOrigin, type TestOrigin } from './origin.ts'
import { createOriginKey } from './origin-key.ts'

let origin: TestOrigin
let client: Agent
let authority: TestAuthority

beforeAll(async () => {
  authority = await createTestAuthority()
  origin = await startOrigin({ authority, tokens: { 'cdn.example.test': 's3cret' } })
  client = new Agent({ connect: { ca: origin.caPem } })
})

afterEach(() => origin.reset())

afterAll(async () => {
  await client.destroy()
  await origin[Symbol.asyncDispose]()
})

interface GetOptions {
  readonly host?: string
  readonly headers?: Record<string, string>
  readonly method?: 'GET' | 'HEAD'
}

async function get(path: string, { host = 'registry.example.test', headers = {}, method = 'GET' }: GetOptions = {}) {
  const url = new URL(path, `https://${origin.address}/`)
  const answer = await request(url, { dispatcher: client, method, headers: { host, ...headers } })
  return { status: answer.statusCode, headers: answer.headers, body: Buffer.from(await answer.body.arrayBuffer()) }
}

async function getJson(path: string, options?: GetOptions) {
  return JSON.parse((await get(path, options)).body.toString())
}

describe('the provider registry protocol', () => {
  test('discovery, versions, download, sums, signature and archive agree with what was published', async () => {
    const release = await origin.publish({ provider: 'acme/chain', version: '1.0.0', protocols: ['5.0', '6.0'] })
    const archive = release.package('linux_amd64')

    const services = await getJson('/.well-known/terraform.json')
    const list = await getJson(`${services['providers.v1']}acme/chain/versions`)
    const document = await getJson(`${services['providers.v1']}acme/chain/1.0.0/download/linux/amd64`)
    const sums = await get(document.shasums_url)
    const zip = await get(document.download_url)

    expect(list.versions).toMatchObject([{ version: '1.0.0', protocols: ['5.0', '6.0'] }])
    expect(list.versions[0].platforms).toContainEqual({ os: 'linux', arch: 'amd64' })
    expect(document).toMatchObject({ os: 'linux', arch: 'amd64', filename: archive.filename, shasum: archive.sha256 })
    expect(sums.body).toEqual(release.sums)
    expect(sums.body.toString()).toContain(`${archive.sha256}  ${archive.filename}\n`)
    expect((await get(document.shasums_signature_url)).body).toEqual(release.signature)
    expect(zip.body).toEqual(await archive.bytes())
    expect(createHash('sha256').update(zip.body).digest('hex')).toBe(archive.sha256)
    expect(origin.counts).toEqual({
      'discovery registry.example.test': 1,
      'versions acme/chain': 1,
      'download acme/chain 1.0.0 linux_amd64': 1,
      'sums acme/chain 1.0.0': 1,
      'signature acme/chain 1.0.0': 1,
      'archive acme/chain 1.0.0 linux_amd64': 1,
    })
  })

  test('what was never published, or is withdrawn, is a 404', async () => {
    await origin.publish({ provider: 'acme/brief', version: '1.0.0', platforms: ['linux_amd64'] })
    const download = '/v1/providers/acme/brief/1.0.0/download'
    expect((await get(`${download}/linux/amd64`)).status).toBe(200)
    expect((await get(`${download}/plan9/386`)).status).toBe(404)
    expect((await get('/v1/providers/acme/nothing/versions')).status).toBe(404)

    origin.withdraw('acme/brief', '1.0.0')
    expect((await get(`${download}/linux/amd64`)).status).toBe(404)
    expect(await getJson('/v1/providers/acme/brief/versions')).toMatchObject({ versions: [] })
    origin.withdraw('acme/brief')
    expect((await get('/v1/providers/acme/brief/versions')).status).toBe(404)
  })

  test('versions are listed and asked for as written, build metadata included', async () => {
    await origin.publish({ provider: 'acme/spelled', version: '1.0' })
    await origin.publish({ provider: 'acme/spelled', version: '0.2.1+1' })
    await origin.publish({ provider: 'acme/spelled', version: '9.9.9', list: false })
    const list = await getJson('/v1/providers/acme/spelled/versions')
    expect(list.versions.map((each: { version: string }) => each.version)).toEqual(['1.0', '0.2.1+1'])
    for (const version of ['1.0', '0.2.1+1', '0.2.1%2B1', '9.9.9']) {
      const document = await getJson(`/v1/providers/acme/spelled/${version}/download/linux/amd64`)
      expect((await get(document.download_url)).status).toBe(200)
    }
  })

  test('a version published again is a new generation with other bytes under the same URLs', async () => {
    const first = await origin.publish({ provider: 'acme/again', version: '1.0.0' })
    const before = await getJson('/v1/providers/acme/again/1.0.0/download/linux/amd64')
    const second = await origin.publish({ provider: 'acme/again', version: '1.0.0' })
    const after = await getJson('/v1/providers/acme/again/1.0.0/download/linux/amd64')

    expect([first.generation, second.generation]).toEqual([1, 2])
    expect(after.download_url).toBe(before.download_url)
    expect(after.shasum).not.toBe(before.shasum)
    expect((await get(before.shasums_url)).body).toEqual(second.sums)
    expect((await get(before.download_url)).headers.etag).toBe(`"${second.package('linux_amd64').sha256}"`)
  })

  test('the same publication gives the same bytes in every run, and each platform its own', async () => {
    await using twin = await startOrigin()
    const publication = { provider: 'acme/steady', version: '1.0.0' }
    const [ours, theirs] = await Promise.all([origin.publish(publication), twin.publish(publication)])
    expect(ours.sums).toEqual(theirs.sums)
    expect(new Set(ours.packages.map((each) => each.sha256)).size).toBe(ours.packages.length)
  })

  test('hosts are told apart by Host and by /at/HOST/, and share no provider', async () => {
    await origin.publish({ provider: 'acme/shared', version: '1.0.0' })
    await origin.publish({ provider: 'other.example.test/acme/shared', version: '2.0.0' })
    const path = '/v1/providers/acme/shared/versions'
    expect(await getJson(path)).toMatchObject({ versions: [{ version: '1.0.0' }] })
    expect(await getJson(path, { host: 'other.example.test' })).toMatchObject({ versions: [{ version: '2.0.0' }] })
    expect(await getJson(`/at/other.example.test${path}`)).toMatchObject({ versions: [{ version: '2.0.0' }] })
    expect(origin.counts).toEqual({ 'versions acme/shared': 1, 'versions other.example.test/acme/shared': 2 })
  })

  test('a host may carry a port', async () => {
    await using ported = await startOrigin({ hosts: ['registry.example.test:8443'], authority })
    await ported.publish({ provider: 'acme/widget', version: '1.0.0' })
    const answer = await request(`https://${ported.address}/v1/providers/acme/widget/versions`, {
      dispatcher: client,
      headers: { host: 'registry.example.test:8443' },
    })
    expect(await answer.body.json()).toMatchObject({ versions: [{ version: '1.0.0' }] })
    expect(ported.requests).toMatchObject([{ host: 'registry.example.test:8443', provider: 'acme/widget' }])
  })

  test('a host with a token refuses versions and download without it', async () => {
    await origin.publish({ provider: 'cdn.example.test/acme/secret', version: '1.0.0' })
    const path = '/v1/providers/acme/secret/versions'
    expect((await get(path, { host: 'cdn.example.test' })).status).toBe(401)
    const headers = { authorization: 'Bearer s3cret' }
    expect((await get(path, { host: 'cdn.example.test', headers })).status).toBe(200)
  })

  test('a release can be odd in its names, sums, document and packages', async () => {
    const release = await origin.publish({
      provider: 'acme/odd',
      version: '1.0.0',
      platforms: ['linux_amd64'],
      filename: () => 'odd name+1.zip',
      sums: (text) => `# made by hand\n\n${text}`,
      document: (document) => ({ ...document, extra: true }),
      packages: true,
    })
    const archive = release.package('linux_amd64')
    const document = await getJson('/v1/providers/acme/odd/1.0.0/download/linux/amd64')
    expect(document).toMatchObject({
      filename: 'odd name+1.zip',
      extra: true,
      packages: { linux_amd64: { hashes: [`zh:${archive.sha256}`, archive.h1], package_size: archive.body.size } },
    })
    expect((await get(document.shasums_url)).body.toString()).toMatch(
      /^# made by hand\n\n[0-9a-f]{64} {2}odd name\+1\.zip\n$/,
    )
    expect((await get(document.download_url)).body).toEqual(await archive.bytes())
  })
})

describe('archives', () => {
  let path: string
  let bytes: Buffer
  let etag: string

  beforeAll(async () => {
    const release = await origin.publish({ provider: 'acme/ranged', version: '1.0.0', platforms: ['linux_amd64'] })
    const archive = release.package('linux_amd64')
    bytes = await archive.bytes()
    etag = `"${archive.sha256}"`
    path = (await getJson('/v1/providers/acme/ranged/1.0.0/download/linux/amd64')).download_url
  })

  test('a range is cut out, open ends and suffixes included', async () => {
    const part = await get(path, { headers: { range: 'bytes=10-19', 'if-range': etag } })
    expect(part.status).toBe(206)
    expect(part.headers['content-range']).toBe(`bytes 10-19/${bytes.length}`)
    expect(part.body).toEqual(bytes.subarray(10, 20))
    expect((await get(path, { headers: { range: 'bytes=100-' } })).body).toEqual(bytes.subarray(100))
    expect((await get(path, { headers: { range: 'bytes=-7' } })).body).toEqual(bytes.subarray(-7))
  })

  test('a range of another generation gives the whole, or nothing under If-Match', async () => {
    const headers = { range: 'bytes=10-19' }
    expect((await get(path, { headers: { ...headers, 'if-range': '"other"' } })).body).toEqual(bytes)
    expect((await get(path, { headers: { ...headers, 'if-match': '"other"' } })).status).toBe(412)
    expect((await get(path, { headers: { range: `bytes=${bytes.length}-` } })).status).toBe(416)
  })

  test('HEAD tells the length, sends nothing and is counted apart', async () => {
    const head = await get(path, { method: 'HEAD' })
    expect(head.headers['content-length']).toBe(String(bytes.length))
    expect(head.body.length).toBe(0)
    expect(origin.counts).toEqual({ 'HEAD archive acme/ranged 1.0.0 linux_amd64': 1 })
  })

  test('a large archive is what its digests say and does not sit in memory', async () => {
    const before = heldBytes()
    const release = await origin.publish({
      provider: 'acme/large',
      version: '1.0.0',
      platforms: ['linux_amd64'],
      archiveBytes: 100_000_000,
    })
    const archive = release.package('linux_amd64')
    const { download_url } = await getJson('/v1/providers/acme/large/1.0.0/download/linux/amd64')
    const answer = await request(`https://${origin.address}${download_url}`, { dispatcher: client })
    const hash = createHash('sha256')
    const held: number[] = []
    let received = 0
    for await (const chunk of answer.body) {
      hash.update(chunk)
      received += chunk.length
      if (received > (held.length + 1) * 25_000_000) held.push(heldBytes() - before)
    }
    expect(hash.digest('hex')).toBe(archive.sha256)
    expect(received).toBe(archive.body.size)
    expect(held.length).toBe(4)
    expect(Math.max(...held)).toBeLessThan(20_000_000)
  })
})

/** Bytes in buffers that are still in use: garbage is collected first. */
function heldBytes(): number {
  setFlagsFromString('--expose-gc')
  const collectGarbage: () => void = runInNewContext('gc')
  collectGarbage()
  return process.memoryUsage().arrayBuffers
}

describe('keys', () => {
  test('each key signs at the time asked for, and expired and revoked ones are what they say', async () => {
    const signedAt = new Date('2024-05-06T07:08:09Z')
    const [plain, expired, revoked, weak] = await Promise.all([
      createOriginKey({ createdAt: new Date('2024-01-01T00:00:00Z') }),
      createOriginKey({ expired: true }),
      createOriginKey({ revoked: true }),
      createOriginKey({ algorithm: 'rsa1024' }),
    ])
    const signature = await openpgp.readSignature({ binarySignature: await plain.sign(Buffer.from('text'), signedAt) })
    expect(signature.packets[0]?.created).toEqual(signedAt)
    expect(signature.getSigningKeyIDs().map((id) => id.toHex().toUpperCase())).toEqual([plain.keyId])

    const [expiredKey, revokedKey] = await Promise.all(
      [expired, revoked].map((key) => openpgp.readKey({ armoredKey: key.asciiArmor })),
    )
    expect(Number(await expiredKey?.getExpirationTime())).toBeLessThan(Date.now())
    expect(await revokedKey?.isRevoked()).toBe(true)
    for (const key of [expired, revoked, weak]) expect((await key.sign(Buffer.from('text'))).length).toBeGreaterThan(60)
  })

  test('a release names its signers, other listed keys, or none', async () => {
    const [signer, stranger] = await Promise.all([createOriginKey(), createOriginKey()])
    const platforms = ['linux_amd64']
    await origin.publish({
      provider: 'acme/keys',
      version: '1.0.0',
      platforms,
      key: signer,
      listedKeys: [stranger, signer],
    })
    await origin.publish({ provider: 'acme/keys', version: '1.1.0', platforms, key: [signer, stranger] })
    const unsigned = await origin.publish({ provider: 'acme/keys', version: '1.2.0', platforms, key: null })

    const listed = async (version: string) => {
      const document = await getJson(`/v1/providers/acme/keys/${version}/download/linux/amd64`)
      return document.signing_keys.gpg_public_keys.map((each: { key_id: string }) => each.key_id)
    }
    expect(await listed('1.0.0')).toEqual([stranger.keyId, signer.keyId])
    expect(await listed('1.1.0')).toEqual([signer.keyId, stranger.keyId])
    expect(await listed('1.2.0')).toEqual([])
    expect(unsigned.signature).toBeUndefined()
  })
})

describe('its life', () => {
  test('stopped it refuses connections and cuts what runs; started again it has the same port', async () => {
    await using mortal = await startOrigin()
    const agent = new Agent({ connect: { ca: mortal.caPem } })
    const { port } = mortal
    const url = `${mortal.url()}.well-known/terraform.json`
    mortal.fault({ kind: 'discovery', times: 1 }, { hang: true })
    const hanging = request(url, { dispatcher: agent })
    const cut = expect(hanging).rejects.toThrow()
    await mortal.until(() => mortal.inFlight === 1)

    await mortal.stop()
    await cut
    expect(mortal.aborted).toBe(1)
    await expect(request(url, { dispatcher: agent })).rejects.toMatchObject({ code: 'ECONNREFUSED' })

    await mortal.start()
    expect(mortal.port).toBe(port)
    expect((await request(url, { dispatcher: agent })).statusCode).toBe(200)
    expect(mortal.connections).toBe(2)
    await agent.destroy()
  })

  test('waiting in vain ends with what was seen instead', async () => {
    await expect(origin.until(() => false, 20)).rejects.toThrow('waited 20 ms in vain')
  })
})
