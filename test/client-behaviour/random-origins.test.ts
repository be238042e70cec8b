import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Answer, startMirror, type TestMirror } from '../e2e/mirror-fixture.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { canonicalVersion } from '../registry-data/client-rules.ts'
import { IndexDocument, readDocument, VersionDocument } from './mirror-documents.ts'
import { type RandomProvider, randomProvider } from './random-origin.ts'
import { DownloadDocument, VersionsDocument } from './registry-documents.ts'
import { zipHash } from './stage.ts'

const STRICT_HOST = 'registry.example.test'
const LENIENT_HOST = 'other.example.test'
const NEVER_PUBLISHED = ['9.9.9', '1.0.0+none', 'v1.0.0', '+']

let origin: TestOrigin
let mirror: TestMirror

beforeAll(async () => {
  origin = await startOrigin()
  const lenient = { [LENIENT_HOST]: { verification: { signatures: 'whenListed' } } }
  mirror = await startMirror({ origin, config: { origins: lenient, upstream: { retries: 0 } } })
})
afterAll(async () => {
  await mirror[Symbol.asyncDispose]()
  await origin[Symbol.asyncDispose]()
})

/** What came of all runs: that much is not left to chance. */
const seen = { versions: 0, packages: 0, h1: 0, emptyDocuments: 0, refusals: 0, archives: 0, downloads: 0, encoded: 0 }

test('whatever an origin says, every document of ours is one that all clients read right', async () => {
  let run = 0
  const property = fc.asyncProperty(randomProvider, async (random) => {
    await expectGoodDocuments({ ...random, namespace: `${random.namespace}-${++run}` })
  })
  await fc.assert(property, { seed: 11_040, numRuns: 20 })
  expect(Object.entries(seen).filter(([, count]) => count < 5)).toEqual([])
})

test('a plus sign in an address is no address, and its documents are good ones too', async () => {
  for (const path of [`${STRICT_HOST}/ac+me/widget`, `${STRICT_HOST}/acme/wid%2Bget`, `${STRICT_HOST}/+/+`]) {
    expect((await mirror.ask(`/providers/${path}/index.json`)).status).toBe(404)
    const answer = await mirror.ask(`/providers/${path}/1.0.0.json`)
    expect(readDocument(answer, VersionDocument)).toEqual({ archives: {} })
  }
})

async function expectGoodDocuments(random: RandomProvider): Promise<void> {
  const provider = `${random.signed ? STRICT_HOST : LENIENT_HOST}/${random.namespace}/${random.type}`
  const published = await publish(random, provider)
  const body = JSON.stringify({ versions: random.list })
  using _ = origin.fault({ kind: 'versions', provider: provider.replace(`${STRICT_HOST}/`, '') }, { body })

  const base = `/providers/${provider.split('/').map(encodeURIComponent).join('/')}`
  const listed = Object.keys(readDocument(await mirror.ask(`${base}/index.json`), IndexDocument).versions)
  seen.versions += listed.length
  const { versions } = readDocument(await mirror.ask(`/v1${base}/versions`), VersionsDocument)
  expect(versions.map(({ version }) => version)).toEqual(listed)
  const known = new Set([...listed, ...[...published.keys()].map((key) => key.split(' ')[0] ?? '')])
  const read = async (version: string): Promise<void> => {
    const document = `${base}/${encodeURIComponent(version)}.json`
    const archives = readPackages(await mirror.ask(document))
    for (const [platform, { hashes }] of Object.entries(archives)) {
      expect(published.get(`${version} ${platform}`)).toContain(hashes[0])
    }
    await expectFirstArchive(document, archives)
    for (const [platform, { hashes }] of Object.entries(archives)) {
      const path = `/v1${base}/${encodeURIComponent(version)}/download/${platform.replace('_', '/')}`
      await expectGoodDownload(path, hashes[0])
    }
  }
  for (const version of [...known, ...NEVER_PUBLISHED]) await read(version)
  // And once more, with an archive held of each.
  for (const version of known) await read(version)
}

/** `zh:` of what was published, by canonical version and platform; two spellings may stand for one version. */
async function publish(random: RandomProvider, provider: string): Promise<Map<string, string[]>> {
  const published = new Map<string, string[]>()
  for (const { spelling, platforms, filename, oddities } of random.releases) {
    const release = await origin.publish({
      provider,
      version: spelling,
      platforms,
      filename,
      ...(random.signed ? {} : { key: null }),
      document: (document, platform) => oddities[platform]?.(document, platform) ?? document,
    })
    for (const { platform, sha256 } of release.packages) {
      const key = `${canonicalVersion(spelling)} ${platform}`
      published.set(key, [...(published.get(key) ?? []), `zh:${sha256}`])
    }
  }
  return published
}

/** The same package by the other door: every link is ours, and leads to what belongs together. */
async function expectGoodDownload(path: string, zh: string): Promise<void> {
  const answer = await mirror.ask(path)
  if (answer.status !== 200) {
    // Listed by its line of the verified sums: its own document cannot be read.
    expect([answer.status, answer.json().code]).toEqual([502, 'UPSTREAM_INVALID'])
    return
  }
  const document = readDocument(answer, DownloadDocument)
  seen.downloads += 1
  const get = (link: string): Promise<Answer> => mirror.ask(new URL(link, new URL(path, mirror.url)).pathname)
  // The archives themselves came by the network mirror; another download of each would tell nothing new.
  expect(document.download_url).toMatch(/^\.\.\/\.\.\/archives\//)
  if (document.shasums_url === undefined) return
  const sums = await get(document.shasums_url)
  expect([sums.status, sums.body.toString()]).toEqual([200, expect.stringContaining(zh.slice(3))])
  const signature = document.shasums_signature_url && (await get(document.shasums_signature_url))
  if (signature) expect(signature.status).toBe(200)
}

type Packages = ReturnType<typeof VersionDocument.parse>['archives']

/** Nothing if no platform could be vouched for, which is told as what it is. */
function readPackages(answer: Answer): Packages {
  if (answer.status !== 200) {
    seen.refusals += 1
    expect([answer.status, answer.headers['content-type']]).toEqual([502, 'application/json'])
    expect(answer.json().code).toMatch(/^(CHECKSUM|SIGNATURE|UPSTREAM_INVALID)/)
    return {}
  }
  const { archives } = readDocument(answer, VersionDocument)
  const packages = Object.values(archives)
  seen.packages += packages.length
  seen.h1 += packages.filter(({ hashes }) => hashes.length > 1).length
  seen.encoded += packages.filter(({ url }) => url.includes('%')).length
  if (packages.length === 0) seen.emptyDocuments += 1
  return archives
}

/** Right bytes, or the reason: a platform whose document cannot be read may be listed by its line of the verified sums. */
async function expectFirstArchive(document: string, archives: Packages): Promise<void> {
  const [listed] = Object.values(archives)
  if (listed === undefined) return
  const answer = await mirror.ask(new URL(listed.url, new URL(document, mirror.url)).pathname)
  if (answer.status === 200) {
    expect(zipHash(answer.body)).toBe(listed.hashes[0])
    seen.archives += 1
  } else expect([answer.status, answer.json().code]).toEqual([502, 'UPSTREAM_INVALID'])
}
