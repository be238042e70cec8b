import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { examine } from '../../src/doctor/examination.ts'
import { startMirror, type TestMirror } from '../e2e/mirror-fixture.ts'
import { startTlsFront } from '../e2e/tls-front.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { type OddFront, type PassedAnswer, startOddFront } from './odd-front.ts'
import { Findings, freePort } from './patient.ts'

const HOST = 'registry.example.test'

let origin: TestOrigin
let mirror: TestMirror

beforeAll(async () => {
  origin = await startOrigin({ hosts: [HOST] })
  await origin.publish({ provider: 'acme/widget', version: '1.0.0', archiveBytes: 100_000 })
  const config = {
    listen: { port: await freePort(), tls: 'off' },
    admin: 'off',
    archives: { maxSize: '100MB' },
    defaultOrigin: HOST,
  }
  mirror = await startMirror({ origin, config })
  expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status).toBe(200)
})
afterAll(async () => {
  await mirror[Symbol.asyncDispose]()
  await origin[Symbol.asyncDispose]()
})

async function examineBehind(front: Pick<OddFront, 'caPem'>, baseUrl: string): Promise<Findings> {
  const roots = join(mirror.folder, 'front-ca.pem')
  await writeFile(roots, front.caPem)
  const file = join(mirror.folder, 'config.yaml')
  const usual = { file, set: [], cwd: mirror.folder, env: { SSL_CERT_FILE: roots }, isOffline: true, providers: [] }
  return new Findings(await examine({ ...usual, baseUrl: new URL(baseUrl) }))
}

async function examineAltered(alter: (answer: PassedAnswer) => void): Promise<Findings> {
  await using front = await startOddFront(mirror.url, alter)
  return await examineBehind(front, front.url)
}

const setBody = (answer: PassedAnswer, body: Buffer, headers: Record<string, string> = {}) => {
  answer.body = body
  answer.headers = { ...answer.headers, 'content-length': String(body.length), ...headers }
}
const isDocument = ({ path }: PassedAnswer) => /\/providers\/.*\.json$/.test(path)
const isArchive = ({ path }: PassedAnswer) => path.endsWith('.zip')

test('a front that leaves all alone', async () => {
  expect((await examineAltered(() => undefined)).complaints).toEqual([])
})

test('a front that compresses documents with gzip, which clients ask for', async () => {
  const findings = await examineAltered((answer) => {
    if (isDocument(answer)) setBody(answer, gzipSync(answer.body), { 'content-encoding': 'gzip' })
  })
  expect(findings.complaints).toEqual([])
})

test('a front with a path before the mirror, that cuts it off', async () => {
  await using front = await startTlsFront({ prefix: '/mirrors/tf', target: mirror.url, redirectDiscovery: true })
  expect((await examineBehind(front, front.url)).complaints).toEqual([])
})

const broken: readonly [string, (answer: PassedAnswer) => void, RegExp][] = [
  [
    'gives documents another media type',
    (answer) => {
      if (isDocument(answer)) answer.headers = { ...answer.headers, 'content-type': 'text/plain' }
    },
    /problem base URL: documents: .*media type text\/plain; clients take application\/json alone.*leave Content-Type/,
  ],
  [
    'compresses documents with brotli',
    (answer) => {
      if (isDocument(answer)) setBody(answer, brotliCompressSync(answer.body), { 'content-encoding': 'br' })
    },
    /problem base URL: documents: .*compressed as br.*Turn that compression off/,
  ],
  [
    'makes links absolute',
    (answer) => {
      if (!answer.path.endsWith('/1.0.0.json')) return
      setBody(answer, Buffer.from(answer.body.toString().replaceAll('"url":"', '"url":"https://cdn.example.test/')))
    },
    /problem base URL: documents: .*leads to https:\/\/cdn\.example\.test\/.*its links are relative.*rewriting of bodies/,
  ],
  [
    'compresses archives',
    (answer) => {
      if (isArchive(answer)) setBody(answer, gzipSync(answer.body), { 'content-encoding': 'gzip' })
    },
    /problem base URL: archives: archives come compressed once more \(gzip\).*Turn compression/,
  ],
  [
    'takes the length of archives away',
    (answer) => {
      if (!isArchive(answer)) return
      const { 'content-length': _, ...headers } = answer.headers
      answer.headers = { ...headers, 'transfer-encoding': 'chunked' }
    },
    /problem base URL: archives: .*without Content-Length.*chunking/,
  ],
  [
    'answers ranges with the whole',
    (answer) => {
      if (isArchive(answer) && answer.status === 206) answer.status = 200
    },
    /warning base URL: archives: a range .* status 200.*pass Range/,
  ],
  [
    'redirects archives',
    (answer) => {
      if (!isArchive(answer)) return
      answer.status = 302
      answer.headers = { location: 'https://cdn.example.test/x.zip?signature=hunter2' }
    },
    /problem base URL: archives: .*redirects to https:\/\/cdn\.example\.test\/x\.zip; the mirror redirects nobody/,
  ],
  [
    'shows a page to sign in',
    (answer) => {
      answer.headers = { 'content-type': 'text/html' }
      answer.body = Buffer.from('<html>')
    },
    /problem base URL: .*healthz is answered with status 200 \(text\/html\), not by this mirror/,
  ],
  [
    'wants credentials',
    (answer) => {
      answer.status = 401
    },
    /problem base URL: .*answers 401: a front before the mirror wants credentials/,
  ],
]
test.each(broken)('a front that %s', async (_, alter, expected) => {
  const findings = await examineAltered(alter)
  expect(findings.complaints.join('\n')).toMatch(expected)
  expect(findings.lines.join()).not.toContain('hunter2')
})

test('a front that does not cut its path off', async () => {
  await using front = await startOddFront(mirror.url, () => undefined)
  const findings = await examineBehind(front, `${front.url}mirrors/tf/`)
  expect(findings.about('problem base URL')).toMatch(
    /gets \/mirrors\/tf\/ as part of each path.*cut \/mirrors\/tf\/ off/,
  )
})

test('no way to service discovery at the root of the host', async () => {
  await using front = await startTlsFront({ prefix: '/mirrors/tf', target: mirror.url })
  const findings = await examineBehind(front, front.url)
  expect(findings.about('warning base URL: service discovery')).toMatch(/answers 404.*Have the front redirect it/)
})

test('plain http at an https address', async () => {
  const findings = await examineBehind({ caPem: origin.caPem }, mirror.url.replace('http:', 'https:'))
  expect(findings.about('problem base URL')).toMatch(/plain http is spoken there.*TLS front/)
})

test('plain http in the address', async () => {
  const findings = await examineBehind({ caPem: origin.caPem }, mirror.url)
  expect(findings.about('problem base URL')).toMatch(/is plain http, which clients refuse.*https address/)
})
