import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { MirrorError } from '../../src/errors.ts'
import type { Behaviour } from '../origin/fault.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { createOriginKey } from '../origin/origin-key.ts'
import type { Publication } from '../origin/release.ts'
import { startMirror } from './mirror-fixture.ts'
import { expectAnswers, warm } from './status-answers.ts'
import { TestClock } from './test-clock.ts'

/* The rows of the status table (design, section 3) about what is held, what is refused, and what cannot be stored. */

const DOCUMENTS = ['discovery', 'versions', 'download', 'sums', 'signature'] as const
const EVERYTHING = [...DOCUMENTS, 'archive'] as const
const MINUTE = 60_000

let origin: TestOrigin

beforeAll(async () => {
  origin = await startOrigin()
})
beforeEach(() => origin.reset())
afterAll(() => origin[Symbol.asyncDispose]())

describe('what is held is served whatever the origin does', () => {
  const rows: [string, Behaviour | 'stopped' | 'withdrawn' | 'version withdrawn'][] = [
    ['refuses connections', 'stopped'],
    ['breaks every connection', { drop: true }],
    ['answers 500', { status: 500 }],
    ['answers 403', { status: 403 }],
    ['answers web pages', { body: '<html/>', contentType: 'text/html' }],
    ['answers 429', { status: 429, headers: { 'retry-after': '30' } }],
    ['is silent', { hang: true }],
    ['answers 404', { status: 404 }],
    ['has withdrawn the provider', 'withdrawn'],
    ['has withdrawn the version', 'version withdrawn'],
  ]
  test.each(rows)('the origin %s', async (_situation, trouble) => {
    await using failing = await startOrigin()
    await failing.publish({ provider: 'acme/widget', version: '1.0.0' })
    await failing.publish({ provider: 'acme/widget', version: '2.0.0' })
    const clock = new TestClock()
    await using mirror = await startMirror({ origin: failing, now: clock.now })
    await warm(mirror, 'acme/widget', '1.0.0')

    clock.advance(10 * MINUTE)
    if (trouble === 'stopped') await failing.stop()
    else if (trouble === 'withdrawn') failing.withdraw('acme/widget')
    else if (trouble === 'version withdrawn') failing.withdraw('acme/widget', '1.0.0')
    else failing.fault({ kind: EVERYTHING }, trouble)

    await expectAnswers(mirror, {}, { index: 200, version: 200, archive: 200 })
    const index = await mirror.index('acme/widget')
    expect(Object.keys(index.json().versions)).toContain('1.0.0')
    if (trouble !== 'version withdrawn') expect(index.headers['terramirror-cache']).toBe('stale')
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).headers['terramirror-cache']).toBe('hit')
  })

  const unheldRows: [string, Behaviour, number][] = [
    ['500', { status: 500 }, 502],
    ['429', { status: 429, headers: { 'retry-after': '30' } }, 503],
  ]
  test.each(unheldRows)('a version that only a stale list might have, and the origin gives %s', async (...row) => {
    const [, behaviour, status] = row
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    const clock = new TestClock()
    await using mirror = await startMirror({ origin, now: clock.now })
    await warm(mirror, 'acme/widget', '1.0.0')
    clock.advance(10 * MINUTE)
    origin.fault({ kind: DOCUMENTS }, behaviour)
    await expectAnswers(mirror, { version: '7.0.0' }, { index: 200, version: status, archive: status })
    expect((await mirror.index('acme/widget')).headers['terramirror-cache']).toBe('stale')
  })
})

describe('evidence that does not hold is refused: the version is listed, its document and archives are 502', () => {
  const rows: [string, Partial<Publication>, string][] = [
    ['a key that did not sign', {}, 'SIGNATURE_INVALID'],
    ['two digests for every file', { sums: (text) => `${text}${text.replace(/^./gm, flip)}` }, 'CHECKSUMS_INVALID'],
    ['SHA256SUMS without a usable line', { sums: () => 'nothing here\n' }, 'CHECKSUMS_INVALID'],
    ['SHA256SUMS without the files', { sums: (text) => text.replaceAll('widget', 'other') }, 'CHECKSUM_MISSING'],
    ['a signature that is not named', { document: without('shasums_signature_url') }, 'SIGNATURE_MISSING'],
    ['SHA256SUMS that is not named', { document: without('shasums_url') }, 'CHECKSUMS_INVALID'],
    ['no key at all', { key: null }, 'SIGNATURE_REQUIRED'],
  ]
  test.each(rows)('%s', async (situation, publication, code) => {
    const stranger = await createOriginKey()
    const listedKeys = situation === 'a key that did not sign' ? { listedKeys: [stranger] } : {}
    await origin.publish({ provider: 'acme/widget', version: '1.0.0', ...listedKeys, ...publication })
    await using mirror = await startMirror({ origin })
    await expectAnswers(mirror, {}, { index: 200, version: 502, archive: 502, code })
    expect(origin.count('archive')).toBe(0)
  })

  const missing: [string, 'sums' | 'signature', Behaviour, number, string][] = [
    ['SHA256SUMS is 404', 'sums', { status: 404 }, 502, 'CHECKSUMS_INVALID'],
    ['the signature is 404', 'signature', { status: 404 }, 502, 'SIGNATURE_MISSING'],
    ['the signature is damaged', 'signature', { wrongBytes: true }, 502, 'SIGNATURE_INVALID'],
    ['SHA256SUMS is damaged', 'sums', { wrongBytes: true }, 502, 'SIGNATURE_INVALID'],
    ['SHA256SUMS is 500', 'sums', { status: 500 }, 502, 'UPSTREAM_STATUS'],
    ['SHA256SUMS is 429', 'sums', { status: 429 }, 503, 'UPSTREAM_RATE_LIMITED'],
  ]
  test.each(missing)('%s', async (_situation, kind, behaviour, status, code) => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    origin.fault({ kind }, behaviour)
    await expectAnswers(mirror, {}, { index: 200, version: status, archive: status, code })
  })

  test('the archive has other bytes: its document is 200, the archive 502 with both digests', async () => {
    const release = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    origin.fault({ kind: 'archive' }, { wrongBytes: true })
    await expectAnswers(mirror, {}, { index: 200, version: 200, archive: 502, code: 'CHECKSUM_MISMATCH' })
    const { error } = (await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).json()
    expect(error).toContain(release.package('linux_amd64').sha256)
    expect(error.match(/[0-9a-f]{64}/g)).toHaveLength(2)
  })

  test('the archive is gone at the origin: its document is 200, the archive 502', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    origin.fault({ kind: 'archive' }, { status: 404 })
    await expectAnswers(mirror, {}, { index: 200, version: 200, archive: 502, code: 'UPSTREAM_STATUS' })
  })
})

describe('trouble with one platform is not the trouble of the others', () => {
  test('its download document is 404: left out, 404', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    origin.fault({ kind: 'download', platform: 'linux_amd64' }, { status: 404 })
    const code = 'PLATFORM_NOT_FOUND'
    await expectAnswers(mirror, {}, { index: 200, version: 200, download: 404, archive: 404, code })
    await expectAnswers(mirror, { platform: 'darwin_arm64' }, { index: 200, version: 200, archive: 200 })
    const { archives } = (await mirror.version('acme/widget', '1.0.0')).json()
    expect(Object.keys(archives)).toEqual(['darwin_arm64', 'linux_arm64', 'windows_amd64'])
  })

  test('its digest contradicts SHA256SUMS: left out, 502', async () => {
    const document = (each: Record<string, unknown>, platform: string) =>
      platform === 'linux_amd64' ? { ...each, shasum: 'a'.repeat(64) } : each
    await origin.publish({ provider: 'acme/widget', version: '1.0.0', document })
    await using mirror = await startMirror({ origin })
    const code = 'CHECKSUM_MISMATCH'
    await expectAnswers(mirror, {}, { index: 200, version: 200, download: 502, archive: 502, code })
    await expectAnswers(mirror, { platform: 'darwin_arm64' }, { index: 200, version: 200, archive: 200 })
  })

  test('its download document does not come in time: listed by its line of SHA256SUMS, 504', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    origin.fault({ kind: 'download', platform: 'linux_amd64' }, { hang: true })
    const code = 'UPSTREAM_TIMEOUT'
    await expectAnswers(mirror, {}, { index: 200, version: 200, download: 504, archive: 504, code })
    await expectAnswers(mirror, { platform: 'darwin_arm64' }, { index: 200, version: 200, archive: 200 })
  })
})

describe('a storage that cannot take more', () => {
  const rows: ['STORAGE_FULL' | 'STORAGE_FAILED', number][] = [
    ['STORAGE_FULL', 507],
    ['STORAGE_FAILED', 500],
  ]
  test.each(rows)('%s: documents are answered, held archives served, new ones are %i', async (code, status) => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    let broken = false
    await using mirror = await startMirror({
      origin,
      wrapBlobs: (blobs) =>
        new Proxy(blobs, {
          get(target, name) {
            const value: unknown = Reflect.get(target, name, target)
            if (typeof value !== 'function') return value
            if (broken && (name === 'create' || name === 'put')) {
              return () => Promise.reject(new MirrorError(code, 'the disk does not take it', { operation: 'write' }))
            }
            return value.bind(target)
          },
        }),
    })
    await warm(mirror, 'acme/widget', '1.0.0')
    broken = true
    await expectAnswers(mirror, {}, { index: 200, version: 200, archive: 200 })
    const unheld = { platform: 'darwin_arm64' }
    await expectAnswers(mirror, unheld, { index: 200, version: 200, archive: status, code })
    await origin.publish({ provider: 'acme/widget', version: '1.1.0' })
    await expectAnswers(mirror, { ...unheld, version: '1.1.0' }, { index: 200, version: 200, archive: status })
    broken = false
    await expectAnswers(mirror, { ...unheld, version: '1.1.0' }, { index: 200, version: 200, archive: 200 })
  })
})

function flip(digit: string): string {
  return digit === '0' ? '1' : '0'
}

function without(key: string): NonNullable<Publication['document']> {
  return ({ [key]: _, ...rest }) => rest
}
