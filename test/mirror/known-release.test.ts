import { describe, expect, it } from 'vitest'
import { isEmpty, knownRelease, problemsOf, releaseWithGaps } from '../../src/mirror/known-release.ts'
import type { Release } from '../../src/mirror/release-record.ts'
import { parsePlatform } from '../../src/protocol/platform.ts'
import type { AuthenticatedRelease } from '../../src/verify/authenticate-release.ts'
import { v1, widget } from './parts-fixture.ts'
import { outage, sha256 } from './scripted-upstream.ts'

const digest = sha256(Buffer.from('a'))
const at = '2026-11-30T12:00:00.000Z'
const platform = {
  filename: 'widget.zip',
  digest,
  archiveUrl: 'https://files.example.test/widget.zip',
  protocols: [],
  statedHashes: [],
  authentication: { rule: 'stated-checksum' as const, digest },
  document: {},
  documentUrl: 'https://registry.example.test/',
}

function release(...platforms: string[]): Release {
  return {
    format: 1,
    address: 'registry.example.test/acme/widget',
    version: v1,
    spelling: '1.0.0',
    generation: 1,
    firstSeenAt: at,
    recordedAt: at,
    complete: false,
    files: [],
    platforms: Object.fromEntries(platforms.map((name) => [name, platform])),
  }
}

function answer(fields: Partial<AuthenticatedRelease>): AuthenticatedRelease {
  const lists = { packages: [], refused: [], absent: [], unanswered: [], notes: [] }
  return { ...lists, filenames: new Map(), evidence: new Map(), signed: false, mayBeMixed: false, ...fields }
}

const down = outage()
const inferred = { filename: 'widget_darwin.zip', digest, authentication: { rule: 'stated-checksum' as const, digest } }
const gaps = answer({
  refused: [{ platform: parsePlatform('windows_386'), error: down }],
  absent: [
    { platform: parsePlatform('linux_arm'), upstreamUrl: 'https://registry.example.test/x', detail: 'never built' },
    { platform: parsePlatform('linux_386'), upstreamUrl: 'https://registry.example.test/y' },
  ],
  unanswered: [
    { platform: parsePlatform('darwin_arm64'), error: down, inferred },
    { platform: parsePlatform('freebsd_arm'), error: down },
  ],
})

describe('why a platform is not there', () => {
  const problems = problemsOf(gaps, widget, v1)

  it('is told for every platform that was asked for and not accepted', () => {
    const names = ['windows_386', 'darwin_arm64', 'freebsd_arm', 'linux_arm', 'linux_386']
    expect([...problems.keys()]).toEqual(names)
    expect(problems.get('windows_386')).toBe(down)
  })

  it('a 404 is told as the word of the origin, with what it says itself', () => {
    expect(problems.get('linux_arm')).toMatchObject({
      code: 'PLATFORM_NOT_FOUND',
      message: expect.stringContaining('the origin says: never built'),
      fields: { platform: 'linux_arm', upstreamUrl: 'https://registry.example.test/x', upstreamStatus: 404 },
    })
    expect(problems.get('linux_386')?.message).toMatch(/ is not published for linux_386$/)
  })

  it('is not told of a platform that is known from before', () => {
    const known = releaseWithGaps(release('windows_386'), gaps, problems)
    expect([...known.problems.keys()]).not.toContain('windows_386')
  })
})

describe('what an answer leaves open', () => {
  it('a platform without an answer is inferred where the checksums name it, and unanswered where not', () => {
    const known = releaseWithGaps(release('linux_amd64'), gaps, new Map())
    expect(known.inferred).toEqual(new Map([['darwin_arm64', inferred]]))
    expect(known.unanswered).toBe(down)
  })

  it('is closed by what is known from before', () => {
    const known = releaseWithGaps(release('darwin_arm64', 'freebsd_arm'), gaps, new Map())
    expect([known.inferred.size, known.unanswered]).toEqual([0, undefined])
  })

  it('a newer record keeps what is open, but for what it has itself', () => {
    const before = releaseWithGaps(release('linux_amd64'), gaps, problemsOf(gaps, widget, v1))
    const now = knownRelease(release('linux_amd64', 'darwin_arm64', 'linux_arm'), before)
    expect(now.inferred.size).toBe(0)
    expect([...now.problems.keys()]).toEqual(['windows_386', 'freebsd_arm', 'linux_386'])
    expect(now.unanswered).toBe(down)
    expect(knownRelease(release('linux_amd64'))).toMatchObject({ inferred: new Map(), problems: new Map() })
  })
})

it('a release without a platform, known or inferred, is empty', () => {
  expect(isEmpty(knownRelease(release()))).toBe(true)
  expect(isEmpty(knownRelease(release('linux_amd64')))).toBe(false)
  expect(isEmpty(releaseWithGaps(release(), gaps, new Map()))).toBe(false)
})
