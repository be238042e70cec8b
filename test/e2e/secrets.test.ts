import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Behaviour } from '../origin/fault.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { JsonDocument } from '../origin/release.ts'
import { askAdmin } from './admin-client.ts'
import { type Answer, startMirror, type TestMirror } from './mirror-fixture.ts'

const HOST = 'registry.example.test'
const OTHER = 'cdn.example.test'
const CLIENT_TOKEN = 'planted-client-token'
const ORIGIN_TOKEN = 'planted-origin-token'
const SIGNED_QUERY = '?X-Signature=planted-signature&X-Expires=1'
const TRACE = { log: { format: 'json', level: 'trace' } }

let origin: TestOrigin

beforeEach(async () => {
  origin = await startOrigin({ tokens: { [HOST]: ORIGIN_TOKEN } })
})
afterEach(() => origin[Symbol.asyncDispose]())

/** A mirror with the origin's token, that logs everything. What documents point to is on loopback, thus private. */
function startTracing(more: Record<string, unknown> = {}): Promise<TestMirror> {
  const origins = { [HOST]: { token: ORIGIN_TOKEN, allowPrivateAddresses: true } }
  return startMirror({ origin, config: { ...TRACE, upstream: { retries: 1 }, origins, ...more } })
}

/** Asks all routes with a client's credentials of both kinds. */
async function askAll(mirror: TestMirror, provider = 'acme/widget'): Promise<Answer[]> {
  const answers: Answer[] = []
  for (const authorization of [`Bearer ${CLIENT_TOKEN}`, `Basic ${btoa(`user:${CLIENT_TOKEN}`)}`]) {
    const ask = { headers: { authorization, cookie: `session=${CLIENT_TOKEN}` } }
    answers.push(await mirror.index(provider, ask))
    answers.push(await mirror.version(provider, '1.0.0', ask))
    answers.push(await mirror.archive(provider, '1.0.0', 'linux_amd64', ask))
  }
  return answers
}

/** Looks into all that anybody can read of a mirror. */
async function expectNoSecret(mirror: TestMirror, answers: readonly Answer[]): Promise<void> {
  await vi.waitFor(() => {
    const told = mirror.logLines.filter(({ msg }) => msg === 'request')
    expect(told.length).toBeGreaterThanOrEqual(answers.length)
  }, 15_000)
  const metrics = await mirror.metrics()
  const shown = [mirror.logText, metrics, ...answers.map(({ headers, body }) => JSON.stringify(headers) + body)]
  for (const text of shown) {
    expect(text).not.toMatch(/planted/i)
    expect(text).not.toContain(btoa(`user:${CLIENT_TOKEN}`))
  }
}

const signLinks = (document: JsonDocument): JsonDocument => ({
  ...document,
  download_url: `${document.download_url}${SIGNED_QUERY}`,
  shasums_url: `${document.shasums_url}${SIGNED_QUERY}`,
  shasums_signature_url: `${document.shasums_signature_url}${SIGNED_QUERY}`,
})

describe('a client’s credentials stop at the mirror (B55)', () => {
  test('the origin never sees them, it sees its own token', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startTracing()
    const answers = await askAll(mirror)
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200])
    for (const { headers } of origin.requests) {
      expect(headers.authorization).toBe(`Bearer ${ORIGIN_TOKEN}`)
      expect(headers.cookie).toBeUndefined()
      expect(JSON.stringify(headers)).not.toContain(CLIENT_TOKEN)
    }
    await expectNoSecret(mirror, answers)
  })

  test('an origin without a token gets no credentials at all', async () => {
    await origin.publish({ provider: `${OTHER}/acme/widget`, version: '1.0.0' })
    await using mirror = await startTracing()
    const answers = await askAll(mirror, `${OTHER}/acme/widget`)
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200])
    expect(origin.requests.filter(({ headers }) => headers.authorization !== undefined)).toEqual([])
    await expectNoSecret(mirror, answers)
  })

  test('with a wrong token at the origin the answer is 502 and shows neither', async () => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    const origins = { [HOST]: { token: 'planted-wrong-token' } }
    await using mirror = await startMirror({ origin, config: { ...TRACE, origins } })
    const answers = await askAll(mirror)
    expect(answers.map(({ status }) => status)).toEqual([502, 502, 502, 502, 502, 502])
    expect(answers[0]?.json()).toMatchObject({ upstream_status: 401 })
    await expectNoSecret(mirror, answers)
  })
})

describe('the origin’s token stays with the origin (B55)', () => {
  // The same host by another authority: it has the same files, and guards them the same.
  test.each([
    ['archive', 200],
    ['sums', 200],
    ['versions', 502],
    ['download', 502],
  ] as const)('a redirect of the %s to another host goes without it', async (kind, status) => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startTracing()
    const moved = ({ url }: { url: string }): boolean => url.startsWith('/at/')
    const redirect = ({ url }: { url: string }): string => `${origin.url(HOST)}${url.slice(1)}${SIGNED_QUERY}`
    origin.fault({ kind, when: (request) => !moved(request) }, { redirect })
    const answers = await askAll(mirror)
    expect(answers[2]?.status).toBe(status)
    const redirected = origin.requests.filter(moved)
    expect(redirected.length).toBeGreaterThan(0)
    for (const { headers } of redirected) expect(headers.authorization).toBeUndefined()
    await expectNoSecret(mirror, answers)
  })

  test('a link of a document to another host goes without it', async () => {
    const document = (each: JsonDocument): JsonDocument => ({
      ...each,
      download_url: `${origin.url(HOST)}${String(each.download_url).slice(1)}${SIGNED_QUERY}`,
    })
    await origin.publish({ provider: 'acme/widget', version: '1.0.0', document })
    await using mirror = await startTracing()
    const answers = await askAll(mirror)
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200])
    const [archive] = origin.requests.filter(({ kind }) => kind === 'archive')
    expect(archive?.url).toContain(SIGNED_QUERY)
    expect(archive?.headers.authorization).toBeUndefined()
    await expectNoSecret(mirror, answers)
  })

  test.each([
    ['127.0.0.1', 'Bearer planted-host-token'],
    ['localhost', undefined],
  ])('of hosts with credentials of their own, the link to 127.0.0.1 gets those of %s: %s', async (name, expected) => {
    const document = (each: JsonDocument): JsonDocument => ({
      ...each,
      download_url: `${origin.url(OTHER)}${String(each.download_url).slice(1)}`,
    })
    await origin.publish({ provider: 'acme/widget', version: '1.0.0', document })
    const hosts = { [`${name}:${origin.port}`]: { token: 'planted-host-token' } }
    await using mirror = await startTracing({ hosts })
    const answers = await askAll(mirror)
    const [archive] = origin.requests.filter(({ kind }) => kind === 'archive')
    expect(archive?.headers.authorization).toBe(expected)
    await expectNoSecret(mirror, answers)
  })
})

describe('an origin that repeats what it was sent', () => {
  const bodies: [string, string][] = [
    ['application/json', JSON.stringify({ errors: [`the token ${ORIGIN_TOKEN} has expired`] })],
    ['text/plain', `Authorization: Bearer ${ORIGIN_TOKEN} is not valid`],
  ]
  test.each([401, 404, 500].flatMap((status) => bodies.map((body) => [status, ...body] as const)))(
    'with %i as %s does not make it known',
    async (status, contentType, body) => {
      await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
      await using mirror = await startTracing()
      for (const kind of ['archive', 'sums', 'download', 'versions'] as const) {
        origin.fault({ kind }, { status, contentType, body })
        await expectNoSecret(mirror, [...(await askAll(mirror))])
      }
    },
  )

  test('user and password of a host neither', async () => {
    const document = (each: JsonDocument): JsonDocument => ({
      ...each,
      download_url: `${origin.url(OTHER)}${String(each.download_url).slice(1)}`,
    })
    await origin.publish({ provider: 'acme/widget', version: '1.0.0', document })
    const basic = 'robot:planted-host-password'
    const body = JSON.stringify({ message: `no access for ${basic} (${btoa(basic)}), password planted-host-password` })
    origin.fault({ kind: 'archive' }, { status: 403, contentType: 'application/json', body })
    await using mirror = await startTracing({ hosts: { [`127.0.0.1:${origin.port}`]: { basic } } })
    const answers = await askAll(mirror)
    expect(answers[2]?.json().error).toContain('no access for (redacted) ((redacted)), password (redacted)')
    await expectNoSecret(mirror, answers)
  })
})

describe('signed links are secrets', () => {
  const troubles: [string, Behaviour][] = [
    ['works', {}],
    ['is 403', { status: 403 }],
    ['is 500', { status: 500 }],
    ['breaks', { drop: true }],
    ['breaks in the middle', { torn: 0.5 }],
    ['has other bytes', { wrongBytes: true }],
    ['redirects in a circle', { redirect: ({ url }) => url }],
    ['redirects to plain http', { redirect: `http://127.0.0.1:1/x${SIGNED_QUERY}` }],
    ['redirects to a closed port', { redirect: `https://127.0.0.1:1/x${SIGNED_QUERY}` }],
    ['redirects to a metadata service', { redirect: `https://169.254.169.254/x${SIGNED_QUERY}` }],
    ['redirects to a URL with user-info', { redirect: 'https://planted:planted@127.0.0.1:1/x' }],
    ['redirects to nonsense', { redirect: 'https://planted:planted@[planted/' }],
    [
      'explains itself with the link',
      {
        status: 403,
        contentType: 'application/json',
        body: JSON.stringify({ message: `denied: https://${OTHER}/x${SIGNED_QUERY}` }),
      },
    ],
    [
      'explains itself with the link as text',
      { status: 500, contentType: 'text/plain', body: `failed: https://user:planted@${OTHER}/x${SIGNED_QUERY}` },
    ],
  ]
  test.each(troubles)('when the archive behind one %s, it is shown nowhere', async (_situation, behaviour) => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0', document: signLinks })
    await using mirror = await startTracing()
    origin.fault({ kind: 'archive' }, behaviour)
    const answers = await askAll(mirror)
    const asked = origin.requests.filter(({ kind }) => kind === 'archive')
    expect(asked.every(({ url }) => url.endsWith(SIGNED_QUERY))).toBe(true)
    expect(asked.length).toBeGreaterThan(0)
    await expectNoSecret(mirror, answers)
  })

  test.each(troubles.slice(1))('when SHA256SUMS behind one %s, it is shown nowhere', async (_situation, behaviour) => {
    await origin.publish({ provider: 'acme/widget', version: '1.0.0', document: signLinks })
    await using mirror = await startTracing()
    origin.fault({ kind: ['sums', 'signature'] }, behaviour)
    const answers = await askAll(mirror)
    expect(answers[1]?.status).toBeGreaterThanOrEqual(500)
    await expectNoSecret(mirror, answers)
  })

  test.each([
    ['user-info', `https://planted:planted@${OTHER}/x.zip`],
    ['user-info and a query', `https://planted@127.0.0.1/x.zip${SIGNED_QUERY}`],
    ['a scheme of its own', `s3::https://planted:planted@bucket/x.zip${SIGNED_QUERY}`],
    ['nonsense', 'https://planted:planted@[planted/x.zip'],
  ])('a download URL with %s is refused without repeating it', async (_what, url) => {
    const document = (each: JsonDocument): JsonDocument => ({ ...each, download_url: url })
    await origin.publish({ provider: 'acme/widget', version: '1.0.0', document })
    await using mirror = await startTracing()
    const answers = await askAll(mirror)
    expect(answers[2]?.status).toBe(502)
    await expectNoSecret(mirror, answers)
  })
})

describe('a request’s own secrets', () => {
  test('user-info, where a client takes it for a part of the host', async () => {
    await using mirror = await startTracing()
    const answers = [
      await mirror.index('user:planted-password@registry.example.test/acme/widget'),
      await mirror.index(`${encodeURIComponent('planted:planted@')}${HOST}/acme/widget`),
      await mirror.ask(`/providers/${HOST}/acme/widget/index.json?access_token=planted-query`),
      await mirror.ask('/v1/providers/planted/widget/versions?access_token=planted-query'),
    ]
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 404, 404])
    await expectNoSecret(mirror, answers)
  })

  test('a URL with a password, where an operator is asked for an address', async () => {
    await using mirror = await startTracing()
    const url = `https://planted:planted-password@${HOST}/acme/widget?token=planted-query`
    const bare = `planted-password@${HOST}/acme/widget`
    const answers = [
      await askAdmin(mirror, '/refresh', { method: 'POST', body: { address: url } }),
      await askAdmin(mirror, '/refresh', { method: 'POST', body: { address: bare } }),
      await askAdmin(mirror, `/explain?address=${encodeURIComponent(url)}`),
      await askAdmin(mirror, '/pins/ci', { method: 'PUT', body: { items: [url, bare] } }),
      await askAdmin(mirror, '/warm', { method: 'POST', body: { providers: [{ source: url }, { source: bare }] } }),
      await askAdmin(mirror, '/warm', { method: 'POST', body: { modules: [{ source: url }, { source: bare }] } }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 400, 400, 400])
    const audit = await readFile(join(mirror.dataDir, 'state', 'journals', 'audit.ndjson'), 'utf8')
    expect(audit).toContain(`…@${HOST}/acme/widget`)
    for (const text of [audit, mirror.logText, await mirror.metrics(), ...answers.map(({ text }) => text)]) {
      expect(text).not.toContain('planted-')
    }
  })
})
