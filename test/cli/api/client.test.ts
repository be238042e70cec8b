import { chmod, copyFile, mkdir, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { OriginList } from '../../../src/admin/schema/stock.ts'
import { makeTempFolder } from '../../store/temp-folder.ts'
import { AdminStandIn, problem, TOKEN } from '../admin-stand-in.ts'
import { runCommand } from '../run-command.ts'

let api: AdminStandIn

beforeAll(async () => {
  api = await AdminStandIn.start()
  api.answer('GET origins', OriginList, { items: [], next: null })
})
afterAll(() => api[Symbol.asyncDispose]())

/** Runs `origins`, the simplest of the commands. */
const run = (args: readonly string[], env: Record<string, string | undefined> = {}) =>
  runCommand(['origins', '--json', ...args], env)

const DONE = { code: 0, stdout: '{"items":[\n],"next":null}\n', stderr: '' }
const isRoot = process.geteuid?.() === 0

describe('the token', () => {
  const reach = () => ['--server', api.url, '--ca-file', api.caFile]

  test.each([
    ['--token-file', () => ['--token-file', api.tokenFile], {}],
    ['--token', () => ['--token', TOKEN], {}],
    ['the variable', () => [], { TERRAMIRROR_ADMIN_TOKEN: TOKEN }],
    ['--token rather than the variable', () => ['--token', TOKEN], { TERRAMIRROR_ADMIN_TOKEN: 'wrong' }],
    ['the configuration', () => ['--set', `admin.token=${TOKEN}`], {}],
  ])('is taken from %s', async (_name, args, env) => {
    expect(await run([...reach(), ...args()], env)).toEqual(DONE)
  })

  test('is taken from stateDir of the configuration, whatever else in it cannot be resolved here', async () => {
    await using folder = await makeTempFolder()
    await writeFile(join(folder.path, 'admin-token'), `${TOKEN}\n`)
    const config = join(folder.path, 'config.yaml')
    await writeFile(config, `stateDir: .\norigins: { a.example: { token: "\${env:NOT_SET_HERE}" } }\n`)
    expect(await run([...reach(), '--config', config])).toEqual(DONE)
  })

  test.each([
    ['a wrong one', ['--token', 'guess'], 'does not accept the token; it came from --token', 1],
    ['none', ['--set', 'stateDir=/nonexistent'], '/nonexistent/admin-token does not exist', 1],
    ['an unreadable file', ['--token-file', '/nonexistent/token'], '/nonexistent/token does not exist', 1],
    ['one with a line break', ['--token', 'a\nb'], '--token: expected a token', 2],
  ])('%s is told with where it was looked for, and without the token', async (_name, args, reason, code) => {
    const { stderr, ...rest } = await run([...reach(), ...args])
    expect(rest).toEqual({ code, stdout: '' })
    expect(stderr).toContain(reason)
    expect(stderr).not.toMatch(/guess|a\nb/)
  })

  test.skipIf(isRoot)('a file that may not be read is told as such', async () => {
    await using folder = await makeTempFolder()
    const file = join(folder.path, 'token')
    await writeFile(file, TOKEN)
    await chmod(file, 0)
    expect((await run([...reach(), '--token-file', file])).stderr).toContain('may not be read')
  })

  test('of this machine goes to no other machine', async () => {
    await using folder = await makeTempFolder()
    await writeFile(join(folder.path, 'admin-token'), TOKEN)
    const args = ['--server', 'https://mirror.invalid/', '--set', `stateDir=${folder.path}`, '--set', 'admin.token=x']
    const { code, stderr } = await run(args)
    expect(code).toBe(1)
    expect(stderr).toContain('no token for https://mirror.invalid/: set TERRAMIRROR_ADMIN_TOKEN, or give --token-file')
  })
})

describe('the certificate', () => {
  const open = () => ['--server', api.url, '--token-file', api.tokenFile]

  test('of the authority in stateDir is trusted by itself', async () => {
    await using folder = await makeTempFolder()
    await mkdir(join(folder.path, 'tls'))
    await copyFile(api.caFile, join(folder.path, 'tls', 'ca.pem'))
    expect(await run([...open(), '--set', `stateDir=${folder.path}`])).toEqual(DONE)
  })

  test('of nobody that is trusted is refused, with what to do', async () => {
    const { code, stderr } = await run(open())
    expect(code).toBe(1)
    expect(stderr).toMatch(
      /certificate of https:\/\/localhost:\d+\/ is not trusted \(.*\); trusted are: the public roots/,
    )
    expect(stderr).toContain('--ca-file FILE')
  })

  test('for other names, or out of its time, is refused with its names or the clock', async () => {
    await using other = await AdminStandIn.start({ names: ['mirror.example'] })
    expect((await run(other.options)).stderr).toContain('is for other names: Host: localhost. is not in')
    const DAY = 86_400_000
    const validity = { notBefore: new Date(Date.now() - 2 * DAY), notAfter: new Date(Date.now() - DAY) }
    await using old = await AdminStandIn.start({ validity })
    expect((await run(old.options)).stderr).toContain('is not valid now (CERT_HAS_EXPIRED)')
  })

  test('that the configuration names is known again, whatever its names', async () => {
    await using folder = await makeTempFolder()
    await using other = await AdminStandIn.start({ names: ['mirror.example'], keepIn: folder.path })
    other.answer('GET origins', OriginList, { items: [], next: null })
    const { port } = new URL(other.url)
    const tls = `{certFile: ${folder.path}/cert.pem, keyFile: ${folder.path}/key.pem}`
    const set = ['--set', `listen.tls=${tls}`, '--set', `admin.listen.port=${port}`]
    expect(await run([...set, '--token-file', other.tokenFile])).toEqual(DONE)
    // Another server on that port is not taken for it.
    const stranger = new URL(api.url).port
    const { stderr } = await run([
      '--set',
      `listen.tls=${tls}`,
      '--set',
      `admin.listen.port=${stranger}`,
      '--token',
      TOKEN,
    ])
    expect(stderr).toContain('is not trusted')
  })

  test.each([
    ['/nonexistent.pem', 'cannot be read (ENOENT)'],
    ['/dev/null', 'holds no PEM certificate'],
  ])('--ca-file %s is wrong use', async (file, reason) => {
    const { code, stderr } = await run([...open(), '--ca-file', file])
    expect([code, stderr]).toEqual([2, `--ca-file: ${file} ${reason}`])
  })
})

describe('the connection', () => {
  test('goes over a Unix socket', async () => {
    await using folder = await makeTempFolder()
    const socket = join(folder.path, 'admin.sock')
    await using other = await AdminStandIn.start({ socket })
    other.answer('GET origins', OriginList, { items: [], next: null })
    expect(await run(['--server', `unix:${socket}`, '--token', TOKEN])).toEqual(DONE)
    const set = ['--set', `admin.listen={socket: ${socket}}`, '--set', `admin.token=${TOKEN}`]
    expect(await run(set)).toEqual(DONE)
  })

  test.each([
    ['https://localhost:1/', 'nothing listens at https://localhost:1/; is the mirror running?'],
    ['unix:/nonexistent.sock', 'there is no socket at unix:/nonexistent.sock; is the mirror running?'],
    ['https://mirror.invalid/', 'the name in https://mirror.invalid/ cannot be looked up'],
  ])('to %s fails with what is wrong', async (server, reason) => {
    const { code, stdout, stderr } = await run(['--server', server, '--token', TOKEN])
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain(reason)
  })

  test('to something that speaks another protocol says so', async () => {
    await using plain = await listen(createServer((_request, response) => response.end('<html>')))
    const tls = await run(['--server', `https://localhost:${plain.port}/`, '--token', TOKEN])
    expect(tls.stderr).toContain('answers, but not as a TLS server does')
    const http = await run(['--server', `http://localhost:${new URL(api.url).port}/`, '--token', TOKEN])
    expect(http.stderr).toContain('does not speak plain http; try https')
    const html = await run(['--server', `http://localhost:${plain.port}/`, '--token', TOKEN])
    expect(html.stderr).toContain('is not the admin API of a mirror: it answers with status 200')
  })

  test('that is closed without an answer says so', async () => {
    await using broken = await listen(createServer((request) => request.socket.destroy()))
    const { code, stderr } = await run(['--server', `http://localhost:${broken.port}/`, '--token', TOKEN])
    expect([code, stderr]).toEqual([1, expect.stringContaining(`http://localhost:${broken.port}/`)])
  })
})

describe('an answer', () => {
  test('of the public listener is told from one of the admin API', async () => {
    api.route('GET origins', () => ({
      status: 404,
      body: { ...Object(problem('ROUTE_NOT_FOUND', 'x')), base_url: 'x' },
    }))
    const { code, stderr } = await run(api.options)
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('is where the mirror serves clients, not its admin API'),
    ])
  })

  test('of an older admin API that lacks a route says so', async () => {
    const body = { ...Object(problem('ROUTE_NOT_FOUND', 'x')), base_url: '/admin/api/v1/' }
    api.route('GET origins', () => ({ status: 404, body }))
    const { code, stderr } = await run(api.options)
    expect([code, stderr]).toEqual([1, expect.stringContaining('does not have this yet; use the command of the same')])
  })

  test('of another version names both', async () => {
    api.route('GET origins', () => ({ body: { items: [{ host: 7 }], next: null } }))
    api.route('GET openapi.json', () => ({ body: { openapi: '3.1.0', info: { version: '9.9.9', title: 'x' } } }))
    const { code, stderr } = await run(api.options)
    expect(code).toBe(1)
    expect(stderr).toMatch(/cannot be read \(items\.0\.host\): it is version 9\.9\.9, this is 0\.0\.0-test/)
  })

  test('that refuses is told with its code and request, and harmless for a terminal', async () => {
    api.route('GET origins', () => ({ status: 503, body: problem('SHUTTING_DOWN', 'the mirror \u001b[2Jstops') }))
    const { code, stderr } = await run(api.options)
    expect([code, stderr]).toEqual([1, expect.stringContaining('stops (SHUTTING_DOWN, request req-1)')])
    api.route('GET origins', () => ({
      status: 400,
      body: { ...Object(problem('REQUEST_INVALID', 'the request is wrong')), problems: ['query.limit: too small'] },
    }))
    const wrong = await run(api.options)
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('\nquery.limit: too small')])
  })
})

async function listen(server: Server): Promise<{ port: number } & AsyncDisposable> {
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}
