import { expect, test } from 'vitest'
import { documentRequest, failureOf, origin, startClient, startServer } from './origin-fixture.ts'

test('redirects are followed and the answer names its final URL', async () => {
  await using server = await startServer((request, response) => {
    if (request.url === '/a') response.writeHead(301, { location: 'sub/b?q=1#part' }).end('moved')
    else response.setHeader('content-type', 'Application/JSON; charset=utf-8').end('{"ok":true}')
  })
  await using client = await startClient(server)
  const answer = await client.fetchDocument(documentRequest(`https://${origin}/a`))
  expect(answer.url.href).toBe(`https://${origin}/sub/b?q=1`)
  expect(answer.mediaType).toBe('application/json')
  expect(answer.body.toString()).toBe('{"ok":true}')
})

test('a circle of redirects ends at once', async () => {
  await using server = await startServer((request, response) =>
    response.writeHead(302, { location: request.url === '/a' ? '/b' : '/a' }).end(),
  )
  await using client = await startClient(server)
  const error = await failureOf(client.fetchDocument(documentRequest(`https://${origin}/a`)))
  expect(error.code).toBe('UPSTREAM_INVALID')
  expect(server.requests.length).toBe(2)
})

test('no more redirects are followed than allowed', async () => {
  await using server = await startServer((_request, response) =>
    response.writeHead(302, { location: `/${server.requests.length}` }).end(),
  )
  await using client = await startClient(server)
  const error = await failureOf(client.fetchDocument({ ...documentRequest(`https://${origin}/a`), maxRedirects: 3 }))
  expect(error.code).toBe('UPSTREAM_INVALID')
  expect(server.requests.length).toBe(4)
})

test('a redirect to something that is not a URL is an error, one without Location is an answer', async () => {
  await using server = await startServer((request, response) => {
    if (request.url === '/bad') response.writeHead(302, { location: 'https://[' }).end()
    else response.writeHead(300).end('choose')
  })
  await using client = await startClient(server)
  const error = await failureOf(client.fetchDocument(documentRequest(`https://${origin}/bad`)))
  expect(error.code).toBe('UPSTREAM_INVALID')
  const answer = await client.fetchDocument(documentRequest(`https://${origin}/none`))
  expect([answer.status, answer.body.toString()]).toEqual([300, 'choose'])
})

test('every hop carries the fixed headers and the hop list with this instance at its end', async () => {
  await using server = await startServer((request, response) => {
    if (request.url === '/a') response.writeHead(302, { location: '/b' }).end()
    else response.end('{}')
  })
  await using client = await startClient(server)
  await client.fetchDocument({ ...documentRequest(`https://${origin}/a`), hops: ['first', 'second'] })
  expect(server.requests.length).toBe(2)
  for (const { headers } of server.requests) {
    expect(headers['user-agent']).toBe('Terramirror/test')
    expect(headers['x-terraform-version']).toBe('1.11.4')
    expect(headers['terramirror-hops']).toBe('first, second, instance-1')
    expect(headers.accept).toBe('application/json')
  }
})

test('bodies that were read or discarded leave their connections for the next requests', async () => {
  await using server = await startServer((request, response) => {
    if (request.url === '/a') response.writeHead(302, { location: 'https://169.254.1.1/' }).end('moved')
    else response.end('{}')
  })
  await using client = await startClient(server)
  for (let round = 0; round < 5; round += 1) {
    await failureOf(client.fetchDocument(documentRequest(`https://${origin}/a`)))
    await client.fetchDocument(documentRequest(`https://${origin}/b`))
  }
  expect(server.requests.length).toBe(10)
  // undici frees a connection a moment after the body's end, so the next request may take a second one.
  expect(new Set(server.requests.map((request) => request.socket)).size).toBeLessThanOrEqual(2)
})
