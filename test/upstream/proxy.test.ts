import { inspect } from 'node:util'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createProxySelector } from '../../src/upstream/proxy.ts'
import {
  archiveRequest,
  documentRequest,
  failureOf,
  origin,
  readArchive,
  startClient,
  startServer,
} from './origin-fixture.ts'
import { startProxy } from './proxy-fixture.ts'

const url = `https://${origin}/doc`
const basic = `Basic ${Buffer.from('user:p@ss').toString('base64')}`

test.each(['http', 'https'])(
  'documents, archives and redirects go through an %s proxy with its credentials',
  async (scheme) => {
    await using server = await startServer((request, response) => {
      if (request.url === '/away') response.writeHead(302, { location: 'https://cdn.test.example/file' }).end()
      else response.end('{}')
    })
    await using proxy = await startProxy(server.port, { tls: scheme === 'https' })
    await using client = await startClient(undefined, {
      token: 'origin-token',
      proxy: { httpsProxy: `${scheme}://user:p%40ss@localhost:${proxy.port}`, noProxy: '' },
    })
    expect((await client.fetchDocument(documentRequest(`https://${origin}/away`))).body.toString()).toBe('{}')
    await readArchive(await client.openArchive(archiveRequest(`https://${origin}/x.zip`)))
    expect(proxy.asked).toEqual([`CONNECT ${origin}:443`, 'CONNECT cdn.test.example:443', `CONNECT ${origin}:443`])
    expect(proxy.authorizations).toEqual([basic, basic, basic])
    expect(server.requests.map(({ url, headers }) => [url, headers.host, headers.authorization])).toEqual([
      ['/away', origin, 'Bearer origin-token'],
      ['/file', 'cdn.test.example', undefined],
      ['/x.zip', origin, 'Bearer origin-token'],
    ])
    for (const request of server.requests) expect(request.headers['proxy-authorization']).toBeUndefined()
  },
)

test('plain http goes through the http proxy', async () => {
  await using server = await startServer((_request, response) => response.end('{}'), { http: true })
  await using proxy = await startProxy(server.port)
  await using client = await startClient(undefined, {
    allowHttp: true,
    proxy: { httpProxy: `user:p%40ss@localhost:${proxy.port}`, noProxy: '' },
  })
  expect((await client.fetchDocument(documentRequest(`http://${origin}/doc`))).status).toBe(200)
  expect(proxy.asked).toEqual([`GET http://${origin}/doc`])
  expect(proxy.authorizations).toEqual([basic])
})

test('behind a proxy literals and allowedHosts are checked all the same', async () => {
  await using server = await startServer((_request, response) => response.end('{}'))
  await using proxy = await startProxy(server.port)
  const options = { httpsProxy: `http://localhost:${proxy.port}`, noProxy: '' }
  await using client = await startClient(undefined, { proxy: options, allowedHosts: ['cdn.test.example', '10.0.0.1'] })
  for (const host of ['10.0.0.1', '0xa.1', 'elsewhere.test.example']) {
    expect((await failureOf(client.fetchDocument(documentRequest(`https://${host}/`)))).code).toBe('UPSTREAM_REFUSED')
  }
  expect(proxy.asked).toEqual([])
})

test('the certificate behind the proxy is checked', async () => {
  await using server = await startServer((_request, response) => response.end('{}'), {
    certificateNames: ['wrong.example'],
  })
  await using proxy = await startProxy(server.port)
  await using client = await startClient(undefined, {
    proxy: { httpsProxy: `http://localhost:${proxy.port}`, noProxy: '' },
  })
  expect((await failureOf(client.fetchDocument(documentRequest(url)))).code).toBe('UPSTREAM_TLS')
  await using strict = await startClient(undefined, {
    ca: [],
    proxy: { httpsProxy: `http://localhost:${proxy.port}`, noProxy: '' },
  })
  expect((await failureOf(strict.fetchDocument(documentRequest(url)))).code).toBe('UPSTREAM_TLS')
})

test('an https proxy with an unknown certificate is a certificate failure', async () => {
  await using server = await startServer((_request, response) => response.end('{}'))
  await using proxy = await startProxy(server.port, { tls: true })
  await using client = await startClient(undefined, {
    ca: [],
    proxy: { httpsProxy: `https://localhost:${proxy.port}`, noProxy: '' },
  })
  expect((await failureOf(client.fetchDocument(documentRequest(url)))).code).toBe('UPSTREAM_TLS')
})

test.each([
  [407, 1],
  [403, 1],
  [503, 3],
  [0, 3],
])('a proxy that answers %i is named, and its password appears in no error and no log', async (status, attempts) => {
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => lines.push(line) })
  await using server = await startServer((_request, response) => response.end('{}'))
  await using proxy = await startProxy(server.port)
  proxy.status = status
  await using client = await startClient(undefined, {
    log,
    connectTimeoutMs: 300,
    attemptTimeoutMs: 3_000,
    proxy: { httpsProxy: `http://user:hunter2@localhost:${proxy.port}`, noProxy: '' },
  })
  const error = await failureOf(client.fetchDocument(documentRequest(url)))
  expect(error.code).toBe(status === 0 ? 'UPSTREAM_TIMEOUT' : 'UPSTREAM_UNREACHABLE')
  if (status !== 0) expect(error.message).toContain('the proxy')
  expect(proxy.asked.length).toBe(attempts)
  log.error({ err: error }, 'failed')
  const everything = inspect(error, { depth: 20, showHidden: true }) + lines.join('')
  expect(everything).not.toContain('hunter2')
  expect(everything).not.toContain(Buffer.from('user:hunter2').toString('base64'))
})

test('a proxy that is not there is unreachable', async () => {
  await using client = await startClient(undefined, {
    proxy: { httpsProxy: 'http://u:hunter2@localhost:1', noProxy: '' },
  })
  const error = await failureOf(client.fetchDocument(documentRequest(url)))
  expect(error.code).toBe('UPSTREAM_UNREACHABLE')
  expect(inspect(error, { depth: 20, showHidden: true })).not.toContain('hunter2')
})

test('a host in NO_PROXY is reached directly, under the guard', async () => {
  await using server = await startServer((_request, response) => response.end('{}'))
  await using proxy = await startProxy(server.port)
  const noProxy = '10.0.0.0/8,.nip.example'
  const options = { httpsProxy: `http://localhost:${proxy.port}`, noProxy: `${noProxy},127.0.0.0/8` }
  await using client = await startClient(undefined, { proxy: options, allowPrivateAddresses: true })
  expect((await client.fetchDocument(documentRequest(`https://127.0.0.1:${server.port}/`))).status).toBe(200)
  await using guarded = await startClient(undefined, { proxy: options })
  expect((await failureOf(guarded.fetchDocument(documentRequest(`https://localhost:${server.port}/`)))).code).toBe(
    'UPSTREAM_REFUSED',
  )
  expect(proxy.asked).toEqual([])
})

test('the configured address of the origin is reached without the proxy', async () => {
  await using server = await startServer((_request, response) => response.end('{}'))
  await using proxy = await startProxy(server.port)
  await using client = await startClient(server, {
    proxy: { httpsProxy: `http://localhost:${proxy.port}`, noProxy: '' },
  })
  expect((await client.fetchDocument(documentRequest(url))).status).toBe(200)
  expect(proxy.asked).toEqual([])
})

test.each([
  ['corp.example', 'https://corp.example/', true],
  ['corp.example', 'https://a.b.corp.example/', true],
  ['corp.example', 'https://notcorp.example/', false],
  ['.corp.example', 'https://a.corp.example/', true],
  ['*.corp.example', 'https://a.corp.example/', true],
  ['CORP.example', 'https://Corp.Example/', true],
  ['a.example, b.example', 'https://b.example/', true],
  ['a.example b.example', 'https://b.example/', true],
  ['corp.example:8443', 'https://corp.example:8443/', true],
  ['corp.example:8443', 'https://corp.example/', false],
  ['corp.example:443', 'https://corp.example/', true],
  ['*', 'https://any.example/', true],
  ['10.1.2.3', 'https://10.1.2.3/', true],
  ['10.1.2.3:8443', 'https://10.1.2.3:8443/', true],
  ['10.0.0.0/8', 'https://10.200.0.1:8443/', true],
  ['10.0.0.0/8', 'https://11.0.0.1/', false],
  ['10.0.0.0/8', 'https://10.corp.example/', false],
  ['10.0.0.0/99', 'https://10.0.0.1/', false],
  ['fd00::/8', 'https://[fd00::1]/', true],
  ['2001:4860::1', 'https://[2001:4860::1]/', true],
  ['[2001:4860::1]:8443', 'https://[2001:4860::1]:8443/', true],
  ['', 'https://localhost/', true],
  ['', 'https://127.0.0.1/', true],
  ['', 'https://[::1]/', true],
  ['', 'https://registry.example/', false],
  ['.', 'https://registry.example/', false],
])('NO_PROXY "%s" and %s: direct is %s', (noProxy, url, direct) => {
  const proxies = createProxySelector({ httpsProxy: 'proxy.example:3128', noProxy })
  expect(proxies.find(new URL(url)) === undefined).toBe(direct)
})

test.each(['socks5://proxy.example', 'http://', 'https://:secret@'])(
  'the proxy %s is a configuration error',
  (httpsProxy) => {
    expect(() => createProxySelector({ httpsProxy, noProxy: '' })).toThrow(
      expect.objectContaining({ code: 'CONFIGURATION' }),
    )
  },
)

test('each scheme has its own proxy', () => {
  const proxies = createProxySelector({ httpsProxy: 'http://a:1', noProxy: '' })
  expect(proxies.find(new URL('http://registry.example'))).toBeUndefined()
  expect(proxies.find(new URL('https://registry.example'))?.url.href).toBe('http://a:1/')
})
