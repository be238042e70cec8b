import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isMirrorError } from '../../src/errors.ts'
import { parseDownloadDocument } from '../../src/protocol/download-document.ts'
import { parsePlatform } from '../../src/protocol/platform.ts'
import { cpuMs, outcome, thrownBy } from './only-mirror-errors.ts'
import { describeVectors, readJsonVector } from './vectors.ts'

const documentUrl = 'https://reg.example.test/api/tf/acme/widget/1.2.0/download/linux/amd64?token=s3cret'
const source = { documentUrl, platform: parsePlatform('linux_amd64') }
const DIGEST = '5f9c7aa76b7c34d722fc9123208e26b22d60440cb47150dd04733b9b94f4541a'

const complete = {
  protocols: ['5.0'],
  os: 'linux',
  arch: 'amd64',
  filename: 'terraform-provider-widget_1.2.0_linux_amd64.zip',
  download_url: 'https://dl.example.test/w.zip',
  shasum: DIGEST,
  shasums_url: 'https://dl.example.test/SUMS',
  shasums_signature_url: 'https://dl.example.test/SUMS.sig',
  signing_keys: { gpg_public_keys: [{ key_id: 'A', ascii_armor: 'armor', trust_signature: '', source: 'x' }] },
}

function parse(changes: Record<string, unknown> = {}) {
  return parseDownloadDocument({ ...complete, ...changes }, source)
}

function refusal(changes: Record<string, unknown>) {
  const error = thrownBy(() => parse(changes))
  expect(error.code).toBe('UPSTREAM_INVALID')
  expect(error.fields).toMatchObject({
    host: 'reg.example.test',
    upstreamUrl: 'https://reg.example.test/api/tf/acme/widget/1.2.0/download/linux/amd64',
  })
  expect(JSON.stringify([error.message, error.fields])).not.toContain('s3cret')
  return error.message
}

describe('parseDownloadDocument', () => {
  it('keeps all that the origin says', () => {
    const body = { ...complete, unknown: { kept: true } }
    expect(parseDownloadDocument(body, source)).toEqual({
      kind: 'published',
      platform: { os: 'linux', arch: 'amd64' },
      filename: complete.filename,
      shasum: DIGEST,
      archiveUrl: 'https://dl.example.test/w.zip',
      protocols: ['5.0'],
      signingKeys: [{ asciiArmor: 'armor', document: complete.signing_keys.gpg_public_keys[0] }],
      statedHashes: [],
      document: body,
      documentUrl,
      sumsUrl: 'https://dl.example.test/SUMS',
      signatureUrl: 'https://dl.example.test/SUMS.sig',
    })
  })

  it('keeps the file name as given, however it is built (B27)', () => {
    const filename = 'terraform-provider-other_v1.2.0+1_linux_amd64.ZIP'
    expect(parse({ filename }).filename).toBe(filename)
  })

  it.each([undefined, null, '', 1, '.', '..', 'a/b.zip', '/a.zip', 'a\\b.zip', 'a\u0000.zip', 'a\n.zip', ['a.zip']])(
    'refuses a file name that is none: %j',
    (filename) => {
      expect(refusal({ filename })).toContain('filename')
    },
  )

  it('takes the digest in any letter case, and none for what is no digest (B25, B27)', () => {
    expect(parse({ shasum: DIGEST.toUpperCase() }).shasum).toBe(DIGEST)
    for (const shasum of [undefined, null, '', 'abc', 1, `${DIGEST}0`]) expect(parse({ shasum }).shasum).toBeUndefined()
  })

  it('refuses the document of another platform', () => {
    expect(refusal({ os: 'darwin' })).toContain('"os" is "darwin"')
    expect(refusal({ arch: 'arm64' })).toContain('linux_amd64')
    expect(refusal({ os: '' })).toContain('"os"')
    expect(refusal({ arch: 1 })).toContain('"arch"')
    expect(parse({ os: undefined, arch: null }).platform).toEqual({ os: 'linux', arch: 'amd64' })
  })

  it.each([
    ['amd64/x.zip', 'https://reg.example.test/api/tf/acme/widget/1.2.0/download/linux/amd64/x.zip'],
    ['./x.zip?sig=a%2Bb', 'https://reg.example.test/api/tf/acme/widget/1.2.0/download/linux/x.zip?sig=a%2Bb'],
    ['/s/SUMS', 'https://reg.example.test/s/SUMS'],
    ['../../SUMS', 'https://reg.example.test/api/tf/acme/widget/1.2.0/SUMS'],
    ['//cdn.example.test/x', 'https://cdn.example.test/x'],
    ['http://cdn.example.test/v0.2.1+1/x', 'http://cdn.example.test/v0.2.1+1/x'],
  ])('resolves %s against the final URL of the document (B52)', (reference, expected) => {
    const document = parse({ download_url: reference, shasums_url: reference, shasums_signature_url: reference })
    expect([document.archiveUrl, document.sumsUrl, document.signatureUrl]).toEqual([expected, expected, expected])
  })

  it.each([
    'ftp://x/y',
    'file:///etc/passwd',
    'javascript:1',
    'data:,x',
    'https://',
    'https://[',
    'http://a b/',
    1,
    {},
    ['x'],
  ])('refuses a URL that no client would fetch: %j', (url) => {
    expect(refusal({ download_url: url })).toContain('download_url')
    expect(refusal({ shasums_url: url })).toContain('shasums_url')
    expect(refusal({ shasums_signature_url: url })).toContain('shasums_signature_url')
  })

  it.each([undefined, null, '', ' '])('takes %j for no checksum URL, but not for no archive URL (B28)', (url) => {
    const document = parse({ shasums_url: url, shasums_signature_url: url })
    expect([document.sumsUrl, document.signatureUrl]).toEqual([undefined, undefined])
    expect(refusal({ download_url: url })).toContain('download_url')
  })

  it.each([undefined, null, {}, { gpg_public_keys: null }, { gpg_public_keys: [] }, { gpg_public_keys: [null, {}] }])(
    'takes %j for no keys, without a crash (B30)',
    (signing_keys) => {
      expect(parse({ signing_keys }).signingKeys).toEqual([])
    },
  )

  it.each([{ ascii_armor: '' }, { ascii_armor: null }, { ascii_armor: 1, key_id: 'A' }, { key_id: 'A' }])(
    'never takes a key that it cannot read for no key: %j',
    (entry) => {
      expect(parse({ signing_keys: { gpg_public_keys: [entry] } }).signingKeys).toEqual([
        { asciiArmor: '', document: entry },
      ])
    },
  )

  it.each([
    '',
    'x',
    1,
    [],
    { gpg_public_keys: {} },
    { gpg_public_keys: 'x' },
    { gpg_public_keys: ['x'] },
    { gpg_public_keys: [[]] },
  ])('never takes a damaged list of keys for an empty one: %j', (signing_keys) => {
    expect(refusal({ signing_keys })).toMatch(/signing_keys|gpg_public_keys/)
  })

  it('keeps keys in their order, none added or merged', () => {
    const keys = ['b', 'a', 'b'].map((ascii_armor) => ({ ascii_armor }))
    const { signingKeys } = parse({ signing_keys: { gpg_public_keys: keys } })
    expect(signingKeys.map((key) => key.asciiArmor)).toEqual(['b', 'a', 'b'])
  })

  it('takes stated hashes of this platform only, known schemes only, each once', () => {
    const zh = `zh:${DIGEST}`
    const h1 = 'h1:yZ6W9xVRg/J+CsYC5zefHGnaygOxVVCk34uidFslHV4='
    const packages = {
      linux_amd64: { hashes: [h1, zh, `zh:${DIGEST.toUpperCase()}`, 'h2:x', 'x', 1, null], package_size: 1 },
      darwin_arm64: { hashes: [`zh:${'0'.repeat(64)}`] },
    }
    expect(parse({ packages }).statedHashes).toEqual([h1, zh])
    for (const odd of [null, [], 'x', {}, { linux_amd64: null }, { linux_amd64: { hashes: 'zh:' } }]) {
      expect(parse({ packages: odd }).statedHashes).toEqual([])
    }
  })

  it('throws errors of ours only, for any JSON', () => {
    const json = fc.oneof(fc.jsonValue(), fc.webUrl(), fc.string())
    const keys = fc.oneof(json, fc.record({ gpg_public_keys: fc.oneof(json, fc.array(json)) }))
    const changes = fc.record(
      {
        os: json,
        arch: json,
        filename: json,
        download_url: json,
        shasums_url: json,
        shasum: json,
        signing_keys: keys,
        packages: json,
      },
      { requiredKeys: [] },
    )
    const body = fc.oneof(
      fc.jsonValue(),
      changes.map((some) => ({ ...complete, ...some })),
    )
    fc.assert(
      fc.property(body, (value) => {
        const document = outcome(() => parseDownloadDocument(value, source))
        return !isMirrorError(document) || document.is('UPSTREAM_INVALID')
      }),
      { numRuns: 1000 },
    )
  })

  it('reads the document that it keeps as it read it first', () => {
    const text = fc.oneof(fc.webPath(), fc.webUrl(), fc.constantFrom('x.zip', '?a=%2B', ''))
    const changes = fc.record({ download_url: text, shasums_url: text, protocols: fc.array(fc.string()) })
    fc.assert(
      fc.property(changes, fc.dictionary(fc.string(), fc.jsonValue()), (some, more) => {
        const first = outcome(() => parseDownloadDocument({ ...more, ...complete, ...some }, source))
        if (isMirrorError(first)) return
        const printed: unknown = JSON.parse(JSON.stringify(first.document))
        expect(JSON.stringify(parseDownloadDocument(printed, source))).toBe(JSON.stringify(first))
      }),
    )
  })

  it('takes no longer for a megabyte', () => {
    const long = 'a'.repeat(1e6)
    const keys = { gpg_public_keys: Array.from({ length: 50_000 }, () => ({ ascii_armor: 'x' })) }
    const packages = { linux_amd64: { hashes: Array.from({ length: 50_000 }, () => 'h1:x') } }
    for (const changes of [
      { filename: long },
      { download_url: `https://x/${long}` },
      { shasums_url: ' '.repeat(1e6) },
      { signing_keys: keys },
      { packages },
    ]) {
      expect(cpuMs(() => outcome(() => parse(changes)))).toBeLessThan(2000)
    }
  })
})

describeVectors('real download documents', () => {
  const derived = 'opentofu-registry/v1-derived/v1/providers'
  it.each([
    [
      'responses/registry.terraform.io/aws_4.62.0_linux_amd64.json',
      'linux_amd64',
      1,
      'terraform-provider-aws_4.62.0_linux_amd64.zip',
    ],
    [
      'responses/registry.terraform.io/random_3.4.3_linux_amd64.json',
      'linux_amd64',
      1,
      'terraform-provider-random_3.4.3_linux_amd64.zip',
    ],
    [
      'responses/registry.terraform.io/random_2.0.0_linux_amd64_2020.json',
      'linux_amd64',
      1,
      'terraform-provider-random_2.0.0_linux_amd64.zip',
    ],
    [
      'responses/registry.opentofu.org/docs_download_with_packages.json',
      'linux_amd64',
      1,
      'terraform-provider-random_2.0.0_linux_amd64.zip',
    ],
    [
      `${derived}/cloudflare/cloudflare/5.0.0-rc1/download/linux/amd64`,
      'linux_amd64',
      2,
      'terraform-provider-cloudflare_5.0.0-rc1_linux_amd64.zip',
    ],
    [
      `${derived}/bpg/proxmox/0.70.0/download/linux/arm64`,
      'linux_arm64',
      2,
      'terraform-provider-proxmox_0.70.0_linux_arm64.zip',
    ],
    [
      `${derived}/hashicorp/random/3.6.3/download/linux/amd64`,
      'linux_amd64',
      1,
      'terraform-provider-random_3.6.3_linux_amd64.zip',
    ],
    [
      `${derived}/hashicorp/nomad/1.4.2/download/windows/arm64`,
      'windows_arm64',
      1,
      'terraform-provider-nomad_1.4.20_windows_arm64.zip',
    ],
    [
      `${derived}/ojford/wireguard/0.2.1+1/download/linux/amd64`,
      'linux_amd64',
      1,
      'terraform-provider-wireguard_0.2.1+1_linux_amd64.zip',
    ],
    [
      `${derived}/gavinbunney/kubectl/1.19.0/download/darwin/arm64`,
      'darwin_arm64',
      1,
      'terraform-provider-kubectl_1.19.0_darwin_arm64.zip',
    ],
    [
      `${derived}/marcofranssen/curl/0.7.0/download/darwin/amd64`,
      'darwin_amd64',
      0,
      'terraform-provider-curl_0.7.0_darwin_amd64.zip',
    ],
  ])('are read whole: %s', (path, platform, keys, filename) => {
    const document = parseDownloadDocument(readJsonVector(path), { documentUrl, platform: parsePlatform(platform) })
    expect(document.filename).toBe(filename)
    expect(document.shasum).toMatch(/^[0-9a-f]{64}$/)
    expect(document.signingKeys).toHaveLength(keys)
    expect(document.signingKeys.every((key) => key.asciiArmor.includes('BEGIN PGP PUBLIC KEY BLOCK'))).toBe(true)
    expect(document.archiveUrl).toBe(document.document.download_url)
    expect(document.sumsUrl).toBe(document.document.shasums_url)
    expect(document.signatureUrl).toBe(document.document.shasums_signature_url)
  })

  it('give the h1 of `packages` for a platform that is in it, nothing for another', () => {
    const body = readJsonVector('responses/registry.opentofu.org/docs_download_with_packages.json')
    expect(parseDownloadDocument(body, source).statedHashes).toEqual([])
    const darwin = { ...(body as object), os: 'darwin' }
    const document = parseDownloadDocument(darwin, { documentUrl, platform: parsePlatform('darwin_amd64') })
    expect(document.statedHashes).toEqual([
      'zh:fa36a9bfe2f1532af36af30ab607f2858aef6ae73754349123fe140f9bef0701',
      'h1:yZ6W9xVRg/J+CsYC5zefHGnaygOxVVCk34uidFslHV4=',
    ])
  })
})
