import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseRetryAfter } from '../../src/upstream/backoff.ts'
import { cpuMs } from '../protocol/only-mirror-errors.ts'
import { archiveRequest, documentRequest, failureOf, origin, startClient, startServer } from './origin-fixture.ts'

const url = `https://${origin}/doc`

test('after a 429 the host is not asked again before Retry-After has passed, whatever the path', async () => {
  let nowMs = 1_000_000
  await using server = await startServer((_request, response) => {
    if (server.requests.length === 1) response.writeHead(429, { 'retry-after': '30' }).end()
    else response.end('{}')
  })
  await using client = await startClient(server, { now: () => nowMs })
  const first = await failureOf(client.fetchDocument(documentRequest(url)))
  expect(first.is('UPSTREAM_RATE_LIMITED') && first.fields).toEqual({
    host: origin,
    upstreamUrl: url,
    upstreamStatus: 429,
    retryAfterMs: 30_000,
  })
  expect(first.message).toContain('upstream 429')
  nowMs += 29_000
  const second = await failureOf(client.fetchDocument(documentRequest(`https://${origin}/other`)))
  expect(second.is('UPSTREAM_RATE_LIMITED') && second.fields.retryAfterMs).toBe(1_000)
  expect((await failureOf(client.openArchive(archiveRequest(url)))).code).toBe('UPSTREAM_RATE_LIMITED')
  expect(server.requests.length).toBe(1)
  nowMs += 1_000
  expect((await client.fetchDocument(documentRequest(url))).status).toBe(200)
})

test('a short Retry-After is waited for', async () => {
  await using server = await startServer((_request, response) => {
    if (server.requests.length === 1) response.writeHead(429, { 'retry-after': '1' }).end()
    else response.end('{}')
  })
  await using client = await startClient(server)
  const started = Date.now()
  expect((await client.fetchDocument(documentRequest(url))).status).toBe(200)
  expect(Date.now() - started).toBeGreaterThanOrEqual(1_000)
  expect(client.observed.retried).toEqual(['rate-limit'])
})

test('a 503 that asks for a long pause fails at once, and blocks nobody', async () => {
  await using server = await startServer((_request, response) => response.writeHead(503, { 'retry-after': '60' }).end())
  await using client = await startClient(server)
  expect((await failureOf(client.fetchDocument(documentRequest(url)))).code).toBe('UPSTREAM_STATUS')
  expect(server.requests.length).toBe(1)
  await failureOf(client.fetchDocument(documentRequest(url)))
  expect(server.requests.length).toBe(2)
})

test.each([
  [{}, 5_000],
  [{ 'retry-after': '100000' }, 300_000],
  [{ 'x-ratelimit-reset': '1020' }, 20_000],
])('a 403 with an exhausted rate limit (%j) is a limit of %i ms', async (headers, retryAfterMs) => {
  await using server = await startServer((_request, response) =>
    response.writeHead(403, { 'x-ratelimit-remaining': '0', ...headers }).end(),
  )
  await using client = await startClient(server, { now: () => 1_000_000 })
  const error = await failureOf(client.fetchDocument(documentRequest(url)))
  expect(error.is('UPSTREAM_RATE_LIMITED') && error.fields).toMatchObject({ upstreamStatus: 403, retryAfterMs })
})

test('a plain 403 is an answer', async () => {
  await using server = await startServer((_request, response) =>
    response.writeHead(403, { 'x-ratelimit-remaining': '7' }).end(),
  )
  await using client = await startClient(server)
  expect((await client.fetchDocument(documentRequest(url))).status).toBe(403)
})

test('a limit of one host does not touch another one', async () => {
  await using other = await startServer((_request, response) => response.end('{}'))
  await using server = await startServer((_request, response) => response.writeHead(429).end())
  await using client = await startClient(server, { allowPrivateAddresses: true })
  await failureOf(client.fetchDocument(documentRequest(url)))
  expect((await client.fetchDocument(documentRequest(`https://localhost:${other.port}/`))).status).toBe(200)
})

test('Retry-After is read as seconds and in all three date formats of HTTP', () => {
  const now = Date.UTC(1994, 10, 6, 8, 49, 7)
  expect(parseRetryAfter('120', now)).toBe(120_000)
  expect(parseRetryAfter('Sun, 06 Nov 1994 08:49:37 GMT', now)).toBe(30_000)
  expect(parseRetryAfter('Sunday, 06-Nov-94 08:49:37 GMT', now)).toBe(30_000)
  expect(parseRetryAfter('Sun Nov  6 08:49:37 1994', now)).toBe(30_000)
  expect(parseRetryAfter('Sun, 06 Nov 1994 08:00:00 GMT', now)).toBe(0)
  for (const text of [undefined, '', '-1', '1.5', 'soon']) expect(parseRetryAfter(text, now)).toBeUndefined()
})

test('Retry-After says what was printed; other text, however long, says nothing and throws nothing', () => {
  const now = Date.UTC(2026, 0, 1)
  const second = fc.integer({ min: 0, max: 4_000_000_000 })
  fc.assert(
    fc.property(second, fc.string(), (seconds, text) => {
      expect(parseRetryAfter(String(seconds), now)).toBe(seconds * 1_000)
      const date = new Date(seconds * 1_000).toUTCString()
      expect(parseRetryAfter(date, now)).toBe(Math.max(0, seconds * 1_000 - now))
      expect(parseRetryAfter(`Sun, ${text}`, now) ?? 0).toBeGreaterThanOrEqual(0)
    }),
  )
  for (const long of [
    '1'.repeat(1e6),
    `Sun, ${'1'.repeat(1e6)}`,
    `Sun, ${'('.repeat(1e6)}`,
    `Sun, ${'a '.repeat(5e5)}`,
  ]) {
    expect(cpuMs(() => parseRetryAfter(long, now))).toBeLessThan(2_000)
  }
})
