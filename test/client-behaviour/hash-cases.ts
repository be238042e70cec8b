import { expect } from 'vitest'
import type { HashRow } from './case.ts'
import { type HashCase, readRecordedCases } from './recorded-cases.ts'
import { PLATFORM, recordedZip, type Stage, zipHash } from './stage.ts'

/*
 * The cases about `hashes`. The origin publishes the very zips that the cases were recorded with.
 */

/** Cases about the hashes that a document states. */
export const HASH_ROWS: readonly HashRow[] = [
  {
    name: 'nohashes',
    client: 'installs',
    stance: 'avoided',
    promise: 'an origin that states no hashes does not make us leave them out: nobody installs unauthenticated',
    check: (stage, recorded) => expectTrueHashes(stage, recorded, undefined),
  },
  {
    name: 'emptyhashes',
    client: 'installs',
    stance: 'avoided',
    promise: 'an empty list of the origin does not become one of ours',
    check: (stage, recorded) => expectTrueHashes(stage, recorded, []),
  },
  {
    name: 'h1',
    client: 'installs',
    stance: 'avoided',
    promise: 'an h1 of the origin never stands alone: the zh of the signed sums is before it',
    check: (stage, recorded) => expectTrueHashes(stage, recorded, recorded.mirror_hashes, recorded.mirror_hashes ?? []),
  },
  {
    name: 'zh',
    client: 'installs',
    stance: 'ours',
    promise: 'the recorded zh is what we list before we hold the archive, and the first of what we list afterwards',
    check: async (stage, recorded) => {
      const listed = await expectTrueHashes(stage, recorded, undefined)
      expect(listed.before).toEqual(recorded.mirror_hashes)
    },
  },
  {
    name: 'both',
    client: 'installs',
    stance: 'ours',
    promise: 'both are listed once the archive is held, equal to the recorded ones, zh first',
    check: async (stage, recorded) => {
      const listed = await expectTrueHashes(stage, recorded, undefined)
      expect(listed.after.toSorted()).toEqual(recorded.mirror_hashes?.toSorted())
    },
  },
  {
    name: 'badh1',
    client: 'fails',
    stance: 'avoided',
    promise: 'a wrong h1 of the origin stands behind the true zh, and is dropped once we hold the archive',
    check: (stage, recorded) => expectTrueHashes(stage, recorded, recorded.mirror_hashes, recorded.mirror_hashes ?? []),
  },
  {
    name: 'badh1_goodzh',
    client: 'installs',
    stance: 'avoided',
    promise: 'a wrong h1 that comes with the true zh is dropped once we hold the archive',
    check: (stage, recorded) => expectTrueHashes(stage, recorded, recorded.mirror_hashes, h1Of(recorded)),
  },
  {
    name: 'goodh1_badzh',
    client: 'installs',
    stance: 'avoided',
    promise: 'claims that contradict the signed sums are dropped, all of them',
    check: (stage, recorded) => expectTrueHashes(stage, recorded, recorded.mirror_hashes),
  },
  {
    name: 'unknownscheme',
    client: 'fails',
    stance: 'avoided',
    promise: 'hashes of schemes that clients do not know are not passed on',
    check: (stage, recorded) => expectTrueHashes(stage, recorded, recorded.mirror_hashes),
  },
  {
    name: 'noscheme',
    client: 'fails',
    stance: 'avoided',
    promise: 'hashes without a scheme are not passed on',
    check: (stage, recorded) => expectTrueHashes(stage, recorded, recorded.mirror_hashes),
  },
  {
    name: 'withdir_files',
    client: 'fails',
    stance: 'avoided',
    promise: 'the h1 over files alone, which this client does not compute, never stands alone',
    check: expectBothContentHashes,
  },
  {
    name: 'withdir_all',
    client: 'installs',
    stance: 'ours',
    promise: 'the h1 over all entries, which this client compares, is listed',
    check: expectBothContentHashes,
  },
  {
    name: 'withdir_both',
    client: 'installs',
    stance: 'ours',
    promise: 'a zip with folders has both its h1 listed, and nothing else beside its zh',
    check: async (stage, recorded) => {
      const listed = await expectBothContentHashes(stage, recorded)
      expect(listed.slice(1).toSorted()).toEqual(recorded.mirror_hashes?.toSorted())
    },
  },
  {
    name: 'withdir_zh',
    client: 'installs',
    stance: 'ours',
    promise: 'the recorded zh of a zip with folders is what we list before we hold it',
    check: async (stage, recorded) => {
      const { before } = await expectTrueHashes(stage, recorded, undefined)
      expect(before).toEqual(recorded.mirror_hashes)
    },
  },
  {
    name: 'withdir_lockfiles_nohash',
    client: 'fails',
    stance: 'client',
    promise:
      'a lock file with the h1 over files fails whoever answers: our bytes are those of the origin, and it is listed',
    check: expectLockIsTrueOfOurBytes,
  },
  {
    name: 'withdir_lockfiles_zh',
    client: 'fails',
    stance: 'client',
    promise: 'a true zh does not help against that lock file: still our bytes are those of the origin',
    check: expectLockIsTrueOfOurBytes,
  },
  {
    name: 'withdir_lockzh',
    client: 'installs',
    stance: 'ours',
    promise: 'a lock file with the zh of the origin holds for the bytes that we serve',
    check: expectLockIsTrueOfOurBytes,
  },
  {
    name: 'withdir_lockall',
    client: 'installs',
    stance: 'ours',
    promise: 'a lock file with the h1 over all entries holds for the bytes that we serve',
    check: expectLockIsTrueOfOurBytes,
  },
  {
    name: 'order',
    client: 'installs',
    stance: 'ours',
    promise: 'the h1 of names that sort and spell oddly is the recorded one',
    check: async (stage, recorded) => {
      const { after } = await expectTrueHashes(stage, recorded, undefined)
      expect(after.slice(1)).toEqual(recorded.mirror_hashes)
    },
  },
]

interface ListedHashes {
  /** Before the mirror holds the archive. */
  readonly before: readonly string[]
  /** When it does, and has hashed it. */
  readonly after: readonly string[]
}

/**
 * Publishes the zip of the case with `claims` as OpenTofu's unsigned hashes. What is listed is the zh of the bytes and
 * the `believed` claims, then the zh and the h1 that the bytes have.
 */
async function expectTrueHashes(
  stage: Stage,
  recorded: HashCase,
  claims: readonly string[] | null | undefined,
  believed: readonly string[] = [],
): Promise<ListedHashes> {
  const provider = `hashes/${recorded.case}`
  const release = await stage.publish({
    provider,
    platforms: [PLATFORM],
    archive: () => recordedZip(recorded.archive),
    document: (document) => ({
      ...document,
      ...(claims === undefined ? {} : { packages: { [PLATFORM]: { hashes: claims } } }),
    }),
  })
  const published = await release.package(PLATFORM).bytes()
  const before = await listedHashes(stage, provider)
  expect(before).toEqual([zipHash(published), ...believed])
  expect((await stage.install(provider)).body.equals(published)).toBe(true)
  const after = [zipHash(published), ...contentHashes(recorded.archive)]
  await expect.poll(() => listedHashes(stage, provider), { timeout: 30_000 }).toEqual(after)
  return { before, after }
}

/** The h1 of each zip, from the cases that state nothing else: over all entries, then over files where that differs. */
function contentHashes(archive: string): string[] {
  const stating = ['h1', 'order', 'withdir_all', 'withdir_files']
  const cases = readRecordedCases().hashCases.filter((each) => each.archive === archive && stating.includes(each.case))
  const inOrder = cases.toSorted((a, b) => (a.case < b.case ? -1 : 1))
  return inOrder.flatMap(({ mirror_hashes }) => mirror_hashes ?? [])
}

async function expectBothContentHashes(stage: Stage, recorded: HashCase): Promise<readonly string[]> {
  const { before, after } = await expectTrueHashes(stage, recorded, undefined)
  expect(before).toHaveLength(1)
  expect(after).toHaveLength(3)
  expect(after).toEqual(expect.arrayContaining([...(recorded.mirror_hashes ?? [])]))
  return after
}

async function expectLockIsTrueOfOurBytes(stage: Stage, recorded: HashCase): Promise<void> {
  const { after } = await expectTrueHashes(stage, recorded, undefined)
  expect(recorded.preexisting_lock_hashes).toHaveLength(1)
  expect(after).toEqual(expect.arrayContaining([...recorded.preexisting_lock_hashes]))
}

async function listedHashes(stage: Stage, provider: string): Promise<readonly string[]> {
  return (await stage.packages(provider))[PLATFORM]?.hashes ?? []
}

function h1Of({ mirror_hashes }: HashCase): string[] {
  return (mirror_hashes ?? []).filter((hash) => hash.startsWith('h1:'))
}
