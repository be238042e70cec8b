import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { BlobStore } from '../../src/store/blob-store.ts'
import { gitHttpBackend } from '../origin/git-host.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { bufferBody, fileReply } from '../origin/reply.ts'
import { SourceFolder } from '../upstream/module-source/archive-fixture.ts'
import { GitRepository } from '../upstream/module-source/git-source-fixture.ts'
import { blobFile } from './held-archive.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'
import { HOST } from './mirror-workspace.ts'
import {
  askModule,
  askModuleVersions,
  createModuleWorkspace,
  fetchModule,
  filesOf,
  locationOf,
  moduleDownloadPath,
} from './module-door.ts'
import { terraformAvailable } from './terraform-cli.ts'
import { TestClock } from './test-clock.ts'

/* What becomes of a module once it is held, and of those who ask while it is not. */

const ready = gitHttpBackend() !== undefined

let origin: TestOrigin
let repository: GitRepository
let clock: TestClock
let mirror: TestMirror
let count = 0

beforeAll(async () => {
  if (!ready) return
  origin = await startOrigin()
  repository = await GitRepository.make()
  await repository.commit({ 'main.tf': '# one\n' }, { tag: 'v1.0.0' })
  origin.serveGit('acme/net', { path: repository.path })
  clock = new TestClock()
  mirror = await startMirror({ origin, now: clock.now, config: { upstream: { retries: 0 } } })
})
afterAll(async () => {
  if (!ready) return
  await mirror[Symbol.asyncDispose]()
  await repository[Symbol.asyncDispose]()
  await origin[Symbol.asyncDispose]()
})
beforeEach(() => {
  if (ready) origin.reset()
})

/** Publishes version 1.0.0 of a module under a name that no other test used. */
function publish(location: string): string {
  count += 1
  const module = `acme/held${count}/aws`
  origin.publishModule({ module, version: '1.0.0', location })
  return module
}

const git = (query: string, name = 'acme/net'): string => `git::https://${HOST}/git/${name}.git${query}`

async function askLocation(module: string): Promise<ReturnType<typeof locationOf>> {
  return locationOf(await askModule(mirror, module, '1.0.0'), module, '1.0.0')
}

/** What is due to be asked again is asked again. */
function letFreshnessPass(): void {
  clock.advance(301_000)
}

describe.skipIf(!ready)('a module that nobody holds yet', () => {
  test('fifty who ask at one time cause one clone, and get one answer', async () => {
    const module = publish(git('?ref=v1.0.0'))
    const answers = await Promise.all(Array.from({ length: 50 }, () => askModule(mirror, module, '1.0.0')))
    const locations = new Set(answers.map((answer) => locationOf(answer, module, '1.0.0').path))
    expect(locations.size).toBe(1)
    expect(origin.gitFetches).toBe(1)
    expect(origin.count(`module-download ${module}`)).toBe(1)
    const outcomes = answers.map(({ headers }) => headers['terramirror-cache'])
    expect(outcomes.filter((outcome) => outcome === 'miss')).toHaveLength(1)
    expect(outcomes.filter((outcome) => outcome === 'coalesced')).toHaveLength(49)
  })

  test('a slow one: 503 with Retry-After 2, the work goes on, and the client that comes back finds it', async (context) => {
    if (terraformAvailable() === undefined) return context.skip()
    const module = publish(git('?ref=v1.0.0'))
    using slow = origin.fault({ kind: 'git', method: 'POST', times: 1 }, { delayMs: 9_000 })
    await using workspace = await createModuleWorkspace(mirror, {
      slow: { source: `${HOST}/${module}`, version: '1.0.0' },
    })
    const [run, other] = await Promise.all([workspace.run(['init']), mirror.ask(moduleDownloadPath(module, '1.0.0'))])
    expect([other.status, other.headers['retry-after'], other.json().code]).toEqual([503, '2', 'MODULE_PENDING'])
    expect(other.json().error).toContain('takes longer than a client waits')
    expect(run.code, run.output).toBe(0)
    expect(slow.struck).toBe(1)
    expect(origin.gitFetches).toBe(1)
    const told = mirror.logLines.filter(({ module: name, msg }) => msg === 'request' && String(name).endsWith(module))
    expect(told.map(({ status }) => status)).toEqual(expect.arrayContaining([503, 503, 204]))
  })

  test('one whose location names a folder that is not in it: 502 MODULE_INVALID, until the registry corrects it', async () => {
    const module = publish(git('//nope?ref=v1.0.0'))
    const refused = await askModule(mirror, module, '1.0.0')
    expect([refused.status, refused.json().code]).toEqual([502, 'MODULE_INVALID'])
    expect(refused.json().error).toContain('the folder "nope", which is not in it')
    origin.publishModule({ module, version: '1.0.0', location: git('?ref=v1.0.0') })
    expect(await fetchModule(mirror, module, '1.0.0')).toEqual({ 'main.tf': '# one\n' })
  })

  test('a list is in canonical spellings, each of which can be asked back; doubles are reported', async () => {
    const module = publish(git('?ref=v1.0.0'))
    for (const version of ['v1.0.0', 'v1.1.0', '1.2', 'master', '1.3.0-rc.1+b.2'])
      origin.publishModule({ module, version, location: git('?ref=v1.0.0') })
    const list = await askModuleVersions(mirror, module)
    const versions = list.json().modules[0].versions.map(({ version }: { version: string }) => version)
    expect(versions).toEqual(['1.0.0', '1.1.0', '1.2.0', '1.3.0-rc.1+b.2'])
    for (const version of versions) locationOf(await askModule(mirror, module, version), module, version)
    const asked = origin.requests.filter(({ kind }) => kind === 'module-download').map(({ version }) => version)
    expect(asked).toEqual(['1.0.0', 'v1.1.0', '1.2', '1.3.0-rc.1+b.2'])
    const problems = mirror.logLines.flatMap(({ problems: found }) => (found as string[] | undefined) ?? [])
    expect(problems).toEqual(
      expect.arrayContaining([
        'left out "v1.0.0": the same version as "1.0.0"',
        'left out "master": not a version as clients accept it',
      ]),
    )
    for (const version of ['master', '1.9.9'])
      expect((await askModule(mirror, module, version)).status, version).toBe(404)
  })

  test('what does not exist, and who offers no modules, is 404 by the right name', async () => {
    expect((await askModule(mirror, 'acme/nothing/aws', '1.0.0')).json().code).toBe('MODULE_NOT_FOUND')
    expect((await askModuleVersions(mirror, 'acme/nothing/aws')).status).toBe(404)
    using _gone = origin.fault({ kind: 'discovery', host: 'cdn.example.test' }, { status: 404 })
    const answer = await askModuleVersions(mirror, 'cdn.example.test/acme/net/aws')
    expect([answer.status, answer.json().code]).toEqual([404, 'NO_MODULE_SERVICE'])
    const foreign = await askModuleVersions(mirror, 'nowhere.example.test/acme/net/aws')
    expect([foreign.status, foreign.json().code]).toEqual([404, 'ORIGIN_NOT_ALLOWED'])
  })

  test('a client’s token goes nowhere, and the origin’s own goes to no other host', async () => {
    await using guarded = await startOrigin({ tokens: { [HOST]: 'token-of-the-origin' } })
    await using archive = await SourceFolder.make({ 'main.tf': '# a\n' })
    guarded.page('cdn.example.test', '/files/a', fileReply(bufferBody(archive.run('tar', '-cz', 'main.tf')), 'etag'))
    const location = `${guarded.url('cdn.example.test')}files/a?archive=tgz&token=planted`
    guarded.publishModule({ module: 'acme/net/aws', version: '1.0.0', location })
    await using private_ = await startMirror({
      origin: guarded,
      config: {
        origins: { [HOST]: { token: 'token-of-the-origin', allowPrivateAddresses: true } },
        log: { format: 'json', level: 'trace' },
      },
    })
    const headers = { authorization: 'Bearer planted-token', cookie: 'planted' }
    const answer = await askModule(private_, 'acme/net/aws', '1.0.0', { headers })
    const { path } = locationOf(answer, 'acme/net/aws', '1.0.0')
    expect((await private_.ask(path, { headers })).status).toBe(200)
    for (const request of guarded.requests) {
      expect(JSON.stringify(request.headers)).not.toContain('planted')
      expect(request.headers.authorization).toBe(request.host === HOST ? 'Bearer token-of-the-origin' : undefined)
    }
    expect(guarded.requests.map(({ url }) => url)).toContain('/at/cdn.example.test/files/a?token=planted')
    expect(private_.logText + (await private_.metrics())).not.toMatch(/planted|token-of-the-origin/)
  })
})

describe.skipIf(!ready)('a module that is held', () => {
  test('a tag that was moved: what is held stays, and both commits are told', async () => {
    const held = await GitRepository.make()
    await using _held = held
    const before = await held.commit({ 'main.tf': '# before\n' }, { tag: 'v1' })
    origin.serveGit('acme/moved', { path: held.path })
    const module = publish(git('?ref=v1', 'acme/moved'))
    const first = await askLocation(module)
    const after = await held.commit({ 'main.tf': '# after\n' })
    held.git('tag', '--force', 'v1')
    letFreshnessPass()
    expect(await askLocation(module)).toEqual(first)
    const report = () => mirror.logLines.find(({ held: commit }) => commit === before)
    await expect.poll(report, { timeout: 20_000 }).toMatchObject({ level: 'error', offered: after })
    expect(report()?.msg).toContain('was moved')
    expect(await mirror.metrics()).toMatch(/^terramirror_release_changes_total 1$/m)
    expect(await fetchModule(mirror, module, '1.0.0')).toEqual({ 'main.tf': '# before\n' })
    // And it never comes in by the back door either: not when the archive was lost.
    await rm(blobFile(mirror, first.digest))
    const lost = await askModule(mirror, module, '1.0.0')
    expect([lost.status, lost.json().code]).toEqual([502, 'RELEASE_CHANGED'])
    expect(lost.json().error).toContain(before)
    expect(lost.json().error).toContain(after)
  })

  test('a branch is followed when it is due; the archive of before still answers', async () => {
    const held = await GitRepository.make()
    await using _held = held
    await held.commit({ 'main.tf': '# before\n' })
    origin.serveGit('acme/branch', { path: held.path })
    const module = publish(git('?ref=main', 'acme/branch'))
    const first = await askLocation(module)
    await held.commit({ 'main.tf': '# after\n' })
    expect(await askLocation(module)).toEqual(first)
    letFreshnessPass()
    {
      using _away = origin.fault({ kind: 'git' }, { status: 503 })
      const stale = await askModule(mirror, module, '1.0.0')
      expect([stale.headers['terramirror-cache'], locationOf(stale, module, '1.0.0')]).toEqual(['stale', first])
    }
    letFreshnessPass()
    await expect.poll(() => askLocation(module), { timeout: 20_000 }).not.toEqual(first)
    expect(await fetchModule(mirror, module, '1.0.0')).toEqual({ 'main.tf': '# after\n' })
    expect(await filesOf((await mirror.ask(first.path)).body)).toEqual({ 'main.tf': '# before\n' })
  })

  test('a bit that flipped on the disk is found: fetched anew from the origin, refused without it', async () => {
    const module = publish(git('?ref=v1.0.0'))
    const { path, digest } = await askLocation(module)
    const right = (await mirror.ask(path)).body
    await flipBit(mirror, digest)
    const again = await mirror.ask(path)
    expect([again.status, again.body.equals(right)]).toEqual([200, true])
    await flipBit(mirror, digest)
    using _away = origin.fault({ kind: ['git', 'module-download'] }, { drop: true })
    const refused = await mirror.ask(path)
    expect([refused.status, refused.json().code]).toEqual([502, 'UPSTREAM_UNREACHABLE'])
  })

  test('should we serve a wrong byte all the same, the client refuses it by our own digest', async (context) => {
    if (terraformAvailable() === undefined) return context.skip()
    await using lying = await startMirror({ origin, wrapBlobs: flipping })
    const module = publish(git('?ref=v1.0.0'))
    await using workspace = await createModuleWorkspace(lying, {
      wrong: { source: `${HOST}/${module}`, version: '1.0.0' },
    })
    const run = await workspace.run(['init'])
    expect(run.code).not.toBe(0)
    expect(run.output).toMatch(/Checksums did not match/i)
  })

  test('sealed: what is held is served, the rest is not, and nobody is called', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'test-sealed-modules-'))
    try {
      const module = publish(git('?ref=main'))
      origin.publishModule({ module, version: '2.0.0', location: git('?ref=v1.0.0') })
      {
        await using online = await startMirror({ origin, folder })
        locationOf(await askModule(online, module, '1.0.0'), module, '1.0.0')
      }
      origin.reset()
      const sealedClock = new TestClock()
      await using sealed = await startMirror({ origin, folder, now: sealedClock.now, config: { mode: 'sealed' } })
      for (let turn = 0; turn < 2; turn++) {
        const list = await askModuleVersions(sealed, module)
        expect(list.json()).toEqual({ modules: [{ versions: [{ version: '1.0.0' }] }] })
        expect(await fetchModule(sealed, module, '1.0.0')).toEqual({ 'main.tf': '# one\n' })
        for (const answer of [
          await askModule(sealed, module, '2.0.0'),
          await askModule(sealed, 'acme/nothing/aws', '1.0.0'),
          await askModuleVersions(sealed, 'acme/nothing/aws'),
        ])
          expect([answer.status, answer.json().code]).toEqual([404, 'NOT_CACHED'])
        sealedClock.advance(365 * 24 * 3_600_000)
      }
      expect(origin.connections).toBe(0)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  test('a version that its origin withdrew, and a module that is gone, are still served', async () => {
    const module = publish(git('?ref=v1.0.0'))
    const first = await askLocation(module)
    origin.withdrawModule(module)
    letFreshnessPass()
    expect((await askModuleVersions(mirror, module)).json()).toEqual({
      modules: [{ versions: [{ version: '1.0.0' }] }],
    })
    expect(await askLocation(module)).toEqual(first)
  })

  test('the archive: HEAD, ranges and digests as for every file; foreign digests are 404', async () => {
    const module = publish(git('?ref=v1.0.0'))
    const { path, digest } = await askLocation(module)
    const head = await mirror.ask(path, { method: 'HEAD' })
    const whole = await mirror.ask(path)
    expect([head.status, head.headers['content-length'], head.headers['content-type']]).toEqual([
      200,
      String(whole.body.length),
      'application/gzip',
    ])
    const part = await mirror.ask(path, { headers: { range: 'bytes=0-9' } })
    expect([part.status, part.body.equals(whole.body.subarray(0, 10))]).toEqual([206, true])
    const foreign = path.replace(
      digest,
      digest.replace(/^./, (digit) => (digit === '0' ? '1' : '0')),
    )
    expect((await mirror.ask(foreign)).status).toBe(404)
    expect((await mirror.ask(foreign, { method: 'HEAD' })).status).toBe(404)
    const location = await mirror.ask(moduleDownloadPath(module, '1.0.0'), { method: 'HEAD' })
    expect(location.status).toBe(204)
    expect(location.body).toHaveLength(0)
  })
})

async function flipBit(of: TestMirror, digest: string): Promise<void> {
  const file = blobFile(of, digest)
  const bytes = await readFile(file)
  bytes.writeUInt8(bytes.readUInt8(bytes.length >> 1) ^ 1, bytes.length >> 1)
  await chmod(file, 0o600)
  await writeFile(file, bytes)
}

/** A store whose archives are wrong in one bit, and that does not know it. */
function flipping(blobs: BlobStore): BlobStore {
  return new Proxy(blobs, {
    get(target, name) {
      if (name !== 'open') return Reflect.get(target, name).bind?.(target) ?? Reflect.get(target, name)
      return async (digest: string) => {
        const blob = await target.open(digest)
        if (blob === undefined) return undefined
        const read: typeof blob.read = async (buffer, position, length) => {
          const count = await blob.read(buffer, position, length)
          if (position === 0 && count > 20) buffer[20] = (buffer[20] ?? 0) ^ 1
          return count
        }
        return { size: blob.size, digest, read, [Symbol.asyncDispose]: () => blob[Symbol.asyncDispose]() }
      }
    },
  })
}
