import { request } from 'node:http'
import { expect } from 'vitest'
import type { JsonDocument, Release } from '../origin/release.ts'
import type { HashRow } from './case.ts'
import type { HashCase } from './recorded-cases.ts'
import { HOST, PLATFORM, type Stage, VERSION } from './stage.ts'

/** Cases about base URLs, archive URLs and media types. */
export const URL_ROWS: readonly HashRow[] = [
  {
    name: 'noslash',
    client: 'installs',
    stance: 'client',
    promise:
      'without the slash at the end of the base URL a client asks beside it: the answer names the right base URL',
    check: async (stage) => {
      const { mirror } = stage
      await stage.publish({ provider: 'urls/noslash' })
      const answer = await mirror.ask(`/${HOST}/urls/noslash/index.json`)
      expect([answer.status, answer.json().code]).toEqual([404, 'ROUTE_NOT_FOUND'])
      expect(answer.json().base_url).toBe(mirror.baseUrl)
      expect(mirror.baseUrl).toMatch(/^https:\/\/.*\/$/)
    },
  },
  {
    name: 'abs_url',
    client: 'installs',
    stance: 'avoided',
    promise: 'an absolute URL of the origin does not become one of ours',
    check: (stage, recorded) =>
      expectRelativeLink(stage, recorded, (document) => ({ download_url: `https://${HOST}${document.download_url}` })),
  },
  {
    name: 'rooted_url',
    client: 'installs',
    stance: 'avoided',
    promise: 'a root-relative URL of the origin does not become one of ours',
    check: (stage, recorded) => expectRelativeLink(stage, recorded, () => ({})),
  },
  {
    name: 'dotdot_url',
    client: 'installs',
    stance: 'avoided',
    promise: 'dot segments of the origin do not get into our URLs',
    check: (stage, recorded) =>
      expectRelativeLink(stage, recorded, ({ download_url }) => ({
        download_url: `../../../../../../..${download_url}`,
      })),
  },
  {
    name: 'ct_text',
    client: 'fails',
    stance: 'avoided',
    promise: 'JSON that the origin calls text/plain leaves us as application/json',
    check: expectOurMediaType,
  },
  {
    name: 'ct_charset',
    client: 'installs',
    stance: 'avoided',
    promise: 'a charset of the origin is left out of our media type',
    check: expectOurMediaType,
  },
  {
    name: 'ct_octet',
    client: 'fails',
    stance: 'avoided',
    promise: 'JSON that the origin calls octets leaves us as application/json',
    check: expectOurMediaType,
  },
  {
    name: 'ct_vnd',
    client: 'fails',
    stance: 'avoided',
    promise: 'a JSON type of its own that the origin has leaves us as application/json',
    check: expectOurMediaType,
  },
  {
    name: 'http_base',
    client: 'fails',
    stance: 'avoided',
    promise: 'our base URL is an https one, and the port answers no document without TLS',
    check: async (stage) => {
      const { mirror } = stage
      await stage.publish({ provider: 'urls/http_base' })
      expect(new URL(mirror.baseUrl).protocol).toBe('https:')
      const url = `${mirror.baseUrl.replace('https:', 'http:')}${HOST}/urls/http_base/index.json`
      await expect(statusOf(url)).resolves.not.toBe(200)
    },
  },
]

async function expectRelativeLink(
  stage: Stage,
  recorded: HashCase,
  change: (document: JsonDocument) => JsonDocument,
): Promise<void> {
  const provider = `urls/${recorded.case}`
  await stage.publish({ provider, document: (document) => ({ ...document, ...change(document) }) })
  // The schema takes no other URL than a relative one below the document.
  await stage.install(provider)
  expect((await stage.packages(provider))[PLATFORM]?.url).toBe(
    `${VERSION}/${PLATFORM}/terraform-provider-${recorded.case}_${VERSION}_${PLATFORM}.zip`,
  )
}

async function expectOurMediaType(stage: Stage, recorded: HashCase): Promise<void> {
  const provider = `urls/${recorded.case}`
  const release: Release = await stage.publish({ provider })
  using odd = stage.origin.fault({ kind: ['versions', 'download'], provider }, { contentType: recorded.content_type })
  // The reading of every document includes its media type.
  await stage.install(provider)
  expect(odd.struck).toBe(1 + release.packages.length)
  const absent = await stage.mirror.index(`${provider}-absent`)
  expect([absent.status, absent.headers['content-type']]).toEqual([404, 'application/json'])
}

/** Of a plain HTTP request; undefined if the connection just ends. */
function statusOf(url: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    request(url, { agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
      .on('error', () => resolve(undefined))
      .end()
  })
}
