import { describe, expect, it } from 'vitest'
import type { Answer } from '../e2e/mirror-fixture.ts'
import { IndexDocument, readDocument, VersionDocument } from './mirror-documents.ts'

const ZH = `zh:${'3fede5bab6917f14'.repeat(4)}`
const H1 = 'h1:nycQfQFz1IaRI3NxUbFf3cVwlSJbJyQVTnA2etP7E9I='
const url = '1.0.0/linux_amd64/terraform-provider-widget_1.0.0_linux_amd64.zip'

function entry(changes: Record<string, unknown>): unknown {
  return { archives: { linux_amd64: { url, hashes: [ZH], ...changes } } }
}

function answer(body: Buffer | string, headers: Record<string, string> = {}, status = 200): Answer {
  const bytes = Buffer.from(body)
  const whole = { 'content-type': 'application/json', 'content-length': String(bytes.length), ...headers }
  return { status, headers: whole, body: bytes, json: () => JSON.parse(bytes.toString()) }
}

describe('the schema of index.json', () => {
  it.each([{}, { '1.0.0': {}, '1.0.0+b.1': {}, '1.0.0-rc.1': {}, '0.0.1-0a.-': {} }])('takes %j', (versions) => {
    expect(IndexDocument.safeParse({ versions }).success).toBe(true)
  })

  it.each([
    null,
    ['1.0.0'],
    { 'v1.0.0': {} },
    { latest: {} },
    { '': {} },
    { '1.0': {} },
    { '01.2.3': {} },
    { '1.0.0 ': {} },
    { '1.0.0-': {} },
    { '1.0.0': null },
    { '1.0.0': 'x' },
    { '1.0.0': [] },
    { '1.0.0': { protocols: [] } },
  ])('refuses versions %j', (versions) => {
    expect(IndexDocument.safeParse({ versions }).success).toBe(false)
  })

  it('refuses other keys and a document without versions', () => {
    for (const document of [{}, { versions: {}, id: 'x' }, { Versions: {} }, [], null]) {
      expect(IndexDocument.safeParse(document).success).toBe(false)
    }
  })
})

describe('the schema of VERSION.json', () => {
  it.each([{ archives: {} }, entry({}), entry({ hashes: [ZH, H1] }), entry({ url: '1.0.0%2Bb/b%C3%BCcher.zip' })])(
    'takes %j',
    (document) => {
      expect(VersionDocument.safeParse(document).success).toBe(true)
    },
  )

  const lists = [null, undefined, [], [H1], [H1, ZH], [ZH, ZH], [ZH, H1, H1], [ZH, `zh:${'0'.repeat(64)}`]]
  const hashes = ['sha512:abcd', 'abcd', 'h1:', 'h1:AAAA', H1.replace('I=', 'J='), ZH.toUpperCase(), `${ZH}0`, null]
  it.each([...lists, ...hashes.map((hash) => [ZH, hash]), ...hashes.map((hash) => [hash])])(
    'refuses hashes %j',
    (list) => {
      expect(VersionDocument.safeParse(entry({ hashes: list })).success).toBe(false)
    },
  )

  it.each([
    '',
    'https://mirror.example/x.zip',
    '//mirror.example/x.zip',
    '/x.zip',
    '../x.zip',
    './x.zip',
    'a/../x.zip',
    'x.zip?token=1',
    'x.zip#a',
    'a//x.zip',
    '1.0.0+b/x.zip',
    'a b.zip',
    'bücher.zip',
    'a%2fb.zip',
    'a%2Fb.zip',
    'a%41.zip',
    '%ff.zip',
    '%.zip',
    'x:y.zip',
    null,
    undefined,
  ])('refuses the URL %j', (each) => {
    expect(VersionDocument.safeParse(entry({ url: each })).success).toBe(false)
  })

  it.each([
    { archives: null },
    { archives: [] },
    {},
    { archives: { linux_amd64: null } },
    { archives: { Linux_amd64: { url, hashes: [ZH] } } },
    { archives: { linux: { url, hashes: [ZH] } } },
    { archives: { linux_amd64_v1: { url, hashes: [ZH] } } },
    { archives: {}, signed: true },
    entry({ filename: 'x' }),
  ])('refuses %j', (document) => {
    expect(VersionDocument.safeParse(document).success).toBe(false)
  })
})

describe('an answer', () => {
  it('that is as it should be gives its document', () => {
    expect(readDocument(answer('{"versions":{"1.0.0":{}}}'), IndexDocument)).toEqual({ versions: { '1.0.0': {} } })
  })

  it.each([
    ['another status', answer('{"versions":{}}', {}, 206)],
    ['another media type', answer('{"versions":{}}', { 'content-type': 'text/plain' })],
    ['a parameter', answer('{"versions":{}}', { 'content-type': 'application/json; charset=utf-8' })],
    ['a wrong length', answer('{"versions":{}}', { 'content-length': '16' })],
    ['a coding', answer('{"versions":{}}', { 'content-encoding': 'gzip' })],
    ['a byte order mark', answer('\ufeff{"versions":{}}')],
    ['broken UTF-8', answer(Buffer.from([0x22, 0xff, 0x22]))],
    ['nothing', answer('')],
    ['something behind it', answer('{"versions":{}}{}')],
    ['a key twice', answer('{"versions":{"1.0.0":{},"1.0.0":{}}}')],
    ['another document', answer('{"archives":{}}')],
  ])('with %s is refused', (_what, each) => {
    expect(() => readDocument(each, IndexDocument)).toThrow()
  })
})
