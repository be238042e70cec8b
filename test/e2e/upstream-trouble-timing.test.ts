import { describe, expect, test } from 'vitest'
import { startOrigin } from '../origin/origin.ts'
import { type Answer, startMirror } from './mirror-fixture.ts'

/** A client gives up after 10 s. */
const ANSWER_MS = 9_000

const PLATFORMS = [
  ...['amd64', 'arm64', '386', 'arm'].flatMap((arch) => [`linux_${arch}`, `freebsd_${arch}`, `windows_${arch}`]),
  'darwin_amd64',
  'darwin_arm64',
]

async function timed(work: Promise<Answer>): Promise<{ answer: Answer; ms: number }> {
  const startedAt = performance.now()
  const answer = await work
  return { answer, ms: performance.now() - startedAt }
}

// Nearly all of the time is spent waiting, so the tests wait together.
describe.concurrent('with nothing held, an origin that hangs is 504 before a client gives up (B33)', () => {
  test.each(['discovery', 'versions', 'download', 'sums', 'signature'] as const)(
    'the %s hangs',
    { timeout: 30_000 },
    async (kind) => {
      const provider = `acme/hanging-${kind}`
      await using origin = await startOrigin()
      await origin.publish({ provider, version: '1.0.0' })
      await using mirror = await startMirror({ origin })
      origin.fault({ kind }, { hang: true })
      const { answer, ms } = await timed(mirror.version(provider, '1.0.0'))
      expect(answer.status).toBe(504)
      expect(answer.json()).toMatchObject({ code: 'UPSTREAM_TIMEOUT', request_id: expect.any(String) })
      expect(ms).toBeLessThan(ANSWER_MS)
    },
  )

  test('an origin that sends its answer byte by byte hangs as well', { timeout: 30_000 }, async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    origin.fault({ kind: 'versions' }, { trickle: 10 })
    const { answer, ms } = await timed(mirror.index('acme/widget'))
    expect(answer.status).toBe(504)
    expect(ms).toBeLessThan(ANSWER_MS)
  })

  test('the sum of many slow steps stays under the same limit', { timeout: 30_000 }, async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/steps', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    origin.fault({ provider: 'acme/steps' }, { delayMs: 3_500 })
    origin.fault({ kind: 'discovery' }, { delayMs: 3_500 })
    const { answer, ms } = await timed(mirror.version('acme/steps', '1.0.0'))
    expect(answer.status).toBe(504)
    expect(ms).toBeLessThan(ANSWER_MS)
  })
})

describe.concurrent('a version with many platforms (B44)', () => {
  test('all are asked at once, and nobody waits for an archive', async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/broad', version: '1.0.0', platforms: PLATFORMS })
    await using mirror = await startMirror({ origin })
    await mirror.index('acme/broad')
    origin.fault({ kind: ['download', 'sums', 'signature'] }, { delayMs: 1_000 })
    origin.fault({ kind: 'archive' }, { hang: true })
    const { answer, ms } = await timed(mirror.version('acme/broad', '1.0.0'))
    expect(Object.keys(answer.json().archives)).toHaveLength(14)
    expect(origin.maxInFlight).toBeGreaterThanOrEqual(14)
    expect(ms).toBeLessThan(6_000)
    expect(origin.count('archive')).toBe(0)
  })

  test('one that hangs is listed by its one line in the verified sums, and checked when its archive is asked for', async () => {
    await using origin = await startOrigin()
    const release = await origin.publish({ provider: 'acme/one-hangs', version: '1.0.0', platforms: PLATFORMS })
    await using mirror = await startMirror({ origin })
    const hanging = origin.fault({ kind: 'download', platform: 'windows_386' }, { hang: true })
    const { answer, ms } = await timed(mirror.version('acme/one-hangs', '1.0.0'))
    expect(ms).toBeLessThan(ANSWER_MS)
    const { archives } = answer.json()
    expect(Object.keys(archives)).toHaveLength(14)
    const { sha256 } = release.package('windows_386')
    expect(archives.windows_386.hashes).toEqual([`zh:${sha256}`])

    const early = await timed(mirror.archive('acme/one-hangs', '1.0.0', 'windows_386'))
    expect([early.answer.status, early.ms < ANSWER_MS]).toEqual([504, true])
    expect(origin.count('archive')).toBe(0)
    hanging.clear()
    const archive = await mirror.archive('acme/one-hangs', '1.0.0', 'windows_386')
    expect(archive.body.equals(await release.package('windows_386').bytes())).toBe(true)
  })

  test('one that hangs and turns out to be another file is refused when its archive is asked for', async () => {
    const document = (each: Record<string, unknown>, platform: string) =>
      platform === 'linux_arm' ? { ...each, shasum: 'b'.repeat(64) } : each
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/liar', version: '1.0.0', platforms: ['linux_amd64', 'linux_arm'], document })
    await using mirror = await startMirror({ origin })
    const hanging = origin.fault({ kind: 'download', platform: 'linux_arm' }, { hang: true })
    const { archives } = (await mirror.version('acme/liar', '1.0.0')).json()
    expect(Object.keys(archives)).toEqual(['linux_amd64', 'linux_arm'])
    hanging.clear()
    const archive = await mirror.archive('acme/liar', '1.0.0', 'linux_arm')
    expect([archive.status, archive.json().code]).toEqual([502, 'CHECKSUM_MISMATCH'])
    expect(origin.count('archive')).toBe(0)
  })

  const ambiguous: [string, (text: string) => string][] = [
    ['no line', (text) => text.replace(/^.*_windows_386\.zip\n/m, '')],
    ['two lines', (text) => `${text}${'c'.repeat(64)}  extra_windows_386.zip\n`],
  ]
  test.each(ambiguous)('one that hangs and has %s in the sums: the document is 504', async (what, sums) => {
    const provider = `acme/${what.replace(' ', '-')}`
    await using origin = await startOrigin()
    await origin.publish({ provider, version: '1.0.0', platforms: ['linux_amd64', 'windows_386'], sums })
    await using mirror = await startMirror({ origin })
    const hanging = origin.fault({ kind: 'download', platform: 'windows_386' }, { hang: true })
    const { answer, ms } = await timed(mirror.version(provider, '1.0.0'))
    expect([answer.status, answer.json().code]).toEqual([504, 'UPSTREAM_TIMEOUT'])
    expect(ms).toBeLessThan(ANSWER_MS)
    // What did answer is served none the less.
    expect((await mirror.archive(provider, '1.0.0', 'linux_amd64')).status).toBe(200)
    hanging.clear()
    expect((await mirror.version(provider, '1.0.0')).status).toBe(200)
  })
})
