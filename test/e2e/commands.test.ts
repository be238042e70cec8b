import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runOnTerminal, terminalAvailable } from '../cli/pseudo-terminal.ts'
import { runCommand } from '../cli/run-command.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { publishSampleModules } from '../origin/sample-modules.ts'
import { PROGRAM } from '../programs.ts'
import { PROCESS_ENV, type SpawnedMirror, spawnMirror } from './mirror-fixture.ts'
import { HOST } from './mirror-workspace.ts'
import { createModuleWorkspace } from './module-door.ts'
import { CURRENT_PLATFORM, terraformAvailable } from './terraform-cli.ts'

/*
 * The commands against a real mirror, which they find by its configuration alone: its socket, its token.
 */

const WIDGET = `${HOST}/acme/widget`
const ITEM = `${WIDGET} 1.1.0 ${CURRENT_PLATFORM}`

let opened: AsyncDisposableStack
let origin: TestOrigin
let mirror: SpawnedMirror

beforeAll(async () => {
  opened = new AsyncDisposableStack()
  origin = opened.use(await startOrigin())
  for (const version of ['1.0.0', '1.1.0', '2.0.0']) {
    await origin.publish({
      provider: 'acme/widget',
      version,
      platforms: ['linux_amd64', 'linux_arm64', 'darwin_arm64'],
    })
  }
  await origin.publish({ provider: 'acme/gadget', version: '3.0.0', platforms: ['linux_amd64', 'linux_arm64'] })
  await publishSampleModules(origin, opened)
  mirror = opened.use(await startSocketMirror())
})
afterAll(() => opened.disposeAsync())

function startSocketMirror(): Promise<SpawnedMirror> {
  const admin = { listen: { socket: './admin.sock' } }
  return spawnMirror({ origin, config: { admin, origins: { [HOST]: { allowPrivateAddresses: true } } } })
}

const here = (of = mirror) => ['--config', join(of.folder, 'config.yaml')]
const run = (...args: string[]) => runCommand([...args, ...here()])
const json = async (...args: string[]) => JSON.parse((await run(...args, '--json')).stdout)

/** Runs the program as a process of its own, without a terminal. */
async function runProcess(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const [program, ...first] = PROGRAM
  const child = spawn(program, [...first, ...args], { env: PROCESS_ENV, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: Number(code), stdout, stderr }
}

describe('warm', () => {
  test('brings what was asked for, is told what it is worth, and repeats nothing', async () => {
    const plan = await run('warm', `${WIDGET}@~> 1.0`, '--platform', CURRENT_PLATFORM, '--dry-run')
    expect([plan.code, plan.stdout]).toEqual([0, expect.stringContaining(ITEM)])
    const first = await runProcess('warm', `${WIDGET}@~> 1.0`, '--platform', CURRENT_PLATFORM, ...here())
    expect(first, mirror.logText).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^warm done in .*: 1 fetched; /),
    })
    expect(first.stderr).not.toContain('\u001b')
    const second = await run('warm', `${WIDGET}@1.1.0`, '--platform', CURRENT_PLATFORM)
    expect(second).toMatchObject({ code: 0, stdout: expect.stringMatching(/: 1 held already; /) })
  })

  test('tells what is not published, with exit code 1, and what is no constraint, with 2', async () => {
    const absent = await run('warm', `${WIDGET}@1.1.0`, `${HOST}/acme/nothing`, '--platform', CURRENT_PLATFORM)
    expect(absent.code).toBe(1)
    expect(absent.stdout).toMatch(/acme\/nothing.*not published/)
    expect((await run('warm', `${WIDGET}@1.x`)).code).toBe(2)
    expect((await run('warm', '--lock-file', '/etc/hosts')).code).toBe(2)
  })

  test.skipIf(!terminalAvailable())('shows bars on a terminal while it runs', async () => {
    using _fault = origin.fault({ kind: 'archive', provider: 'acme/gadget' }, { delayMs: 1500 })
    const args = ['warm', `${HOST}/acme/gadget`, '--platform', 'linux_amd64', '--platform', 'linux_arm64']
    await using terminal = runOnTerminal([...args, ...here()])
    await terminal.waitFor(/items \[-+\] 0 of 2/)
    expect(await terminal.exitCode, terminal.screen).toBe(0)
    expect(terminal.screen).toMatch(/warm done in .*: 2 fetched; /)
  })

  test('goes on with the job when the mirror is killed and started again', async () => {
    await using other = await startSocketMirror()
    const fault = origin.fault({ kind: 'archive', version: '2.0.0' }, { hang: true })
    const words = ['warm', `${WIDGET}@2.0.0`, '--platform', 'linux_amd64', '--json']
    const running = runProcess(...words, ...here(other))
    await expect.poll(() => fault.struck, { timeout: 30_000 }).toBeGreaterThan(0)
    await other.kill()
    fault.clear()
    await other.start()
    const { code, stdout, stderr } = await running
    expect(JSON.parse(stdout)).toMatchObject({ state: 'done', outcomes: { done: 1 } })
    expect(code, stderr).toBe(0)
  })
})

test.skipIf(terraformAvailable() === undefined)(
  'a configuration folder that was warmed is installed by the real client without the origin',
  async () => {
    await using other = await startSocketMirror()
    const net = { source: `${HOST}/acme/net/aws`, version: '~> 1.0' }
    await using workspace = await createModuleWorkspace(other, { net, beside: { source: '../modules/beside' } })
    const beside = join(workspace.dir, '..', 'modules', 'beside')
    await mkdir(beside, { recursive: true })
    const requirements = `gadget = {\n source = "${HOST}/acme/gadget"\n version = ">= 2.0"\n }`
    await writeFile(
      join(beside, 'main.tf'),
      `terraform {\n required_providers {\n ${requirements}\n }\n}\noutput "name" {\n value = "beside"\n}\n`,
    )
    const root = `widget = {\n source = "${WIDGET}"\n version = "~> 1.0"\n }`
    await writeFile(join(workspace.dir, 'versions.tf'), `terraform {\n required_providers {\n ${root}\n }\n}\n`)
    const warmed = await runCommand([
      'warm',
      workspace.dir,
      '--platform',
      CURRENT_PLATFORM,
      '--pin',
      'prod',
      ...here(other),
    ])
    expect(warmed.code, warmed.stdout + warmed.stderr).toBe(0)
    expect(warmed.stdout).toMatch(/: 3 fetched; /)
    await origin.stop()
    try {
      const init = await workspace.run(['init'])
      expect(init.code, init.output).toBe(0)
      expect(await workspace.installed()).toEqual([
        `${HOST}/acme/gadget/3.0.0/${CURRENT_PLATFORM}`,
        `${WIDGET}/1.1.0/${CURRENT_PLATFORM}`,
      ])
    } finally {
      await origin.start()
    }
    const purge = await runCommand(['purge', WIDGET, '--yes', ...here(other)])
    expect([purge.code, purge.stdout]).toEqual([1, expect.stringContaining('because they are pinned')])
  },
)

describe('what is held', () => {
  test('is listed, shown, explained and counted', async () => {
    await run('warm', `${WIDGET}@1.1.0`, '--module', `${HOST}/acme/net/aws@1.0.0`, '--platform', CURRENT_PLATFORM)
    expect((await run('list', 'widget')).stdout).toMatch(new RegExp(`^${WIDGET} +1\\.1\\.0 +${CURRENT_PLATFORM} `, 'm'))
    expect((await run('list', '--modules')).stdout).toContain(`${HOST}/acme/net/aws`)
    const shown = await run('show', 'acme/widget', '1.1.0')
    expect(shown.stdout).toMatch(new RegExp(`^item +${ITEM}$`, 'm'))
    expect(shown.stdout).toMatch(/^authenticated +by checksums signed with key [0-9A-F]{16}, /m)
    expect((await run('show', 'acme/net/aws', '1.0.0')).stdout).toMatch(/^revision +\S+/m)
    const explained = await run('explain', WIDGET, '1.1.0')
    expect([explained.code, explained.stdout]).toEqual([0, expect.stringMatching(/^ok {2}/m)])
    expect((await json('stats')).packages.count).toBeGreaterThan(0)
    expect((await run('origins')).stdout).toMatch(new RegExp(`^${HOST} +well `, 'm'))
  })

  test('is verified, refreshed, pinned and purged', async () => {
    await run('warm', `${WIDGET}@1.0.0`, '--platform', 'linux_amd64', '--platform', 'linux_arm64')
    const verified = await run('verify', `${WIDGET} 1.0.0`)
    expect(verified, verified.stdout).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^verify done .*: \d+ well/),
    })
    expect((await run('refresh', WIDGET, '1.0.0')).code).toBe(0)
    expect((await run('pin', 'set', 'base', `${WIDGET} 1.0.0 linux_amd64`)).stdout).toMatch(
      /^pinned as base: 1 name, 1 held/,
    )
    expect((await run('pin')).stdout).toMatch(/^base +1 /m)
    const purged = await json('purge', `${WIDGET} 1.0.0`, '--yes')
    expect(purged).toMatchObject({ removed: [`${WIDGET} 1.0.0 linux_arm64`], pinned: [`${WIDGET} 1.0.0 linux_amd64`] })
    expect((await run('pin', 'delete', 'base')).code).toBe(0)
    expect((await run('pin', 'show', 'base')).code).toBe(1)
    expect((await run('purge', WIDGET, '1.0.0', '--yes')).code).toBe(0)
  })

  test('jobs are listed, shown, watched again and not cancelled twice', async () => {
    const { stdout } = await run('warm', `${WIDGET}@1.1.0`, '--detach')
    const id = stdout.trim()
    expect((await run('jobs', 'watch', id)).code).toBe(0)
    expect((await run('jobs')).stdout).toMatch(new RegExp(`^${id} +warm +done `, 'm'))
    expect((await run('jobs', 'show', id)).stdout).toContain(WIDGET)
    expect((await json('jobs', 'cancel', id)).state).toBe('done')
    expect((await run('jobs', 'show', 'no-such-job')).code).toBe(1)
  })
})

describe('reaching the mirror', () => {
  test('the public port is told from the admin API, and a wrong token is told', async () => {
    const caFile = join(mirror.dataDir, 'state', 'tls', 'ca.pem')
    const wrongPort = await runCommand(['list', '--server', mirror.url, '--token', 'x', '--ca-file', caFile])
    expect(wrongPort).toMatchObject({ code: 1, stderr: expect.stringContaining('is where the mirror serves clients') })
    expect(await run('list', '--token', 'guess')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('does not accept the token; it came from --token'),
    })
  })

  test('over TLS, with the mirror’s own authority and token found by the configuration', async () => {
    await using other = await spawnMirror({ origin, config: { admin: { listen: { port: await freePort() } } } })
    expect(await runCommand(['list', ...here(other)])).toMatchObject({ code: 0, stdout: '' })
    await other.kill()
    expect((await runCommand(['list', ...here(other)])).stderr).toMatch(/^nothing listens at https:\/\/localhost:\d+\//)
  })
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}
