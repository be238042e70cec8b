import { expect, test } from 'vitest'
import type { Hostname } from '../../src/protocol/hostname.ts'
import { classifyAddress } from '../../src/upstream/address-guard.ts'
import { documentRequest, failureOf, origin, startClient, startServer } from './origin-fixture.ts'

test.each(['1.1.1.1', '8.8.8.8', '2606:4700::1111', '64:ff9b::8.8.8.8', '::ffff:8.8.8.8', '2002:0808:0808::1'])(
  '%s is public',
  (address) => {
    expect(classifyAddress(address)).toBe('public')
  },
)

test.each([
  '10.0.0.1',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '127.0.0.1',
  '127.255.0.1',
  '100.64.0.1',
  '::1',
  'fd12::1',
  '::ffff:127.0.0.1',
  '64:ff9b::10.0.0.1',
  '2002:0a00:0001::1',
])('%s is private: an origin may permit it', (address) => {
  expect(classifyAddress(address)).toBe('private')
})

test.each([
  '0.0.0.0',
  '0.1.2.3',
  '169.254.169.254',
  '169.254.1.1',
  '100.100.100.200',
  '168.63.129.16',
  '224.0.0.1',
  '239.1.1.1',
  '255.255.255.255',
  '240.0.0.1',
  '192.0.0.192',
  '198.18.0.1',
  '203.0.113.5',
  '::',
  'fe80::1',
  'fec0::1',
  'ff02::1',
  'fd00:ec2::254',
  'fd20:ce::254',
  '::ffff:169.254.169.254',
  '64:ff9b::169.254.169.254',
  '64:ff9b:1::1',
  '2002:a9fe:a9fe::1',
  '::7f00:1',
  '2001:db8::1',
  '2001::1',
  '4000::1',
  'not an address',
])('%s is never the address of an origin', (address) => {
  expect(classifyAddress(address)).toBe('forbidden')
})

const loopbackSpellings = [
  '127.0.0.1',
  '127.1',
  '0x7f.1',
  '0x7f000001',
  '2130706433',
  '0177.0.0.1',
  '127.0.0.1.',
  '%31%32%37.0.0.1',
  '①②⑦.0.0.1',
  '[::1]',
  '[::ffff:127.0.0.1]',
  '[0:0:0:0:0:ffff:7f00:1]',
  '[64:ff9b::7f00:1]',
  'localhost',
  'LOCALHOST',
]

test.each(loopbackSpellings)('loopback spelt https://%s is refused before a socket opens', async (host) => {
  await using server = await startServer((_request, response) => response.end('secret'))
  await using client = await startClient(undefined)
  const error = await failureOf(client.fetchDocument(documentRequest(`https://${host}:${server.port}/x`)))
  expect(error.code).toBe('UPSTREAM_REFUSED')
  expect(error.message).toMatch(/allowPrivateAddresses/)
  expect(server.sockets.size + server.requests.length).toBe(0)
})

test.each([
  '0.0.0.0',
  '0',
  '[::]',
  '169.254.169.254',
  '[::ffff:a9fe:a9fe]',
  '0xa9fea9fe',
  '[fd00:ec2::254]',
  '[fe80::1]',
])('https://%s is refused even where private addresses are allowed', async (host) => {
  await using client = await startClient(undefined, { allowPrivateAddresses: true })
  const error = await failureOf(client.fetchDocument(documentRequest(`https://${host}/latest/meta-data`)))
  expect(error.code).toBe('UPSTREAM_REFUSED')
  expect(error.message).toMatch(/never the address of an origin/)
})

test.each(loopbackSpellings)('a redirect to loopback spelt %s is refused', async (host) => {
  await using inner = await startServer((_request, response) => response.end('secret'))
  await using server = await startServer((_request, response) => {
    // Headers are bytes: what is not ASCII comes percent-encoded.
    const location = `https://${host.replaceAll(/[^ -~]/gu, encodeURIComponent)}:${inner.port}/x`
    response.writeHead(302, { location }).end()
  })
  await using client = await startClient(server)
  const error = await failureOf(client.fetchDocument(documentRequest(`https://${origin}/x`)))
  expect(error.code).toBe('UPSTREAM_REFUSED')
  expect(server.requests.length).toBe(1)
  expect(inner.sockets.size + inner.requests.length).toBe(0)
})

test('the address of the origin permits no other host at the same address', async () => {
  await using server = await startServer((_request, response) => response.end('secret'))
  await using client = await startClient(server)
  const error = await failureOf(client.fetchDocument(documentRequest(`https://127.0.0.1:${server.port}/`)))
  expect(error.code).toBe('UPSTREAM_REFUSED')
})

test('private addresses are reached where the origin allows them, by literal and by DNS', async () => {
  await using server = await startServer((_request, response) => response.end('{}'))
  await using client = await startClient(undefined, { allowPrivateAddresses: true })
  for (const host of ['127.0.0.1', 'localhost']) {
    const answer = await client.fetchDocument(documentRequest(`https://${host}:${server.port}/`))
    expect(answer.status).toBe(200)
  }
})

test.each([
  ['http://registry.test.example/x', 'http:'],
  ['file:///etc/passwd', 'file:'],
  ['ftp://registry.test.example/x', 'ftp:'],
  ['https://user:secret@registry.test.example/x', 'user name'],
])('%s is refused', async (url, reason) => {
  await using server = await startServer((_request, response) => response.end())
  await using client = await startClient(server)
  const error = await failureOf(client.fetchDocument(documentRequest(url)))
  expect(error.code).toBe('UPSTREAM_REFUSED')
  expect(error.message).toContain(reason)
  expect(error.message).not.toContain('secret')
  expect(server.requests.length).toBe(0)
})

test.each(['http://registry.test.example/', 'https://a:b@registry.test.example/', 'file:///etc/passwd'])(
  'a redirect to %s is refused',
  async (location) => {
    await using server = await startServer((_request, response) => response.writeHead(302, { location }).end())
    await using client = await startClient(server)
    const error = await failureOf(client.fetchDocument(documentRequest(`https://${origin}/x`)))
    expect(error.code).toBe('UPSTREAM_REFUSED')
  },
)

test('allowedHosts limits documents and redirects to the named hosts and the origin', async () => {
  await using server = await startServer((request, response) => {
    if (request.url === '/away') response.writeHead(302, { location: `https://localhost:${server.port}/` }).end()
    else response.end('{}')
  })
  const options = { allowPrivateAddresses: true, allowedHosts: ['*.test.example', '127.0.0.1'] }
  await using client = await startClient(server, options)
  expect((await client.fetchDocument(documentRequest(`https://${origin}/`))).status).toBe(200)
  expect((await client.fetchDocument(documentRequest(`https://127.0.0.1:${server.port}/`))).status).toBe(200)
  for (const url of [`https://localhost:${server.port}/`, `https://${origin}/away`, 'https://test.example/']) {
    const error = await failureOf(client.fetchDocument(documentRequest(url)))
    expect(error.code).toBe('UPSTREAM_REFUSED')
    expect(error.message).toContain('allowedHosts')
  }
})

test('an address keeps SNI, Host and the certificate check on the name', async () => {
  const servernames: (string | false | null | undefined)[] = []
  await using server = await startServer((request, response) => {
    servernames.push('servername' in request.socket ? String(request.socket.servername) : undefined)
    response.end('{}')
  })
  await using client = await startClient(server)
  await client.fetchDocument(documentRequest(`https://${origin}/x`))
  expect(server.requests[0]?.headers.host).toBe(origin)
  expect(servernames).toEqual([origin])

  await using impostor = await startServer((_request, response) => response.end('{}'), {
    certificateNames: ['127.0.0.1'],
  })
  await using other = await startClient(impostor)
  const error = await failureOf(other.fetchDocument(documentRequest(`https://${origin}/x`)))
  expect(error.code).toBe('UPSTREAM_TLS')
})

test('an address that is a name may resolve to a private address', async () => {
  await using server = await startServer((_request, response) => response.end('{}'))
  await using client = await startClient(undefined, {
    hostname: 'cdn.test.example' as Hostname,
    address: { host: 'localhost', port: server.port },
  })
  expect((await client.fetchDocument(documentRequest('https://cdn.test.example/'))).status).toBe(200)
})
