import { once } from 'node:events'
import { lstat, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { wildRequest } from '../admin/wild-requests.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { askAdmin, openAdmin, readToken } from './admin-client.ts'
import { spawnMirror, startMirror, type TestMirror } from './mirror-fixture.ts'

const HOST = 'registry.example.test'
const ITEM = `${HOST}/acme/widget 1.0.0 linux_amd64`

let origin: TestOrigin
let mirror: TestMirror

beforeAll(async () => {
  origin = await startOrigin()
  await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
  mirror = await startMirror({ origin })
  await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
})
afterAll(async () => {
  await mirror[Symbol.asyncDispose]()
  await origin[Symbol.asyncDispose]()
})

/** The routes as the document of the mirror itself has them. */
async function routes(): Promise<{ method: string; path: string }[]> {
  const { json } = await askAdmin(mirror, '/openapi.json')
  return Object.entries<object>(json.paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => ({
      method: method.toUpperCase(),
      path: path.replaceAll(/\{\w+\}/g, 'a'),
    })),
  )
}

describe('who may ask', () => {
  test('no route of a running mirror answers without the token, or with another one', async () => {
    const all = await routes()
    expect(all.length).toBeGreaterThan(18)
    for (const { method, path } of all) {
      for (const token of [null, 'wrong']) {
        const { status } = await askAdmin(mirror, `/${path}`, { method, token })
        expect({ method, path, token, status }).toEqual({ method, path, token, status: 401 })
      }
    }
  })

  test('the public listener has none of them, with the token or without', async () => {
    const authorization = `Bearer ${await readToken(mirror)}`
    for (const { method, path } of await routes()) {
      const answer = await mirror.ask(path, { method, headers: { authorization } })
      const nowhere = await mirror.ask('/nowhere/at/all', { method, headers: { authorization } })
      expect({ method, path, status: answer.status }).toEqual({ method, path, status: nowhere.status })
      expect(answer.status).toBe(method === 'GET' ? 404 : 405)
      expect(answer.headers['www-authenticate']).toBeUndefined()
    }
  })

  test('and the admin listener has nothing of the public one', async () => {
    for (const path of ['//', '//healthz', '//metrics', `//providers/${HOST}/acme/widget/index.json`]) {
      expect((await askAdmin(mirror, path)).status).toBe(404)
    }
  })

  test('the token is made once, for this user alone, and is in no log and no metric', async () => {
    const file = join(mirror.dataDir, 'state', 'admin-token')
    const token = await readToken(mirror)
    expect(token).toMatch(/^[\w-]{43}$/)
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    await mirror.restart()
    expect(await readToken(mirror)).toBe(token)
    await askAdmin(mirror, '/stats')
    expect(`${mirror.logText}${await mirror.metrics()}`.includes(token)).toBe(false)
  })

  test('a configured token is the only one, and none is made', async () => {
    await using other = await startMirror({ origin, config: { admin: { token: 'chosen' } } })
    expect((await askAdmin(other, '/stats', { token: 'chosen' })).status).toBe(200)
    await expect(stat(join(other.dataDir, 'state', 'admin-token'))).rejects.toThrow('ENOENT')
  })
})

describe('what it answers', () => {
  test('is about what is really held: packages, origins, statistics, an explanation', async () => {
    const { json: page } = await askAdmin(mirror, '/packages?q=widget')
    expect(page.items).toMatchObject([{ item: ITEM, authentication: { rule: 'signed-checksums' } }])
    const { json: origins } = await askAdmin(mirror, '/origins')
    expect(origins.items[0]).toMatchObject({ host: HOST, packages: 1 })
    const { json: statistics } = await askAdmin(mirror, '/stats')
    expect(statistics).toMatchObject({ mode: 'online', packages: { count: 1 } })
    const { json: explanation } = await askAdmin(mirror, `/explain?address=${HOST}/acme/widget&version=1.0.0`)
    expect(explanation.findings.length).toBeGreaterThan(1)
  })

  test('warm brings what is asked for, tells how by events, and is one line of the audit', async () => {
    await origin.publish({ provider: 'acme/gadget', version: '2.0.0', platforms: ['linux_amd64'] })
    const body = { providers: [{ source: `${HOST}/acme/gadget`, version: '~> 2.0' }], platforms: ['linux_amd64'] }
    const plan = await askAdmin(mirror, '/warm', { method: 'POST', body: { ...body, dryRun: true } })
    expect(plan.json.items).toMatchObject([{ item: `${HOST}/acme/gadget 2.0.0 linux_amd64`, outcome: 'fetch' }])
    const { status, headers, json } = await askAdmin(mirror, '/warm', { method: 'POST', body })
    expect([status, headers.location]).toEqual([202, `/admin/api/v1/jobs/${json.id}`])
    const { text } = await askAdmin(mirror, `/jobs/${json.id}/events`)
    expect(text).toMatch(/event: job\ndata: .*"state":"done".*\n\n$/)
    expect((await askAdmin(mirror, `/jobs/${json.id}`)).json.items).toMatchObject([{ outcome: 'done' }])
    const audit = await readFile(join(mirror.dataDir, 'state', 'journals', 'audit.ndjson'), 'utf8')
    expect(audit).toContain(`"action":"warm","target":"1 providers: job ${json.id}","result":"done"`)
  })

  test('what is pinned stays in a purge, until the set is deleted', async () => {
    const path = '/packages/registry.example.test/acme/widget/1.0.0'
    const body = { items: [`${HOST}/acme/widget 1.0.0`] }
    const pinned = await askAdmin(mirror, '/pins/release', { method: 'PUT', body })
    expect(pinned.json).toMatchObject({ name: 'release', held: 1 })
    expect((await askAdmin(mirror, path, { method: 'DELETE' })).json).toMatchObject({ removed: [], pinned: [ITEM] })
    expect((await askAdmin(mirror, '/pins/release', { method: 'DELETE' })).status).toBe(204)
    expect((await askAdmin(mirror, '/pins/release', { method: 'DELETE' })).status).toBe(404)
    expect((await askAdmin(mirror, path, { method: 'DELETE' })).json).toMatchObject({ removed: [ITEM], pinned: [] })
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
  })

  test('a set of pins of nothing, or of what is no item, is refused with every reason', async () => {
    const put = (body: unknown) => askAdmin(mirror, '/pins/none', { method: 'PUT', body })
    expect(await put({})).toMatchObject({ status: 400, json: { code: 'REQUEST_INVALID' } })
    const { json } = await put({ items: ['a', 'b/c/d e'] })
    expect(json.problems).toHaveLength(2)
    expect(await put({ jobs: ['none'] })).toMatchObject({ status: 404, json: { code: 'ITEM_NOT_FOUND' } })
    const lockFile = await put({ lockFiles: ['provider "x" {'] })
    expect(lockFile).toMatchObject({ status: 400, json: { code: 'CONFIGURATION_FILE_INVALID' } })
  })

  test('verify hashes what is held, as a job', async () => {
    const { json } = await askAdmin(mirror, '/verify', { method: 'POST', body: { prefix: HOST } })
    const { text } = await askAdmin(mirror, `/jobs/${json.id}/events`)
    expect(text).toMatch(/"state":"done".*\n\n$/)
  })

  test('refresh asks the origin for its list', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.1.0' })
    const body = { address: `${HOST}/acme/widget` }
    const { json } = await askAdmin(mirror, '/refresh', { method: 'POST', body })
    expect(json).toMatchObject({ outcome: 'grown', added: ['1.1.0'] })
  })
})

test('generated requests never give 500, whatever they find held, and the mirror goes on', async () => {
  const { json: document } = await askAdmin(mirror, '/openapi.json')
  const token = await readToken(mirror)
  const property = fc.asyncProperty(wildRequest(document), async ({ method, path, headers, body }) => {
    const hasBody = body !== undefined && body !== '' && method !== 'GET' && method !== 'HEAD'
    const options = { method, headers, token, ...(hasBody ? { body } : {}) }
    const answer = await openAdmin(mirror, `/${path}`, options)
    const isStream = answer.headers['content-type'] === 'text/event-stream'
    if (isStream) answer.destroy()
    else await answer.toArray()
    expect([200, 202, 204, 400, 404, 405, 409, 502, 503, 504]).toContain(answer.statusCode)
  })
  await fc.assert(property, { numRuns: 400 })
  expect(mirror.logLines.filter(({ level }) => level === 'error').map(({ err }) => err)).toEqual([])
  expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
}, 180_000)

describe('where it listens', () => {
  test('on a socket for this user alone, without TLS; what a killed process left is replaced', async () => {
    const config = { admin: { listen: { socket: './run/admin.sock' } } }
    await using other = await spawnMirror({ origin, config })
    const path = join(other.folder, 'run', 'admin.sock')
    expect(other.adminUrl).toBe(`unix:${path}`)
    expect((await lstat(path)).mode & 0o777).toBe(0o600)
    expect((await askAdmin(other, '/stats', { token: null })).status).toBe(401)
    await other.kill()
    expect((await lstat(path)).isSocket()).toBe(true)
    await other.start()
    expect((await askAdmin(other, '/stats')).status).toBe(200)
    const purge = await askAdmin(other, `/packages/${HOST}/acme/none`, { method: 'DELETE' })
    expect(purge.status).toBe(404)
    const audit = await readFile(join(other.dataDir, 'state', 'journals', 'audit.ndjson'), 'utf8')
    expect(audit).toContain('"client":"socket","action":"purgeProvider"')
    await other.restart()
    expect((await askAdmin(other, '/stats')).status).toBe(200)
  })

  test('on loopback in plain http behind a front that ends TLS', async () => {
    await using other = await startMirror({ origin, config: { listen: { port: 0, tls: 'off' } } })
    expect(other.adminUrl).toMatch(/^http:\/\/localhost:\d+\/$/)
    expect((await askAdmin(other, '/stats')).status).toBe(200)
  })

  test('nowhere, if the configuration says so', async () => {
    await using other = await startMirror({ origin, config: { admin: 'off' } })
    expect(other.adminUrl).toBe('')
    await expect(stat(join(other.dataDir, 'state', 'admin-token'))).rejects.toThrow('ENOENT')
  })

  test('a port that is taken ends the start with what to do', async () => {
    await using taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const address = taken.address()
    const port = typeof address === 'object' ? address?.port : undefined
    const started = startMirror({ origin, config: { admin: { listen: { port } } } })
    await expect(started).rejects.toThrow(
      `cannot listen on 127.0.0.1 port ${port}: another process listens there; stop it or set admin.listen.port (admin: off does without it)`,
    )
  })

  test('a token file that holds no token ends the start with what to do', async () => {
    await using other = await startMirror({ origin })
    await writeFile(join(other.dataDir, 'state', 'admin-token'), 'two words\n')
    await expect(other.restart()).rejects.toThrow(/admin-token holds no token; delete it, and a new one is made/)
    await writeFile(join(other.dataDir, 'state', 'admin-token'), 'one-word\n', { mode: 0o644 })
    await other.restart()
    expect((await stat(join(other.dataDir, 'state', 'admin-token'))).mode & 0o777).toBe(0o600)
  })
})

test('SIGTERM ends streams of events in good order, and the process right after', async () => {
  await using other = await spawnMirror({ origin })
  origin.fault({ kind: 'archive' }, { trickle: 20_000 })
  await origin.publish({ provider: 'acme/slow', version: '1.0.0', platforms: ['linux_amd64'], archiveBytes: 900_000 })
  const body = { providers: [{ source: `${HOST}/acme/slow` }], platforms: ['linux_amd64'] }
  const { json } = await askAdmin(other, '/warm', { method: 'POST', body })
  const stream = await openAdmin(other, `/jobs/${json.id}/events`)
  const text = stream.toArray()
  await origin.until(() => origin.count('archive') > 0)
  const exited = once(other.child, 'exit')
  const started = performance.now()
  other.child.kill('SIGTERM')
  expect(String(Buffer.concat(await text))).not.toContain('"state":"done"')
  expect((await exited)[0]).toBe(0)
  expect(performance.now() - started).toBeLessThan(15_000)
  origin.reset()
})
