import { expect } from 'vitest'
import type { Answer } from '../e2e/mirror-fixture.ts'
import type { Behaviour } from '../origin/fault.ts'
import type { ProtocolRow } from './case.ts'
import type { ProtocolCase } from './recorded-cases.ts'
import { LIMITED_HOST, PLATFORM, type Stage, VERSION, withDocument } from './stage.ts'

/** Cases about statuses, redirects, archives and credentials. */
export const STATUS_ROWS: readonly ProtocolRow[] = [
  {
    name: 'ok',
    client: 'installs',
    stance: 'ours',
    promise: 'the requests of an installation are all answered with 200, HEAD as GET',
    check: async (stage, recorded) => {
      const release = await stage.publish({ provider: 'status/ok' })
      expect(recorded.requests.map((request) => request.split(' ')[0])).toEqual(['GET', 'GET', 'HEAD', 'GET'])
      const archive = await stage.install('status/ok')
      expect(archive.body.equals(await release.package(PLATFORM).bytes())).toBe(true)
      const head = await stage.mirror.archive('status/ok', VERSION, PLATFORM, { method: 'HEAD' })
      expect([head.status, head.headers['content-length']]).toEqual([200, archive.headers['content-length']])
    },
  },
  {
    name: 'query_url',
    client: 'installs',
    stance: 'avoided',
    promise: 'the query of a signed URL goes to the origin as it is, and into none of our URLs',
    check: async (stage, recorded) => {
      const query = recorded.requests.at(-1)?.split('?')[1] ?? 'not recorded'
      await stage.publish({
        provider: 'status/query_url',
        document: (document) => ({ ...document, download_url: `${document.download_url}?${query}` }),
      })
      await stage.install('status/query_url')
      const [asked] = stage.origin.requests.filter(({ key }) => key.startsWith('archive status/query_url'))
      expect(asked?.url.split('?')[1]).toBe(query)
    },
  },
  {
    name: 'extensionless_blob_url',
    client: 'installs',
    stance: 'avoided',
    promise: 'an archive that the origin keeps under a digest alone has a name with .zip at our side',
    check: async (stage, recorded) => {
      const provider = 'status/extensionless_blob_url'
      const path = recorded.requests.at(-1)?.split('/m')[1] ?? 'not recorded'
      const release = await stage.publish({ provider, ...withDocument({ download_url: path }) })
      const body = await release.package(PLATFORM).bytes()
      using _ = stage.origin.fault({ when: ({ url }) => url === path }, { status: 200, body })
      expect((await stage.install(provider)).body.equals(body)).toBe(true)
      expect((await stage.packages(provider))[PLATFORM]?.url).toMatch(/\.zip$/)
    },
  },
  {
    name: 'archive_redirect_302',
    client: 'installs',
    stance: 'avoided',
    promise: 'redirects of the origin are followed by us: no client is sent to where it may not reach',
    check: (stage, recorded) => expectNoRedirect(stage, recorded, 'archive'),
  },
  {
    name: 'index_redirect_302',
    client: 'installs',
    stance: 'avoided',
    promise: 'a list that the origin moved is answered by us with 200',
    check: (stage, recorded) => expectNoRedirect(stage, recorded, 'versions'),
  },
  {
    name: 'index_404',
    client: 'fails',
    stance: 'ours',
    promise: 'index.json is 404 for what the origin does not have, and for nothing else',
    check: async (stage) => {
      const absent = await stage.mirror.index('status/index_404')
      expect([absent.status, absent.json().code]).toEqual([404, 'PROVIDER_NOT_FOUND'])
      await expectOutage(stage, 'status/index_404-down', { drop: true })
    },
  },
  {
    name: 'index_401',
    client: 'fails',
    stance: 'avoided',
    promise: 'a 401 of the origin is no 401 of ours: the credentials of the client are not at fault',
    check: (stage) => expectOutage(stage, 'status/index_401', { status: 401 }),
  },
  {
    name: 'index_403',
    client: 'fails',
    stance: 'avoided',
    promise: 'a 403 of the origin is no 403 of ours either',
    check: (stage) => expectOutage(stage, 'status/index_403', { status: 403 }),
  },
  {
    name: 'index_500',
    client: 'fails',
    stance: 'avoided',
    promise: 'a 500 of the origin is 200 for what is held, and is told as its own for what is not',
    check: async (stage) => {
      await stage.publish({ provider: 'status/index_500' })
      await stage.install('status/index_500')
      await expectOutage(stage, 'status/index_500-cold', { status: 500 })
      using down = stage.origin.fault({ provider: 'status/index_500' }, { status: 500 })
      stage.clock.advance(10 * 60_000)
      await stage.install('status/index_500')
      expect(down.struck).toBeGreaterThan(0)
    },
  },
  {
    name: 'index_429',
    client: 'fails',
    stance: 'avoided',
    promise: 'a limit of the origin is no limit of ours: 503 with a short pause, 200 for what is held',
    check: async (stage) => {
      const held = `${LIMITED_HOST}/status/index_429`
      await stage.publish({ provider: held })
      await stage.install(held)
      const limit = { status: 429, headers: { 'retry-after': '40' } }
      using _ = stage.origin.fault({ host: LIMITED_HOST }, limit)
      stage.clock.advance(10 * 60_000)
      const answer = await stage.mirror.index(`${held}-cold`)
      expect(answer.status).toBe(503)
      expect(Number(answer.headers['retry-after'])).toBeLessThanOrEqual(3)
      await stage.install(held)
    },
  },
  {
    name: 'version_404',
    client: 'fails',
    stance: 'avoided',
    promise: 'VERSION.json of what is not there is 200 without archives, so that clients go on to their next source',
    check: async (stage) => {
      await stage.publish({ provider: 'status/version_404' })
      expect(await stage.packages('status/version_404', '9.9.9')).toEqual({})
      expect(await stage.packages('status/version_404-absent')).toEqual({})
      expect(await stage.packages('unknown.example.test/acme/widget')).toEqual({})
    },
  },
  {
    name: 'archive_404',
    client: 'fails',
    stance: 'avoided',
    promise: 'a link that died at the origin is asked for anew before a client hears of it, and is never a 404 of ours',
    check: async (stage) => {
      const provider = 'status/archive_404'
      await stage.publish({ provider })
      using once = stage.origin.fault({ kind: 'archive', provider, times: 1 }, { status: 404 })
      await stage.install(provider)
      expect(once.struck).toBe(1)
      using _ = stage.origin.fault({ kind: 'archive', provider }, { status: 404 })
      await stage.install(provider)
      expect((await stage.archive(provider, VERSION, 'darwin_arm64')).status).toBe(502)
    },
  },
  {
    name: 'archive_503',
    client: 'fails',
    stance: 'avoided',
    promise: 'an object store that stumbles is tried again by us, since no client does',
    check: async (stage) => {
      const provider = 'status/archive_503'
      await stage.publish({ provider })
      using once = stage.origin.fault({ kind: 'archive', provider, times: 1 }, { status: 503 })
      await stage.install(provider)
      expect(once.struck).toBe(1)
      using _ = stage.origin.fault({ kind: 'archive', provider }, { status: 503 })
      await stage.install(provider)
    },
  },
  {
    name: 'archive_ct_octet',
    client: 'installs',
    stance: 'avoided',
    promise: 'an archive goes out as application/zip, whatever the origin calls it',
    check: async (stage) => {
      const provider = 'status/archive_ct_octet'
      await stage.publish({ provider })
      using _ = stage.origin.fault({ kind: 'archive', provider }, { contentType: 'application/octet-stream' })
      expect((await stage.install(provider)).headers['content-type']).toBe('application/zip')
    },
  },
  {
    name: 'cred_sent',
    client: 'installs',
    stance: 'client',
    promise: 'a client may send a token or not: the answers are the same, and the archive asks for none',
    check: async (stage, recorded) => {
      expect(recorded.requests.map((request) => request.endsWith(' AUTH'))).toEqual([true, true, false, false])
      const provider = 'status/cred_sent'
      await stage.publish({ provider })
      await stage.install(provider)
      const headers = { authorization: 'Bearer planted-token' }
      const [plain, authorized] = [{}, { headers }].map((ask): Promise<Answer>[] => [
        stage.mirror.index(provider, ask),
        stage.mirror.version(provider, VERSION, ask),
      ])
      const bodies = async (answers: Promise<Answer>[] = []) =>
        (await Promise.all(answers)).map(({ body }) => `${body}`)
      expect(await bodies(authorized)).toEqual(await bodies(plain))
      for (const { headers } of stage.origin.requests) expect(headers.authorization).toBeUndefined()
    },
  },
]

async function expectNoRedirect(stage: Stage, recorded: ProtocolCase, kind: 'archive' | 'versions'): Promise<void> {
  const provider = `status/${recorded.case}`
  const release = await stage.publish({ provider })
  const redirect = ({ url }: { url: string }): string => `${url}?moved`
  using moved = stage.origin.fault({ kind, provider, when: ({ url }) => !url.includes('moved') }, { redirect })
  const archive = await stage.install(provider)
  expect(moved.struck).toBe(1)
  expect(archive.headers.location).toBeUndefined()
  expect(archive.body.equals(await release.package(PLATFORM).bytes())).toBe(true)
}

/** Of the origin, for a provider of which nothing is held: an outage with its cause, and no absence. */
async function expectOutage(stage: Stage, provider: string, behaviour: Behaviour): Promise<void> {
  await stage.publish({ provider })
  const outage = stage.origin.fault({ kind: 'versions', provider }, behaviour)
  const answers = [await stage.mirror.index(provider), await stage.mirror.version(provider, VERSION)]
  for (const answer of answers) {
    expect(answer.status).toBe(502)
    if (behaviour.status !== undefined) expect(answer.json().upstream_status).toBe(behaviour.status)
  }
  outage.clear()
  await stage.install(provider)
}
