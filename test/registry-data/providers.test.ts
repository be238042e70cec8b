import { expect, test } from 'vitest'
import { describeVectors } from '../protocol/vectors.ts'
import { speaksKnownProtocol, type UsableVersion, usableProvider } from './client-rules.ts'
import { type Provider, readProviders } from './data-set.ts'
import { type MirrorAnswer, type RegistryMirror, startMirrorOverDataSet } from './registry-mirror.ts'
import { forEachOf, Tally } from './tally.ts'

const HOST = 'registry.opentofu.org'
/** Versions in flight at once: each one is some fourteen requests to the origin. */
const VERSIONS_AT_ONCE = 6
const LISTED = 'platforms listed, each with the zh of the data alone and a URL of its own'
const UNKNOWN_PROTOCOL =
  '  of them with protocols that a client would refuse of the registry, which no mirror document states'

describeVectors('all that a client could use of real registry data comes through the mirror', () => {
  test('every provider, version and platform of the slice, counted', { timeout: 600_000 }, async () => {
    const providers = readProviders()
    const served = providers.filter(({ name }) => name !== undefined)
    const tally = new Tally(Object.keys(EXPECTED))
    const wrong: string[] = []
    await using registry = await startMirrorOverDataSet(HOST)
    const started = performance.now()

    await forEachOf(providers, 4, async (provider) => {
      for (const problem of await checkIndex(registry, provider, tally)) wrong.push(problem)
    })
    const versions = served.flatMap(({ name = '', data }) =>
      [...usableProvider(data).versions]
        .filter(([version, { spelling }], index, all) => {
          const isOdd = spelling !== version || version.includes('+')
          return IS_WHOLE || isOdd || all.length <= FEW_VERSIONS || index % 5 === 0
        })
        .map(([version, usable]) => ({ name, version, usable })),
    )
    await forEachOf(versions, VERSIONS_AT_ONCE, async (each) => {
      for (const problem of await checkVersion(registry, each, tally)) wrong.push(problem)
    })
    await countVerdicts(registry, tally)

    const seconds = ((performance.now() - started) / 1_000).toFixed(1)
    console.log(`registry data through the mirror, ${seconds} s:\n${tally}`)
    expect(wrong).toEqual([])
    expect(tally.toObject()).toEqual({ ...EXPECTED, ...(IS_WHOLE ? {} : EXPECTED_OF_SOME) })

    // Whatever is left out is left out for a reason that the log states, and nothing else was.
    const lines = registry.mirror.logLines
    const problems = lines.flatMap(({ provider, problems }) => (problems === undefined ? [] : [{ provider, problems }]))
    expect(problems).toEqual([
      {
        provider: `${HOST}/chanzuckerberg/okta`,
        problems: ['left out "3.7.4": the same version as "3.7.4"'],
      },
    ])
    expect(lines.filter(({ platform }) => platform !== undefined)).toEqual([])
  })
})

/**
 * Every version in `npm run test:large`; else of providers with many every fifth, and what is spelled in an odd way. All
 * of all others, and all lists.
 */
const IS_WHOLE = process.env.HEAVY !== undefined
const FEW_VERSIONS = 20

/** Where it is other than of all. */
const EXPECTED_OF_SOME = {
  'platforms listed, each with the zh of the data alone and a URL of its own': 16559,
  '  of them by checksums that a listed key signed': 9390,
  '  of them by checksums alone, no key is listed': 7169,
  '  of them under a file name that is not the usual one': 94,
}

/** As the data has it. A change here is a change of what is served, or of the data. */
const EXPECTED = {
  'providers of the group odd': 57,
  'providers of the group odd-misplaced': 2,
  'providers of the group popular': 44,
  'providers listed': 101,
  'providers left out: the generator of the registry finds no address in the path of the file': 2,
  'versions in the data': 5867,
  'versions listed': 5863,
  '  of them spelled otherwise in the data, such as 1.14': 20,
  '  of them with build metadata': 82,
  '  of them with protocols that a client would refuse of the registry, which no mirror document states': 2,
  'versions left out: the same version is listed twice': 1,
  'versions left out: of a provider without an address': 3,
  'platforms in the data': 65358,
  'platforms listed, each with the zh of the data alone and a URL of its own': 65331,
  '  of them by checksums that a listed key signed': 40905,
  '  of them by checksums alone, no key is listed': 24426,
  '  of them under a file name that is not the usual one': 320,
  'platforms left out: a later entry for the same version and platform has replaced it': 3,
  'platforms left out: of a provider without an address': 24,
}

/** `index.json` has exactly the versions that a client could choose. */
async function checkIndex(registry: RegistryMirror, provider: Provider, tally: Tally): Promise<string[]> {
  const { group, name, data } = provider
  tally.add(`providers of the group ${group}`)
  tally.add('versions in the data', data.versions.length)
  tally.add('platforms in the data', data.versions.flatMap(({ targets }) => targets).length)
  if (name === undefined) return checkMisplaced(registry, provider, tally)

  const { versions, leftOutVersions, leftOutPlatforms } = usableProvider(data)
  for (const { reason } of leftOutVersions) tally.add(`versions left out: ${reason}`)
  for (const { reason } of leftOutPlatforms) tally.add(`platforms left out: ${reason}`)
  const { status, json } = await registry.ask(`${HOST}/${name}/index.json`)
  if (status !== 200) return [`${name}: index.json is ${status} ${json.code}`]
  const listed = Object.keys(json.versions)
  tally.add('providers listed')
  tally.add('versions listed', listed.length)
  const missing = [...versions.keys()].filter((version) => !listed.includes(version))
  const extra = listed.filter((version) => !versions.has(version))
  return [
    ...missing.map((version) => `${name} ${version} is not in index.json`),
    ...extra.map((version) => `${name} ${version} is in index.json, but no client could use it`),
  ]
}

/** A file where the generator does not look is under no address, whichever way its path is read. */
async function checkMisplaced(registry: RegistryMirror, { file, data }: Provider, tally: Tally): Promise<string[]> {
  const [namespace, folder, type] = file
    .replace(/\.json(\.gz)?$/, '')
    .split('/')
    .slice(2)
  tally.add('providers left out: the generator of the registry finds no address in the path of the file')
  tally.add('versions left out: of a provider without an address', data.versions.length)
  tally.add(
    'platforms left out: of a provider without an address',
    data.versions.flatMap(({ targets }) => targets).length,
  )
  const names = [`${namespace}/${type}`, `${namespace}/${folder}`]
  const answers = await Promise.all(names.map((name) => registry.ask(`${HOST}/${name}/index.json`)))
  return answers
    .filter(({ status, json }) => status !== 404 || json.code !== 'PROVIDER_NOT_FOUND')
    .map(({ status, json }) => `${file}: ${status} ${json.code}`)
}

interface Asked {
  readonly name: string
  readonly version: string
  readonly usable: UsableVersion
}

/** `VERSION.json` has exactly the platforms of the data, each with the digest of its own zip and nothing else. */
async function checkVersion(registry: RegistryMirror, asked: Asked, tally: Tally): Promise<string[]> {
  const { name, version, usable } = asked
  if (usable.spelling !== version) tally.add('  of them spelled otherwise in the data, such as 1.14')
  if (version.includes('+')) tally.add('  of them with build metadata')
  if (!speaksKnownProtocol(usable.protocols)) tally.add(UNKNOWN_PROTOCOL)

  const { status, json } = await askPatiently(registry, `${HOST}/${name}/${version}.json`)
  if (status !== 200) return [`${name} ${version}: ${status} ${json.code} ${json.error}`]
  const archives = new Map<string, { url: string; hashes: string[] }>(Object.entries(json.archives))
  const extra = [...archives.keys()].filter((platform) => !usable.targets.has(platform))
  const wrong = extra.map((platform) => `${name} ${version} ${platform} is listed, but the data has none`)
  for (const [platform, { shasum, filename }] of usable.targets) {
    const { url = '', hashes = [] } = archives.get(platform) ?? {}
    if (hashes.join() === `zh:${shasum}` && isUrlOf(url, { ...asked, platform })) tally.add(LISTED)
    else wrong.push(`${name} ${version} ${platform}: ${JSON.stringify(archives.get(platform))}`)
    const usual = `terraform-provider-${name.split('/')[1]}_${usable.spelling}_${platform}.zip`
    if (filename !== usual) tally.add('  of them under a file name that is not the usual one')
  }
  return wrong
}

/** On a busy machine the 8 seconds of a document may pass; the work goes on, and who asks again gets it. */
async function askPatiently(registry: RegistryMirror, path: string): Promise<MirrorAnswer> {
  for (let tries = 1; ; tries++) {
    const answer = await registry.ask(path)
    if (answer.status !== 504 || tries === 20) return answer
  }
}

/** The URL is relative to the document, and leads to this package of this mirror and of no other. */
function isUrlOf(url: string, { name, version, platform }: Asked & { platform: string }): boolean {
  const folder = `https://mirror.test/under/a/prefix/${HOST}/${name}/`
  const resolved = decodeURIComponent(new URL(url, `${folder}${version}.json`).href)
  return resolved.startsWith(`${folder}${version}/${platform}/`) && resolved.endsWith('.zip')
}

async function countVerdicts(registry: RegistryMirror, tally: Tally): Promise<void> {
  const metrics = await registry.mirror.metrics()
  const count = (verdict: string): number =>
    Number(
      new RegExp(`^terramirror_verification_verdicts_total\\{verdict="${verdict}"\\} (\\d+)$`, 'm').exec(metrics)?.[1],
    )
  tally.add('  of them by checksums that a listed key signed', count('signed-checksums'))
  tally.add('  of them by checksums alone, no key is listed', count('unsigned-checksums'))
}
