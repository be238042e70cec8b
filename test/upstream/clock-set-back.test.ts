import { expect, test } from 'vitest'
import { silentLog } from '../../src/log.ts'
import { parseHostname } from '../../src/protocol/hostname.ts'
import { Discovery } from '../../src/upstream/discovery.ts'
import { MemoryOriginClient } from './memory-origin-client.ts'
import { documentRequest, failureOf, origin, startClient, startServer } from './origin-fixture.ts'

const WELL_KNOWN = 'https://registry.acme.example/.well-known/terraform.json'
const url = `https://${origin}/doc`

test('a clock that is set back does not make hours of the seconds of a 429', async () => {
  let nowMs = 100_000_000
  await using server = await startServer((_request, response) => {
    if (server.requests.length === 1) response.writeHead(429, { 'retry-after': '30' }).end()
    else response.end('{}')
  })
  await using client = await startClient(server, { now: () => nowMs })
  expect((await failureOf(client.fetchDocument(documentRequest(url)))).code).toBe('UPSTREAM_RATE_LIMITED')
  nowMs -= 3_600_000
  expect((await client.fetchDocument(documentRequest(url))).status).toBe(200)
})

test('a clock that is set back does not keep an old discovery document in use', async () => {
  let nowMs = 100_000_000
  const client = new MemoryOriginClient().on(WELL_KNOWN, { body: { 'providers.v1': '/old/' } })
  const memory = { get: async () => undefined, set: async () => undefined }
  const hostname = parseHostname('registry.acme.example')
  const options = { hostname, client, memory, overrides: {}, freshForMs: 1_000, graceMs: 1_000, log: silentLog() }
  const discovery = new Discovery({ ...options, now: () => nowMs })
  const ask = () => discovery.serviceBase('providers.v1', { signal: AbortSignal.timeout(5_000), hops: [] })
  expect((await ask()).url.pathname).toBe('/old/')
  nowMs += 2_000
  client.on(WELL_KNOWN, { status: 403, body: '' })
  expect((await ask()).url.pathname).toBe('/old/')
  nowMs -= 3_600_000
  client.on(WELL_KNOWN, { body: { 'providers.v1': '/new/' } })
  expect((await ask()).url.pathname).toBe('/new/')
})
