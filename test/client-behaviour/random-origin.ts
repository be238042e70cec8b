import fc from 'fast-check'
import type { JsonDocument, Publication } from '../origin/release.ts'

/** A provider of an origin that does what origins do, and much that none should. */
export interface RandomProvider {
  readonly namespace: string
  readonly type: string
  readonly signed: boolean
  readonly releases: readonly RandomRelease[]
  /** The entries of its list of versions, any JSON; the releases are among them, or not. */
  readonly list: readonly unknown[]
}

/** One release, as it is published. */
export interface RandomRelease {
  /** As the origin spells it; a version by the rules of clients, or not. */
  readonly spelling: string
  readonly platforms: readonly string[]
  readonly oddities: Readonly<Record<string, Oddity>>
  readonly filename: NonNullable<Publication['filename']>
}

/** Changes one download document. */
export type Oddity = (document: JsonDocument, platform: string) => JsonDocument

const PLATFORMS = ['linux_amd64', 'darwin_arm64', 'windows_386', 'js_wasm']
const DIGEST = 'c0ffee'.repeat(10).padEnd(64, '0')
const H1 = 'h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='

const names = fc.constantFrom('acme', 'bücher', '日本', 'google-beta', 'x_y', 'größe', 'a1', 'null', 'index', 'v1')

const number = fc.oneof(fc.nat(12).map(String), fc.constantFrom('0', '01', '18446744073709551616'))
const version = fc
  .tuple(
    fc.array(number, { minLength: 1, maxLength: 3 }),
    fc.constantFrom('', '', '', '-rc.1', '-beta', '-0.01', '--'),
    fc.constantFrom('', '', '+b1', '+1', '+001', '+git.abc-def'),
  )
  .map(([core, pre, build]) => `${core.join('.')}${pre}${build}`)
const noVersion = fc.constantFrom<unknown>('v1.2.3', 'latest', '', '1.2.3.4', '1..2', '1.0.0 ', '１.0.0', 7, null, {}, [
  '1.0.0',
])

const claims = fc.constantFrom<unknown>(
  null,
  {},
  [],
  'zh:',
  { hashes: null },
  { hashes: [] },
  { hashes: [H1] },
  { hashes: [H1, H1, 'sha512:abcd', 'abcd', null, 7] },
  { hashes: [`zh:${DIGEST}`, H1] },
  { hashes: ['h1:AAAA', 'h1:', 'zh:abc'] },
)
const oddity: fc.Arbitrary<Oddity> = fc.oneof(
  fc.constant<Oddity>((document) => document),
  fc.constant<Oddity>((document) => document),
  claims.map(
    (each): Oddity =>
      (document, platform) => ({ ...document, packages: { [platform]: each } }),
  ),
  fc.constantFrom<unknown>(null, '', 'abc', DIGEST, 7).map(
    (shasum): Oddity =>
      (document) => ({ ...document, shasum }),
  ),
  fc.constant<Oddity>((document) => ({ ...document, shasum: String(document.shasum).toUpperCase() })),
  fc.constantFrom('?token=a%2Bb&x=1', '#part').map(
    (rest): Oddity =>
      (document) => ({ ...document, download_url: `${document.download_url}${rest}` }),
  ),
  fc.constantFrom<unknown>('', '/', 'a/b.zip', 7, 'foreign.zip').map(
    (filename): Oddity =>
      (document) => ({ ...document, filename }),
  ),
  fc.constantFrom<unknown>('', 'ftp://x/y', null, 7).map(
    (url): Oddity =>
      (document) => ({ ...document, download_url: url }),
  ),
  fc.constantFrom<unknown>('', null, 'https://').map(
    (url): Oddity =>
      (document) => ({ ...document, shasums_url: url }),
  ),
  fc.dictionary(fc.constantFrom('hashes', 'url', 'archives', 'versions', '__proto__'), fc.jsonValue()).map(
    (extra): Oddity =>
      (document) => ({ ...document, ...extra }),
  ),
)

const release: fc.Arbitrary<RandomRelease> = fc.record({
  spelling: version,
  platforms: fc.subarray(PLATFORMS, { minLength: 1 }),
  oddities: fc.record(Object.fromEntries(PLATFORMS.map((platform) => [platform, oddity]))),
  filename: fc
    .constantFrom('terraform-provider-other_v9_', 'Größe + more_', 'terraform-provider-x_1.0.0+b_', 'a.b-')
    .map((start) => (platform: string) => `${start}${platform}.zip`),
})

const platformEntry = fc.oneof(
  fc.constantFrom(...PLATFORMS).map((platform) => {
    const [os, arch] = platform.split('_')
    return { os, arch }
  }),
  fc.constantFrom<unknown>(
    null,
    {},
    { os: 'linux' },
    { os: 'Linux', arch: 'AMD64' },
    { os: 'a_b', arch: 'c' },
    'linux_amd64',
    {
      os: 1,
      arch: 2,
    },
  ),
)
const entry = (spelling: fc.Arbitrary<unknown>) =>
  fc.record(
    {
      version: spelling,
      protocols: fc.constantFrom<unknown>(['5.0'], [], null, '5.0', [7]),
      platforms: fc.oneof(fc.array(platformEntry, { maxLength: 5 }), fc.constantFrom<unknown>(null, 'linux', {})),
    },
    { requiredKeys: ['version'] },
  )

/** Its releases in any order, some of them left out, among entries of all kinds. */
function listOf(releases: readonly RandomRelease[]): fc.Arbitrary<unknown[]> {
  const spellings = releases.map(({ spelling }) => spelling)
  const honest = fc.tuple(...spellings.map((spelling) => entry(fc.constant(spelling))))
  const other = fc.oneof(
    entry(fc.constantFrom(...spellings)),
    entry(version),
    entry(noVersion),
    fc.constantFrom<unknown>(null, 'x', []),
  )
  return fc
    .tuple(honest, fc.array(other, { maxLength: 4 }))
    .chain((lists) => fc.shuffledSubarray(lists.flat(), { minLength: 1 }))
}

/** Any such provider. */
export const randomProvider: fc.Arbitrary<RandomProvider> = fc
  .record({
    namespace: names,
    type: names,
    signed: fc.boolean(),
    releases: fc.uniqueArray(release, { minLength: 1, maxLength: 3, selector: ({ spelling }) => spelling }),
  })
  .chain((provider) => listOf(provider.releases).map((list) => ({ ...provider, list })))
