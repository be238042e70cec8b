import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MirrorError } from '../../src/errors.ts'
import type { HeldVersion } from '../../src/mirror/provider-records.ts'
import {
  type Candidate,
  createRelease,
  findChangedFile,
  isSameEvidence,
  isSameRelease,
} from '../../src/mirror/release-adoption.ts'
import { allChecksums, Release } from '../../src/mirror/release-record.ts'
import { parsePlatform } from '../../src/protocol/platform.ts'
import type { AuthenticatedPackage, AuthenticatedRelease } from '../../src/verify/authenticate-release.ts'
import { v1, widget } from './parts-fixture.ts'
import { sha256 } from './scripted-upstream.ts'

const AT = '2026-11-30T12:00:00.000Z'
const LATER = '2026-12-01T12:00:00.000Z'

/** File content by platform; `manifest` is a line of SHA256SUMS that is no platform's. */
type Files = Readonly<Record<string, string>>

function filenameOf(name: string): string {
  return `widget_1.0.0_${name}.zip`
}

/** An origin's answer that was accepted; `answered` are the platforms whose document came. */
function authenticated(files: Files, { answered = Object.keys(files), sums = true } = {}): AuthenticatedRelease {
  const digests = new Map(Object.entries(files).map(([name, text]) => [filenameOf(name), sha256(Buffer.from(text))]))
  const text = Buffer.from(JSON.stringify([...digests]))
  const packages = answered.flatMap((name): AuthenticatedPackage[] => {
    const digest = digests.get(filenameOf(name))
    if (digest === undefined || name === 'manifest') return []
    return [
      {
        published: {
          kind: 'published',
          platform: parsePlatform(name),
          filename: filenameOf(name),
          shasum: digest,
          archiveUrl: `https://files.example.test/${name}`,
          protocols: ['5.0'],
          signingKeys: [],
          checksums: 0,
          statedHashes: [],
          document: { os: 'x', unknown: 'kept', signing_keys: { gpg_public_keys: [] }, packages: { big: true } },
          documentUrl: `https://registry.example.test/${name}`,
        },
        digest,
        authentication: sums
          ? { rule: 'unsigned-checksums', digest, sums: sha256(text) }
          : { rule: 'stated-checksum', digest },
        statedHashes: [],
      },
    ]
  })
  return {
    packages,
    refused: [],
    absent: [],
    unanswered: [],
    filenames: sums ? digests : new Map(),
    evidence: new Map(sums ? [[sha256(text), text]] : []),
    signed: false,
    mayBeMixed: false,
    notes: [],
  }
}

/** An unsigned answer whose SHA256SUMS has a signature file beside it. */
function withSignature(answer: AuthenticatedRelease, text: string): AuthenticatedRelease {
  const packages = answer.packages.map((each): AuthenticatedPackage => {
    if (each.authentication.rule !== 'unsigned-checksums') return each
    return { ...each, authentication: { ...each.authentication, signature: sha256(Buffer.from(text)) } }
  })
  return { ...answer, packages }
}

function candidate(answer: AuthenticatedRelease, previous?: Release, fields: Partial<Candidate> = {}): Candidate {
  const held: HeldVersion = { release: previous, pin: undefined, archives: new Map() }
  const listed = { version: v1, spelling: 'v1.0', protocols: [], platforms: [] }
  return { address: widget, listed, authenticated: answer, held, missing: [], at: AT, ...fields }
}

function adopt(files: Files, previous?: Release, options?: Parameters<typeof authenticated>[1]): Release {
  return createRelease(candidate(authenticated(files, options), previous)).release
}

function digestsOf(release: Release): Record<string, string> {
  return Object.fromEntries(release.files.map(({ filename, digest }) => [filename, digest]))
}

const first = adopt({ linux_amd64: 'a', manifest: 'm' })

describe('the first answer', () => {
  it('becomes generation 1, with every line of SHA256SUMS and the document as given', () => {
    const { release, evidence } = createRelease(candidate(authenticated({ linux_amd64: 'a', manifest: 'm' })))
    expect(release).toMatchObject({
      address: 'registry.example.test/acme/widget',
      version: '1.0.0',
      spelling: 'v1.0',
      generation: 1,
      firstSeenAt: AT,
      complete: true,
      platforms: { linux_amd64: { document: { os: 'x', unknown: 'kept' } } },
    })
    expect(release.files.map(({ filename }) => filename)).toEqual([filenameOf('linux_amd64'), filenameOf('manifest')])
    expect(Release.parse(JSON.parse(JSON.stringify(release)))).toEqual(release)
    // SHA256SUMS, and what is large and the same in every document.
    const { signingKeys, packages, document } = release.platforms.linux_amd64 ?? {}
    expect(document).not.toHaveProperty('signing_keys')
    expect(document).not.toHaveProperty('packages')
    const blobs = new Map([...evidence].map(([digest, bytes]) => [digest, Buffer.from(bytes).toString()]))
    for (const [digest, bytes] of evidence) expect(sha256(bytes)).toBe(digest)
    expect(signingKeys && blobs.get(signingKeys)).toBe('{"gpg_public_keys":[]}')
    expect(packages && blobs.get(packages)).toBe('{"big":true}')
    expect(evidence.size).toBe(3)
  })

  it('is complete unless a platform that was asked for is missing', () => {
    const answer = authenticated({ linux_amd64: 'a' })
    const release = (missing: string[]) => createRelease(candidate(answer, undefined, { missing })).release
    expect(release([]).complete).toBe(true)
    expect(release(['darwin_arm64']).complete).toBe(false)
  })
})

describe('a later answer', () => {
  it('may grow the release: it stays the same generation, first seen when it was', () => {
    const grown = createRelease(
      candidate(authenticated({ linux_amd64: 'a', manifest: 'm', darwin_arm64: 'b' }), first, { at: LATER }),
    ).release
    expect(grown).toMatchObject({ generation: 1, firstSeenAt: AT, recordedAt: LATER })
    expect(Object.keys(grown.platforms)).toEqual(['linux_amd64', 'darwin_arm64'])
    expect(digestsOf(grown)).toMatchObject(digestsOf(first))
    expect(isSameRelease(first, grown)).toBe(false)
  })

  it('that says the same is the same, whenever it came', () => {
    const again = createRelease(candidate(authenticated({ linux_amd64: 'a', manifest: 'm' }), first, { at: LATER }))
    expect(isSameRelease(first, again.release)).toBe(true)
    expect(isSameRelease(undefined, first)).toBe(false)
  })

  it('with other bytes is a change that names both digests, and would be the next generation with nothing of the old', () => {
    const change = candidate(authenticated({ linux_amd64: 'b' }), first)
    expect(findChangedFile(change)).toMatchObject({
      code: 'RELEASE_CHANGED',
      fields: {
        address: 'registry.example.test/acme/widget',
        version: '1.0.0',
        filename: filenameOf('linux_amd64'),
        held: sha256(Buffer.from('a')),
        offered: sha256(Buffer.from('b')),
      },
    })
    const { release } = createRelease({ ...change, at: LATER })
    expect(release).toMatchObject({ generation: 2, firstSeenAt: LATER })
    expect(digestsOf(release)).toEqual({ [filenameOf('linux_amd64')]: sha256(Buffer.from('b')) })
  })

  it('whose SHA256SUMS drops a file is a change', () => {
    const change = findChangedFile(candidate(authenticated({ linux_amd64: 'a' }), first))
    expect(change?.fields).toMatchObject({ filename: filenameOf('manifest'), offered: 'not listed' })
    expect(change?.message).toContain('not listed')
  })

  it('of which one SHA256SUMS did not come is silent about its files too', () => {
    const error = new MirrorError('UPSTREAM_TIMEOUT', 'no answer', {})
    const partial = { ...authenticated({ linux_amd64: 'a' }), unanswered: [{ platform: parsePlatform('x_y'), error }] }
    expect(findChangedFile(candidate(partial, first))).toBeUndefined()
    expect(findChangedFile(candidate({ ...partial, unanswered: [] }, first))?.code).toBe('RELEASE_CHANGED')
    const refused = { ...partial, unanswered: [], refused: [{ platform: parsePlatform('x_y'), error }] }
    expect(findChangedFile(candidate(refused, first))).toBeUndefined()
  })

  it('without SHA256SUMS is silent about other files, and silence is no change', () => {
    const without = { sums: false }
    const linux = adopt({ linux_amd64: 'a' }, undefined, without)
    expect(findChangedFile(candidate(authenticated({ darwin_arm64: 'b' }, without), linux))).toBeUndefined()
    expect(findChangedFile(candidate(authenticated({ linux_amd64: 'c' }, without), linux))?.code).toBe(
      'RELEASE_CHANGED',
    )
    const both = adopt({ darwin_arm64: 'b' }, linux, without)
    expect(Object.keys(both.platforms)).toEqual(['linux_amd64', 'darwin_arm64'])
  })

  it('that lacks the documents of known platforms leaves the release complete: they are known', () => {
    const answer = authenticated({ linux_amd64: 'a', manifest: 'm', darwin_arm64: 'b' }, { answered: ['linux_amd64'] })
    const missing = ['darwin_arm64']
    expect(createRelease(candidate(answer, first, { missing })).release.complete).toBe(false)
    const whole = adopt({ linux_amd64: 'a', manifest: 'm', darwin_arm64: 'b' })
    expect(createRelease(candidate(answer, whole, { missing })).release).toEqual({ ...whole, recordedAt: AT })
    // But not if it is another generation, which knows nothing of the old platforms.
    const changed = authenticated({ linux_amd64: 'x', darwin_arm64: 'y' }, { answered: ['linux_amd64'] })
    expect(createRelease(candidate(changed, whole, { missing })).release).toMatchObject({
      generation: 2,
      complete: false,
    })
  })

  it('replaces checksums that clients may be about to ask for: they are remembered, the oldest forgotten at last', () => {
    const sums = (release: Release | undefined) => [...allChecksums(release ?? first)]
    expect(first).not.toHaveProperty('outdatedChecksums')
    const grown = adopt({ linux_amd64: 'a', manifest: 'm', darwin_arm64: 'b' }, first)
    expect(grown.outdatedChecksums).toEqual(sums(first))
    const changed = adopt({ linux_amd64: 'x' }, grown)
    expect(changed.outdatedChecksums).toEqual([...sums(first), ...sums(grown)])
    // What is named again is not outdated any more.
    expect(adopt({ linux_amd64: 'a', manifest: 'm' }, changed).outdatedChecksums).not.toContain(sums(first)[0])
    let release = first
    for (let each = 0; each < 50; each++) release = adopt({ linux_amd64: `${each}` }, release)
    expect(release.outdatedChecksums).toHaveLength(32)
    expect(release.outdatedChecksums).not.toContain(sums(first)[0])
  })

  it('without the signature of an unsigned release keeps the one that is known, for the same checksums', () => {
    const signed = withSignature(authenticated({ linux_amd64: 'a' }), 'S')
    const { release } = createRelease(candidate(signed))
    const again = createRelease(candidate(authenticated({ linux_amd64: 'a' }), release)).release
    expect(again.platforms).toEqual(release.platforms)
    const changed = createRelease(candidate(authenticated({ linux_amd64: 'b' }), release)).release
    expect(changed.platforms.linux_amd64?.authentication).not.toHaveProperty('signature')
    const renewed = createRelease(candidate(withSignature(authenticated({ linux_amd64: 'a' }), 'T'), release)).release
    expect(renewed.platforms.linux_amd64?.authentication).toMatchObject({ signature: sha256(Buffer.from('T')) })
  })

  it('confirms a record if it tells nothing that the record lacks: links and a missing signature do not count', () => {
    const answer = withSignature(authenticated({ linux_amd64: 'a' }), 'S')
    const record = createRelease(candidate(answer)).release.platforms.linux_amd64
    const [same] = answer.packages
    if (same === undefined) throw new Error('no package')
    const change = (published: Partial<typeof same.published>) => ({
      ...same,
      published: { ...same.published, ...published },
    })
    const document = same.published.document
    expect(isSameEvidence(record, same)).toBe(true)
    expect(isSameEvidence(record, change({ archiveUrl: 'https://files.example.test/?signed=2' }))).toBe(true)
    const [unsigned = same] = authenticated({ linux_amd64: 'a' }).packages
    expect(isSameEvidence(record, unsigned)).toBe(true)
    const keys = { gpg_public_keys: [{ ascii_armor: 'new' }] }
    expect(isSameEvidence(record, change({ document: { ...document, signing_keys: keys } }))).toBe(false)
    expect(isSameEvidence(record, change({ document: { ...document, packages: { big: false } } }))).toBe(false)
    expect(isSameEvidence(record, change({ protocols: ['6.0'] }))).toBe(false)
    const [renewed = same] = withSignature(authenticated({ linux_amd64: 'a' }), 'T').packages
    expect(isSameEvidence(record, renewed)).toBe(false)
    expect(isSameEvidence(undefined, same)).toBe(false)
  })

  it('that contradicts a held archive is a change, although the release record was lost', () => {
    const held: HeldVersion = {
      release: undefined,
      pin: { format: 1, generation: 1, pinnedAt: AT },
      archives: new Map([
        [
          'linux_amd64',
          {
            format: 1,
            address: first.address,
            version: v1,
            platform: 'linux_amd64',
            filename: filenameOf('linux_amd64'),
            digest: sha256(Buffer.from('a')),
            size: 1,
            generation: 1,
            authentication: { rule: 'stated-checksum', digest: sha256(Buffer.from('a')) },
            archiveUrl: 'https://files.example.test/',
            cachedAt: AT,
          },
        ],
      ]),
    }
    const offer = (text: string) => candidate(authenticated({ linux_amd64: text }), undefined, { held })
    expect(findChangedFile(offer('a'))).toBeUndefined()
    expect(findChangedFile(offer('b'))?.code).toBe('RELEASE_CHANGED')
  })
})

const names = ['linux_amd64', 'linux_arm64', 'darwin_arm64', 'windows_386', 'manifest']
const files = fc
  .dictionary(fc.constantFrom(...names), fc.constantFrom('a', 'b'), { minKeys: 1 })
  .filter((each) => Object.keys(each).some((name) => name !== 'manifest'))
const answers = fc.record({ files, answered: fc.subarray(names), sums: fc.boolean() })

describe('whatever an origin answers, time after time', () => {
  it('adopting the same answer twice changes nothing', () => {
    fc.assert(
      fc.property(answers, fc.option(answers, { nil: undefined }), (answer, before) => {
        const previous = before && adopt(before.files, undefined, before)
        const once = adopt(answer.files, previous, answer)
        const twice = createRelease(candidate(authenticated(answer.files, answer), once, { at: LATER })).release
        expect(findChangedFile(candidate(authenticated(answer.files, answer), once))).toBeUndefined()
        expect(isSameRelease(once, twice)).toBe(true)
      }),
    )
  })

  it('no known file changes its digest within a generation, and none is forgotten', () => {
    fc.assert(
      fc.property(fc.array(answers, { minLength: 1, maxLength: 8 }), (history) => {
        let release: Release | undefined
        for (const answer of history) {
          const next = candidate(authenticated(answer.files, answer), release)
          const changed = findChangedFile(next)
          const adopted = createRelease(next).release
          expect(adopted.generation).toBe((release?.generation ?? 0) + (changed || release === undefined ? 1 : 0))
          if (release !== undefined && changed === undefined) {
            expect(digestsOf(adopted)).toMatchObject(digestsOf(release))
            expect(Object.keys(adopted.platforms)).toEqual(expect.arrayContaining(Object.keys(release.platforms)))
          }
          for (const { filename, digest } of Object.values(adopted.platforms)) {
            expect(digestsOf(adopted)[filename]).toBe(digest)
          }
          release = adopted
        }
      }),
    )
  })

  it('a pinned release that refuses changes keeps every digest that it ever had', () => {
    fc.assert(
      fc.property(answers, fc.array(answers, { maxLength: 8 }), (start, offers) => {
        let release = adopt(start.files, undefined, start)
        const known = new Map(Object.entries(digestsOf(release)))
        for (const offer of offers) {
          const next = candidate(authenticated(offer.files, offer), release)
          if (findChangedFile(next) !== undefined) continue
          release = createRelease(next).release
          for (const [filename, digest] of Object.entries(digestsOf(release))) {
            expect(known.get(filename) ?? digest).toBe(digest)
            known.set(filename, digest)
          }
        }
        expect(digestsOf(release)).toEqual(Object.fromEntries(known))
      }),
    )
  })
})
