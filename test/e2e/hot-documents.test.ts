import { once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'
import { TestClock } from './test-clock.ts'

const PROVIDER = '/providers/registry.example.test/acme/widget'

let origin: TestOrigin
let clock: TestClock
let mirror: TestMirror

beforeEach(async () => {
  clock = new TestClock()
  origin = await startOrigin()
  mirror = await startMirror({ origin, now: clock.now })
  await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
})
afterEach(async () => {
  await mirror[Symbol.asyncDispose]()
  await origin[Symbol.asyncDispose]()
})

interface Reply {
  readonly headers: IncomingHttpHeaders
  // biome-ignore lint/suspicious/noExplicitAny: a document whose shape is what is tested
  readonly document: any
}

/** Over a new connection that would stay open, as clients have it: so the answer may come by the shortest way. */
async function ask(document: string): Promise<Reply> {
  const agent = new Agent({ keepAlive: true, ca: mirror.caPem })
  const asking = request(new URL(`${PROVIDER}/${document}`, mirror.url), { agent })
  asking.end()
  const [response] = (await once(asking, 'response')) as [IncomingMessage]
  let text = ''
  for await (const piece of response) text += piece
  agent.destroy()
  expect(response.statusCode).toBe(200)
  return { headers: response.headers, document: JSON.parse(text) }
}

/** Until every way knows the document. */
async function heat(): Promise<void> {
  for (const document of ['index.json', '1.0.0.json']) for (let each = 0; each < 4; each++) await ask(document)
}

const versions = async (): Promise<string[]> => Object.keys((await ask('index.json')).document.versions)
const platforms = async (): Promise<string[]> => Object.keys((await ask('1.0.0.json')).document.archives)
const hashes = async (): Promise<string[]> => (await ask('1.0.0.json')).document.archives.linux_amd64.hashes

test('a hot document has the headers that a cold one has, over TLS too', async () => {
  const lasting = ({ headers: { date: _date, 'x-request-id': _id, 'terramirror-cache': _cache, ...rest } }: Reply) =>
    rest
  for (const document of ['index.json', '1.0.0.json']) {
    const cold = await ask(document)
    for (let each = 0; each < 5; each++) {
      const hot = await ask(document)
      expect(lasting(hot)).toEqual(lasting(cold))
      expect(hot.headers['terramirror-cache']).toBe('hit')
    }
  }
})

describe('a document that was hot is answered anew', () => {
  beforeEach(heat)

  test('after the lifetime of the list', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.1.0' })
    expect(await versions()).toEqual(['1.0.0'])
    clock.advance(300_000)
    expect(await versions()).toEqual(['1.0.0', '1.1.0'])
  })

  test('after somebody asked for a version that the list did not have', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.1.0' })
    clock.advance(1)
    await mirror.version('acme/widget', '1.1.0')
    expect(await versions()).toEqual(['1.0.0', '1.1.0'])
  })

  test('with the h1, once an archive is held', async () => {
    expect(await hashes()).toHaveLength(1)
    await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    await expect.poll(hashes, { timeout: 30_000 }).toHaveLength(2)
    await heat()
    expect(await hashes()).toHaveLength(2)
  })

  test('after a re-release that nobody had installed', async () => {
    const before = await hashes()
    const release = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    clock.advance(300_000)
    expect(await hashes()).toEqual([`zh:${release.package('linux_amd64').sha256}`])
    expect(await hashes()).not.toEqual(before)
  })

  test('after a re-release was found when its archive was asked for', async () => {
    const release = await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    expect((await hashes())[0]).toBe(`zh:${release.package('linux_amd64').sha256}`)
  })

  test('marked as stale while the origin is down, and never as a hit', async () => {
    await origin.stop()
    clock.advance(300_000)
    for (let each = 0; each < 3; each++) {
      expect((await ask('index.json')).headers['terramirror-cache']).toBe('stale')
      expect((await ask('1.0.0.json')).headers['terramirror-cache']).toBe('stale')
    }
  })

  test('without a version that was withdrawn before anybody installed it', async () => {
    await origin.publish({ provider: 'acme/widget', version: '2.0.0' })
    origin.withdraw('acme/widget', '1.0.0')
    clock.advance(300_000)
    expect(await versions()).toEqual(['2.0.0'])
    expect(await platforms()).toEqual([])
  })
})
