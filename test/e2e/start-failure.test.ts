import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, mkdtempDisposable, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { startOrigin } from '../origin/origin.ts'
import { MAIN } from '../programs.ts'
import { PROCESS_ENV, spawnMirror } from './mirror-fixture.ts'

/** Of the system, most often older than what the mirror needs. */
const SYSTEM_NODE = '/usr/bin/node'

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'test-start-'))
  // Another user must be able to read the configuration.
  await chmod(folder, 0o755)
})

beforeEach(() => writeConfig({}))

afterAll(() => rm(folder, { recursive: true, force: true }))

interface Run {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs the command line to its end. */
async function run(
  args: readonly string[],
  { uid, node = process.execPath, program = MAIN }: { uid?: number; node?: string; program?: string } = {},
): Promise<Run> {
  const child = spawn(node, [program, ...args], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: PROCESS_ENV,
    timeout: 30_000,
    ...(uid === undefined ? {} : { uid, gid: uid }),
  })
  const [[code], stdout, stderr] = await Promise.all([once(child, 'exit'), text(child.stdout), text(child.stderr)])
  return { code, stdout, stderr }
}

async function writeConfig(config: Record<string, unknown>): Promise<string> {
  const file = join(folder, 'config.yaml')
  await writeFile(file, stringify({ listen: { port: 0 }, dataDir: './data', ...config }))
  return file
}

function serve(options?: { uid?: number }): Promise<Run> {
  return run(['serve', '--config', join(folder, 'config.yaml')], options)
}

/** A failure is one line for people on stderr, nothing on stdout, and exit code 1. */
function assertOneLine({ code, stdout, stderr }: Run, ...words: (string | RegExp)[]): void {
  expect(stderr).toMatch(/^terramirror: [^\n]+\n$/)
  for (const word of words) expect(stderr).toMatch(word)
  expect(stdout).toBe('')
  expect(code).toBe(1)
}

test('a second mirror on one data folder is refused with the process id of the first, which goes on', async () => {
  await using origin = await startOrigin()
  await using first = await spawnMirror({ origin })
  const second = await run(['serve', '--config', join(first.folder, 'config.yaml')])
  const lines = second.stderr.split('\n').filter((line) => !line.startsWith('{'))
  assertOneLine({ ...second, stderr: lines.join('\n') }, `process ${first.child.pid} on `, join(first.dataDir, 'lock'))
  expect((await first.ask('/readyz')).status).toBe(200)
  await first.kill()
  await first.start()
  expect((await first.ask('/readyz')).status).toBe(200)
})

test('a second mirror on one state folder outside of the data folders is refused too', async () => {
  await using origin = await startOrigin()
  const stateDir = join(folder, 'shared-state')
  await using first = await spawnMirror({ origin, config: { stateDir } })
  await writeConfig({ dataDir: join(folder, 'another'), stateDir })
  const second = await serve()
  const lines = second.stderr.split('\n').filter((line) => !line.startsWith('{'))
  assertOneLine({ ...second, stderr: lines.join('\n') }, `process ${first.child.pid} on `, join(stateDir, 'lock'))
  expect(first.child.exitCode).toBeNull()
})

describe('a data folder that cannot be written ends the start in one line (B77)', () => {
  test('below a regular file: it names the path and the user', async () => {
    await writeFile(join(folder, 'a-file'), 'in the way')
    await writeConfig({ dataDir: './a-file/data' })
    assertOneLine(await serve(), join(folder, 'a-file', 'data'), `uid ${process.getuid?.()}`)
  })

  test.skipIf(process.getuid?.() !== 0)('of another user: it names path, user, mode and owner', async () => {
    const dataDir = join(folder, 'of-root')
    await mkdir(dataDir)
    await chmod(dataDir, 0o755)
    await writeConfig({ dataDir })
    assertOneLine(await serve({ uid: 65_534 }), dataDir, 'uid 65534', 'mode 0755', 'owner 0:0')
  })

  test.skipIf(process.getuid?.() !== 0)('that another user cannot even make: it names path and user', async () => {
    const dataDir = join(folder, 'of-root', 'below')
    await writeConfig({ dataDir })
    assertOneLine(await serve({ uid: 65_532 }), dataDir, 'uid 65532')
  })

  test.skipIf(process.getuid?.() !== 0)('a folder of another owner with group write is enough', async () => {
    const dataDir = join(folder, 'shared')
    await mkdir(dataDir)
    execFileSync('chown', ['1234:65532', dataDir])
    await chmod(dataDir, 0o770)
    await writeConfig({ dataDir, listen: { port: 0, tls: 'auto' } })
    const child = spawn(process.execPath, [MAIN, 'serve', '--config', join(folder, 'config.yaml')], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: PROCESS_ENV,
      uid: 65_532,
      gid: 65_532,
    })
    const stderr = text(child.stderr)
    const ended = once(child, 'exit')
    const [notice] = await Promise.race([once(child.stdout, 'data'), ended.then(async () => [await stderr])])
    expect(String(notice)).toMatch(/^Terramirror serves /)
    child.kill('SIGTERM')
    expect((await ended)[0]).toBe(0)
  })

  const mount = (path: string): boolean => {
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'ro,mode=750', 'tmpfs', path], { stdio: 'ignore' })
      return true
    } catch {
      console.warn('SKIPPED: no read-only volume here: mounting a tmpfs is not permitted')
      return false
    }
  }

  test('on a read-only volume: it names path, user and mode', async ({ skip }) => {
    await using volume = await mkdtempDisposable(join(tmpdir(), 'test-read-only-'))
    if (!mount(volume.path)) return skip()
    try {
      await writeConfig({ dataDir: volume.path })
      assertOneLine(await serve(), volume.path, 'uid 0', 'mode 0750', 'EROFS')
    } finally {
      execFileSync('umount', ['-l', volume.path])
    }
  })
})

describe('a wrong configuration ends the start in one line that says what is wrong', () => {
  const wrong: [string, Record<string, unknown>, RegExp][] = [
    ['an unknown key', { datDir: './data' }, /datDir.*dataDir/],
    ['an unknown key inside', { upstream: { retrys: 3 } }, /upstream\.retrys.*retries/],
    ['a value of another kind', { listen: { port: 'many' } }, /listen\.port/],
    ['a host that is none', { origins: { 'not a host': {} } }, /not a host/],
    ['a variable that is not set', { upstream: { proxy: `${'$'}{env:NOT_SET_ANYWHERE}` } }, /NOT_SET_ANYWHERE/],
    [
      'a certificate that is not there',
      { listen: { tls: { certFile: './no.crt', keyFile: './no.key' } } },
      /no\.(crt|key)/,
    ],
    ['something that is not built yet', { policy: {} }, /policy/],
    ['a default origin that is not served', { defaultOrigin: 'elsewhere.example' }, /defaultOrigin.*origins/],
  ]

  test.each(wrong)('%s', async (_, config, words) => {
    await writeConfig(config)
    assertOneLine(await serve(), words)
  })

  test('a file that is not YAML', async () => {
    await writeFile(join(folder, 'config.yaml'), 'listen: { port: [\n')
    assertOneLine(await serve(), /config\.yaml/)
  })

  test('a file that is not there', async () => {
    assertOneLine(await run(['serve', '--config', './absent.yaml']), /absent\.yaml/)
  })

  test('a --set that is no key=value, or names no key', async () => {
    assertOneLine(await run(['serve', '--set', 'nonsense']), /--set.*KEY=VALUE/)
    assertOneLine(await run(['serve', '--set', 'listen.prot=1']), /listen\.prot.*port/)
  })

  test('a port that is taken', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : 0
    await writeConfig({ listen: { port }, admin: 'off' })
    const { stderr, ...rest } = await serve()
    server.close()
    const lines = stderr.split('\n').filter((line) => !line.startsWith('{'))
    assertOneLine({ ...rest, stderr: lines.join('\n') }, `port ${port}`, 'another process listens there')
    // Nothing is left behind that would stop the next start.
    await expect(readFile(join(folder, 'data', 'lock'))).rejects.toThrow('ENOENT')
  })
})

describe('wrong use of the command line is exit code 2, help is 0', () => {
  test.each([
    [['serve', '--nope'], /--nope/],
    [['serve', '--config'], /--config/],
    [
      ['bogus'],
      /^error: unknown command 'bogus'; there are serve, healthcheck, client-config, doctor, warm, list, .*, origins\n$/,
    ],
    [['serve', 'extra'], /^error: unknown command 'extra'/],
    [['mode=sealed'], /^error: 'mode=sealed' belongs behind --set; with npm: npm start -- --set mode=sealed\n$/],
  ])('%j', async (args, words) => {
    const { code, stdout, stderr } = await run(args)
    expect(stderr).toMatch(words)
    expect(stdout).toBe('')
    expect(code).toBe(2)
  })

  test.each([['--help'], ['--version'], ['serve', '--help']])('%s %s', async (...args) => {
    const { code, stdout, stderr } = await run(args.filter((arg) => arg !== undefined))
    expect(stdout).not.toBe('')
    expect(stderr).toBe('')
    expect(code).toBe(0)
  })
})

test('an old Node.js is told as such, in one line, before it stumbles over the code', async ({ skip }) => {
  const version = versionOf(SYSTEM_NODE)
  if (version === undefined || Number.parseInt(version, 10) >= 24) {
    console.warn(`SKIPPED: ${SYSTEM_NODE} is no Node.js older than 24`)
    return skip()
  }
  const result = await run(['--version'], { node: SYSTEM_NODE })
  assertOneLine(result, `Node.js ${version} is too old; it needs 24 or newer`)
})

/** Undefined if it is not there. */
function versionOf(node: string): string | undefined {
  try {
    return execFileSync(node, ['-p', 'process.versions.node'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  } catch {
    return undefined
  }
}
