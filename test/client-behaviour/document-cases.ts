import { expect } from 'vitest'
import type { JsonDocument } from '../origin/release.ts'
import type { ProtocolRow } from './case.ts'
import type { ProtocolCase } from './recorded-cases.ts'
import { LENIENT_HOST, PLATFORM, type Stage, VERSION, withDocument, zipHash } from './stage.ts'

/** Cases about what stands in `index.json` and `VERSION.json`. */
export const DOCUMENT_ROWS: readonly ProtocolRow[] = [
  {
    name: 'platform_missing',
    client: 'fails',
    stance: 'ours',
    promise: 'a platform that the origin does not publish has no entry, the others have theirs',
    check: async (stage) => {
      await stage.publish({ provider: 'documents/platform_missing', platforms: ['darwin_arm64', 'windows_amd64'] })
      const listed = await stage.packages('documents/platform_missing')
      expect(Object.keys(listed)).toEqual(['darwin_arm64', 'windows_amd64'])
    },
  },
  {
    name: 'archives_empty',
    client: 'fails',
    stance: 'ours',
    promise: 'a version that we do not have is an empty document',
    check: async (stage) => {
      await stage.publish({ provider: 'documents/archives_empty' })
      const answer = await stage.mirror.version('documents/archives_empty', '2.0.0')
      expect([answer.status, answer.body.toString()]).toEqual([200, '{"archives":{}}'])
    },
  },
  {
    name: 'hashes_null',
    client: 'installs',
    stance: 'avoided',
    promise: 'null in the place of hashes does not get through, nor does a platform without any digest',
    check: async (stage) => {
      const provider = `${LENIENT_HOST}/documents/hashes_null`
      const nulls = { packages: { [PLATFORM]: { hashes: null } }, signing_keys: null }
      const release = await stage.publish({
        provider,
        key: null,
        document: (document, platform) =>
          platform === PLATFORM
            ? { ...document, ...nulls }
            : { ...document, ...nulls, shasum: null, shasums_url: null, packages: null },
      })
      const listed = await stage.packages(provider)
      expect(Object.keys(listed)).toEqual([PLATFORM])
      expect(listed[PLATFORM]?.hashes).toEqual([`zh:${release.package(PLATFORM).sha256}`])
    },
  },
  {
    name: 'extra_keys',
    client: 'installs',
    stance: 'avoided',
    promise: 'keys that the protocol does not have stay with the origin',
    check: async (stage) => {
      const provider = 'documents/extra_keys'
      await stage.publish({ provider, ...withDocument({ extra: { key: 1 }, url: 'x', hashes: ['h1:x'] }) })
      using _ = stage.origin.fault({ kind: 'versions', provider }, { body: listOf([{ version: VERSION, extra: [1] }]) })
      // The schema takes no other keys.
      await stage.install(provider)
    },
  },
  {
    name: 'index_bad_version',
    client: 'installs',
    stance: 'avoided',
    promise: 'what is no version is left out, and hides no version',
    check: (stage, recorded) =>
      expectListed(stage, recorded, ['v1.1.0', VERSION, 'latest', '', '1.2.3.4', ' 1.3.0', '1.4.0-'], [VERSION]),
  },
  {
    name: 'index_only_v',
    client: 'fails',
    stance: 'avoided',
    promise: 'a list of nothing but bad spellings is an empty one, which clients read as "not here"',
    check: (stage, recorded) => expectListed(stage, recorded, ['v1.0.0'], []),
  },
  {
    name: 'index_two_part',
    client: 'installs',
    stance: 'avoided',
    promise: 'a version of two parts is listed as clients will ask for it, and served so',
    check: async (stage, recorded) => {
      await expectListed(stage, recorded, ['1.1', '01.2.3'], ['1.1.0', '1.2.3'])
      const provider = 'documents/index_two_part-served'
      const release = await stage.publish({ provider, version: '1.1' })
      const archive = await stage.install(provider, '1.1.0')
      expect(zipHash(archive.body)).toBe(`zh:${release.package(PLATFORM).sha256}`)
    },
  },
  {
    name: 'index_build_meta',
    client: 'installs',
    stance: 'ours',
    promise: 'build metadata is kept, and its plus sign is understood literally and encoded',
    check: async (stage) => {
      const provider = 'documents/index_build_meta'
      for (const version of ['1.1.0', '1.1.0+b1', '1.1.0+b2']) await stage.publish({ provider, version })
      expect(await stage.versions(provider)).toEqual(['1.1.0', '1.1.0+b1', '1.1.0+b2'])
      await stage.install(provider, '1.1.0+b1')
      const literal = await stage.mirror.ask(`/providers/registry.example.test/${provider}/1.1.0+b1.json`)
      const encoded = await stage.mirror.version(provider, '1.1.0+b1')
      expect(literal.body.equals(encoded.body)).toBe(true)
      const all = await Promise.all(['1.1.0', '1.1.0+b1', '1.1.0+b2'].map((each) => stage.packages(provider, each)))
      expect(new Set(all.map((listed) => listed[PLATFORM]?.hashes[0])).size).toBe(3)
    },
  },
  {
    name: 'index_prerelease_only',
    client: 'fails',
    stance: 'ours',
    promise: 'pre-releases are listed, though clients choose them by an exact constraint only',
    check: (stage, recorded) =>
      expectListed(stage, recorded, ['1.0.0-rc1', '1.0.0-beta.2'], ['1.0.0-beta.2', '1.0.0-rc1']),
  },
  {
    name: 'index_prerelease_exact',
    client: 'installs',
    stance: 'ours',
    promise: 'a pre-release that is asked for by its name is served',
    check: async (stage) => {
      await stage.publish({ provider: 'documents/index_prerelease_exact', version: '1.0.0-rc1' })
      await stage.install('documents/index_prerelease_exact', '1.0.0-rc1')
    },
  },
  {
    name: 'index_version_value_null',
    client: 'installs',
    stance: 'avoided',
    promise: 'each version stands for an empty object, never for null',
    check: async (stage, recorded) => {
      await expectListed(stage, recorded, [VERSION], [VERSION])
      const answer = await stage.mirror.index(`documents/${recorded.case}`)
      expect(answer.body.toString()).toBe(`{"versions":{"${VERSION}":{}}}`)
    },
  },
  {
    name: 'index_list_instead_of_map',
    client: 'fails',
    stance: 'avoided',
    promise: 'the list that the registry protocol has becomes the map that the mirror protocol has',
    check: async (stage, recorded) => {
      await expectListed(stage, recorded, ['1.0.0', '1.1.0'], ['1.0.0', '1.1.0'])
      const provider = 'documents/index_list_instead_of_map-reverse'
      using _ = stage.origin.fault({ kind: 'versions', provider }, jsonBody({ versions: { '1.0.0': {} } }))
      expect((await stage.mirror.index(provider)).status).toBe(502)
    },
  },
  {
    name: 'index_bigint',
    client: 'installs',
    stance: 'avoided',
    promise: 'numbers of any length are kept digit by digit, and sorted as numbers',
    check: (stage, recorded) =>
      expectListed(
        stage,
        recorded,
        ['1.0.99999999999999999999', '1.0.18446744073709551616', '1.0.0', '1.0.9007199254740993'],
        ['1.0.0', '1.0.9007199254740993', '1.0.18446744073709551616', '1.0.99999999999999999999'],
      ),
  },
]

/** The origin lists these spellings, and we list these versions, in this order. */
async function expectListed(
  stage: Stage,
  recorded: ProtocolCase,
  spellings: readonly string[],
  listed: readonly string[],
): Promise<void> {
  const provider = `documents/${recorded.case}`
  const list = listOf(spellings.map((version) => ({ version, protocols: ['5.0'], platforms: [] })))
  using _ = stage.origin.fault(
    { kind: 'versions', provider },
    { status: 200, contentType: 'application/json', body: list },
  )
  expect(await stage.versions(provider)).toEqual(listed)
}

function listOf(versions: readonly JsonDocument[]): string {
  return JSON.stringify({ versions })
}

function jsonBody(document: JsonDocument) {
  return { status: 200, contentType: 'application/json', body: JSON.stringify(document) }
}
