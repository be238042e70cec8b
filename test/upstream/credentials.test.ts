import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import { archiveRequest, documentRequest, failureOf, origin, startClient, startServer } from './origin-fixture.ts'

const cdn = 'localhost'

test('the token of the origin goes to its own host only, not along a redirect', async () => {
  await using away = await startServer((_request, response) => response.end('{}'))
  await using server = await startServer((_request, response) =>
    response.writeHead(302, { location: `https://${cdn}:${away.port}/file` }).end(),
  )
  await using client = await startClient(server, { token: 'origin-token', allowPrivateAddresses: true })
  await client.fetchDocument(documentRequest(`https://${origin}/x`))
  const stream = await client.openArchive(archiveRequest(`https://${origin}/x.zip`))
  for await (const _ of stream);
  expect(server.requests.map((request) => request.headers.authorization)).toEqual(Array(2).fill('Bearer origin-token'))
  expect(away.requests.map((request) => request.headers.authorization)).toEqual([undefined, undefined])
})

test('the same name on another port is another host', async () => {
  await using other = await startServer((_request, response) => response.end('{}'))
  await using client = await startClient(undefined, {
    token: 'origin-token',
    hosts: new Map([[cdn, { token: 'for-443' }]]),
    allowPrivateAddresses: true,
  })
  await client.fetchDocument(documentRequest(`https://${cdn}:${other.port}/`))
  expect(other.requests[0]?.headers.authorization).toBeUndefined()
})

test('a trusted service host gets the token of the origin until the first redirect to another host', async () => {
  await using away = await startServer((_request, response) =>
    response.writeHead(302, { location: `https://${cdn}:${service.port}/back` }).end(),
  )
  await using service = await startServer((request, response) => {
    if (request.url === '/start') response.writeHead(302, { location: '/second' }).end()
    else if (request.url === '/second') response.writeHead(302, { location: `https://127.0.0.1:${away.port}/` }).end()
    else response.end('{}')
  })
  await using client = await startClient(undefined, { token: 'origin-token', allowPrivateAddresses: true })
  await client.fetchDocument(documentRequest(`https://${cdn}:${service.port}/start`, { trusted: true }))
  expect(service.requests.map(({ url, headers }) => [url, headers.authorization])).toEqual([
    ['/start', 'Bearer origin-token'],
    ['/second', 'Bearer origin-token'],
    ['/back', undefined],
  ])
  expect(away.requests[0]?.headers.authorization).toBeUndefined()
})

test('credentials of hosts go to exactly that host, on redirects too', async () => {
  await using away = await startServer((_request, response) => response.end('{}'))
  await using server = await startServer((_request, response) =>
    response.writeHead(307, { location: `https://${cdn}:${away.port}/` }).end(),
  )
  await using client = await startClient(server, {
    token: 'origin-token',
    allowPrivateAddresses: true,
    hosts: new Map([[`${cdn}:${away.port}`, { basic: 'user:pass:word' }]]),
  })
  await client.fetchDocument(documentRequest(`https://${origin}/`))
  expect(server.requests[0]?.headers.authorization).toBe('Bearer origin-token')
  expect(away.requests[0]?.headers.authorization).toBe(`Basic ${Buffer.from('user:pass:word').toString('base64')}`)
})

test('no credential is sent after a redirect from https to http', async () => {
  await using plain = await startServer((_request, response) => response.end('{}'), { http: true })
  await using server = await startServer((_request, response) =>
    response.writeHead(302, { location: `http://localhost:${plain.port}/` }).end(),
  )
  await using client = await startClient(server, {
    allowHttp: true,
    allowPrivateAddresses: true,
    hosts: new Map([[`localhost:${plain.port}`, { token: 'plain-token' }]]),
  })
  await client.fetchDocument(documentRequest(`https://${origin}/`))
  expect(plain.requests[0]?.headers.authorization).toBeUndefined()
  await client.fetchDocument(documentRequest(`http://localhost:${plain.port}/`))
  expect(plain.requests[1]?.headers.authorization).toBe('Bearer plain-token')
})

test('errors show neither the token nor the query of a signed URL, at any depth', async () => {
  await using server = await startServer((request) => request.socket.destroy())
  await using client = await startClient(server, { token: 'origin-token' })
  const error = await failureOf(client.fetchDocument(documentRequest(`https://${origin}/x?signature=secret-query`)))
  expect(error.is('UPSTREAM_UNREACHABLE') && error.fields).toEqual({ host: origin, upstreamUrl: `https://${origin}/x` })
  const everything = inspect(error, { depth: 20, showHidden: true })
  expect(everything).not.toContain('origin-token')
  expect(everything).not.toContain('secret-query')
})
