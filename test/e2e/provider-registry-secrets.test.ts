import { glob, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'
import { createMirrorWorkspace, HOST } from './mirror-workspace.ts'
import { askDownload, askVersions, downloadPath, fetchPackage, registryBase } from './registry-door.ts'
import { credentialsConfig, hostConfig, terraformAvailable } from './terraform-cli.ts'
import { startTlsFront } from './tls-front.ts'

/* With a `host` block, clients send us the token that they have for the origin's host (client-contract C13). */

const CLIENT_TOKEN = 'planted-client-token'
const ORIGIN_TOKEN = 'planted-origin-token'
const OTHER = 'other.example.test'
const TRACE = { log: { format: 'json', level: 'trace' } }

let origin: TestOrigin

beforeAll(async () => {
  origin = await startOrigin({ tokens: { [HOST]: ORIGIN_TOKEN } })
  for (const host of [HOST, OTHER]) await origin.publish({ provider: `${host}/acme/widget`, version: '1.0.0' })
})
afterAll(() => origin[Symbol.asyncDispose]())

/** Looks into all that the mirror has said, sent and written. */
async function expectUnknown(mirror: TestMirror): Promise<void> {
  expect(await mirror.metrics()).not.toContain(CLIENT_TOKEN)
  await mirror.restart()
  expect(mirror.logText).not.toContain(CLIENT_TOKEN)
  expect(JSON.stringify(origin.requests)).not.toContain(CLIENT_TOKEN)
  let files = 0
  for await (const path of glob('**/*', { cwd: mirror.folder })) {
    const file = join(mirror.folder, path)
    if (!(await stat(file)).isFile()) continue
    files += 1
    expect((await readFile(file)).includes(CLIENT_TOKEN), path).toBe(false)
  }
  expect(files).toBeGreaterThan(10)
}

test.skipIf(terraformAvailable() === undefined)(
  'the token that terraform has for the origin reaches us, and nobody else',
  async () => {
    origin.reset()
    const config = { ...TRACE, listen: { port: 0, tls: 'off' }, origins: { [HOST]: { token: ORIGIN_TOKEN } } }
    await using mirror = await startMirror({ origin, config })
    await using front = await startTlsFront({ prefix: '/x', target: mirror.url.replace('localhost', '127.0.0.1') })
    await using terraform = await createMirrorWorkspace(mirror, {
      cliConfig: hostConfig(HOST, { 'providers.v1': registryBase(front.url) }) + credentialsConfig(HOST, CLIENT_TOKEN),
      caPem: front.caPem,
    })
    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
    const sent = front.seen.filter(({ authorization }) => authorization === `Bearer ${CLIENT_TOKEN}`)
    expect(sent).toHaveLength(2)
    const guarded = origin.requests.filter(({ kind }) => kind === 'versions' || kind === 'download')
    expect(new Set(guarded.map(({ headers }) => headers.authorization))).toEqual(new Set([`Bearer ${ORIGIN_TOKEN}`]))
    await expectUnknown(mirror)
  },
)

describe('the token of a client is no reason for anything', () => {
  test('good answers, refusals and wrong paths are the same with and without it, and keep quiet about it', async () => {
    origin.reset()
    await using mirror = await startMirror({ origin, config: TRACE })
    const headers = {
      authorization: `Bearer ${CLIENT_TOKEN}`,
      cookie: `session=${CLIENT_TOKEN}`,
      'x-terraform-version': '0.1.2-planted',
      'user-agent': 'planted-agent',
    }
    const ask = async (path: string, status: number, code?: string): Promise<void> => {
      for (const options of [{ headers }, {}]) {
        const answer = await mirror.ask(path, options)
        expect([answer.status, status === 200 ? undefined : answer.json().code]).toEqual([status, code])
        expect(JSON.stringify(answer.headers) + answer.body).not.toContain(CLIENT_TOKEN)
      }
    }
    const { archivePath } = await fetchPackage(mirror, `${OTHER}/acme/widget`, '1.0.0', 'linux_amd64')
    await ask(archivePath, 200)
    await ask(downloadPath(`${OTHER}/acme/widget`, '1.0.0', 'linux_amd64'), 200)
    await ask(downloadPath(`${OTHER}/acme/widget`, '1.0.0', 'plan9_mips'), 404, 'PLATFORM_NOT_FOUND')
    await ask('/v1/providers/acme/widget/versions', 404, 'ROUTE_NOT_FOUND')
    await ask('/.well-known/terraform.json', 404, 'ORIGIN_NOT_ALLOWED')
    // This origin wants a token, and the mirror has none: the client's is not tried.
    expect((await askVersions(mirror, 'acme/widget', { headers })).status).toBe(502)
    expect((await askDownload(mirror, 'acme/widget', '1.0.0', 'linux_amd64', { headers })).status).toBe(502)
    expect(origin.requests.filter(({ headers }) => headers.authorization !== undefined)).toEqual([])
    expect(JSON.stringify(origin.requests)).not.toContain('planted')
    await expectUnknown(mirror)
  })
})
