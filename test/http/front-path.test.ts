import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { Hono } from 'hono'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sendDocument } from '../../src/http/document-response.ts'
import { exchangeOf, type HttpEnv } from '../../src/http/exchange.ts'
import { createFrontPath } from '../../src/http/front-path.ts'
import { HotDocuments, keyOf } from '../../src/http/hot-documents.ts'
import { RequestAccount } from '../../src/http/request-account.ts'
import { createRequestListener } from '../../src/http/request-listener.ts'
import { Metrics } from '../../src/metrics/metrics.ts'
import type { View } from '../../src/mirror/view.ts'
import { recordingLog } from '../mirror/parts-fixture.ts'

const PATH = '/documents/large.json'
const view: View = { id: 'public', allowsOrigin: () => true }
const TEXT = 'not only ASCII: ä€😀'

interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

let stack: AsyncDisposableStack
let metrics: Metrics
let lines: Record<string, unknown>[]
let port: number
let documents: HotDocuments
/** How often the long way was gone. */
let longWays: number
let current: boolean

function createApp(): Hono<HttpEnv> {
  const app = new Hono<HttpEnv>()
  app.get('/documents/:name', (context) => {
    longWays += 1
    const exchange = exchangeOf(context.env.incoming)
    exchange.route = '/documents/:name'
    exchange.fields.provider = 'acme/widget'
    const size = context.req.param('name') === 'large.json' ? 200 : 1
    const value = { text: TEXT.repeat(size) }
    const isCurrent = (): boolean => current
    return sendDocument(context, { value, outcome: 'hit', isCurrent }, { documents, view })
  })
  return app
}

beforeEach(async () => {
  stack = new AsyncDisposableStack()
  metrics = new Metrics({ origins: [], perProvider: false })
  longWays = 0
  current = true
  const recording = recordingLog()
  lines = recording.lines
  const account = new RequestAccount({ log: recording.log, metrics })
  documents = new HotDocuments(account)
  const serveHot = createFrontPath(documents, view)
  const server = createServer(createRequestListener(createApp(), { account, serveHot }))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  port = (server.address() as AddressInfo).port
  stack.defer(() => {
    server.close()
    server.closeAllConnections()
  })
})
afterEach(() => stack.disposeAsync())

async function ask(headers: Record<string, string> = {}, path = PATH, method = 'GET'): Promise<Reply> {
  const asking = request({ host: '127.0.0.1', port, path, method, agent: false, headers })
  asking.end()
  const [response] = (await once(asking, 'response')) as [IncomingMessage]
  const pieces: Buffer[] = []
  for await (const piece of response) pieces.push(piece)
  return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(pieces) }
}

/** Without what is new in every answer. */
function lasting({ status, headers, body }: Reply): unknown {
  const { date: _date, 'x-request-id': _id, ...rest } = headers
  return { status, headers: rest, body: body.toString() }
}

describe('a document that is asked for again', () => {
  it('comes by the short way, and is the same to the last header and byte', async () => {
    const long = await ask()
    const short = await ask()
    expect(longWays).toBe(1)
    expect(lasting(short)).toEqual(lasting(long))
    expect(short.headers).toMatchObject({
      etag: expect.stringMatching(/^W\/"[\w-]{22}"$/),
      'content-length': String(short.body.length),
      'terramirror-cache': 'hit',
      'cache-control': 'no-cache, no-transform',
      vary: 'Accept-Encoding',
    })
    expect(JSON.parse(short.body.toString()).text).toContain(TEXT)
  })

  it('is accounted for in the same words, each request with an id of its own that the client has too', async () => {
    const replies = [await ask(), await ask(), await ask({ 'If-None-Match': '*' })]
    await expect.poll(() => lines.length, { timeout: 20_000 }).toBe(3)
    const [long = {}, short = {}, unmodified] = lines
    expect(Object.keys(short)).toEqual(Object.keys(long))
    expect({ ...short, time: '', requestId: '', ms: 0 }).toEqual({ ...long, time: '', requestId: '', ms: 0 })
    expect(unmodified).toMatchObject({ status: 304, bytes: 0 })
    expect(lines.map(({ requestId }) => requestId)).toEqual(replies.map(({ headers }) => headers['x-request-id']))
    expect(new Set(lines.map(({ requestId }) => requestId)).size).toBe(3)
    const text = await metrics.text()
    expect(text).toContain('terramirror_requests_total{route="/documents/:name",status="200",outcome="hit"} 2')
    expect(text).toContain('terramirror_requests_total{route="/documents/:name",status="304",outcome="hit"} 1')
    expect(text).toContain('terramirror_request_duration_seconds_count{route="/documents/:name",outcome="hit"} 3')
    expect(text).toContain(`terramirror_sent_bytes_total{route="/documents/:name"} ${2 * Number(short.bytes)}`)
  })

  it('goes the long way from the moment on at which it may have changed', async () => {
    await ask()
    current = false
    await ask()
    await ask()
    expect(longWays).toBe(3)
  })

  it.each([
    ['another Host', { Host: 'elsewhere.example' }, PATH, 'GET'],
    ['a query', {}, `${PATH}?x`, 'GET'],
    ['another path', {}, '/documents/small.json', 'GET'],
    ['HEAD', {}, PATH, 'HEAD'],
    ['a request that passed other mirrors', { 'Terramirror-Hops': 'some-mirror' }, PATH, 'GET'],
  ])('%s goes the long way', async (_what, headers, path, method) => {
    await ask()
    await ask(headers, path, method)
    expect(longWays).toBe(2)
  })

  it('a query never leads to something that is kept', async () => {
    await ask({}, `${PATH}?x`)
    await ask({}, `${PATH}?x`)
    expect(longWays).toBe(2)
  })

  it('another view has documents of its own', async () => {
    await ask()
    const incoming = { headers: { host: `127.0.0.1:${port}` }, url: PATH } as IncomingMessage
    const wish = { ifNoneMatch: undefined, gzip: false }
    expect(documents.find(keyOf(view, incoming), wish)).toBeDefined()
    expect(documents.find(keyOf({ ...view, id: 'other' }, incoming), wish)).toBeUndefined()
  })
})

describe('a client that has the document', () => {
  it.each(['the long way', 'the short way'])('is told so without it, by %s', async (way) => {
    const { headers } = await ask()
    if (way === 'the long way') current = false
    for (const sent of [headers.etag ?? '', `"other", ${headers.etag}`, '*']) {
      const reply = await ask({ 'If-None-Match': sent })
      expect([reply.status, reply.body.length, reply.headers.etag]).toEqual([304, 0, headers.etag])
    }
    expect(longWays).toBe(way === 'the long way' ? 4 : 1)
    expect((await ask({ 'If-None-Match': '"other"' })).status).toBe(200)
  })
})

describe('a client that takes gzip', () => {
  const encodings = ['gzip', 'br, GZIP;q=0.5', 'gzip, deflate']
  it.each(encodings)('%s: gets it so as soon as that form is there, with the same ETag', async (encoding) => {
    const { headers, body } = await ask()
    await ask({ 'Accept-Encoding': encoding })
    const compressed = async (): Promise<Reply> => ask({ 'Accept-Encoding': encoding })
    const encoded = async () => (await compressed()).headers['content-encoding']
    await expect.poll(encoded, { timeout: 20_000 }).toBe('gzip')
    const reply = await compressed()
    expect(gunzipSync(reply.body).equals(body)).toBe(true)
    expect(reply.headers).toMatchObject({ etag: headers.etag, 'content-length': String(reply.body.length) })
    expect(longWays).toBe(1)
    expect((await ask()).headers['content-encoding']).toBeUndefined()
  })

  it.each(['gzip;q=0', 'gzip; q=0.0, br', 'br', 'identity'])('%s is no such wish', async (encoding) => {
    await ask()
    for (let each = 0; each < 5; each++) {
      expect((await ask({ 'Accept-Encoding': encoding })).headers['content-encoding']).toBeUndefined()
    }
  })
})
