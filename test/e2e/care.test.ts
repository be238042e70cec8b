import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { askAdmin } from './admin-client.ts'
import { sha256 } from './held-archive.ts'
import { spawnMirror, startMirror } from './mirror-fixture.ts'
import { digestsIn, digestsOf } from './release-digests.ts'
import { TestClock } from './test-clock.ts'

const HOST = 'registry.example.test'
const NAME = `${HOST}/acme/widget`

let origin: TestOrigin
let clock: TestClock
beforeEach(async () => {
  clock = new TestClock()
  origin = await startOrigin()
})
afterEach(() => origin[Symbol.asyncDispose]())

const config = { admin: { listen: { socket: './admin/admin.sock' } } }

describe('an operator', () => {
  test('replaces a re-released version: first both digests, with a yes clients get the new files (B22)', async () => {
    const first = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin, config, now: clock.now })
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
    const second = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    const request = { address: NAME, version: '1.0.0' }

    const refused = await askAdmin(mirror, '/refresh', { method: 'POST', body: request })
    expect(refused.status).toBe(409)
    expect(JSON.stringify(refused.json)).toContain(first.package('linux_amd64').sha256)
    expect(JSON.stringify(refused.json)).toContain(second.package('linux_amd64').sha256)
    expect(await digestsIn(mirror)).toEqual(digestsOf(first))

    const explained = await askAdmin(mirror, `/explain?address=${NAME}&version=1.0.0`)
    expect(explained.json.summary).toContain('its origin offers other bytes by now')

    const replaced = await askAdmin(mirror, '/refresh', { method: 'POST', body: { ...request, accept: true } })
    expect(replaced).toMatchObject({ status: 200, json: { outcome: 'replaced', version: '1.0.0' } })
    expect(await digestsIn(mirror)).toEqual(digestsOf(second))
    for (const platform of ['linux_amd64', 'darwin_arm64']) {
      const archive = await mirror.archive('acme/widget', '1.0.0', platform)
      expect(sha256(archive.body)).toBe(second.package(platform).sha256)
    }
    await mirror.restart()
    expect(await digestsIn(mirror)).toEqual(digestsOf(second))
  })

  test('kills the mirror in the midst of it: the old files or the new ones, never some of each', {
    timeout: 60_000,
  }, async () => {
    const first = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await spawnMirror({ origin, config })
    for (const platform of ['linux_amd64', 'darwin_arm64']) await mirror.archive('acme/widget', '1.0.0', platform)
    const second = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    const signed = origin.count('signature')
    const asked = askAdmin(mirror, '/refresh', {
      method: 'POST',
      body: { address: NAME, version: '1.0.0', accept: true },
    }).catch(() => undefined)
    await origin.until(() => origin.count('signature') > signed && origin.inFlight === 0)
    await mirror.kill()
    await asked
    await mirror.start()
    const told = await digestsIn(mirror)
    const current = [first, second].find((release) => isDeepStrictEqual(digestsOf(release), told))
    expect(current).toBeDefined()
    for (const platform of ['linux_amd64', 'darwin_arm64']) {
      const archive = await mirror.archive('acme/widget', '1.0.0', platform)
      expect([archive.status, sha256(archive.body)]).toEqual([200, told[platform]])
    }
    console.info(`killed with the ${current === first ? 'old' : 'new'} generation in service`)
  })

  test('verifies: a damaged archive is fetched again; purges: it is gone and comes again', async () => {
    const release = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin, config })
    await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    const { sha256: digest, body } = release.package('linux_amd64')
    const path = join(mirror.dataDir, 'blobs', 'sha256', digest.slice(0, 2), digest)
    await rm(path)
    await writeFile(path, Buffer.alloc(body.size))
    const { json: job } = await askAdmin(mirror, '/verify', { method: 'POST', body: {} })
    await expect
      .poll(async () => (await askAdmin(mirror, `/jobs/${job.id}`)).json.state, { timeout: 10_000 })
      .toBe('done')
    const { items } = (await askAdmin(mirror, `/jobs/${job.id}`)).json
    expect(items).toContainEqual(
      expect.objectContaining({
        item: `${NAME} 1.0.0 linux_amd64`,
        outcome: 'done',
        reason: expect.stringContaining('fetched again'),
      }),
    )
    expect(sha256(await readFile(path))).toBe(digest)

    const purged = await askAdmin(mirror, `/packages/${NAME}/1.0.0`, { method: 'DELETE' })
    expect(purged.json).toMatchObject({ removed: [`${NAME} 1.0.0 linux_amd64`], bytes: body.size })
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).headers['terramirror-cache']).toBe('miss')
  })
})
