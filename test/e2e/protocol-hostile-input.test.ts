import { readdir } from 'node:fs/promises'
import { connect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'

let origin: TestOrigin
let mirror: TestMirror

beforeAll(async () => {
  origin = await startOrigin()
  await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
  mirror = await startMirror({ origin })
})
afterAll(async () => {
  await mirror[Symbol.asyncDispose]()
  await origin[Symbol.asyncDispose]()
})

/** Sends exactly these bytes on a connection of its own; gives all that comes back until the mirror closes it. */
async function sendRaw(head: string): Promise<string> {
  const { port } = new URL(mirror.url)
  const socket = connect({ host: '127.0.0.1', port: Number(port), servername: 'localhost', ca: mirror.caPem })
  socket.write(Buffer.from(head, 'latin1'))
  const chunks: Buffer[] = []
  // A connection that the mirror cuts after its answer is as good as one that it ends.
  socket.on('error', () => undefined)
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) chunks.push(chunk)
  return Buffer.concat(chunks).toString('latin1')
}

describe('hostile bytes are 400 on every route, and nobody is asked', () => {
  const hosts: [string, string][] = [
    ['an IPv4 address (B16)', '127.0.0.1'],
    ['an IPv4 address with a port (B16)', '127.0.0.1%3A443'],
    ['an IPv4 address in hexadecimal', '0x7f.1'],
    ['an IPv4 address as one number', '2130706433'],
    ['an IPv6 address (B16)', '%5B%3A%3A1%5D'],
    ['user-info (B16)', 'user:password@registry.example.test'],
    ['dots only (B16)', '...'],
    ['an empty label', 'registry..example.test'],
    ['a final dot', 'registry.example.test.'],
    ['a port that is no number', 'registry.example.test:port'],
    ['a port out of range', 'registry.example.test:65536'],
    ['a space', 'registry.example.test%20'],
    ['a NUL byte', 'registry.example.test%00'],
    ['a line feed', 'registry.example.test%0AX-Header:1'],
    ['an encoded slash', 'registry.example.test%2Fv1'],
    ['an encoded backslash', 'registry.example.test%5Cv1'],
    ['a query mark', 'registry.example.test%3Fx=1'],
    ['a fragment', 'registry.example.test%23x'],
    ['full-width letters', '%EF%BD%92egistry.example.test'],
    ['a label of 64 letters', `${'a'.repeat(64)}.example`],
    ['an overlong name', `${'abcdefg.'.repeat(40)}example`],
    ['broken percent encoding', 'registry.example.test%'],
    ['broken UTF-8', 'registry%FF.example.test'],
  ]
  test.each(hosts)('as host: %s', async (_what, host) => {
    await expectRefused([
      `/providers/${host}/acme/widget/index.json`,
      `/providers/${host}/acme/widget/1.0.0.json`,
      `/providers/${host}/acme/widget/1.0.0/linux_amd64/x.zip`,
      `/v1/providers/${host}/acme/widget/versions`,
      `/v1/providers/${host}/acme/widget/1.0.0/download/linux/amd64`,
      `/v1/providers/${host}/acme/widget/1.0.0/archives/linux_amd64/x.zip`,
      `/v1/providers/${host}/acme/widget/1.0.0/checksums/${'0'.repeat(64)}/x`,
    ])
  })

  const segments: [string, string][] = [
    ['a NUL byte', 'wid%00get'],
    ['a control byte', 'wid%1Bget'],
    ['a delete byte', 'wid%7Fget'],
    ['an encoded dot segment', '%2e%2e'],
    ['a half encoded dot segment', '.%2E'],
    ['an encoded slash', 'wid%2Fget'],
    ['an encoded backslash', 'wid%5cget'],
    ['more than 128 characters', 'w'.repeat(129)],
    ['broken percent encoding', 'wid%zzget'],
    ['overlong UTF-8 of a dot', '%C0%AE'],
  ]
  test.each(segments)('as namespace and type: %s', async (_what, segment) => {
    await expectRefused([
      `/providers/registry.example.test/${segment}/widget/index.json`,
      `/providers/registry.example.test/acme/${segment}/index.json`,
      `/providers/registry.example.test/acme/${segment}/1.0.0.json`,
      `/providers/registry.example.test/${segment}/widget/1.0.0/linux_amd64/x.zip`,
      `/v1/providers/registry.example.test/${segment}/widget/versions`,
      `/v1/providers/registry.example.test/acme/${segment}/1.0.0/download/linux/amd64`,
    ])
  })

  const tails: [string, string][] = [
    ['a NUL byte in a version', '1.0.0%00.json'],
    ['a traversal in a version', '..%2f..%2f1.0.0.json'],
    ['a NUL byte in a platform', '1.0.0/linux_amd64%00/x.zip'],
    ['a traversal as platform', '1.0.0/%2e%2e/x.zip'],
    ['a NUL byte in a file name', '1.0.0/linux_amd64/x%00.zip'],
    ['a traversal as file name', '1.0.0/linux_amd64/%2e%2e'],
    ['an overlong version', `1.0.0-${'a'.repeat(3_000)}.json`],
    ['an overlong query', `index.json?${'a'.repeat(3_000)}`],
  ]
  test.each(tails)('%s', async (_what, tail) => {
    await expectRefused(
      ['providers', 'v1/providers'].map((door) => `/${door}/registry.example.test/acme/widget/${tail}`),
    )
  })

  async function expectRefused(paths: readonly string[]): Promise<void> {
    origin.reset()
    for (const path of paths) {
      const answer = await mirror.ask(path)
      expect({ path, status: answer.status }).toEqual({ path, status: 400 })
      expect(answer.json()).toMatchObject({ code: 'HOSTILE_INPUT', request_id: answer.headers['x-request-id'] })
      expect(answer.body.toString()).not.toContain('password')
    }
    expect(origin.connections).toBe(0)
  }
})

describe('bytes that are no HTTP request are 400 too', () => {
  const requests: [string, string][] = [
    ['a raw NUL in the path', 'GET /providers/\0/acme/widget/index.json HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['raw dot segments', 'GET /providers/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'],
    ['a raw backslash', 'GET /providers\\..\\x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'],
    ['raw bytes over 127', 'GET /providers/\xff\xfe HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'],
    ['no Host', 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n'],
    ['two lengths', 'GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
    ['a Host that is none', 'GET /nothing HTTP/1.1\r\nHost: a b"c\r\nConnection: close\r\n\r\n'],
    ['a Host with a path', 'GET /nothing HTTP/1.1\r\nHost: a/../b\r\nConnection: close\r\n\r\n'],
    ['nonsense', 'hello\r\n\r\n'],
  ]
  test.each(requests)('%s', async (_what, head) => {
    origin.reset()
    expect(await sendRaw(head)).toMatch(/^HTTP\/1\.1 400 /)
    expect(origin.connections).toBe(0)
    expect((await mirror.ask('/healthz')).status).toBe(200)
  })

  test('headers of more than 16 kB are 431, and the mirror lives on', async () => {
    const head = `GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ${'x'.repeat(40_000)}\r\n\r\n`
    expect(await sendRaw(head)).toMatch(/^HTTP\/1\.1 431 /)
    expect((await mirror.ask('/healthz')).status).toBe(200)
  })
})

test('nothing that a client made up leaves a file or folder behind', async () => {
  const names = await readdir(mirror.dataDir, { recursive: true })
  expect(names.filter((name) => /passwd|nothing|127\.0|\.\./.test(name))).toEqual([])
})
