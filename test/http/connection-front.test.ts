import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Hono } from 'hono'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ConnectionFront } from '../../src/http/connection-front.ts'
import { sendDocument } from '../../src/http/document-response.ts'
import { exchangeOf, type HttpEnv } from '../../src/http/exchange.ts'
import { HotDocuments } from '../../src/http/hot-documents.ts'
import { RequestAccount } from '../../src/http/request-account.ts'
import { createRequestListener } from '../../src/http/request-listener.ts'
import { type Listener, openListener } from '../../src/listener.ts'
import { Metrics } from '../../src/metrics/metrics.ts'
import type { View } from '../../src/mirror/view.ts'
import { recordingLog } from '../mirror/parts-fixture.ts'

const view: View = { id: 'public', allowsOrigin: () => true }
const HEADERS = 'Host: localhost\r\nUser-Agent: Terraform/1.11.4\r\nAccept-Encoding: identity\r\n'
const REQUEST = `GET /documents/some.json HTTP/1.1\r\n${HEADERS}\r\n`
const TEXT = JSON.stringify({ text: 'ä€😀'.repeat(100) })

let listener: Listener
let lines: Record<string, unknown>[]
let metrics: Metrics
let current: boolean
/** How many requests Node's HTTP server has made of bytes. */
let parsed: number
let sockets: Socket[]

beforeEach(() => start(60_000))
afterEach(stop)

async function start(idleMs: number): Promise<void> {
  const recording = recordingLog()
  lines = recording.lines
  metrics = new Metrics({ origins: [], perProvider: false })
  current = true
  parsed = 0
  sockets = []
  const account = new RequestAccount({ log: recording.log, metrics })
  const documents = new HotDocuments(account)
  const front = new ConnectionFront({ documents, view, idleMs })
  const handle = createRequestListener(createApp(documents), { account, front })
  listener = await openListener({
    address: { host: '127.0.0.1', port: 0 },
    key: 'listen',
    identity: undefined,
    handle: (incoming, outgoing) => {
      parsed += 1
      handle(incoming, outgoing)
    },
    accept: (socket, handOver) => front.accept(socket, handOver),
    onHandshakeFailure: () => undefined,
  })
}

async function stop(): Promise<void> {
  for (const socket of sockets) socket.destroy()
  await listener.close(0)
}

function createApp(documents: HotDocuments): Hono<HttpEnv> {
  const app = new Hono<HttpEnv>()
  app.get('/documents/:name', (context) => {
    const exchange = exchangeOf(context.env.incoming)
    exchange.route = '/documents/:name'
    exchange.fields.provider = 'acme/widget'
    const answer = { value: JSON.parse(TEXT), outcome: 'hit' as const, isCurrent: () => current }
    return sendDocument(context, answer, { documents, view })
  })
  return app
}

/** A connection of a client that collects what comes. */
class Client {
  readonly socket: Socket
  text = ''

  constructor(options: { allowHalfOpen?: boolean } = {}) {
    this.socket = connect({ port: listener.port, host: '127.0.0.1', ...options })
    this.socket.on('data', (bytes: Buffer) => {
      this.text += bytes.toString('latin1')
    })
    this.socket.on('error', () => undefined)
    sockets.push(this.socket)
  }

  /** Answers so far, without what is new in each; the order and the spelling of headers mean nothing. */
  answers(): string[] {
    return this.text
      .split(/(?=HTTP\/1\.1 )/)
      .filter(Boolean)
      .map((answer) => {
        const [head = '', ...body] = answer.split('\r\n\r\n')
        const [status = '', ...headers] = head.split('\r\n')
        const sorted = headers
          .map((line) => line.replace(/^[^:]+/, (name) => name.toLowerCase()))
          .map((line) => line.replace(/^(x-request-id|date): .+$/, '$1: some').replace(/timeout=\d+$/, 'timeout=some'))
          .sort()
        return [[status, ...sorted].join('\r\n'), ...body].join('\r\n\r\n')
      })
  }

  async ask(text: string, total: number): Promise<string[]> {
    this.socket.write(text, 'latin1')
    await expect.poll(() => this.answers().filter(isWhole).length, { interval: 2, timeout: 20_000 }).toBe(total)
    return this.answers()
  }
}

function isWhole(answer: string): boolean {
  const [head = '', body = ''] = answer.split('\r\n\r\n')
  return answer.includes('\r\n\r\n') && Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0) === body.length
}

/** From now on the request is known by its bytes. Gives the answer of the long way. */
async function teach(): Promise<string> {
  const [answer = ''] = await new Client().ask(REQUEST, 1)
  parsed = 0
  return answer
}

describe('a request whose bytes are known', () => {
  it('is answered without being parsed, in the very words of the long way, over and over on one connection', async () => {
    const long = await teach()
    expect(long).toContain('HTTP/1.1 200 OK\r\n')
    const client = new Client()
    for (let each = 1; each <= 3; each++) {
      const answers = await client.ask(REQUEST, each)
      expect(answers.at(-1)).toBe(long)
    }
    expect(parsed).toBe(0)
  })

  it('has a line in the log and a count in the metrics like any other', async () => {
    await teach()
    await new Client().ask(REQUEST, 1)
    await expect.poll(() => lines.length, { timeout: 20_000 }).toBe(2)
    const [long = {}, short = {}] = lines
    expect(Object.keys(short)).toEqual(Object.keys(long))
    expect({ ...short, time: '', requestId: '', ms: 0 }).toEqual({ ...long, time: '', requestId: '', ms: 0 })
    expect(short.requestId).not.toBe(long.requestId)
    const text = await metrics.text()
    expect(text).toContain('terramirror_requests_total{route="/documents/:name",status="200",outcome="hit"} 2')
  })

  it('goes the long way when the document may have changed, and is right on every connection', async () => {
    const long = await teach()
    const client = new Client()
    await client.ask(REQUEST, 1)
    current = false
    expect(await client.ask(REQUEST, 2)).toEqual([long, long])
    expect(parsed).toBe(1)
    current = true
    expect(await client.ask(REQUEST, 3)).toEqual([long, long, long])
    parsed = 0
    await new Client().ask(REQUEST, 1)
    expect(parsed).toBe(0)
  })

  it('is told that nothing has changed if it says which one it has', async () => {
    const long = await teach()
    const etag = /^etag: (.*)$/m.exec(long)?.[1]?.trim()
    const conditional = REQUEST.replace(HEADERS, `${HEADERS}If-None-Match: ${etag}\r\n`)
    const [taught = ''] = await new Client().ask(conditional, 1)
    parsed = 0
    const [short] = await new Client().ask(conditional, 1)
    expect([parsed, short]).toEqual([0, taught])
    expect(short).toMatch(/^HTTP\/1\.1 304 Not Modified\r\n/)
  })
})

describe('whatever is not known to the last byte is left to Node, and answered as ever', () => {
  it('a request in two pieces, wherever it is cut', async () => {
    const long = await teach()
    const cuts = Array.from({ length: REQUEST.length - 1 }, (_, each) => each + 1)
      // Every place is alike but for those around the ends of lines.
      .filter((cut) => cut % 9 === 1 || /[\r\n]/.test(REQUEST.slice(cut - 1, cut + 1)))
    await Promise.all(
      cuts.map(async (cut) => {
        const client = new Client()
        client.socket.setNoDelay(true)
        client.socket.write(REQUEST.slice(0, cut))
        await sleep(20)
        expect(await client.ask(REQUEST.slice(cut), 1)).toEqual([long])
      }),
    )
  })

  it('two requests at once, and the beginning of a third', async () => {
    const long = await teach()
    const client = new Client()
    await client.ask(REQUEST + REQUEST + REQUEST.slice(0, 30), 2)
    expect(await client.ask(REQUEST.slice(30), 3)).toEqual([long, long, long])
    expect(parsed).toBe(3)
  })

  it('two requests at once, both times', async () => {
    const long = await teach()
    for (let each = 0; each < 2; each++) expect(await new Client().ask(REQUEST + REQUEST, 2)).toEqual([long, long])
    expect(parsed).toBe(4)
  })

  it.each(['\r\n\r\n', `\r\n${REQUEST}`, `${REQUEST.replaceAll('\r\n', '\n')}\r\n\r\n`])(
    'bytes before a request never stand for it: %j',
    async (bytes) => {
      await teach()
      for (let each = 0; each < 2; each++) {
        const first = new Client()
        first.socket.setNoDelay(true)
        first.socket.write(bytes, 'latin1')
        await sleep(20)
        first.socket.write(REQUEST)
        await expect.poll(() => first.text, { timeout: 20_000 }).toMatch(/^HTTP/)
      }
      const silent = new Client()
      silent.socket.write(bytes.slice(0, 4), 'latin1')
      await sleep(50)
      expect(silent.text).toBe('')
      const [answer = ''] = await new Client().ask(REQUEST, 1)
      expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    },
  )

  it.each([
    ['another header', `${HEADERS}X-Other: 1\r\n`],
    ['a wish to stay', `${HEADERS}Connection: Keep-Alive\r\n`],
    ['a token', `${HEADERS}Authorization: Bearer s3cret\r\n`],
    ['a cookie', `${HEADERS}Cookie: a=b\r\n`],
    ['a body', `${HEADERS}Content-Length: 0\r\n`],
    ['an end', `${HEADERS}Connection: close\r\n`],
    ['mirrors that it has passed', `${HEADERS}Terramirror-Hops: other\r\n`],
    ['an expectation', `${HEADERS}Expect: 100-continue\r\n`],
  ])('a request with %s', async (what, headers) => {
    await teach()
    const request = `GET /documents/some.json HTTP/1.1\r\n${headers}\r\n`
    for (let each = 0; each < 2; each++) await askOnce(request)
    // What means something is never learned; what does not is known the second time.
    expect(parsed).toBe(['another header', 'a wish to stay'].includes(what) ? 1 : 2)
  })

  it('a method, a protocol or bytes that are none', async () => {
    await teach()
    for (const text of ['HEAD', 'POST']) await askOnce(REQUEST.replace('GET', text), /^HTTP\/1\.1 (200|405) /)
    await askOnce(REQUEST.replace('1.1', '1.0'))
    await askOnce(`\x16\x03\x01${REQUEST}`, /^HTTP\/1\.1 400 /)
    await askOnce(`${REQUEST}rubbish\r\n\r\n`, /^HTTP\/1\.1 (200|400) /)
  })

  async function askOnce(request: string, answer = /^HTTP\/1\.1 (200|100) /): Promise<void> {
    const client = new Client()
    client.socket.write(request, 'latin1')
    await expect.poll(() => client.text, { timeout: 20_000 }).toMatch(answer)
  }
})

describe('a connection that has come no further', () => {
  it('is closed when nothing happens on it', async () => {
    await stop()
    await start(100)
    await teach()
    const client = new Client()
    await client.ask(REQUEST, 1)
    await once(client.socket, 'close', { signal: AbortSignal.timeout(10_000) })
  })

  it('is closed when the client ends it, after its answer', async () => {
    const long = await teach()
    const client = new Client({ allowHalfOpen: true })
    client.socket.end(REQUEST)
    await once(client.socket, 'end', { signal: AbortSignal.timeout(5_000) })
    expect(client.answers()).toEqual([long])
  })

  it('whose client breaks off harms nobody', async () => {
    const long = await teach()
    for (let each = 0; each < 20; each++) {
      const client = new Client()
      client.socket.write(REQUEST)
      await once(client.socket, 'connect')
      client.socket.resetAndDestroy()
    }
    expect(await new Client().ask(REQUEST, 1)).toEqual([long])
  })

  it('does not hold up the end of the server', async () => {
    await teach()
    const client = new Client()
    await client.ask(REQUEST, 1)
    const closed = once(client.socket, 'close')
    await listener.close(60_000)
    await closed
  })

  it('whose client takes no answers is handed over before they fill the memory', async () => {
    await teach()
    const client = new Client()
    await once(client.socket, 'connect')
    client.socket.pause()
    const before = process.memoryUsage().rss
    for (let each = 0; each < 20_000; each++) {
      if (!client.socket.write(REQUEST)) await Promise.race([once(client.socket, 'drain'), sleep(50)])
      if (client.socket.writableLength > 1_000_000) break
    }
    await expect.poll(() => parsed, { timeout: 20_000 }).toBeGreaterThan(0)
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024)
  })
})
