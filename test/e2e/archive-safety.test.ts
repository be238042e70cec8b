import { readdir } from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { Publication } from '../origin/release.ts'
import { makeOddZips, ODD_TYPE, type OddZip } from '../verify/odd-zips.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'
import {
  CURRENT_PLATFORM,
  createWorkspace,
  hostConfig,
  networkMirrorConfig,
  terraformAvailable,
} from './terraform-cli.ts'

const HOST = 'registry.example.test'
const OTHER = 'other.example.test'
const WHEN_LISTED = { verification: { signatures: 'whenListed' } }

const zips = await makeOddZips()
const unsafe = zips.filter((zip) => zip.unsafe !== undefined)
const safe = zips.filter((zip) => zip.unsafe === undefined)
const climbing = zipWith('a name that leaves the folder')
const harmless = zipWith('a program and nothing else')
let origin: TestOrigin

beforeAll(async () => {
  origin = await startOrigin()
})
beforeEach(() => origin.reset())
afterAll(() => origin[Symbol.asyncDispose]())

function zipWith(name: string): OddZip {
  const found = zips.find((zip) => zip.name === name)
  if (found === undefined) throw new Error(`no such zip: ${name}`)
  return found
}

/** `bytes` as the one package of a provider; without a key unless told otherwise. */
function publish(provider: string, { bytes }: OddZip, more: Partial<Publication> = {}) {
  const platforms = [CURRENT_PLATFORM]
  return origin.publish({ provider, version: '1.0.0', platforms, archive: () => bytes, key: null, ...more })
}

async function ask(mirror: TestMirror, provider: string): Promise<[status: number, code: string | undefined]> {
  const { status, json } = await mirror.archive(provider, '1.0.0', CURRENT_PLATFORM)
  return [status, status === 200 ? undefined : json().code]
}

async function storedFiles(mirror: TestMirror): Promise<string[]> {
  return readdir(mirror.dataDir, { recursive: true })
}

describe('an archive that nobody signed', () => {
  test.each(unsafe)('is refused with $name, and nothing of it is kept', async (zip) => {
    const release = await publish('acme/widget', zip)
    await using mirror = await startMirror({ origin, config: WHEN_LISTED })
    const answer = await mirror.archive('acme/widget', '1.0.0', CURRENT_PLATFORM)
    expect(answer.status).toBe(502)
    const upstream_url = expect.stringMatching(/^https:\/\/registry\.example\.test\/releases\/.*\.zip$/)
    const error = expect.stringContaining(zip.unsafe ?? '')
    expect(answer.json()).toMatchObject({ code: 'ARCHIVE_UNSAFE', error, upstream_url })
    const { sha256 } = release.package(CURRENT_PLATFORM)
    const kept = await storedFiles(mirror)
    expect(kept.filter((file) => file.includes(sha256) || file.includes('archives/'))).toEqual([])
    // Its digest was right, so there is no reason to ask for another document and the bytes once more.
    expect(origin.count('archive')).toBe(1)
  })

  test('is served where it is harmless, though clients may find it wrong', async () => {
    await using mirror = await startMirror({ origin, config: WHEN_LISTED })
    for (const [i, zip] of safe.entries()) {
      await publish(`acme/safe-${i}`, zip)
      const { status, body } = await mirror.archive(`acme/safe-${i}`, '1.0.0', CURRENT_PLATFORM)
      expect([status, body.equals(zip.bytes)], zip.name).toEqual([200, true])
    }
  })

  test('is refused by the checksum of its document too (B28)', async () => {
    const document: Publication['document'] = ({ shasums_url: _, ...rest }) => rest
    await publish('acme/widget', climbing, { document })
    await using mirror = await startMirror({ origin, config: WHEN_LISTED })
    expect(await ask(mirror, 'acme/widget')).toEqual([502, 'ARCHIVE_UNSAFE'])
  })

  test('is let in once the origin has put a harmless one in its place', async () => {
    await publish('acme/widget', climbing)
    await using mirror = await startMirror({ origin, config: { ...WHEN_LISTED, freshness: { versions: '0s' } } })
    expect(await ask(mirror, 'acme/widget')).toEqual([502, 'ARCHIVE_UNSAFE'])
    await publish('acme/widget', harmless)
    await mirror.restart()
    expect(await ask(mirror, 'acme/widget')).toEqual([200, undefined])
  })
})

describe('the same bytes, signed at one origin and unsigned at another', () => {
  test.each(['signed', 'unsigned'])(
    'are judged by the evidence of each, if the %s one is asked first',
    async (first) => {
      const zip = climbing
      await publish(`${HOST}/acme/widget`, zip, { key: origin.key })
      await publish(`${OTHER}/acme/widget`, climbing)
      await using mirror = await startMirror({ origin, config: WHEN_LISTED })
      const verdicts: Record<string, unknown> = { [HOST]: [200, undefined], [OTHER]: [502, 'ARCHIVE_UNSAFE'] }
      const order = first === 'signed' ? [HOST, OTHER, HOST] : [OTHER, HOST, OTHER]
      for (const host of order) expect(await ask(mirror, `${host}/acme/widget`)).toEqual(verdicts[host])
      const { body } = await mirror.archive(`${HOST}/acme/widget`, '1.0.0', CURRENT_PLATFORM)
      expect(body.equals(zip.bytes)).toBe(true)
    },
  )
})

describe.skipIf(terraformAvailable() === undefined)('a signed archive is served as it is', () => {
  test('and the real terraform judges it as it does straight at the origin', async () => {
    await using mirror = await startMirror({ origin })
    const sourceOf = (i: number) => `${HOST}/case-${i}/${ODD_TYPE}`
    for (const [i, zip] of zips.entries()) {
      await publish(sourceOf(i), zip, { key: origin.key })
      const { status, body } = await mirror.archive(sourceOf(i), '1.0.0', CURRENT_PLATFORM)
      expect([status, body.equals(zip.bytes)], zip.name).toEqual([200, true])
    }
    const providers = Object.fromEntries(zips.map((_, i) => [`case-${i}`, { source: sourceOf(i) }]))
    const direct = { cliConfig: hostConfig(HOST, origin.services()), caPem: origin.caPem }
    const mirrored = { cliConfig: networkMirrorConfig(mirror.baseUrl), caPem: mirror.caPem }
    for (const route of [direct, mirrored]) {
      await using terraform = await createWorkspace({ providers, ...route })
      const { output } = await terraform.run(['init'])
      const refused = zips.filter((_, i) => output.includes(`Error while installing ${sourceOf(i)} v1.0.0: `))
      const expected = zips.filter(({ client }) => client === 'refuses')
      expect(
        refused.map(({ name }) => name),
        output,
      ).toEqual(expected.map(({ name }) => name))
    }
  })
})
