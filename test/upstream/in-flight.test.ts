import { expect, test } from 'vitest'
import {
  archiveRequest,
  documentRequest,
  failureOf,
  type Handler,
  origin,
  readArchive,
  startClient,
  startServer,
  until,
} from './origin-fixture.ts'

const url = `https://${origin}/doc`
const whole = Buffer.alloc(300_000, 'x')

/** Each way in which an answer can end. */
const answers: [string, Handler][] = [
  ['a document', (_request, response) => response.end('{}')],
  ['an empty answer', (_request, response) => response.writeHead(204).end()],
  ['a refusal', (_request, response) => response.writeHead(404).end('no')],
  ['an outage', (_request, response) => response.writeHead(503).end('down')],
  ['a limit', (_request, response) => response.writeHead(429, { 'retry-after': '60' }).end('later')],
  ['a large body that nobody wants', (_request, response) => response.writeHead(500).end(whole)],
  ['a redirect in a circle', (_request, response) => response.writeHead(302, { location: url }).end('there')],
  [
    'a torn body',
    (_request, response) => response.writeHead(200, { 'content-length': 9 }).write('{', () => response.destroy()),
  ],
  ['a connection that breaks', (request) => request.socket.destroy()],
  [
    'a coding that is broken',
    (_request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('no'),
  ],
]

test.each(answers)('no request is in flight any more after %s', async (_, handler) => {
  await using server = await startServer(handler)
  await using client = await startClient(server, { retries: 1 })
  await client.fetchDocument(documentRequest(url)).catch(() => undefined)
  const reading = async () => readArchive(await client.openArchive(archiveRequest(url)))
  await reading().catch(() => undefined)
  expect(client.observed.answered.length).toBeGreaterThan(0)
  await until(() => client.observed.inFlight === 0)
})

test('a request is in flight until its body is read, left or given up', async () => {
  await using server = await startServer((_request, response) => {
    response.writeHead(200, { 'content-length': whole.length * 2 }).write(whole)
  })
  await using client = await startClient(server, { retries: 0, idleTimeoutMs: 300 })
  const stream = await client.openArchive(archiveRequest(url))
  expect(client.observed.inFlight).toBe(1)
  for await (const _ of stream) break
  await until(() => client.observed.inFlight === 0)
  await failureOf(client.fetchDocument(documentRequest(url, { maxBytes: 10 })))
  await until(() => client.observed.inFlight === 0)
  await failureOf(client.fetchDocument(documentRequest(url)))
  await until(() => client.observed.inFlight === 0)
})
