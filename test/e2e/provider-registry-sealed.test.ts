import { glob, mkdtempDisposable, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { Publication, Release } from '../origin/release.ts'
import { blobFile, sha256 } from './held-archive.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'
import { askDownload, askVersions, downloadPath, fetchEvidence, fetchPackage, follow } from './registry-door.ts'

/* What the provider registry door answers from what is held alone, and how it repairs what is not whole. */

const LENIENT = 'other.example.test'
const HELD = 'linux_amd64'
const UNHELD = 'darwin_arm64'
const SEALED = { mode: 'sealed' }

let origin: TestOrigin

beforeAll(async () => {
  origin = await startOrigin()
})
afterAll(() => origin[Symbol.asyncDispose]())

let published = 0
/** Publishes a release under a name of its own. */
async function publish(more: Partial<Publication> = {}): Promise<{ provider: string; release: Release }> {
  const provider = `acme/kept-${++published}`
  return { provider, release: await origin.publish({ provider, version: '1.0.0', ...more }) }
}

/** A folder with what a mirror keeps after one archive of each provider was asked for. */
async function warmFolder(providers: readonly string[]) {
  const folder = await mkdtempDisposable(join(tmpdir(), 'test-kept-'))
  await using mirror = await startMirror({ origin, folder: folder.path, config: lenient() })
  for (const provider of providers) {
    expect((await mirror.archive(provider, '1.0.0', HELD)).status).toBe(200)
    await expect.poll(() => h1Known(mirror, provider), { timeout: 15_000 }).toBe(true)
  }
  return folder
}

function lenient(more: Record<string, unknown> = {}) {
  return { ...more, origins: { [LENIENT]: { verification: { signatures: 'whenListed' } } } }
}

async function h1Known(mirror: TestMirror, provider: string): Promise<boolean> {
  const { archives } = (await mirror.version(provider, '1.0.0')).json()
  return archives[HELD].hashes.length > 1
}

describe('sealed', () => {
  test('lists what is held, gives documents and evidence of all platforms, and archives that are held', async () => {
    const { provider, release } = await publish({ protocols: ['5.7'] })
    await origin.publish({ provider, version: '1.1.0' })
    await using folder = await warmFolder([provider])
    origin.reset()
    await using mirror = await startMirror({ origin, folder: folder.path, config: lenient(SEALED) })
    expect((await askVersions(mirror, provider)).json()).toEqual({
      versions: [{ version: '1.0.0', protocols: ['5.7'], platforms: [{ os: 'linux', arch: 'amd64' }] }],
    })
    for (const { platform, sha256 } of release.packages) {
      const { document, sums, signature, archivePath } = await fetchEvidence(mirror, provider, '1.0.0', platform)
      expect(document.shasum).toBe(sha256)
      expect(document.signing_keys).toEqual(release.document(platform)?.signing_keys)
      expect(sums.body.equals(release.sums)).toBe(true)
      expect(signature.body.equals(release.signature ?? Buffer.alloc(0))).toBe(true)
      const archive = await mirror.ask(archivePath)
      expect(archive.status).toBe(platform === HELD ? 200 : 404)
    }
    for (const [path, status] of [
      [downloadPath(provider, '1.0.0', 'plan9_mips'), 404],
      [downloadPath(provider, '1.1.0', HELD), 404],
      [downloadPath('acme/unknown', '1.0.0', HELD), 404],
    ] as const) {
      const answer = await mirror.ask(path)
      expect([answer.status, answer.json().code]).toEqual([status, 'NOT_CACHED'])
    }
    expect((await askVersions(mirror, 'acme/unknown')).json().code).toBe('NOT_CACHED')
    expect(origin.connections).toBe(0)
  })

  test('states no "packages" that is not proven by what is held, all of it', async () => {
    const some = await publish({ packages: true })
    const all = await publish({ packages: true, platforms: [HELD] })
    await using folder = await warmFolder([some.provider, all.provider])
    await using mirror = await startMirror({ origin, folder: folder.path, config: lenient(SEALED) })
    expect((await askDownload(mirror, some.provider, '1.0.0', HELD)).json()).not.toHaveProperty('packages')
    const whole = async () => (await askDownload(mirror, all.provider, '1.0.0', HELD)).json().packages
    await expect.poll(whole, { timeout: 15_000 }).toEqual(all.release.document(HELD)?.packages)
  })
})

describe('"packages", online', () => {
  let mirror: TestMirror
  beforeAll(async () => {
    mirror = await startMirror({ origin })
  })
  afterAll(() => mirror[Symbol.asyncDispose]())

  const wrong = 'c0ffee'.repeat(10).padEnd(64, '0')
  // biome-ignore lint/suspicious/noExplicitAny: tests change documents at will
  type Change = (packages: any) => void
  const rows: [string, Change, boolean][] = [
    ['that nothing contradicts, of held and unheld platforms', () => undefined, true],
    ['with a hash of a scheme of the future', (packages) => packages[UNHELD].hashes.push('h9:abc'), true],
    ['with a wrong zh of another platform', (packages) => packages[UNHELD].hashes.splice(0, 1, `zh:${wrong}`), false],
    ['with a wrong zh beside the right one', (packages) => packages[UNHELD].hashes.push(`zh:${wrong}`), false],
    [
      'with a wrong h1 of a held archive',
      (packages) => packages[HELD].hashes.splice(1, 1, packages[UNHELD].hashes[1]),
      false,
    ],
    ['with a wrong size of a held archive', (packages) => packages[HELD].package_size++, false],
    [
      'with a platform that no line of SHA256SUMS knows',
      (packages) => Object.assign(packages, { plan9_mips: { hashes: [`zh:${wrong}`], package_size: 1 } }),
      false,
    ],
    ['without the platform of the document', (packages) => delete packages[HELD], false],
    ['without a size', (packages) => delete packages[UNHELD].package_size, false],
    ['that is no object', (packages) => Object.assign(packages, { [UNHELD]: null }), false],
  ]
  test.each(rows)('%s passes whole or not at all', async (_, change, passes) => {
    let given: unknown
    const { provider } = await publish({
      packages: true,
      document(document) {
        const packages = structuredClone(document.packages)
        change(packages)
        given = packages
        return { ...document, packages }
      },
    })
    expect((await mirror.archive(provider, '1.0.0', HELD)).status).toBe(200)
    // What only the archive itself contradicts is known when its hash is computed.
    const packages = async () => (await askDownload(mirror, provider, '1.0.0', HELD)).json().packages
    await expect.poll(packages, { timeout: 15_000 }).toEqual(passes ? given : undefined)
    const told = mirror.logLines.filter(
      ({ msg, release }) => String(msg).includes('"packages"') && String(release).includes(`${provider} `),
    )
    expect(told).toHaveLength(passes ? 0 : 1)
  })
})

describe('records that are not whole', () => {
  test('one from before signatures of unsigned releases were kept is completed online, and served as it is sealed', async () => {
    const provider = `${LENIENT}/acme/older`
    const release = await origin.publish({ provider, version: '1.0.0', listedKeys: [] })
    await using folder = await warmFolder([provider])
    const signature = sha256(release.signature ?? Buffer.alloc(0))
    for await (const path of glob('data/records/**/release.json', { cwd: folder.path })) {
      const file = join(folder.path, path)
      const text = await readFile(file, 'utf8')
      expect(text).toContain(signature)
      await writeFile(file, text.replaceAll(new RegExp(`,\\s*"signature":\\s*"${signature}"`, 'g'), ''))
    }
    {
      await using sealed = await startMirror({ origin, folder: folder.path, config: lenient(SEALED) })
      const { document, signature } = await fetchEvidence(sealed, provider, '1.0.0', HELD)
      expect([document.shasum, signature.status]).toEqual([release.package(HELD).sha256, 404])
    }
    await using mirror = await startMirror({ origin, folder: folder.path, config: lenient() })
    const completed = await fetchEvidence(mirror, provider, '1.0.0', HELD)
    expect(completed.signature.body.equals(release.signature ?? Buffer.alloc(0))).toBe(true)
  })

  test.each(['sums', 'signature', 'keys'] as const)(
    'lost %s are asked for again, and sealed the loss is told',
    async (lost) => {
      const { provider, release } = await publish()
      await using folder = await warmFolder([provider])
      const keys = Buffer.from(JSON.stringify(release.document(HELD)?.signing_keys))
      const bytes = { sums: release.sums, signature: release.signature ?? Buffer.alloc(0), keys }[lost]
      const lose = (mirror: TestMirror) => rm(blobFile(mirror, sha256(bytes)))
      {
        await using sealed = await startMirror({ origin, folder: folder.path, config: lenient(SEALED) })
        const path = downloadPath(provider, '1.0.0', HELD)
        const { shasums_url: sums } = (await sealed.ask(path)).json()
        await lose(sealed)
        const answer = await sealed.ask(path)
        expect([answer.status, answer.json().code]).toEqual([500, 'STORAGE_FAILED'])
        expect(answer.json().error).toContain('evidence')
        expect((await sealed.ask(follow(path, sums))).status).toBe(lost === 'sums' ? 500 : 200)
        // The other door needs the verdict of then only.
        expect((await sealed.archive(provider, '1.0.0', HELD)).status).toBe(200)
      }
      await using mirror = await startMirror({ origin, folder: folder.path, config: lenient() })
      const found = await fetchPackage(mirror, provider, '1.0.0', HELD)
      expect(found.sums.body.equals(release.sums)).toBe(true)
      expect(found.document.signing_keys).toEqual(release.document(HELD)?.signing_keys)
      await lose(mirror)
      const again = await mirror.ask(follow(downloadPath(provider, '1.0.0', HELD), found.document.shasums_url))
      expect(again.body.equals(release.sums)).toBe(true)
    },
  )
})
