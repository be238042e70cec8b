import { readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { PublishedPackage } from '../origin/release.ts'
import {
  askArchive,
  assertListed,
  assertRight,
  PLATFORM,
  PROVIDER,
  publishArchive,
  sha256,
  startWarmMirror,
  VERSION,
} from './held-archive.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'

const HOUR_MS = 3_600_000
const YEAR_MS = 365 * 24 * HOUR_MS

let origin: TestOrigin
let archive: PublishedPackage

beforeAll(async () => {
  origin = await startOrigin()
  archive = await publishArchive(origin)
})

afterEach(async () => {
  await origin.stop()
  await origin.start()
  origin.reset()
})

afterAll(() => origin[Symbol.asyncDispose]())

function recordFile({ dataDir }: TestMirror, name: string): string {
  const provider = join(dataDir, 'records', 'providers', 'registry.example.test', 'acme', 'widget')
  return join(provider, name === 'trust' ? 'trust.json' : `versions/${VERSION}/${name}.json`)
}

const tearings: [string, (file: string) => Promise<void>][] = [
  ['emptied', (file) => truncate(file, 0)],
  ['torn', (file) => truncate(file, 60)],
  ['zeroed', async (file) => writeFile(file, Buffer.alloc((await readFile(file)).length))],
  ['of another shape', (file) => writeFile(file, '{"format":1,"platforms":[]}')],
  ['deleted', (file) => rm(file)],
]
const records = ['release', 'pin', `archives/${PLATFORM}`, 'trust']

describe.each(records)('a damaged record %s', (name) => {
  test.each(tearings)('%s: the next answers are right', async (_, tear) => {
    await using mirror = await startWarmMirror({ origin }, archive)
    await tear(recordFile(mirror, name))
    await mirror.restart()
    expect((await mirror.index(PROVIDER)).json()).toEqual({ versions: { [VERSION]: {} } })
    assertRight(await askArchive(mirror), archive)
    await assertListed(mirror, archive)
    expect(origin.count('archive')).toBe(0)
  })

  test('with the origin away, the answers are right or a clear error, and right again when it is back', async () => {
    await using mirror = await startWarmMirror({ origin, config: { upstream: { retries: 0 } } }, archive)
    await truncate(recordFile(mirror, name), 0)
    await mirror.restart()
    await origin.stop()
    for (const answer of [await askArchive(mirror), await mirror.version(PROVIDER, VERSION)]) {
      if (answer.status === 200) continue
      expect(answer.status).toBe(502)
      expect(answer.json()).toMatchObject({ code: 'UPSTREAM_UNREACHABLE' })
    }
    await origin.start()
    assertRight(await askArchive(mirror), archive)
    await assertListed(mirror, archive)
  })
})

test('a pinned version whose release record was lost is not replaced by other bytes of the origin', async () => {
  const provider = 'acme/changing'
  const first = await origin.publish({ provider, version: VERSION })
  const digest = first.package(PLATFORM).sha256
  await using mirror = await startMirror({ origin })
  expect((await mirror.archive(provider, VERSION, PLATFORM)).status).toBe(200)
  await truncate(recordFile(mirror, 'release').replace('/widget/', '/changing/'), 0)
  await origin.publish({ provider, version: VERSION })
  await mirror.restart()
  const document = await mirror.version(provider, VERSION)
  // What VERSION.json says and what the archive is must fit together, or no client can install it.
  if (document.status === 200) expect(document.json().archives[PLATFORM].hashes[0]).toBe(`zh:${digest}`)
  else expect(document.json()).toMatchObject({ code: 'RELEASE_CHANGED' })
  expect(sha256((await mirror.archive(provider, VERSION, PLATFORM)).body)).toBe(digest)
})

test('a clock that is set back by a year, and forward by a year, stops nothing', async () => {
  let now = Date.now()
  await using mirror = await startWarmMirror({ origin, now: () => now }, archive)
  const assertServes = async (): Promise<void> => {
    expect((await mirror.index(PROVIDER)).json()).toEqual({ versions: { [VERSION]: {} } })
    await assertListed(mirror, archive)
    assertRight(await askArchive(mirror), archive)
    expect((await mirror.ask('/readyz')).status).toBe(200)
  }
  for (const jump of [-YEAR_MS, 2 * YEAR_MS, -3 * YEAR_MS, HOUR_MS]) {
    now += jump
    await assertServes()
    await mirror.restart()
    await assertServes()
  }
  await origin.stop()
  now -= YEAR_MS
  await assertServes()
  expect(origin.count('archive')).toBe(0)
})

test('after a clock was set back by a year, news of the origin still arrive', async () => {
  let now = Date.now()
  const provider = 'acme/news'
  await origin.publish({ provider, version: '1.0.0' })
  await using mirror = await startMirror({ origin, now: () => now })
  expect((await mirror.index(provider)).json()).toEqual({ versions: { '1.0.0': {} } })
  await origin.publish({ provider, version: '1.1.0' })
  now -= YEAR_MS
  expect((await mirror.index(provider)).json()).toEqual({ versions: { '1.0.0': {}, '1.1.0': {} } })
  expect((await mirror.index('acme/nothing')).status).toBe(404)
  await origin.publish({ provider: 'acme/nothing', version: '1.0.0' })
  now -= HOUR_MS
  expect((await mirror.index('acme/nothing')).status).toBe(200)
})
