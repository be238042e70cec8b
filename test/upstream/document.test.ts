import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { MirrorError } from '../../src/errors.ts'
import { documentRequest, failureOf, origin, startClient, startServer, until } from './origin-fixture.ts'

const url = `https://${origin}/doc`
const text = JSON.stringify({ text: 'x'.repeat(5_000) })

test.each([
  ['gzip', gzipSync(text)],
  ['x-gzip', gzipSync(text)],
  ['deflate', deflateSync(text)],
  ['br', brotliCompressSync(text)],
  ['zstd', zstdCompressSync(text)],
  ['br, gzip', gzipSync(brotliCompressSync(text))],
  ['identity', Buffer.from(text)],
])('a document encoded as %s is decoded', async (encoding, body) => {
  await using server = await startServer((_request, response) =>
    response.writeHead(200, { 'content-encoding': encoding }).end(body),
  )
  await using client = await startClient(server)
  const answer = await client.fetchDocument(documentRequest(url))
  expect(answer.body.toString()).toBe(text)
  expect(server.requests[0]?.headers['accept-encoding']).toBe('gzip')
  expect(client.observed.received).toBe(body.length)
})

test.each([
  ['compress', Buffer.from(text)],
  ['gzip', Buffer.from(text)],
  ['br', Buffer.from(text)],
  ['gzip, gzip, gzip, gzip, gzip', Buffer.from(text)],
])('an unknown, broken or endless encoding (%s) is an error, and is not asked for again', async (encoding, body) => {
  await using server = await startServer((_request, response) =>
    response.writeHead(200, { 'content-encoding': encoding }).end(body),
  )
  await using client = await startClient(server)
  expect((await failureOf(client.fetchDocument(documentRequest(url)))).code).toBe('UPSTREAM_INVALID')
  expect(server.requests.length).toBe(1)
})

test('a bomb is stopped at the limit of decoded bytes', async () => {
  const bomb = gzipSync(Buffer.alloc(100_000_000))
  await using server = await startServer((_request, response) =>
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
  )
  await using client = await startClient(server)
  const before = process.memoryUsage().rss
  const error = await failureOf(client.fetchDocument(documentRequest(url, { maxBytes: 1_000_000 })))
  expect(error.is('UPSTREAM_TOO_LARGE') && error.fields.maxBytes).toBe(1_000_000)
  expect(process.memoryUsage().rss - before).toBeLessThan(60_000_000)
})

test.each([true, false])('an endless document is stopped at the limit (length declared: %s)', async (declared) => {
  await using server = await startServer((_request, response) => {
    response.writeHead(200, declared ? { 'content-length': '100000000' } : {})
    const timer = setInterval(() => response.write(Buffer.alloc(10_000)), 1)
    response.on('close', () => clearInterval(timer))
  })
  await using client = await startClient(server)
  const error = await failureOf(client.fetchDocument(documentRequest(url, { maxBytes: 100_000 })))
  expect(error.code).toBe('UPSTREAM_TOO_LARGE')
  await until(() => server.sockets.size === 0)
})

test.each([400, 401, 403, 404, 410])('status %i is an answer with its body', async (status) => {
  await using server = await startServer((_request, response) => response.writeHead(status).end('{"errors":["no"]}'))
  await using client = await startClient(server)
  const answer = await client.fetchDocument(documentRequest(url))
  expect([answer.status, answer.body.toString(), answer.mediaType]).toEqual([status, '{"errors":["no"]}', ''])
})

test('the body of an error status is cut, not an error', async () => {
  await using server = await startServer((_request, response) => response.writeHead(404).end('x'.repeat(300_000)))
  await using client = await startClient(server)
  const answer = await client.fetchDocument(documentRequest(url))
  expect([answer.status, answer.body.length]).toEqual([404, 65_536])
})

test.each([408, 500, 502, 503, 504])('a passing %i is tried again', async (status) => {
  await using server = await startServer((_request, response) => {
    if (server.requests.length === 1) response.writeHead(status).end('wait')
    else response.end('{}')
  })
  await using client = await startClient(server)
  expect((await client.fetchDocument(documentRequest(url))).status).toBe(200)
  expect(client.observed.retried).toEqual(['status'])
  expect(client.observed.answered.map(({ status }) => status)).toEqual([status, 200])
})

test('a lasting 503 is an error with the upstream status and its cleaned words, after all retries', async () => {
  await using server = await startServer((_request, response) =>
    response
      .writeHead(503, { 'content-type': 'application/json' })
      .end('{"errors":["down\\u0000for\\n\\u001b[31mrepair"]}'),
  )
  await using client = await startClient(server)
  const error = await failureOf(client.fetchDocument(documentRequest(url)))
  expect(error.is('UPSTREAM_STATUS') && error.fields).toEqual({
    host: origin,
    upstreamUrl: url,
    upstreamStatus: 503,
    detail: 'down for [31mrepair',
  })
  expect(server.requests.length).toBe(3)
})

test('501 is not tried again', async () => {
  await using server = await startServer((_request, response) => response.writeHead(501).end())
  await using client = await startClient(server)
  expect((await failureOf(client.fetchDocument(documentRequest(url)))).code).toBe('UPSTREAM_STATUS')
  expect(server.requests.length).toBe(1)
})

test('a torn document and a broken connection are tried again', async () => {
  await using server = await startServer((request, response) => {
    if (server.requests.length === 1) return request.socket.destroy()
    if (server.requests.length > 2) return response.end('{}')
    response.writeHead(200, { 'content-length': '100' }).write('{')
    return setTimeout(() => response.destroy(), 50)
  })
  await using client = await startClient(server)
  expect((await client.fetchDocument(documentRequest(url))).body.toString()).toBe('{}')
  expect(client.observed.retried).toEqual(['connection', 'torn'])
})

test('a compressed document without length that is torn is tried again', async () => {
  await using server = await startServer((_request, response) => {
    const whole = server.requests.length > 1
    response.shouldKeepAlive = false
    response.removeHeader('transfer-encoding')
    response.writeHead(200, { 'content-encoding': 'gzip', 'transfer-encoding': 'identity' })
    const body = gzipSync(text)
    response.end(whole ? body : body.subarray(0, 40))
  })
  await using client = await startClient(server)
  expect((await client.fetchDocument(documentRequest(url))).body.toString()).toBe(text)
})

test('an attempt without answer is given up early enough for another one', async () => {
  await using server = await startServer((_request, response) => {
    if (server.requests.length > 1) response.end('{}')
  })
  await using client = await startClient(server, { attemptTimeoutMs: 300 })
  expect((await client.fetchDocument(documentRequest(url))).status).toBe(200)
  expect(client.observed.retried).toEqual(['timeout'])
})

test('a document that falls silent is tried again', async () => {
  await using server = await startServer((_request, response) => {
    if (server.requests.length > 1) response.end('{}')
    else response.writeHead(200, { 'content-length': '100' }).write('{')
  })
  await using client = await startClient(server, { idleTimeoutMs: 300 })
  expect((await client.fetchDocument(documentRequest(url))).status).toBe(200)
  expect(client.observed.retried).toEqual(['timeout'])
})

test('the deadline of the caller ends everything with UPSTREAM_TIMEOUT', async () => {
  await using server = await startServer(() => undefined)
  await using client = await startClient(server)
  const error = await failureOf(client.fetchDocument(documentRequest(url, { ms: 300 })))
  expect(error.code).toBe('UPSTREAM_TIMEOUT')
  await until(() => server.sockets.size === 0)
})

test('the deadline ends a back-off too', async () => {
  await using server = await startServer((_request, response) => response.writeHead(503, { 'retry-after': '2' }).end())
  await using client = await startClient(server)
  const started = Date.now()
  const error = await failureOf(client.fetchDocument(documentRequest(url, { ms: 500 })))
  expect(error.code).toBe('UPSTREAM_TIMEOUT')
  expect(error.message).toContain('503')
  expect(Date.now() - started).toBeLessThan(1_900)
})

test('a shutdown is passed on as it is', async () => {
  await using server = await startServer(() => undefined)
  await using client = await startClient(server)
  const stop = new AbortController()
  const stopping = new MirrorError('SHUTTING_DOWN', 'stopping', {})
  const failure = failureOf(client.fetchDocument({ ...documentRequest(url), signal: stop.signal }))
  await until(() => server.requests.length === 1)
  stop.abort(stopping)
  expect(await failure).toBe(stopping)
})

test('closing ends what is running, and nothing starts afterwards', async () => {
  await using server = await startServer((request, response) => {
    if (request.url === '/doc') response.writeHead(200).write('{')
  })
  await using client = await startClient(server)
  const running = [client.fetchDocument(documentRequest(url)), client.fetchDocument(documentRequest(`${url}2`))]
  const failures = Promise.all(running.map(failureOf))
  await until(() => server.requests.length === 2)
  await client.close()
  expect((await failures).map(({ code }) => code)).toEqual(['SHUTTING_DOWN', 'SHUTTING_DOWN'])
  await until(() => server.sockets.size === 0)
  expect((await failureOf(client.fetchDocument(documentRequest(url)))).code).toBe('SHUTTING_DOWN')
})

test('a host that is not there is unreachable, after all retries', async () => {
  const server = await startServer(() => undefined)
  await server[Symbol.asyncDispose]()
  await using client = await startClient(server)
  const error = await failureOf(client.fetchDocument(documentRequest(url)))
  expect(error.code).toBe('UPSTREAM_UNREACHABLE')
  expect(error.message).toContain('ECONNREFUSED')
  expect(client.observed.retried).toEqual(['connection', 'connection'])
})

test('something that is not a URL is an error of ours', async () => {
  await using client = await startClient(undefined)
  expect((await failureOf(client.fetchDocument(documentRequest('providers/x')))).code).toBe('UPSTREAM_INVALID')
})

test('no more connections are open to a host than the concurrency', async () => {
  let most = 0
  await using server = await startServer((_request, response) => {
    most = Math.max(most, server.sockets.size)
    setTimeout(() => response.end('{}'), 20)
  })
  await using client = await startClient(server, { concurrency: 3 })
  await Promise.all(Array.from({ length: 20 }, () => client.fetchDocument(documentRequest(url))))
  expect(most).toBe(3)
})
