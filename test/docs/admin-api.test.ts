import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askAdmin } from '../e2e/admin-client.ts'
import { startMirror, type TestMirror } from '../e2e/mirror-fixture.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'

const execute = promisify(execFile)
const HOST = 'registry.terraform.io'
const page = readFileSync(new URL('../../docs/admin-api.md', import.meta.url), 'utf8')
const [setUp = '', ...examples] = [...page.matchAll(/^```sh\n(.*?)^```/gms)].map(([, text = '']) => text)
const commands = examples.flatMap((text) => text.trim().split('\n'))

let origin: TestOrigin
let mirror: TestMirror
let job: string

beforeAll(async () => {
  origin = await startOrigin({ hosts: [HOST] })
  for (const version of ['3.0.0', '3.1.0']) {
    await origin.publish({ provider: 'hashicorp/random', version, platforms: ['linux_amd64'] })
  }
  mirror = await startMirror({ origin })
  const body = { providers: [{ source: 'hashicorp/random', version: '3.0.0' }], platforms: ['linux_amd64'] }
  job = (await askAdmin(mirror, '/warm', { method: 'POST', body })).json.id
  await askAdmin(mirror, `/jobs/${job}/events`)
})
afterAll(async () => {
  await mirror[Symbol.asyncDispose]()
  await origin[Symbol.asyncDispose]()
})

/** Runs a command of the page as it stands, in the shell that the page sets up. */
async function run(command: string): Promise<{ status: number; body: string }> {
  const shell = setUp.replace('https://localhost:8444/', mirror.adminUrl)
  const script = `${shell}\n${command.replaceAll('JOB', job)} --write-out '\\n%{http_code}'\n`
  const { stdout } = await execute('bash', ['-euc', script], { cwd: mirror.folder })
  const [, body = '', status = ''] = /^(.*)\n(\d{3})$/s.exec(stdout) ?? []
  return { status: Number(status), body }
}

describe('the examples of the page', () => {
  /** Not held, or cancelled already: so says the answer. */
  const NOT_HERE = /aws|terraform-aws-modules|DELETE .*random/

  test.each(commands)('%s', async (command) => {
    const { status, body } = await run(command)
    if (status === 404 && NOT_HERE.test(command)) expect(body).toMatch(/ITEM_NOT_FOUND/)
    else expect([200, 202, 204], body).toContain(status)
  })

  test('are about every route that there is', async () => {
    const { json } = await askAdmin(mirror, '/openapi.json')
    const missing = Object.entries<object>(json.paths).flatMap(([path, operations]) => {
      const pattern = new RegExp(`\\$ADMIN${path.slice('/admin/api/v1'.length).replaceAll(/\{\w+\}/g, '[^/"?]+')}["?]`)
      const asked = commands.filter((command) => pattern.test(command)).map(methodOf)
      return Object.keys(operations)
        .map((method) => method.toUpperCase())
        .filter((method) => !asked.includes(method))
        .map((method) => `${method} ${path}`)
    })
    expect(missing).toEqual(['GET /admin/api/v1/openapi.json'])
    expect(page).toContain('`GET /openapi.json`')
  })
})

function methodOf(command: string): string {
  return /--request (\w+)/.exec(command)?.[1] ?? (command.includes('--json') ? 'POST' : 'GET')
}
