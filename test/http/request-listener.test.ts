import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { Hono } from 'hono'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { MirrorError } from '../../src/errors.ts'
import { errorAnswer } from '../../src/http/error-response.ts'
import { exchangeOf, type HttpEnv } from '../../src/http/exchange.ts'
import { RequestAccount } from '../../src/http/request-account.ts'
import { createRequestListener } from '../../src/http/request-listener.ts'
import { Metrics } from '../../src/metrics/metrics.ts'
import { recordingLog } from '../mirror/parts-fixture.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

let stack: AsyncDisposableStack
let metrics: Metrics
let lines: Record<string, unknown>[]
let port: number

function createApp(): Hono<HttpEnv> {
  const app = new Hono<HttpEnv>()
  app.get('/fine/:name', (context) => {
    const exchange = exchangeOf(context.env.incoming)
    exchange.route = '/fine/:name'
    exchange.fields.provider = 'acme/widget'
    exchange.outcome = 'hit'
    exchange.sentBytes = 2
    return context.text('ok')
  })
  app.get('/refused', (context) => {
    exchangeOf(context.env.incoming).route = '/refused'
    throw new MirrorError('SIGNATURE_REQUIRED', 'no key', { reason: 'no key' })
  })
  app.get('/bug', () => {
    throw Object.assign(new TypeError('undefined is not a function'), { headers: { authorization: 'Bearer s3cret' } })
  })
  app.get('/slow', async (context) => {
    exchangeOf(context.env.incoming).route = '/slow'
    const { outgoing } = context.env
    outgoing.writeHead(200, { 'Content-Length': 100 })
    outgoing.write('a beginning')
    await once(outgoing, 'close')
    return new Response(null, { headers: { 'x-hono-already-sent': 'true' } })
  })
  app.onError((error, context) => {
    const exchange = exchangeOf(context.env.incoming)
    exchange.error = error
    const { status, headers, body } = errorAnswer(error, exchange.id)
    return new Response(body, { status, headers })
  })
  return app
}

beforeEach(async () => {
  stack = new AsyncDisposableStack()
  metrics = new Metrics({ origins: [], perProvider: false })
  const recording = recordingLog()
  lines = recording.lines
  const server = createServer(
    createRequestListener(createApp(), { account: new RequestAccount({ log: recording.log, metrics }) }),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  port = (server.address() as AddressInfo).port
  stack.defer(() => {
    server.close()
    server.closeAllConnections()
  })
})
afterEach(() => stack.disposeAsync())

async function ask(
  path: string,
  method = 'GET',
): Promise<{ status: number; headers: IncomingHttpHeaders; text: string }> {
  const asking = request({ host: '127.0.0.1', port, path, method, agent: false })
  asking.end()
  const [response] = (await once(asking, 'response')) as [IncomingMessage]
  let text = ''
  for await (const piece of response) text += piece
  return { status: response.statusCode ?? 0, headers: response.headers, text }
}

/** Sends exactly these bytes; gives all that comes back until the end. */
async function askRaw(text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(text, 'latin1')
  let answer = ''
  for await (const piece of socket) answer += piece
  return answer
}

async function onlyLine(): Promise<Record<string, unknown>> {
  await expect.poll(() => lines.length).toBe(1)
  return lines[0] ?? {}
}

describe('one line for every request', () => {
  it('says what was asked by its route, what came of it, and how long it took', async () => {
    const { headers } = await ask('/fine/secret-in-the-path?token=secret')
    const line = await onlyLine()
    expect(line).toEqual({
      level: 'info',
      time: expect.any(String),
      msg: 'request',
      requestId: expect.stringMatching(UUID),
      client: expect.stringMatching(/127\.0\.0\.1$/),
      method: 'GET',
      route: '/fine/:name',
      provider: 'acme/widget',
      status: 200,
      outcome: 'hit',
      bytes: 2,
      ms: expect.any(Number),
    })
    expect(line.requestId).toBe(headers['x-request-id'])
    expect(JSON.stringify(line)).not.toContain('secret')
  })

  it('a refusal is a warning with its code, and client and log have the same id', async () => {
    const { status, headers, text } = await ask('/refused')
    expect(status).toBe(502)
    expect(JSON.parse(text)).toMatchObject({ code: 'SIGNATURE_REQUIRED', request_id: headers['x-request-id'] })
    expect(await onlyLine()).toMatchObject({
      level: 'warn',
      requestId: headers['x-request-id'],
      status: 502,
      err: { code: 'SIGNATURE_REQUIRED', message: 'no key' },
    })
  })

  it('a bug is an error with its stack, and neither the client nor the log is told what hung on it', async () => {
    const { status, text } = await ask('/bug')
    expect(status).toBe(500)
    expect(text).not.toContain('not a function')
    const line = await onlyLine()
    expect(line).toMatchObject({ level: 'error', err: { message: 'undefined is not a function' } })
    expect(JSON.stringify(line)).toContain('request-listener.test.ts')
    expect(JSON.stringify(line)).not.toContain('s3cret')
  })

  it('a client that leaves is marked as such', async () => {
    const asking = request({ host: '127.0.0.1', port, path: '/slow', agent: false })
    asking.end()
    const [response] = (await once(asking, 'response')) as [IncomingMessage]
    await once(response, 'data')
    response.destroy()
    expect(await onlyLine()).toMatchObject({ route: '/slow', status: 200, aborted: true })
  })

  it('is one count in the metrics too, by route and not by path', async () => {
    await ask('/fine/a')
    await ask('/fine/b')
    await ask('/refused')
    await expect.poll(() => lines.length).toBe(3)
    const text = await metrics.text()
    expect(text).toContain('terramirror_requests_total{route="/fine/:name",status="200",outcome="hit"} 2')
    expect(text).toContain('terramirror_requests_total{route="/refused",status="502",outcome="none"} 1')
    expect(text).toContain('terramirror_sent_bytes_total{route="/fine/:name"} 4')
    expect(text).toContain('terramirror_request_duration_seconds_count{route="/fine/:name",outcome="hit"} 2')
  })
})

describe('what is refused before anything looks at it', () => {
  it.each(['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE'])('%s is not served', async (method) => {
    const { status, headers, text } = await ask('/fine/a', method)
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD'])
    expect(JSON.parse(text)).toMatchObject({ code: 'METHOD_NOT_ALLOWED', request_id: headers['x-request-id'] })
    expect(await onlyLine()).toMatchObject({ level: 'warn', route: 'refused', method, status: 405 })
  })

  it('a hostile target is 400 and is not repeated, neither to the client nor in the log', async () => {
    const answer = await askRaw('GET /fine/../s3cret HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
    expect(answer).toContain('HOSTILE_INPUT')
    expect(answer).not.toContain('s3cret')
    const line = await onlyLine()
    expect(line).toMatchObject({ level: 'warn', route: 'refused', status: 400, err: { code: 'HOSTILE_INPUT' } })
    expect(JSON.stringify(line)).not.toContain('s3cret')
  })

  it.each(['a b"c', 'a/../b', 'user@host', '[::1', 'a:99999', 'x?y'])(
    'a Host header that is no host is 400 with a reason: %s',
    async (host) => {
      const answer = await askRaw(`GET /fine/a HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
      expect(answer).toMatch(/^HTTP\/1\.1 400 /)
      expect(answer).toContain('"code":"HOSTILE_INPUT"')
      expect(await onlyLine()).toMatchObject({ level: 'warn', status: 400, err: { code: 'HOSTILE_INPUT' } })
    },
  )

  it('the answer to HEAD has no body', async () => {
    const answer = await askRaw('HEAD /fine/%00 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
    expect(answer).toMatch(/\r\n\r\n$/)
  })
})

it('a client of HTTP/1.0 without a Host, as load balancers send, is served', async () => {
  expect(await askRaw('GET /fine/a HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.[01] 200 /)
})
