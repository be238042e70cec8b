import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { get } from 'node:https'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { JsonDocument } from '../origin/release.ts'
import { describeVectors, VECTORS_ROOT } from '../protocol/vectors.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'
import { createMirrorWorkspace, HOST } from './mirror-workspace.ts'
import {
  askDownload,
  askVersions,
  downloadPath,
  fetchEvidence,
  fetchPackage,
  follow,
  registryConfig,
} from './registry-door.ts'
import { terraformAvailable } from './terraform-cli.ts'
import { TestClock } from './test-clock.ts'

/* What the provider registry door passes on is what the origin said, byte for byte (client-contract C2, C8, C12). */

const LENIENT = 'other.example.test'
const MINUTE = 60_000

let origin: TestOrigin
let clock: TestClock
let mirror: TestMirror

beforeAll(async () => {
  origin = await startOrigin()
  clock = new TestClock()
  const origins = { [LENIENT]: { verification: { signatures: 'whenListed' } } }
  mirror = await startMirror({ origin, now: clock.now, config: { origins } })
})
afterAll(async () => {
  await mirror[Symbol.asyncDispose]()
  await origin[Symbol.asyncDispose]()
})

const LINKS = ['download_url', 'shasums_url', 'shasums_signature_url']

function withoutLinks(document: JsonDocument | undefined): JsonDocument {
  return Object.fromEntries(Object.entries(document ?? {}).filter(([key]) => !LINKS.includes(key)))
}

describe('a download document', () => {
  test('has every field that clients read exactly as the origin gave it, and its files byte for byte', async () => {
    const key = {
      key_id: 'not the real one',
      trust_signature: '-----BEGIN…\r\n\u00a0',
      source: 'Acme ✓',
      source_url: 'https://acme.example/?a=b#c',
      extra: { kept: [1, 2.5, null] },
    }
    const release = await origin.publish({
      provider: 'acme/odd',
      version: '1.2.3',
      protocols: ['4.0', '5.1', 'odd'],
      filename: (platform) => `Odd Name_${platform}.ZIP`,
      document: (document) => ({
        ...document,
        shasum: String(document.shasum).toUpperCase(),
        signing_keys: {
          gpg_public_keys: [
            { ...key, ascii_armor: `junk before\r\n${origin.key.asciiArmor.replaceAll('\n', '\r\n')}junk` },
          ],
        },
      }),
    })
    for (const { platform, body } of release.packages) {
      const { document, sums, signature, archive } = await fetchPackage(mirror, 'acme/odd', '1.2.3', platform)
      expect(withoutLinks(document)).toEqual(withoutLinks(release.document(platform)))
      expect(sums.body.equals(release.sums)).toBe(true)
      expect(signature.body.equals(release.signature ?? Buffer.alloc(0))).toBe(true)
      expect(archive.body.length).toBe(body.size)
      expect(sha256(archive.body)).toBe(release.package(platform).sha256)
      for (const { headers } of [sums, signature, archive]) expect(headers['content-encoding']).toBeUndefined()
    }
  })

  test('does not pass what clients do not read: a field of another letter case would be one that they do', async () => {
    await origin.publish({
      provider: 'acme/extra',
      version: '1.0.0',
      document: (document) => ({
        DOWNLOAD_URL: 'https://elsewhere.example/x.zip',
        ...document,
        Shasums_Url: 'https://elsewhere.example/sums',
        internal: { url: 'https://internal.example/?token=planted' },
      }),
    })
    const answer = await askDownload(mirror, 'acme/extra', '1.0.0', 'linux_amd64')
    expect(answer.status).toBe(200)
    expect(answer.body.toString()).not.toMatch(/elsewhere|internal/)
  })

  test('is answered to HEAD too, and so are its files', async () => {
    const path = downloadPath('acme/odd', '1.2.3', 'linux_amd64')
    const { document, sums } = await fetchEvidence(mirror, 'acme/odd', '1.2.3', 'linux_amd64')
    for (const [each, length] of [
      [path, Buffer.byteLength(JSON.stringify(document))],
      [follow(path, document.shasums_url), sums.body.length],
    ] as const) {
      const head = await mirror.ask(each, { method: 'HEAD' })
      expect([head.status, Number(head.headers['content-length']), head.body.length]).toEqual([200, length, 0])
    }
  })

  test('names no file of checksums that the origin does not name; one that the origin lacks is a 404 here too', async () => {
    const provider = `${LENIENT}/acme/bare`
    await origin.publish({
      ...{ provider, version: '1.0.0', key: null },
      document: ({ shasums_url: _, ...document }) => ({ ...document, signing_keys: null }),
    })
    const bare = (await askDownload(mirror, provider, '1.0.0', 'linux_amd64')).json()
    expect(Object.keys(bare)).not.toContain('shasums_url')
    expect(bare.signing_keys).toBeNull()

    const lacking = `${LENIENT}/acme/lacking`
    const signature = { shasums_signature_url: '/nowhere.sig' }
    await origin.publish({
      provider: lacking,
      version: '1.0.0',
      key: null,
      document: (each) => ({ ...each, ...signature }),
    })
    const evidence = await fetchEvidence(mirror, lacking, '1.0.0', 'linux_amd64')
    expect([evidence.sums.status, evidence.signature.status]).toEqual([200, 404])
  })

  test('of an unsigned release leads to the signature file that the origin has, though nobody can check it', async () => {
    const provider = `${LENIENT}/acme/unlisted`
    const release = await origin.publish({ provider, version: '1.0.0', listedKeys: [] })
    const { document, signature } = await fetchEvidence(mirror, provider, '1.0.0', 'linux_amd64')
    expect(document.signing_keys).toEqual({ gpg_public_keys: [] })
    expect(signature.body.equals(release.signature ?? Buffer.alloc(0))).toBe(true)
  })
})

test('many cold clients at both doors cost the origin one of each', async () => {
  const provider = 'acme/crowded'
  const release = await origin.publish({ provider, version: '1.0.0' })
  const clients = Array.from({ length: 10 }, () => [
    mirror.index(provider),
    mirror.version(provider, '1.0.0'),
    mirror.archive(provider, '1.0.0', 'linux_amd64'),
    askVersions(mirror, provider),
    fetchPackage(mirror, provider, '1.0.0', 'linux_amd64').then(({ archive }) => archive),
  ])
  for (const { status } of await Promise.all(clients.flat())) expect(status).toBe(200)
  expect(origin.count(`versions ${provider}`)).toBe(1)
  expect(origin.count(`download ${provider}`)).toBe(release.packages.length)
  expect(origin.count(`sums ${provider}`)).toBe(1)
  expect(origin.count(`signature ${provider}`)).toBe(1)
  expect(origin.count(`archive ${provider}`)).toBe(1)
})

describe('absence', () => {
  test('of one platform is told with the words of the origin (B31)', async () => {
    await origin.publish({ provider: 'acme/unsigned-for', version: '1.0.0' })
    const body = JSON.stringify({ errors: ['signing key 0123 not found'] })
    using _ = origin.fault(
      { kind: 'download', provider: 'acme/unsigned-for', platform: 'linux_arm64' },
      { status: 404, body },
    )
    const answer = await askDownload(mirror, 'acme/unsigned-for', '1.0.0', 'linux_arm64')
    expect([answer.status, answer.json().code]).toEqual([404, 'PLATFORM_NOT_FOUND'])
    expect(answer.json().error).toContain('signing key 0123 not found')
    expect((await askDownload(mirror, 'acme/unsigned-for', '1.0.0', 'linux_amd64')).status).toBe(200)
  })

  test('at one origin is not made good by another (B14)', async () => {
    await origin.publish({ provider: `${LENIENT}/acme/elsewhere`, version: '1.0.0' })
    expect((await askVersions(mirror, 'acme/elsewhere')).status).toBe(404)
    expect((await askDownload(mirror, 'acme/elsewhere', '1.0.0', 'linux_amd64')).status).toBe(404)
    expect(origin.requests.filter(({ provider }) => provider === `${LENIENT}/acme/elsewhere`)).toEqual([])
  })
})

describe('one generation, never two mixed', () => {
  test('a client between two answers gets the files of its own document, though the origin has released anew', async () => {
    const provider = 'acme/renewed'
    const first = await origin.publish({ provider, version: '1.0.0' })
    const path = downloadPath(provider, '1.0.0', 'linux_amd64')
    const before = (await mirror.ask(path)).json()
    const second = await origin.publish({ provider, version: '1.0.0' })
    clock.advance(10 * MINUTE)
    const after = await fetchEvidence(mirror, provider, '1.0.0', 'linux_amd64')
    expect(after.document.shasum).toBe(second.package('linux_amd64').sha256)
    expect(after.sums.body.equals(second.sums)).toBe(true)
    for (const restart of [false, true]) {
      if (restart) await mirror.restart()
      expect((await mirror.ask(follow(path, before.shasums_url))).body.equals(first.sums)).toBe(true)
      const signature = await mirror.ask(follow(path, before.shasums_signature_url))
      expect(signature.body.equals(first.signature ?? Buffer.alloc(0))).toBe(true)
    }
  })

  test('checksums that no document of the release has named are absent, and the origin is not asked for them', async () => {
    const { document } = await fetchEvidence(mirror, 'acme/odd', '1.2.3', 'linux_amd64')
    const path = downloadPath('acme/renewed', '1.0.0', 'linux_amd64')
    const foreign =
      follow(downloadPath('acme/odd', '1.2.3', 'linux_amd64'), document.shasums_url)
        .split('/')
        .at(-2) ?? ''
    const asked = () => origin.requests.filter(({ provider }) => provider === 'acme/renewed').length
    const before = asked()
    for (const digest of [foreign, '0'.repeat(64), 'none', `${foreign}0`]) {
      const answer = await mirror.ask(follow(path, `../../checksums/${digest}/SHA256SUMS`))
      expect(answer.status).toBe(404)
    }
    expect(asked()).toBe(before)
  })

  test('a key that the origin lists anew is passed on, also for a version that is held', async () => {
    const provider = 'acme/rekeyed'
    let extra: JsonDocument[] = []
    const document = (each: JsonDocument): JsonDocument => {
      const { gpg_public_keys: keys } = each.signing_keys as { gpg_public_keys: JsonDocument[] }
      return { ...each, signing_keys: { gpg_public_keys: [...keys, ...extra] } }
    }
    await origin.publish({ provider, version: '1.0.0', document })
    expect((await mirror.archive(provider, '1.0.0', 'linux_amd64')).status).toBe(200)
    extra = [{ key_id: 'new', ascii_armor: origin.key.asciiArmor }]
    const keys = async () =>
      (await askDownload(mirror, provider, '1.0.0', 'darwin_arm64')).json().signing_keys.gpg_public_keys
    expect(await keys()).toHaveLength(1)
    clock.advance(10 * MINUTE)
    await expect.poll(keys).toHaveLength(2)
  })
})

describe('the list of versions', () => {
  test('has protocols, platforms and warnings as given, of every version that can be asked back', async () => {
    await origin.publish({ provider: 'acme/listed', version: '1.10.0', protocols: ['6.0'] })
    await origin.publish({ provider: 'acme/listed', version: '1.9', platforms: ['plan9_mips'], protocols: [] })
    const { versions } = JSON.parse(await originList('acme/listed'))
    const body = JSON.stringify({
      id: 'acme/listed',
      versions: [...versions, { version: 'v7' }, { version: 'latest', platforms: null }, null],
      warnings: ['Deprecated: use acme/other ✓', '<b>second</b>'],
    })
    using _ = origin.fault({ kind: 'versions', provider: 'acme/listed' }, { body })
    const answer = await askVersions(mirror, 'acme/listed')
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/json'])
    const platforms = ['linux_amd64', 'linux_arm64', 'darwin_arm64', 'windows_amd64']
    expect(answer.json()).toEqual({
      versions: [
        { version: '1.9.0', protocols: [], platforms: [{ os: 'plan9', arch: 'mips' }] },
        { version: '1.10.0', protocols: ['6.0'], platforms: platforms.map(osAndArch) },
      ],
      warnings: ['Deprecated: use acme/other ✓', '<b>second</b>'],
    })
    // Asked back in the one spelling, it is asked at the origin in the other.
    expect((await fetchEvidence(mirror, 'acme/listed', '1.9.0', 'plan9_mips')).sums.status).toBe(200)
    expect(origin.count('download acme/listed 1.9 plan9_mips')).toBe(1)
  })

  test('still has a version that the origin withdrew, if it is held', async () => {
    await origin.publish({ provider: 'acme/withdrawn', version: '1.0.0', protocols: ['5.3'] })
    await origin.publish({ provider: 'acme/withdrawn', version: '1.1.0' })
    expect((await mirror.archive('acme/withdrawn', '1.0.0', 'linux_amd64')).status).toBe(200)
    origin.withdraw('acme/withdrawn', '1.0.0')
    clock.advance(10 * MINUTE)
    const { versions } = (await askVersions(mirror, 'acme/withdrawn')).json()
    expect(versions).toHaveLength(2)
    expect(versions[0]).toMatchObject({ version: '1.0.0', protocols: ['5.3'] })
    expect(versions[0].platforms).toHaveLength(4)
    expect((await fetchPackage(mirror, 'acme/withdrawn', '1.0.0', 'linux_amd64')).archive.status).toBe(200)
  })
})

describeVectors('a real chain of key, signature, SHA256SUMS and zip', () => {
  test('passes byte for byte: the sample of terraform itself', async () => {
    const read = (path: string): Buffer => readFileSync(new URL(`signatures/${path}`, VECTORS_ROOT))
    const name = 'sample_0.1.0/sample_0.1.0'
    const asciiArmor = read('keys/terraform-sample-200BDA882C95B80A.asc').toString()
    const real = {
      sums: read(`${name}_SHA256SUMS`),
      signature: read(`${name}_SHA256SUMS.sig`),
      zip: read(`${name}_darwin_amd64.zip`),
    }
    await origin.publish({
      ...{ provider: 'hashicorp/sample', version: '0.1.0', platforms: ['darwin_amd64'] },
      archive: () => real.zip,
      filename: () => 'sample_0.1.0_darwin_amd64.zip',
      document: (document) => ({
        ...document,
        signing_keys: {
          gpg_public_keys: [{ key_id: '200BDA882C95B80A', ascii_armor: asciiArmor, trust_signature: '' }],
        },
      }),
    })
    using _sums = origin.fault({ kind: 'sums', provider: 'hashicorp/sample' }, { body: real.sums })
    using _signature = origin.fault({ kind: 'signature', provider: 'hashicorp/sample' }, { body: real.signature })
    const { document, sums, signature, archive } = await fetchPackage(
      mirror,
      'hashicorp/sample',
      '0.1.0',
      'darwin_amd64',
    )
    expect(document.signing_keys.gpg_public_keys[0].ascii_armor).toBe(asciiArmor)
    expect(sums.body.equals(real.sums)).toBe(true)
    expect(signature.body.equals(real.signature)).toBe(true)
    expect(archive.body.equals(real.zip)).toBe(true)
    expect(document.shasum).toBe(sha256(real.zip))

    if (terraformAvailable() === undefined) return
    await using terraform = await createMirrorWorkspace(mirror, {
      providers: { sample: { source: `${HOST}/hashicorp/sample` } },
      cliConfig: registryConfig(mirror.url),
    })
    const run = await terraform.run(['providers', 'lock', '-platform=darwin_amd64'])
    // It is no provider, which the client sees when it unpacks: after it has checked digest, sums and signature.
    expect(run.output).toContain('provider binary not found')
    expect(run.output).not.toMatch(/signature|checksum mismatch/)
  })
})

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function osAndArch(platform: string): { os?: string; arch?: string } {
  const [os = '', arch = ''] = platform.split('_')
  return { os, arch }
}

/** What the origin itself answers. */
function originList(provider: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { ca: origin.caPem, agent: false }
    get(`${origin.url()}v1/providers/${provider}/versions`, options, (answer) => text(answer).then(resolve, reject)).on(
      'error',
      reject,
    )
  })
}
