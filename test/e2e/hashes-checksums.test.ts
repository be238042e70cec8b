import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { JsonDocument, Publication } from '../origin/release.ts'
import { type Answer, startMirror } from './mirror-fixture.ts'
import { TestClock } from './test-clock.ts'

const PLATFORMS = ['linux_amd64', 'darwin_arm64', 'windows_amd64']
const WHEN_LISTED = { verification: { signatures: 'whenListed' } }

let origin: TestOrigin

beforeAll(async () => {
  origin = await startOrigin()
})
beforeEach(() => origin.reset())
afterAll(() => origin[Symbol.asyncDispose]())

function publish(publication: Partial<Publication>) {
  return origin.publish({ provider: 'acme/widget', version: '1.0.0', platforms: PLATFORMS, ...publication })
}

function platformsIn(answer: Answer): string[] {
  expect(answer.status).toBe(200)
  return Object.keys(answer.json().archives)
}

/** Changes the document of one platform only. */
function onlyFor(
  platform: string,
  change: (document: JsonDocument) => JsonDocument,
): NonNullable<Publication['document']> {
  return (document, each) => (each === platform ? change(document) : document)
}

function without(document: JsonDocument, ...keys: string[]): JsonDocument {
  return Object.fromEntries(Object.entries(document).filter(([key]) => !keys.includes(key)))
}

describe('no platform is listed without a hash (B18)', () => {
  test('every entry has the zh of the verified SHA256SUMS, first; and nothing of another platform', async () => {
    const release = await publish({})
    await using mirror = await startMirror({ origin })
    const { archives } = (await mirror.version('acme/widget', '1.0.0')).json()
    for (const { platform, sha256 } of release.packages) {
      expect(archives[platform].hashes).toEqual([`zh:${sha256}`])
    }
    await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    const { h1, sha256 } = release.package('linux_amd64')
    await expect
      .poll(async () => (await mirror.version('acme/widget', '1.0.0')).json().archives.linux_amd64.hashes, {
        timeout: 30_000,
      })
      .toEqual([`zh:${sha256}`, h1])
  })

  test('a platform without a hash that can be trusted is left out', async () => {
    await publish({ key: null, document: onlyFor('windows_amd64', (each) => without(each, 'shasum', 'shasums_url')) })
    await using mirror = await startMirror({ origin, config: WHEN_LISTED })
    const document = await mirror.version('acme/widget', '1.0.0')
    expect(platformsIn(document)).toEqual(['darwin_arm64', 'linux_amd64'])
    for (const { hashes } of Object.values<{ hashes: string[] }>(document.json().archives)) {
      expect(hashes[0]).toMatch(/^zh:[0-9a-f]{64}$/)
    }
    expect((await mirror.archive('acme/widget', '1.0.0', 'windows_amd64')).json().code).toBe('CHECKSUM_MISSING')
  })

  test('unsigned claims help where they agree, and are dropped where they do not', async () => {
    const release = await publish({ packages: true })
    const liar = onlyFor('darwin_arm64', (each) => {
      const { darwin_arm64, ...others } = each.packages as Record<string, JsonDocument>
      const hashes = [`zh:${'0'.repeat(64)}`, 'h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=']
      return { ...each, packages: { ...others, darwin_arm64: { ...darwin_arm64, hashes } } }
    })
    await publish({ version: '1.1.0', packages: true, document: liar })
    await using mirror = await startMirror({ origin })
    const honest = (await mirror.version('acme/widget', '1.0.0')).json().archives
    const { sha256, h1 } = release.package('darwin_arm64')
    expect(honest.darwin_arm64.hashes).toEqual([`zh:${sha256}`, h1])
    const doubtful = (await mirror.version('acme/widget', '1.1.0')).json().archives
    expect(doubtful.darwin_arm64.hashes).toHaveLength(1)
    expect(doubtful.linux_amd64.hashes).toHaveLength(2)
    expect(origin.count('archive')).toBe(0)
    expect(mirror.logText).toContain('dropped')
  })
})

describe('a document that contradicts SHA256SUMS costs that platform only (B25)', () => {
  test.each(['linux_amd64', 'windows_amd64'])('%s', async (platform) => {
    const wrong = 'a'.repeat(64)
    const document = onlyFor(platform, (each) => ({ ...each, shasum: wrong }))
    const release = await publish({ document })
    const clock = new TestClock()
    await using mirror = await startMirror({ origin, now: clock.now })
    const others = PLATFORMS.filter((each) => each !== platform).sort()
    expect(platformsIn(await mirror.version('acme/widget', '1.0.0'))).toEqual(others)
    const refused = await mirror.archive('acme/widget', '1.0.0', platform)
    expect([refused.status, refused.json().code]).toEqual([502, 'CHECKSUM_MISMATCH'])
    expect(refused.json().error).toContain(wrong)
    expect(refused.json().error).toContain(release.package(platform).sha256)
    for (const each of others) expect((await mirror.archive('acme/widget', '1.0.0', each)).status).toBe(200)

    // Repaired: the same files with documents that agree.
    const repaired = origin.fault(
      { kind: 'download', platform },
      { body: JSON.stringify({ ...release.document(platform), shasum: release.package(platform).sha256 }) },
    )
    clock.advance(60_000)
    expect(platformsIn(await mirror.version('acme/widget', '1.0.0'))).toEqual([...PLATFORMS].sort())
    expect((await mirror.archive('acme/widget', '1.0.0', platform)).status).toBe(200)
    expect(repaired.struck).toBeGreaterThan(0)
  })
})

describe('a file without a line in SHA256SUMS costs that platform only (B26)', () => {
  test.each(['linux_amd64', 'darwin_arm64'])('%s', async (platform) => {
    const release = await publish({ sums: (text) => text.replace(new RegExp(`^.*_${platform}\\.zip\\n`, 'm'), '') })
    await using mirror = await startMirror({ origin })
    const others = PLATFORMS.filter((each) => each !== platform).sort()
    expect(platformsIn(await mirror.version('acme/widget', '1.0.0'))).toEqual(others)
    const refused = await mirror.archive('acme/widget', '1.0.0', platform)
    expect([refused.status, refused.json().code]).toEqual([502, 'CHECKSUM_MISSING'])
    expect(refused.json().error).toContain(`no checksum entry for ${release.package(platform).filename}`)
    for (const each of others) expect((await mirror.archive('acme/widget', '1.0.0', each)).status).toBe(200)
    expect(origin.count(`archive acme/widget 1.0.0 ${platform}`)).toBe(0)
  })
})

describe('the line is found by the name that the document gives (B27)', () => {
  test.each([
    ['of another type', (platform: string) => `terraform-provider-other_v1.2.0_${platform}.zip`],
    ['of no pattern at all', (platform: string) => `${platform}-build.7 (final).zip`],
    ['with a plus', (platform: string) => `widget+debug_${platform}.zip`],
  ])('a name %s', async (_what, filename) => {
    const release = await publish({ filename })
    await using mirror = await startMirror({ origin })
    expect(platformsIn(await mirror.version('acme/widget', '1.0.0'))).toEqual([...PLATFORMS].sort())
    const archive = await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    expect(archive.body.equals(await release.package('linux_amd64').bytes())).toBe(true)
  })

  const digest = '0123456789abcdef'.repeat(4)
  const spellings: [string, (text: string) => string][] = [
    ['CRLF', (text) => text.replaceAll('\n', '\r\n')],
    ['binary marks', (text) => text.replaceAll('  ', ' *')],
    ['one space', (text) => text.replaceAll('  ', ' ')],
    ['a tab', (text) => text.replaceAll('  ', '\t')],
    ['upper-case digits', (text) => text.replaceAll(/^[0-9a-f]{64}/gm, (hex) => hex.toUpperCase())],
    ['./ before the names', (text) => text.replaceAll('  ', '  ./')],
    ['comments and blank lines', (text) => `# checksums\n\n${text}\n\n# end\n`],
    ['the line of a manifest', (text) => `${text}${digest}  terraform-provider-widget_1.0.0_manifest.json\n`],
    ['no last newline', (text) => text.trimEnd()],
    ['a byte order mark', (text) => `\ufeff${text}`],
    ['every line twice', (text) => text + text],
    ['foreign lines', (text) => `${text}SHA512 (x.zip) = abc\nhello world\n`],
  ]
  test.each(spellings)('SHA256SUMS with %s', async (_what, sums) => {
    const release = await publish({ sums })
    await using mirror = await startMirror({ origin })
    const { archives } = (await mirror.version('acme/widget', '1.0.0')).json()
    for (const { platform, sha256 } of release.packages) expect(archives[platform]?.hashes[0]).toBe(`zh:${sha256}`)
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
  })

  test('a name with two digests is refused', async () => {
    await publish({ sums: (text) => `${text}${digest}  terraform-provider-widget_1.0.0_linux_amd64.zip\n` })
    await using mirror = await startMirror({ origin })
    const answer = await mirror.version('acme/widget', '1.0.0')
    expect([answer.status, answer.json().code]).toEqual([502, 'CHECKSUMS_INVALID'])
    expect(answer.json().error).toContain(digest)
  })
})

describe('documents that name no checksums or signature (B28)', () => {
  const blanks: [string, (document: JsonDocument, key: string) => JsonDocument][] = [
    ['is empty', (document, key) => ({ ...document, [key]: '' })],
    ['is blank', (document, key) => ({ ...document, [key]: '  ' })],
    ['is null', (document, key) => ({ ...document, [key]: null })],
    ['is missing', (document, key) => without(document, key)],
  ]
  test.each(blanks)('shasums_url %s: refused where a key is listed, nothing is fetched', async (_how, change) => {
    await publish({ document: (each) => change(each, 'shasums_url') })
    for (const config of [{}, WHEN_LISTED]) {
      await using mirror = await startMirror({ origin, config })
      const answer = await mirror.version('acme/widget', '1.0.0')
      expect([answer.status, answer.json().code]).toEqual([502, 'CHECKSUMS_INVALID'])
      expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(502)
    }
    expect(origin.count('sums') + origin.count('archive') + origin.count('other')).toBe(0)
  })

  test.each(blanks)('shasums_signature_url %s: refused where a key is listed', async (_how, change) => {
    await publish({ document: (each) => change(each, 'shasums_signature_url') })
    await using mirror = await startMirror({ origin, config: WHEN_LISTED })
    const answer = await mirror.version('acme/widget', '1.0.0')
    expect([answer.status, answer.json().code]).toEqual([502, 'SIGNATURE_MISSING'])
    expect(origin.count('signature') + origin.count('archive')).toBe(0)
  })

  test.each(blanks)('shasums_url %s and no key is listed: the shasum alone is enough', async (_how, change) => {
    const release = await publish({ key: null, document: (each) => change(each, 'shasums_url') })
    await using mirror = await startMirror({ origin, config: WHEN_LISTED })
    const { archives } = (await mirror.version('acme/widget', '1.0.0')).json()
    for (const { platform, sha256 } of release.packages) expect(archives[platform].hashes).toEqual([`zh:${sha256}`])
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
    origin.fault({ kind: 'archive' }, { wrongBytes: true })
    const refused = await mirror.archive('acme/widget', '1.0.0', 'darwin_arm64')
    expect([refused.status, refused.json().code]).toEqual([502, 'CHECKSUM_MISMATCH'])
  })
})
