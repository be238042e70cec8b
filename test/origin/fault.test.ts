import { Agent, type Dispatcher, request } from 'undici'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Behaviour, FaultMatcher } from './fault.ts'
import { startOrigin, type TestOrigin } from './origin.ts'

const ARCHIVE = { kind: 'archive' } as const
const LIST = 'v1/providers/acme/widget/versions'

let origin: TestOrigin
let client: Agent
let archivePath: string
let archiveBytes: Buffer

beforeAll(async () => {
  origin = await startOrigin()
  client = new Agent({ connect: { ca: origin.caPem } })
  const release = await origin.publish({ provider: 'acme/widget', version: '1.0.0', archiveBytes: 100_000 })
  archivePath = String(release.document('linux_amd64')?.download_url).slice(1)
  archiveBytes = await release.package('linux_amd64').bytes()
})

afterEach(() => origin.reset())

afterAll(async () => {
  await client.destroy()
  await origin[Symbol.asyncDispose]()
})

function send(path: string, headers: Record<string, string> = {}, signal?: AbortSignal) {
  return request(origin.url() + path, { dispatcher: client, headers, signal: signal ?? null })
}

async function bodyOf(answer: Dispatcher.ResponseData): Promise<Buffer> {
  return Buffer.from(await answer.body.arrayBuffer())
}

/** The bytes that came, and whether the end of the body came too. */
async function receive(answer: Dispatcher.ResponseData): Promise<{ bytes: number; complete: boolean }> {
  let bytes = 0
  try {
    for await (const chunk of answer.body) bytes += chunk.length
    return { bytes, complete: true }
  } catch {
    return { bytes, complete: false }
  }
}

async function getArchive(behaviour: Behaviour, headers?: Record<string, string>) {
  origin.fault(ARCHIVE, behaviour)
  return send(archivePath, headers)
}

describe('which requests are struck', () => {
  const other = 'v1/providers/acme/other/versions'
  const status = async (path: string) => {
    const answer = await send(path)
    await answer.body.dump()
    return answer.statusCode
  }

  test.each<[string, FaultMatcher, boolean]>([
    ['the kind', { kind: 'versions' }, true],
    ['one of several kinds', { kind: ['download', 'versions'] }, true],
    ['another kind', { kind: 'archive' }, false],
    ['the provider', { provider: 'acme/widget' }, true],
    ['another provider', { provider: 'acme/other' }, false],
    ['the host', { host: 'registry.example.test' }, true],
    ['another host', { host: 'other.example.test' }, false],
    ['a condition', { when: (each) => each.url.endsWith('/versions') }, true],
    ['everything', {}, true],
  ])('a matcher of %s', async (_, matcher, struck) => {
    origin.fault(matcher, { status: 503 })
    expect(await status(LIST)).toBe(struck ? 503 : 200)
  })

  test('times and after bound it, clearing ends it, and it counts its strikes', async () => {
    const fault = origin.fault({ kind: 'versions', after: 1, times: 2 }, { status: 503 })
    const seen = [await status(LIST), await status(LIST), await status(LIST), await status(LIST)]
    expect(seen).toEqual([200, 503, 503, 200])
    expect(fault.struck).toBe(2)
    {
      using _ = origin.fault({}, { status: 500 })
      expect(await status(LIST)).toBe(500)
    }
    expect(await status(LIST)).toBe(200)
  })

  test('the newest fault wins, and one that is used up lets the older one through', async () => {
    origin.fault({}, { status: 500 })
    origin.fault({ kind: 'versions', times: 1 }, { status: 502 })
    expect([await status(LIST), await status(LIST), await status(other)]).toEqual([502, 500, 500])
  })
})

describe('other answers', () => {
  test('a status with headers and body', async () => {
    const answer = await getArchive({ status: 429, headers: { 'retry-after': '7' }, body: 'slow down' })
    expect(answer.statusCode).toBe(429)
    expect(answer.headers['retry-after']).toBe('7')
    expect((await bodyOf(answer)).toString()).toBe('slow down')
  })

  test('a bare status is empty and has none of the honest headers', async () => {
    const answer = await getArchive({ status: 404 })
    expect(answer.headers.etag).toBeUndefined()
    expect((await bodyOf(answer)).length).toBe(0)
  })

  test('another body and media type', async () => {
    origin.fault({ kind: 'versions' }, { body: '<html>', contentType: 'text/html' })
    const answer = await send(LIST)
    expect(answer.headers['content-type']).toBe('text/html')
    expect(answer.statusCode).toBe(200)
    expect((await bodyOf(answer)).toString()).toBe('<html>')
  })

  test('a redirect, fixed or by request', async () => {
    const fixed = await getArchive({ redirect: 'https://cdn.example.test/x.zip' })
    expect([fixed.statusCode, fixed.headers.location]).toEqual([302, 'https://cdn.example.test/x.zip'])
    await fixed.body.dump()
    const made = await getArchive({ status: 307, redirect: ({ url }) => `${url}?again` })
    expect([made.statusCode, made.headers.location]).toEqual([307, `/at/registry.example.test/${archivePath}?again`])
    await made.body.dump()
  })

  test('one wrong byte, also in a range, with length and ETag as before', async () => {
    const answer = await getArchive({ wrongBytes: true })
    const bytes = await bodyOf(answer)
    const differing = [...bytes.keys()].filter((index) => bytes[index] !== archiveBytes[index])
    const victim = Math.floor(archiveBytes.length / 2)
    expect(bytes.length).toBe(archiveBytes.length)
    expect(differing).toEqual([victim])
    const part = await bodyOf(await send(archivePath, { range: `bytes=${victim}-${victim}` }))
    expect(part).toEqual(bytes.subarray(victim, victim + 1))
  })

  test('gzip as transfer of the same content', async () => {
    const { gunzipSync } = await import('node:zlib')
    const answer = await getArchive({ gzip: true })
    expect(answer.headers['content-encoding']).toBe('gzip')
    expect(gunzipSync(await bodyOf(answer))).toEqual(archiveBytes)
  })

  test('ranges ignored', async () => {
    const answer = await getArchive({ ignoreRange: true }, { range: 'bytes=5-9' })
    expect(answer.statusCode).toBe(200)
    expect((await bodyOf(answer)).length).toBe(archiveBytes.length)
  })
})

describe('bad delivery', () => {
  const half = () => Math.floor(archiveBytes.length / 2)

  test('torn: half of the promised length, then a broken connection', async () => {
    const answer = await getArchive({ torn: 0.5 })
    expect(answer.headers['content-length']).toBe(String(archiveBytes.length))
    expect(await receive(answer)).toEqual({ bytes: half(), complete: false })
    await origin.until(() => origin.aborted === 1)
  })

  test('torn once, the rest can be fetched as a range', async () => {
    origin.fault({ ...ARCHIVE, times: 1 }, { torn: 0.5 })
    const { bytes } = await receive(await send(archivePath))
    const rest = await bodyOf(await send(archivePath, { range: `bytes=${bytes}-` }))
    expect(rest).toEqual(archiveBytes.subarray(bytes))
  })

  test('tornChunked: no length, then a broken connection', async () => {
    const answer = await getArchive({ tornChunked: 0.5 })
    expect(answer.headers['content-length']).toBeUndefined()
    expect(await receive(answer)).toEqual({ bytes: half(), complete: false })
  })

  test('shortChunked: no length, and an end that looks clean', async () => {
    expect(await receive(await getArchive({ shortChunked: 0.5 }))).toEqual({ bytes: half(), complete: true })
  })

  test('stall: half of it, then silence until the client leaves', async () => {
    const leave = new AbortController()
    origin.fault(ARCHIVE, { stall: 0.5 })
    const answer = await send(archivePath, {}, leave.signal)
    let bytes = 0
    const reading = (async () => {
      for await (const chunk of answer.body) {
        bytes += chunk.length
        if (bytes === half()) leave.abort()
      }
    })()
    await expect(reading).rejects.toThrow()
    expect(bytes).toBe(half())
    await origin.until(() => origin.aborted === 1 && origin.inFlight === 0)
  })

  test('hang: no answer until the client leaves', async () => {
    origin.fault({ kind: 'versions' }, { hang: true })
    const leave = new AbortController()
    const hanging = expect(send(LIST, {}, leave.signal)).rejects.toThrow()
    await origin.until(() => origin.inFlight === 1)
    leave.abort()
    await hanging
    await origin.until(() => origin.aborted === 1)
  })

  test('drop: the socket closes without an answer', async () => {
    origin.fault({ kind: 'versions' }, { drop: true })
    await expect(send(LIST)).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' })
    expect(origin.aborted).toBe(1)
  })

  test('delayMs and trickle take the time that they say', async () => {
    origin.fault({ kind: 'versions' }, { delayMs: 150, trickle: 1000, body: 'x'.repeat(200) })
    const startedAt = performance.now()
    const answer = await send(LIST)
    const firstByteMs = performance.now() - startedAt
    expect(await receive(answer)).toEqual({ bytes: 200, complete: true })
    expect(firstByteMs).toBeGreaterThan(140)
    expect(performance.now() - startedAt).toBeGreaterThan(330)
  })

  test('a client that leaves during a trickle frees the origin', async () => {
    const answer = await getArchive({ trickle: 10 })
    answer.body.on('error', () => {}).destroy()
    await origin.until(() => origin.inFlight === 0 && origin.aborted === 1)
  })
})
