import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { MirrorError } from '../../src/errors.ts'
import { assertSha256, type PackageHash, parsePackageHash, type Sha256 } from '../../src/protocol/package-hash.ts'
import { parsePlatform } from '../../src/protocol/platform.ts'
import type { ChecksumsClaim, PlatformClaim, PublishedPlatform, SigningKey } from '../../src/protocol/release-claim.ts'
import { authenticateRelease, type VerificationRules } from '../../src/verify/authenticate-release.ts'
import { day, forge, listed, makeKey, now, sign } from './key-fixture.ts'
import { hasVectors, readVector } from './vectors.ts'

const acme = await makeKey()
const other = await makeKey()
const keys = [listed(acme.publicKey)]
const sumsUrl = 'https://acme.example/SHA256SUMS'
const signatureUrl = 'https://acme.example/SHA256SUMS.sig'

function digestOf(platform: string, generation = 1): Sha256 {
  return assertSha256(createHash('sha256').update(`${platform} ${generation}`).digest('hex'))
}

function zip(platform: string): string {
  return `terraform-provider-acme_1.0.0_${platform}.zip`
}

function sumsOf(platforms: readonly string[], generation = 1): Buffer {
  return Buffer.from(platforms.map((platform) => `${digestOf(platform, generation)}  ${zip(platform)}\n`).join(''))
}

const PLATFORMS = ['linux_amd64', 'linux_arm64', 'darwin_arm64']
const sums = sumsOf(PLATFORMS)
const signature = await sign(sums, acme.privateKey, day(-100))

function checksums(fields: Partial<ChecksumsClaim> = {}): ChecksumsClaim {
  return {
    sumsUrl: `${sumsUrl}?token=secret`,
    signatureUrl: `${signatureUrl}?token=secret`,
    sums,
    signature,
    ...fields,
  }
}

function published(platform: string, fields: Partial<PublishedPlatform> = {}): PublishedPlatform {
  return {
    kind: 'published',
    platform: parsePlatform(platform),
    filename: zip(platform),
    shasum: digestOf(platform),
    archiveUrl: `https://acme.example/${zip(platform)}`,
    protocols: ['5.0'],
    signingKeys: keys,
    checksums: 0,
    statedHashes: [],
    document: {},
    documentUrl: `https://acme.example/download/${platform}?token=secret`,
    ...fields,
  }
}

function authenticate(
  platforms: readonly PlatformClaim[],
  claims: readonly ChecksumsClaim[] = [checksums()],
  rules: Partial<VerificationRules> = {},
) {
  const all: VerificationRules = { signatures: 'required', expiredKeys: 'accept', everSigned: false, ...rules }
  return authenticateRelease({ platforms, checksums: claims }, all, now)
}

/** The one refusal of a release of which one platform is asked. */
async function refusal(...args: Parameters<typeof authenticate>): Promise<MirrorError & { mayBeMixed: boolean }> {
  const { packages, refused, mayBeMixed, evidence, filenames, signed } = await authenticate(...args)
  expect(packages).toEqual([])
  expect(refused.length).toBe(1)
  expect(signed).toBe(false)
  const error = refused[0]?.error
  if (!(error instanceof MirrorError)) throw new Error('expected a refusal')
  expect(error.message).not.toContain('secret')
  expect(JSON.stringify(error.fields)).not.toContain('secret')
  if (error.is('SIGNATURE_INVALID', 'SIGNATURE_REQUIRED')) expect([evidence.size, filenames.size]).toEqual([0, 0])
  return Object.assign(error, { mayBeMixed })
}

function status(upstreamStatus: number): MirrorError {
  const fields = { host: 'acme.example', upstreamUrl: sumsUrl, upstreamStatus }
  return new MirrorError('UPSTREAM_STATUS', `${upstreamStatus} from ${sumsUrl}`, fields)
}

const timeout = new MirrorError('UPSTREAM_TIMEOUT', 'no answer', { host: 'acme.example', upstreamUrl: sumsUrl })

function hashes(...texts: string[]): PackageHash[] {
  return texts.map(parsePackageHash).filter((hash) => hash !== undefined)
}

describe('a signed release', () => {
  it('authenticates every platform by one verified SHA256SUMS, and keeps the bytes that prove it', async () => {
    const release = await authenticate(PLATFORMS.map((platform) => published(platform)))
    expect(release.packages.map(({ digest }) => digest)).toEqual(PLATFORMS.map((platform) => digestOf(platform)))
    const [first] = release.packages
    const sha = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
    expect(first?.authentication).toMatchObject({
      rule: 'signed-checksums',
      digest: digestOf('linux_amd64'),
      sums: sha(sums),
      signature: sha(signature),
      signer: { fingerprint: acme.publicKey.getFingerprint(), keyExpired: false, weak: false },
    })
    expect([...release.evidence.keys()]).toEqual([sha(sums), sha(signature)])
    expect(release.evidence.get(assertSha256(sha(sums)))).toBe(sums)
    expect(Object.fromEntries(release.filenames)).toEqual(
      Object.fromEntries(PLATFORMS.map((platform) => [zip(platform), digestOf(platform)])),
    )
    expect(release).toMatchObject({
      refused: [],
      absent: [],
      unanswered: [],
      signed: true,
      mayBeMixed: false,
      notes: [],
    })
  })

  it('does not need the shasum of the document, and takes the file name from it, never from the address', async () => {
    const odd = Buffer.from(`${digestOf('x')}  terraform-provider-other_v1.2.0_linux_amd64.zip\n`)
    const claim = checksums({ sums: odd, signature: await sign(odd, acme.privateKey, day(-100)) })
    const filename = 'terraform-provider-other_v1.2.0_linux_amd64.zip'
    const { packages } = await authenticate([published('linux_amd64', { filename, shasum: undefined })], [claim])
    expect(packages[0]?.digest).toBe(digestOf('x'))
  })

  it('judges the second of two keys, and one beside an unreadable key', async () => {
    const two = published('linux_amd64', { signingKeys: [listed(other.publicKey), ...keys] })
    const broken = published('linux_arm64', { signingKeys: [listed('broken'), ...keys] })
    expect((await authenticate([two, broken])).packages).toHaveLength(2)
  })

  it('refuses a signature by a key that is not listed, or a key that nobody can read', async () => {
    const stranger = published('linux_amd64', { signingKeys: [listed(other.publicKey)] })
    expect(await refusal([stranger])).toMatchObject({
      code: 'SIGNATURE_INVALID',
      mayBeMixed: true,
      fields: { upstreamUrl: signatureUrl },
    })
    const broken = published('linux_amd64', { signingKeys: [listed('broken')] })
    expect(await refusal([broken])).toMatchObject({ code: 'KEY_UNREADABLE', mayBeMixed: false })
  })

  it.each(['required', 'whenListed'] as const)(
    'refuses a bad signature under %s, as two generations mixed',
    async (signatures) => {
      const mixed = checksums({ sums: sumsOf(PLATFORMS, 2) })
      const error = await refusal([published('linux_amd64')], [mixed], { signatures })
      expect(error).toMatchObject({ code: 'SIGNATURE_INVALID', mayBeMixed: true })
    },
  )

  it.each(['required', 'whenListed'] as const)(
    'never falls back to less under %s if keys are listed',
    async (signatures) => {
      const one = [published('linux_amd64')]
      const rules = { signatures }
      const noSums = published('linux_amd64', { checksums: undefined })
      expect(await refusal([noSums], [], rules)).toMatchObject({ code: 'CHECKSUMS_INVALID', mayBeMixed: false })
      const noSignature = checksums({ signature: undefined, signatureUrl: undefined })
      expect(await refusal(one, [noSignature], rules)).toMatchObject({ code: 'SIGNATURE_MISSING', mayBeMixed: false })
      expect(await refusal(one, [checksums({ signature: status(404) })], rules)).toMatchObject({
        code: 'SIGNATURE_MISSING',
        message: expect.stringContaining(`404 from ${signatureUrl}`),
        cause: expect.objectContaining({ code: 'UPSTREAM_STATUS' }),
      })
    },
  )

  it.each([403, 404, 410])('calls SHA256SUMS missing if the origin answers %i, and keeps the cause', async (code) => {
    expect(await refusal([published('linux_amd64')], [checksums({ sums: status(code) })])).toMatchObject({
      code: 'CHECKSUMS_INVALID',
      message: expect.stringContaining(`checksums ${code} from ${sumsUrl}`),
      fields: { upstreamUrl: sumsUrl },
      cause: expect.objectContaining({ code: 'UPSTREAM_STATUS' }),
    })
  })

  it('passes on an outage of SHA256SUMS or of the signature as what it is', async () => {
    const one = [published('linux_amd64')]
    expect(await refusal(one, [checksums({ sums: timeout })])).toBe(timeout)
    expect(await refusal(one, [checksums({ signature: timeout })])).toBe(timeout)
    const outage = status(503)
    expect(await refusal(one, [checksums({ sums: outage })])).toBe(outage)
  })

  it('calls an error page in place of SHA256SUMS unusable, not badly signed', async () => {
    const page = checksums({ sums: Buffer.from('<html>') })
    expect(await refusal([published('linux_amd64')], [page])).toMatchObject({
      code: 'CHECKSUMS_INVALID',
      message: expect.stringContaining(sumsUrl),
      mayBeMixed: false,
    })
  })

  it('refuses only the platform without a line (B26)', async () => {
    const release = await authenticate([published('linux_amd64'), published('windows_amd64')])
    expect(release.packages).toHaveLength(1)
    expect(release.mayBeMixed).toBe(true)
    expect(release.refused[0]).toMatchObject({
      platform: { os: 'windows', arch: 'amd64' },
      error: {
        code: 'CHECKSUM_MISSING',
        message: expect.stringContaining(`no checksum entry for ${zip('windows_amd64')}`),
        fields: { filename: zip('windows_amd64'), upstreamUrl: sumsUrl },
      },
    })
  })

  it('refuses only the platform whose shasum is not its line, with both digests (B25)', async () => {
    const wrong = published('linux_arm64', { shasum: digestOf('linux_arm64', 2) })
    const release = await authenticate([published('linux_amd64'), wrong])
    expect(release.packages).toHaveLength(1)
    expect(release.mayBeMixed).toBe(true)
    const error = release.refused[0]?.error
    const [expected, actual] = [digestOf('linux_arm64'), digestOf('linux_arm64', 2)]
    expect(error).toMatchObject({ code: 'CHECKSUM_MISMATCH', fields: { expected, actual } })
    expect(error?.message).toContain(expected)
    expect(error?.message).toContain(actual)
  })

  it('accepts a key that has expired since with a warning, and refuses it where told to (B29)', async () => {
    const old = await makeKey({ keyExpirationTime: 950 * 86_400 })
    const claim = checksums({ signature: await sign(sums, old.privateKey, day(-100)) })
    const one = [published('linux_amd64', { signingKeys: [listed(old.publicKey)] })]
    const { notes, packages } = await authenticate(one, [claim])
    expect(packages).toHaveLength(1)
    expect(notes).toEqual([{ level: 'warn', text: expect.stringContaining('expired') }])
    expect(await refusal(one, [claim], { expiredKeys: 'refuse' })).toMatchObject({ code: 'SIGNATURE_INVALID' })
  })

  it('notes a weak signature once', async () => {
    const rsa = await makeKey({ type: 'rsa', rsaBits: 2048 })
    const claim = checksums({ signature: await forge(sums, rsa.privateKey, { date: day(-100), hash: 2 }) })
    const signingKeys = [listed(rsa.publicKey)]
    const two = [published('linux_amd64', { signingKeys }), published('linux_arm64', { signingKeys })]
    expect((await authenticate(two, [claim])).notes).toEqual([{ level: 'info', text: expect.stringContaining('weak') }])
  })

  it('verifies one evidence once, however many platforms and URLs lead to it', async () => {
    const many = Array.from({ length: 300 }, (_, i) => published('linux_amd64', { checksums: i }))
    const claims = many.map((_, i) => checksums({ sumsUrl: `${sumsUrl}/${i}`, sums: Buffer.from(sums) }))
    let reads = 0
    const counting: SigningKey = {
      document: {},
      get asciiArmor() {
        reads++
        return acme.publicKey.armor()
      },
    }
    const first = await authenticate([published('linux_amd64', { signingKeys: [counting] })])
    expect(first.packages).toHaveLength(1)
    const readsOfOne = reads
    reads = 0
    const release = await authenticate(
      many.map((one) => ({ ...one, signingKeys: [counting] })),
      claims,
    )
    expect(release.packages).toHaveLength(300)
    expect(new Set(release.packages.map(({ authentication }) => authentication)).size).toBe(300)
    // Each platform's keys are read to compare them; only the first one's also to verify.
    expect(reads).toBe(readsOfOne + 299)
  })
})

describe('an unsigned release', () => {
  const unsigned = (platform: string, fields: Partial<PublishedPlatform> = {}) =>
    published(platform, { signingKeys: [], ...fields })
  const bare = checksums({ signature: undefined, signatureUrl: undefined })
  const whenListed = { signatures: 'whenListed' } as const

  it('is refused where signatures are required, and says what to configure', async () => {
    const error = await refusal([unsigned('linux_amd64')], [bare])
    expect(error).toMatchObject({ code: 'SIGNATURE_REQUIRED', mayBeMixed: false })
    expect(error.message).toContain('verification.signatures: whenListed')
  })

  it('is refused whatever the rule if the provider was signed before', async () => {
    const error = await refusal([unsigned('linux_amd64')], [bare], { ...whenListed, everSigned: true })
    expect(error).toMatchObject({ code: 'SIGNATURE_REQUIRED', message: expect.stringContaining('was signed before') })
  })

  it('is accepted by SHA256SUMS where allowed (B30)', async () => {
    const release = await authenticate([unsigned('linux_amd64')], [bare], whenListed)
    expect(release.packages[0]).toMatchObject({
      digest: digestOf('linux_amd64'),
      authentication: { rule: 'unsigned-checksums', digest: digestOf('linux_amd64') },
    })
    expect(release).toMatchObject({ signed: false, refused: [] })
    expect(release.filenames.size).toBe(3)
    expect([...release.evidence.values()]).toEqual([sums])
  })

  it('is held to its SHA256SUMS like a signed one', async () => {
    const missing = unsigned('windows_amd64')
    const wrong = unsigned('linux_amd64', { shasum: digestOf('linux_amd64', 2) })
    const lost = { ...bare, sums: status(404) }
    const one = [unsigned('linux_amd64')]
    expect(await refusal([missing], [bare], whenListed)).toMatchObject({ code: 'CHECKSUM_MISSING', mayBeMixed: true })
    expect(await refusal([wrong], [bare], whenListed)).toMatchObject({ code: 'CHECKSUM_MISMATCH', mayBeMixed: true })
    expect(await refusal(one, [lost], whenListed)).toMatchObject({ code: 'CHECKSUMS_INVALID' })
    expect(await refusal(one, [{ ...bare, sums: timeout }], whenListed)).toBe(timeout)
  })

  it('is accepted by the shasum of the document if that names no SHA256SUMS (B28)', async () => {
    const release = await authenticate([unsigned('linux_amd64', { checksums: undefined })], [], whenListed)
    expect(release.packages[0]?.authentication).toEqual({ rule: 'stated-checksum', digest: digestOf('linux_amd64') })
    expect(release).toMatchObject({ signed: false, filenames: new Map(), evidence: new Map() })
  })

  it('is refused without any checksum', async () => {
    const none = unsigned('linux_amd64', { checksums: undefined, shasum: undefined })
    expect(await refusal([none], [], whenListed)).toMatchObject({ code: 'CHECKSUM_MISSING', mayBeMixed: false })
  })

  it('is refused platform by platform beside signed ones of the same version', async () => {
    const stated = unsigned('darwin_arm64', { checksums: undefined })
    const platforms = [unsigned('linux_amd64', { checksums: 1 }), published('linux_arm64'), stated]
    const release = await authenticate(platforms, [checksums(), { ...bare, sumsUrl: `${sumsUrl}2` }], whenListed)
    expect(release.packages.map(({ published: { filename } }) => filename)).toEqual([zip('linux_arm64')])
    expect(release.refused.map(({ error }) => error.code)).toEqual(['SIGNATURE_REQUIRED', 'SIGNATURE_REQUIRED'])
    expect(release.signed).toBe(true)
  })

  it('is refused if its documents contradict each other without SHA256SUMS', async () => {
    const filename = zip('linux_amd64')
    const one = unsigned('linux_amd64', { checksums: undefined })
    const two = unsigned('linux_arm64', { checksums: undefined, filename })
    const { refused, packages, mayBeMixed } = await authenticate([one, two], [], whenListed)
    expect(packages).toEqual([])
    expect(refused.map(({ error }) => error.code)).toEqual(['CHECKSUMS_INVALID', 'CHECKSUMS_INVALID'])
    expect(mayBeMixed).toBe(true)
  })
})

describe('two SHA256SUMS of one release', () => {
  const signedClaim = async (bytes: Buffer) =>
    checksums({ sums: bytes, signature: await sign(bytes, acme.privateKey, day(-100)) })

  it('are both accepted if they agree', async () => {
    const claims = [await signedClaim(sumsOf(PLATFORMS.slice(0, 2))), await signedClaim(sumsOf(PLATFORMS.slice(1)))]
    const platforms = [published('linux_amd64'), published('darwin_arm64', { checksums: 1 })]
    const release = await authenticate(platforms, claims)
    expect(release.packages).toHaveLength(2)
    expect([release.filenames.size, release.evidence.size]).toEqual([3, 4])
  })

  it('are both refused if they contradict each other, with all their platforms and none of their evidence', async () => {
    const claims = [checksums(), await signedClaim(sumsOf(PLATFORMS, 2)), await signedClaim(sumsOf(['linux_386']))]
    const platforms = [
      published('linux_amd64'),
      published('linux_arm64', { checksums: 1, shasum: undefined }),
      published('linux_386', { checksums: 2 }),
    ]
    const release = await authenticate(platforms, claims)
    expect(release.packages.map(({ published: { filename } }) => filename)).toEqual([zip('linux_386')])
    expect(release.refused.map(({ error }) => error.code)).toEqual(['CHECKSUMS_INVALID', 'CHECKSUMS_INVALID'])
    expect(release.refused[0]?.error.message).toContain(digestOf('linux_amd64', 2))
    expect([...release.filenames.keys()]).toEqual([zip('linux_386')])
    expect(release.evidence.size).toBe(2)
    expect(release.mayBeMixed).toBe(true)
  })
})

describe('what the origin states beside the digest', () => {
  const h1 = `h1:${'A'.repeat(43)}=`

  it('is kept if it agrees with the digest, or does not speak of it', async () => {
    const agreeing = hashes(`zh:${digestOf('linux_amd64')}`, h1)
    const platforms = [
      published('linux_amd64', { statedHashes: agreeing }),
      published('linux_arm64', { statedHashes: hashes(h1) }),
    ]
    const { packages, notes } = await authenticate(platforms)
    expect(packages.map(({ statedHashes }) => statedHashes)).toEqual([agreeing, hashes(h1)])
    expect(notes).toEqual([])
  })

  it('is dropped as a whole and reported if it contradicts the digest (rule 11)', async () => {
    const statedHashes = hashes(`zh:${digestOf('linux_amd64')}`, `zh:${digestOf('linux_amd64', 2)}`, h1)
    const { packages, notes, refused } = await authenticate([published('linux_amd64', { statedHashes })])
    expect(packages[0]?.statedHashes).toEqual([])
    expect(refused).toEqual([])
    expect(notes).toEqual([{ level: 'warn', text: expect.stringContaining(zip('linux_amd64')) }])
  })
})

describe('platforms without a document', () => {
  const absent = { kind: 'absent', platform: parsePlatform('plan9_386'), upstreamUrl: sumsUrl, detail: 'no' } as const
  const failed = (platform: string) => ({ kind: 'failed', platform: parsePlatform(platform), error: timeout }) as const
  const lines = (...names: string[]) => Buffer.from(names.map((name) => `${digestOf(name)}  ${name}\n`).join(''))

  it('are told apart: absent and unanswered', async () => {
    const release = await authenticate([absent, failed('linux_386')])
    expect(release.absent).toEqual([{ platform: absent.platform, upstreamUrl: sumsUrl, detail: 'no' }])
    expect(release.unanswered).toEqual([{ platform: parsePlatform('linux_386'), error: timeout }])
    expect(release).toMatchObject({ packages: [], refused: [], signed: false, mayBeMixed: false })
  })

  it('are inferred from the one line of a verified SHA256SUMS that ends in _OS_ARCH.zip', async () => {
    const { unanswered } = await authenticate([published('linux_amd64'), failed('linux_arm64'), failed('linux_arm')])
    expect(unanswered[0]?.inferred).toMatchObject({
      filename: zip('linux_arm64'),
      digest: digestOf('linux_arm64'),
      authentication: { rule: 'signed-checksums', digest: digestOf('linux_arm64') },
    })
    expect(unanswered[1]).toEqual({ platform: parsePlatform('linux_arm'), error: timeout })
  })

  it.each([
    ['two lines', lines(zip('linux_amd64'), 'a_linux_arm64.zip', 'b_linux_arm64.zip')],
    ['a name with a path', lines(zip('linux_amd64'), '../a_linux_arm64.zip')],
    ['a name with a control character', lines(zip('linux_amd64'), 'a\u0001_linux_arm64.zip')],
  ])('are not inferred from %s', async (_, bytes) => {
    const claim = checksums({ sums: bytes, signature: await sign(bytes, acme.privateKey, day(-100)) })
    const { unanswered } = await authenticate(
      [published('linux_amd64', { shasum: undefined }), failed('linux_arm64')],
      [claim],
    )
    expect(unanswered[0]).not.toHaveProperty('inferred')
  })

  it('are not inferred from a SHA256SUMS that was not accepted', async () => {
    const mixed = checksums({ sums: sumsOf(PLATFORMS, 2) })
    const { unanswered } = await authenticate([published('linux_amd64'), failed('linux_arm64')], [mixed])
    expect(unanswered[0]).not.toHaveProperty('inferred')
  })
})

describe.skipIf(!hasVectors)('a real release', () => {
  it('is authenticated: null 3.1.0 by the HashiCorp key of today', async () => {
    const path = 'signatures/terraform-provider-null_3.1.0/terraform-provider-null_3.1.0_SHA256SUMS'
    const claim = checksums({ sums: readVector(path), signature: readVector(`${path}.72D7468F.sig`) })
    const real = published('linux_amd64', {
      filename: 'terraform-provider-null_3.1.0_linux_amd64.zip',
      shasum: undefined,
      signingKeys: [listed(readVector('signatures/keys/hashicorp-releases-terraform-repo.asc').toString())],
    })
    const { packages, notes } = await authenticate([real], [claim])
    expect(packages[0]?.authentication).toMatchObject({ signer: { keyId: '34365D9472D7468F', keyExpired: true } })
    expect(notes).toHaveLength(1)
  })
})
