import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { Release } from '../origin/release.ts'
import { type Ask, startMirror, type TestMirror } from './mirror-fixture.ts'

const PLATFORM = 'linux_amd64'
const ARCHIVE_BYTES = 700_000

let origin: TestOrigin
let mirror: TestMirror
let release: Release
let bytes: Buffer
let etag: string

beforeAll(async () => {
  origin = await startOrigin()
  release = await origin.publish({ provider: 'acme/widget', version: '1.0.0', archiveBytes: ARCHIVE_BYTES })
  mirror = await startMirror({ origin })
  bytes = await release.package(PLATFORM).bytes()
  etag = `"${release.package(PLATFORM).sha256}"`
  const warmed = await mirror.archive('acme/widget', '1.0.0', PLATFORM)
  expect(warmed.body.equals(bytes)).toBe(true)
})
beforeEach(() => origin.reset())
afterAll(async () => {
  await mirror[Symbol.asyncDispose]()
  await origin[Symbol.asyncDispose]()
})

const get = (headers: Record<string, string>, method = 'GET') =>
  mirror.archive('acme/widget', '1.0.0', PLATFORM, { headers, method })

describe('methods', () => {
  const paths = [
    '/',
    '/healthz',
    '/providers/registry.example.test/acme/widget/index.json',
    '/providers/registry.example.test/acme/widget/1.0.0.json',
    '/providers/registry.example.test/acme/widget/1.0.0/linux_amd64/x.zip',
  ]
  const methods = ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND']
  test.each(methods)('%s is 405 with Allow on every path, and reaches nothing', async (method) => {
    for (const path of paths) {
      const answer = await mirror.ask(path, { method })
      expect(answer.status).toBe(405)
      expect(answer.headers.allow).toBe('GET, HEAD')
      expect(answer.json()).toMatchObject({ code: 'METHOD_NOT_ALLOWED', request_id: answer.headers['x-request-id'] })
    }
    expect(origin.connections).toBe(0)
  })
})

describe('HEAD answers as GET would, without a body (B49)', () => {
  const paths: [string, string][] = [
    ['index.json', '/providers/registry.example.test/acme/widget/index.json'],
    ['VERSION.json', '/providers/registry.example.test/acme/widget/1.0.0.json'],
    ['a cached archive', '/providers/registry.example.test/acme/widget/1.0.0/linux_amd64/x.zip'],
    ['a version that does not exist', '/providers/registry.example.test/acme/widget/9.9.9.json'],
    ['an archive that does not exist', '/providers/registry.example.test/acme/widget/1.0.0/plan9_mips/x.zip'],
    ['a provider that does not exist', '/providers/registry.example.test/acme/nothing/index.json'],
    ['an origin that is not allowed', '/providers/elsewhere.example/acme/widget/index.json'],
    ['a hostile host', '/providers/127.0.0.1/acme/widget/index.json'],
    ['a hostile path', '/providers/%2e%2e/acme/widget/index.json'],
    ['the other protocol', '/v1/providers/acme/widget/versions'],
    ['/healthz', '/healthz'],
    ['/readyz', '/readyz'],
  ]
  test.each(paths)('%s', async (_what, path) => {
    const whole = await mirror.ask(path)
    const head = await mirror.ask(path, { method: 'HEAD' })
    expect(head.status).toBe(whole.status)
    expect(head.headers['content-type']).toBe(whole.headers['content-type'])
    expect(head.body).toHaveLength(0)
    expect(whole.headers['content-length']).toBe(String(whole.body.length))
    expect(head.headers['content-length']).toBe(whole.headers['content-length'])
    expect(head.headers['transfer-encoding']).toBeUndefined()
    expect(head.headers['cache-control']).toBe(whole.headers['cache-control'])
    expect(head.headers.etag).toBe(whole.headers.etag)
  })

  test('/metrics', async () => {
    const head = await mirror.ask('/metrics', { method: 'HEAD' })
    expect(head.status).toBe(200)
    expect(head.headers['content-type']).toMatch(/^text\/plain/)
    expect(head.body).toHaveLength(0)
  })

  test('a cold archive: at once, with no length and no promise of ranges, and the GET joins the same download', async () => {
    await origin.publish({ provider: 'acme/cold', version: '1.0.0' })
    const slow = origin.fault({ kind: 'archive', provider: 'acme/cold' }, { stall: 0.5 })
    const head = await mirror.archive('acme/cold', '1.0.0', PLATFORM, { method: 'HEAD' })
    expect(head.status).toBe(200)
    expect(head.headers['content-type']).toBe('application/zip')
    expect(head.headers['content-length']).toBeUndefined()
    expect(head.headers['accept-ranges']).toBeUndefined()
    await origin.until(() => slow.struck === 1)

    const second = await mirror.archive('acme/cold', '1.0.0', PLATFORM, { method: 'HEAD' })
    expect(second.headers['terramirror-cache']).toBe('coalesced')
    expect(origin.count('archive acme/cold')).toBe(1)
    expect(origin.count('HEAD')).toBe(0)
  })

  test('after the HEAD of a cold archive the GET gets the whole of it by one request to the origin', async () => {
    const cold = await origin.publish({ provider: 'acme/cool', version: '1.0.0' })
    origin.fault({ kind: 'archive' }, { delayMs: 300 })
    const head = await mirror.archive('acme/cool', '1.0.0', PLATFORM, { method: 'HEAD' })
    expect(head.headers['terramirror-cache']).toBe('miss')
    const whole = await mirror.archive('acme/cool', '1.0.0', PLATFORM)
    expect(whole.headers['terramirror-cache']).toBe('coalesced')
    expect(whole.body.equals(await cold.package(PLATFORM).bytes())).toBe(true)
    expect(origin.count('archive acme/cool')).toBe(1)
    const after = await mirror.archive('acme/cool', '1.0.0', PLATFORM, { method: 'HEAD' })
    expect(after.headers).toMatchObject({ 'content-length': String(whole.body.length), 'accept-ranges': 'bytes' })
  })
})

describe('ranges of a cached archive', () => {
  const satisfiable: [string, number, number][] = [
    ['bytes=0-99', 0, 100],
    ['bytes=100-', 100, -1],
    ['bytes=-100', -100, -1],
    ['bytes=0-0', 0, 1],
    ['bytes=600000-99999999', 600_000, -1],
    ['bytes=-99999999', 0, -1],
    ['BYTES=5-9', 5, 10],
  ]
  test.each(satisfiable)('%s is 206 with these bytes', async (range, start, end) => {
    const answer = await get({ range })
    const size = bytes.length
    const from = start < 0 ? size + start : start
    const to = end < 0 ? size : end
    expect(answer.status).toBe(206)
    expect(answer.headers['content-range']).toBe(`bytes ${from}-${to - 1}/${size}`)
    expect(answer.headers['content-length']).toBe(String(to - from))
    expect(answer.body.equals(bytes.subarray(from, to))).toBe(true)
    expect(answer.headers.etag).toBe(etag)
  })

  const ignored = ['bytes=0-1,5-9', 'bytes=0-1, 700-', 'lines=1-2', 'bytes=9-5', 'bytes=', 'bytes=-', 'bytes=a-b', 'x']
  test.each(ignored)('%s is the whole archive with 200', async (range) => {
    const answer = await get({ range })
    expect(answer.status).toBe(200)
    expect(answer.headers['content-range']).toBeUndefined()
    expect(answer.body.equals(bytes)).toBe(true)
  })

  test.each(['bytes=99999999-', 'bytes=99999999-999999999', 'bytes=-0'])('%s is 416 with the size', async (range) => {
    const answer = await get({ range })
    expect(answer.status).toBe(416)
    expect(answer.headers['content-range']).toBe(`bytes */${bytes.length}`)
    expect(answer.body).toHaveLength(0)
  })

  test('If-Range: the range if the archive is still the same, else the whole', async () => {
    expect((await get({ range: 'bytes=0-9', 'if-range': etag })).status).toBe(206)
    for (const ifRange of ['"other"', `W/${etag}`, new Date().toUTCString()]) {
      const whole = await get({ range: 'bytes=0-9', 'if-range': ifRange })
      expect(whole.status).toBe(200)
      expect(whole.body).toHaveLength(bytes.length)
    }
    // If-Range is judged before the range itself.
    expect((await get({ range: 'bytes=99999999-', 'if-range': '"other"' })).status).toBe(200)
  })

  test('If-None-Match: 304 for the same archive, whatever else is asked', async () => {
    for (const ifNoneMatch of [etag, `"other", ${etag}`, `W/${etag}`, '*']) {
      const answer = await get({ 'if-none-match': ifNoneMatch })
      expect(answer.status, ifNoneMatch).toBe(304)
      expect(answer.body).toHaveLength(0)
      expect(answer.headers.etag).toBe(etag)
      expect((await get({ 'if-none-match': ifNoneMatch, range: 'bytes=0-9' })).status).toBe(304)
      expect((await get({ 'if-none-match': ifNoneMatch }, 'HEAD')).status).toBe(304)
    }
    expect((await get({ 'if-none-match': '"other"' })).status).toBe(200)
  })

  test('HEAD ignores a range', async () => {
    const head = await get({ range: 'bytes=0-9' }, 'HEAD')
    expect(head.status).toBe(200)
    expect(head.headers['content-length']).toBe(String(bytes.length))
  })

  test('a range of a cold archive is that range, after one download of the whole', async () => {
    const cold = await origin.publish({ provider: 'acme/ranged', version: '1.0.0' })
    const answer = await mirror.archive('acme/ranged', '1.0.0', PLATFORM, { headers: { range: 'bytes=10-19' } })
    expect(answer.status).toBe(206)
    expect(answer.body.equals((await cold.package(PLATFORM).bytes()).subarray(10, 20))).toBe(true)
    expect(origin.requests.filter(({ kind }) => kind === 'archive').map(({ headers }) => headers.range)).toEqual([
      undefined,
    ])
  })
})

describe('nobody on the way may change the bytes (B48)', () => {
  const encodings = ['gzip', 'gzip, deflate, br, zstd', 'br;q=1.0, *;q=0.5', 'identity;q=0, gzip']
  test.each(encodings)('Accept-Encoding: %s gets the identity coding with an exact length', async (encoding) => {
    const asks: Ask = { headers: { 'accept-encoding': encoding } }
    const index = await mirror.index('acme/widget', asks)
    const version = await mirror.version('acme/widget', '1.0.0', asks)
    const archive = await mirror.archive('acme/widget', '1.0.0', PLATFORM, asks)
    for (const answer of [index, version, archive]) {
      expect(answer.headers['content-encoding']).toBeUndefined()
      expect(answer.headers['content-length']).toBe(String(answer.body.length))
      expect(answer.headers['cache-control']).toContain('no-transform')
    }
    expect(archive.body.equals(bytes)).toBe(true)
  })

  test('the media types are those that clients insist on', async () => {
    expect((await mirror.index('acme/widget')).headers['content-type']).toBe('application/json')
    expect((await mirror.version('acme/widget', '1.0.0')).headers['content-type']).toBe('application/json')
    expect((await get({})).headers['content-type']).toBe('application/zip')
  })
})
