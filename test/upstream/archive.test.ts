import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { MirrorError } from '../../src/errors.ts'
import { archiveRequest, failureOf, origin, readArchive, startClient, startServer, until } from './origin-fixture.ts'

const url = `https://${origin}/provider.zip`
const archive = randomBytes(3_000_000)

/** Sends a part of the archive and breaks the connection. */
function tear(response: ServerResponse, headers: Record<string, string | number>, bytes: Buffer) {
  response.writeHead(headers['content-range'] === undefined ? 200 : 206, headers)
  response.write(bytes, () => setTimeout(() => response.destroy(), 20))
}

function rangeStart(request: IncomingMessage): number {
  return Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0)
}

/** Serves `archive` with ranges; every answer but the last breaks after a megabyte. */
function serveTorn(headers: Record<string, string>) {
  return (request: IncomingMessage, response: ServerResponse) => {
    const start = rangeStart(request)
    const rest = archive.subarray(start)
    const range = start === 0 ? {} : { 'content-range': `bytes ${start}-${archive.length - 1}/${archive.length}` }
    const all = { ...headers, ...range, 'content-length': rest.length }
    if (rest.length > 1_000_000) tear(response, all, rest.subarray(0, 1_000_000))
    else response.writeHead(start === 0 ? 200 : 206, all).end(rest)
  }
}

test('an archive comes whole, with its size, without any encoding asked for', async () => {
  await using server = await startServer((_request, response) =>
    response.writeHead(200, { 'content-length': archive.length }).end(archive),
  )
  await using client = await startClient(server)
  const stream = await client.openArchive(archiveRequest(url))
  expect(stream.size).toBe(archive.length)
  const { bytes, restarts } = await readArchive(stream)
  expect(bytes.equals(archive)).toBe(true)
  expect(restarts).toBe(0)
  expect(server.requests[0]?.headers['accept-encoding']).toBe('identity')
  expect(client.observed.received).toBe(archive.length)
  await expect(readArchive(stream)).rejects.toThrow('only once')
})

test.each([
  ['a strong ETag', { etag: '"one"', 'last-modified': 'Sun, 06 Nov 1994 08:49:37 GMT' }, '"one"'],
  [
    'Last-Modified',
    { etag: 'W/"one"', 'last-modified': 'Sun, 06 Nov 1994 08:49:37 GMT' },
    'Sun, 06 Nov 1994 08:49:37 GMT',
  ],
  ['nothing but its size', {}, undefined],
])('a torn archive is resumed where it broke off, by %s', async (_name, headers, ifRange) => {
  await using server = await startServer(serveTorn(headers))
  await using client = await startClient(server, { retries: 1 })
  const { bytes, restarts } = await readArchive(await client.openArchive(archiveRequest(url)))
  expect(bytes.equals(archive)).toBe(true)
  expect(restarts).toBe(0)
  expect(server.requests.map((request) => [request.headers.range, request.headers['if-range']])).toEqual([
    [undefined, undefined],
    ['bytes=1000000-', ifRange],
    ['bytes=2000000-', ifRange],
  ])
  expect(client.observed.received).toBe(archive.length)
  expect(client.observed.retried).toEqual(['torn', 'torn'])
})

const changed = randomBytes(2_000_000)

test.each<[string, (request: IncomingMessage, response: ServerResponse) => void, number]>([
  ['an upstream without ranges', (_request, response) => response.writeHead(200).end(changed), 2],
  [
    'a part of another archive (ETag)',
    (request, response) => {
      if (request.headers.range === undefined) return response.writeHead(200).end(changed)
      const range = `bytes 1000000-${archive.length - 1}/${archive.length}`
      return response.writeHead(206, { etag: '"two"', 'content-range': range }).end(archive.subarray(1_000_000))
    },
    3,
  ],
  [
    'a part of another archive (size)',
    (request, response) => {
      if (request.headers.range === undefined) return response.writeHead(200).end(changed)
      return response
        .writeHead(206, { 'content-range': `bytes 1000000-${changed.length - 1}/${changed.length}` })
        .end(changed.subarray(1_000_000))
    },
    3,
  ],
  [
    'another part than the one asked for',
    (request, response) => {
      if (request.headers.range === undefined) return response.writeHead(200).end(changed)
      return response
        .writeHead(206, { 'content-range': `bytes 0-${archive.length - 1}/${archive.length}` })
        .end(archive)
    },
    3,
  ],
  [
    '416',
    (request, response) => {
      if (request.headers.range === undefined) return response.writeHead(200).end(changed)
      return response.writeHead(416).end()
    },
    3,
  ],
])('after a tear, %s means a restart and the right bytes', async (_name, then, requests) => {
  await using server = await startServer((request, response) => {
    if (server.requests.length > 1) return then(request, response)
    return tear(response, { etag: '"one"', 'content-length': archive.length }, archive.subarray(0, 1_000_000))
  })
  await using client = await startClient(server)
  const { bytes, restarts } = await readArchive(await client.openArchive(archiveRequest(url)))
  expect(bytes.equals(changed)).toBe(true)
  expect(restarts).toBe(1)
  expect(server.requests.length).toBe(requests)
})

test('an archive of unknown length without validator starts again after a tear', async () => {
  await using server = await startServer((_request, response) => {
    if (server.requests.length > 1) return response.end(archive)
    return tear(response, {}, archive.subarray(0, 1_000_000))
  })
  await using client = await startClient(server)
  const { bytes, restarts } = await readArchive(await client.openArchive(archiveRequest(url)))
  expect([bytes.equals(archive), restarts]).toEqual([true, 1])
  expect(server.requests[1]?.headers.range).toBeUndefined()
})

test.each([
  ['gzip', gzipSync(archive)],
  ['zstd', zstdCompressSync(archive)],
])(
  'an archive that comes encoded as %s all the same is decoded, and starts again after a tear',
  async (encoding, body) => {
    await using server = await startServer((_request, response) => {
      const headers = { 'content-encoding': encoding, 'content-length': body.length, etag: '"one"' }
      if (server.requests.length > 1) return response.writeHead(200, headers).end(body)
      return tear(response, headers, body.subarray(0, 1_000_000))
    })
    await using client = await startClient(server)
    const stream = await client.openArchive(archiveRequest(url))
    expect(stream.size).toBeUndefined()
    const { bytes, restarts } = await readArchive(stream)
    expect([bytes.equals(archive), restarts]).toEqual([true, 1])
    expect(server.requests[1]?.headers.range).toBeUndefined()
  },
)

test('an archive that makes no progress is given up after the retries', async () => {
  await using server = await startServer((request, response) => {
    const start = rangeStart(request)
    const range = start === 0 ? {} : { 'content-range': `bytes ${start}-${archive.length - 1}/${archive.length}` }
    tear(
      response,
      { etag: '"one"', 'content-length': archive.length - start, ...range },
      archive.subarray(start, start + 10),
    )
  })
  await using client = await startClient(server, { retries: 2 })
  const error = await failureOf(readArchive(await client.openArchive(archiveRequest(url))))
  expect(error.code).toBe('UPSTREAM_UNREACHABLE')
  expect(error.message).toContain('broke off')
  expect(server.requests.length).toBe(3)
})

test('an archive that falls silent is resumed', async () => {
  await using server = await startServer((request, response) => {
    const start = rangeStart(request)
    const headers = { etag: '"one"', 'content-length': archive.length - start }
    if (start === 0) return response.writeHead(200, headers).write(archive.subarray(0, 1_000_000))
    const range = `bytes ${start}-${archive.length - 1}/${archive.length}`
    return response.writeHead(206, { ...headers, 'content-range': range }).end(archive.subarray(start))
  })
  await using client = await startClient(server, { idleTimeoutMs: 400 })
  const { bytes, restarts } = await readArchive(await client.openArchive(archiveRequest(url)))
  expect([bytes.equals(archive), restarts]).toEqual([true, 0])
  expect(client.observed.retried).toEqual(['timeout'])
})

test('a trickle under the minimum rate is given up', async () => {
  await using server = await startServer((_request, response) => {
    response.writeHead(200, { 'content-length': archive.length })
    const timer = setInterval(() => response.write(Buffer.alloc(50)), 50)
    response.on('close', () => clearInterval(timer))
  })
  await using client = await startClient(server, { idleTimeoutMs: 400, minBytesPerSecond: 20_000, retries: 0 })
  const error = await failureOf(readArchive(await client.openArchive(archiveRequest(url))))
  expect(error.code).toBe('UPSTREAM_TIMEOUT')
  expect(error.message).toContain('minimum')
  await until(() => server.sockets.size === 0)
})

test('a slow reader is not held against the upstream', async () => {
  await using server = await startServer((_request, response) =>
    response.writeHead(200, { 'content-length': archive.length }).end(archive),
  )
  await using client = await startClient(server, { idleTimeoutMs: 200, minBytesPerSecond: 1_000_000, retries: 0 })
  const hash = createHash('sha256')
  let pauses = 0
  for await (const piece of await client.openArchive(archiveRequest(url))) {
    if (piece.kind === 'bytes') hash.update(piece.bytes)
    if (pauses++ < 4) await new Promise((resolve) => setTimeout(resolve, 300))
  }
  expect(hash.digest('hex')).toBe(createHash('sha256').update(archive).digest('hex'))
})

test('an archive over its limit is refused by its declared length', async () => {
  await using server = await startServer((_request, response) =>
    response.writeHead(200, { 'content-length': archive.length }).end(archive),
  )
  await using client = await startClient(server)
  const error = await failureOf(client.openArchive(archiveRequest(url, { maxBytes: 1_000 })))
  expect(error.code).toBe('UPSTREAM_TOO_LARGE')
  await until(() => server.sockets.size === 0)
})

test.each(['identity', 'gzip'])('an archive over its limit is stopped while it comes (%s)', async (encoding) => {
  const body = encoding === 'gzip' ? gzipSync(Buffer.alloc(50_000_000)) : archive
  await using server = await startServer((_request, response) => {
    response.writeHead(200, { 'content-encoding': encoding }).write(body)
  })
  await using client = await startClient(server)
  const stream = await client.openArchive(archiveRequest(url, { maxBytes: 1_000_000 }))
  expect((await failureOf(readArchive(stream))).code).toBe('UPSTREAM_TOO_LARGE')
  await until(() => server.sockets.size === 0)
})

test.each([401, 403, 404, 410, 206, 304])('status %i fails at once, with what the upstream says', async (status) => {
  await using server = await startServer((_request, response) =>
    response.writeHead(status, { 'content-type': 'text/plain' }).end('go away'),
  )
  await using client = await startClient(server)
  const error = await failureOf(client.openArchive(archiveRequest(url)))
  expect(error.is('UPSTREAM_STATUS') && error.fields.upstreamStatus).toBe(status)
  if (status !== 304) expect(error.message).toContain('go away')
  expect(server.requests.length).toBe(1)
})

test('a 503 before the archive is tried again, from the original URL', async () => {
  await using server = await startServer((request, response) => {
    if (request.url === '/provider.zip')
      response.writeHead(302, { location: `/signed?${server.requests.length}` }).end()
    else if (request.url === '/signed?1') response.writeHead(503).end()
    else response.end(archive)
  })
  await using client = await startClient(server)
  const { bytes } = await readArchive(await client.openArchive(archiveRequest(url)))
  expect(bytes.equals(archive)).toBe(true)
  expect(server.requests.map((request) => request.url)).toEqual([
    '/provider.zip',
    '/signed?1',
    '/provider.zip',
    '/signed?3',
  ])
})

test('leaving the loop early closes the connection', async () => {
  await using server = await startServer((_request, response) => {
    response.writeHead(200, { 'content-length': 100_000_000 })
    response.write(Buffer.alloc(500_000))
  })
  await using client = await startClient(server)
  for await (const _piece of await client.openArchive(archiveRequest(url))) break
  await until(() => server.sockets.size === 0)
})

test('the signal ends an archive that is on its way, also while nobody reads', async () => {
  await using server = await startServer((_request, response) => {
    response.writeHead(200, { 'content-length': 100_000_000 })
    response.write(Buffer.alloc(500_000))
  })
  await using client = await startClient(server)
  const stop = new AbortController()
  const stopping = new MirrorError('SHUTTING_DOWN', 'stopping', {})
  const stream = await client.openArchive({ ...archiveRequest(url), signal: stop.signal })
  stop.abort(stopping)
  await until(() => server.sockets.size === 0)
  expect(await failureOf(readArchive(stream))).toBe(stopping)
})

test('closing the client ends running archives', async () => {
  await using server = await startServer((_request, response) => {
    response.writeHead(200, { 'content-length': 100_000_000 })
    response.write(Buffer.alloc(500_000))
  })
  await using client = await startClient(server)
  const failure = failureOf(readArchive(await client.openArchive(archiveRequest(url))))
  await until(() => client.observed.received >= 500_000)
  await client.close()
  expect((await failure).code).toBe('SHUTTING_DOWN')
  await until(() => server.sockets.size === 0)
})

test('memory does not grow with the archive', async () => {
  const chunk = randomBytes(1_000_000)
  await using server = await startServer((_request, response) => {
    let sent = 0
    response.writeHead(200, { 'content-length': 300_000_000 })
    const send = () => {
      while (sent < 300) {
        sent += 1
        if (!response.write(chunk)) return response.once('drain', send)
      }
      return response.end()
    }
    send()
  })
  await using client = await startClient(server)
  let bytes = 0
  let most = 0
  const before = process.memoryUsage().rss
  for await (const piece of await client.openArchive(archiveRequest(url))) {
    if (piece.kind === 'bytes') bytes += piece.bytes.length
    most = Math.max(most, process.memoryUsage.rss())
  }
  expect(bytes).toBe(300_000_000)
  expect(most - before).toBeLessThan(150_000_000)
})
