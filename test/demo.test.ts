import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { glob, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readKey } from 'openpgp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { formatSize } from '../demo/picture.ts'
import { PROCESS_ENV } from './e2e/mirror-fixture.ts'
import { CURRENT_PLATFORM, terraformAvailable } from './e2e/terraform-cli.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const terraform = terraformAvailable()

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'test-demo-'))
  // As `npm run demo` does first: it starts what is built.
  execFileSync(process.execPath, ['--run', 'build'], { cwd: ROOT, stdio: 'inherit' })
})

afterAll(() => rm(folder, { recursive: true, force: true }))

/** A run of the demo with a temporary folder and a PATH of its own. */
interface Run {
  readonly child: ChildProcess
  /** What it leaves behind in its temporary folder. */
  readonly tempDir: string
  output(): string
  /** Waits for the end; its exit code. */
  code(): Promise<number | null>
  /** Waits until the output has a text. */
  until(text: string): Promise<void>
}

/** Starts the demo with nothing on the path but a shell and the given programs: name to path, or to a script. */
async function startDemo(
  args: readonly string[],
  programs: Readonly<Record<string, string>> = {},
  env: Readonly<Record<string, string>> = { LANG: 'C' },
): Promise<Run> {
  const place = await mkdtemp(join(folder, 'run-'))
  const [binDir, tempDir] = [join(place, 'bin'), join(place, 'tmp')]
  for (const dir of [binDir, tempDir]) await mkdir(dir)
  for (const [name, program] of Object.entries({ sh: '/bin/sh', ...programs })) {
    if (program.startsWith('#!')) await writeFile(join(binDir, name), program, { mode: 0o755 })
    else await symlink(program, join(binDir, name))
  }
  const child = spawn(process.execPath, ['demo/main.ts', ...args], {
    cwd: ROOT,
    env: { PATH: binDir, TMPDIR: tempDir, NODE_COMPILE_CACHE: PROCESS_ENV.NODE_COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (output += chunk))
  const closed = once(child, 'close')
  return {
    child,
    tempDir,
    output: () => output,
    async code() {
      const [code] = await closed
      return code
    },
    until: (text) => expect.poll(() => output, { timeout: 50_000, interval: 20 }).toContain(text),
  }
}

/** The processes that the output names are gone. */
function expectProcessesGone(output: string): void {
  const pids = [...output.matchAll(/process (\d+)/g)].map(([, pid]) => Number(pid))
  for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow('ESRCH')
}

async function readJson(...path: string[]) {
  return JSON.parse(await readFile(join(...path), 'utf8'))
}

describe('the demo without terraform and tofu on the path', () => {
  let run: Run
  let code: number | null
  beforeAll(async () => {
    run = await startDemo(['--svg', join(folder, 'demo.svg')])
    code = await run.code()
  })

  test('asks the mirror itself, says so, and succeeds', () => {
    expect(run.output()).toContain('client    this program itself (neither terraform nor tofu is on the path)')
    expect(run.output()).toMatch(
      /get https:\/\/localhost:\d+\/providers\/registry\.example\.test\/acme\/gadget\/0\.3\.0\.json/,
    )
    expect(run.output()).toContain('ok: demo installed the same 2 providers from the cache, byte for byte')
    expect(code).toBe(0)
  })

  test('leaves no process and no folder', async () => {
    expectProcessesGone(run.output())
    expect(run.output()).toMatch(/process \d+/)
    expect(await readdir(run.tempDir)).toEqual([])
  })

  test('draws in plain ASCII where the locale has no more, and without colours where there is no terminal', () => {
    expect(run.output()).toMatch(/^[\n\x20-\x7e]+$/)
    expect(run.output()).toContain('| Terramirror |')
  })

  test('draws the same output into a file', async () => {
    const svg = await readFile(join(folder, 'demo.svg'), 'utf8')
    const [, keyId = 'none'] = /acme\/widget 1\.0\.0 by key (\w+)/.exec(run.output()) ?? []
    expect(svg).toContain(keyId)
    expect(svg).toContain('>Terramirror</text>')
  })
})

describe.skipIf(terraform === undefined)('the demo with the real terraform', () => {
  const programs = { terraform: terraform ?? '' }
  let run: Run
  let code: number | null
  let kept: string
  beforeAll(async () => {
    run = await startDemo(['--keep', '--plain'], programs, { LC_ALL: 'C.UTF-8' })
    code = await run.code()
    kept = /^ {2}kept: (.*)$/m.exec(run.output())?.[1] ?? run.tempDir
  })

  test('succeeds, and keeps nothing but the folder that it names', async () => {
    expect(code, run.output()).toBe(0)
    expect((await readdir(run.tempDir)).map((name) => join(run.tempDir, name))).toEqual([kept])
    expectProcessesGone(run.output())
    expect(run.output()).toMatch(/client +Terraform \d+\.\d+\.\d+/)
  })

  test.each(['acme/widget/versions/1.0.0', 'acme/gadget/versions/0.3.0'])(
    'names the key that signed %s',
    async (path) => {
      const records = join(kept, 'data/records/providers/registry.example.test')
      const { platforms } = await readJson(records, path, 'release.json')
      const signingKeys: string = platforms[CURRENT_PLATFORM].signingKeys
      const { gpg_public_keys: keys } = await readJson(kept, 'data/blobs/sha256', signingKeys.slice(0, 2), signingKeys)
      const key = await readKey({ armoredKey: keys[0].ascii_armor })
      const name = path.replace('/versions/', ' ')
      const keyId = key.getKeyID().toHex().toUpperCase()
      expect(run.output()).toContain(`${name} by key ${keyId}, ${key.getUserIDs()[0]}`)
      expect(run.output()).toMatch(new RegExp(`${name} for \\d platforms, signed with key ${keyId}`))
    },
  )

  test('states the hashes and sizes of the bytes that are held, and the hashes that terraform locks', async () => {
    const records = join(kept, 'data/records/providers')
    let archives = 0
    for await (const path of glob('*/*/*/versions/*/archives/*.json', { cwd: records })) {
      const { digest, filename } = await readJson(records, path)
      const blob = join(kept, 'data/blobs/sha256', digest.slice(0, 2), digest)
      const actual = createHash('sha256')
        .update(await readFile(blob))
        .digest('hex')
      expect(run.output()).toContain(`  zh:${actual}\n`)
      expect(run.output()).toContain(`${filename}, ${formatSize((await stat(blob)).size)}`)
      archives += 1
    }
    expect(archives).toBe(2)
    const lock = await readFile(join(kept, 'second/.terraform.lock.hcl'), 'utf8')
    const locked = [...lock.matchAll(/"(h1:[^"]+)"/g)].map(([, hash]) => hash)
    expect(locked).toHaveLength(2)
    for (const hash of locked) expect(run.output()).toContain(`  ${hash}\n`)
  })

  test('counts what each side asked, and shows why the falsified version was refused', () => {
    expect(run.output()).toContain('asked     2 index.json, 2 VERSION.json, 2 archive (HEAD), 2 archive')
    expect(run.output()).toMatch(
      /fetched {3}1 discovery, \d version list, 6 download, 2 SHA256SUMS, 2 signature, 2 archive/,
    )
    expect(run.output()).toContain('502 CHECKSUM_MISMATCH')
    expect(run.output()).toContain('bad response code: 502')
  })

  test('draws nothing when it shall be plain', () => {
    expect(run.output()).not.toContain('┌')
    expect(run.output()).toContain('✔')
  })

  test('fails when the mirror loses what it holds before the second installation', async () => {
    const losesBlobs = `#!/bin/sh\ncase "$PWD" in */second) /bin/rm -rf ../data/blobs/sha256 ;; esac\nexec ${terraform} "$@"\n`
    const broken = await startDemo([], { terraform: losesBlobs })
    expect(await broken.code()).toBe(1)
    expect(broken.output()).toMatch(/this did not hold: terraform installed the same/)
    expect(await readdir(broken.tempDir)).toEqual([])
    expectProcessesGone(broken.output())
  })
})

describe('the demo with a program in the place of tofu', () => {
  /** Says that it is OpenTofu 1.10.0; what else it does is `action`. */
  const tofu = (action: string) =>
    `#!/bin/sh\nif [ "$1" = version ]; then echo '{"terraform_version":"1.10.0"}'; else ${action}; fi\n`

  test('one that says that it installed, and did not, is not believed', async () => {
    const run = await startDemo([], { tofu: tofu("echo '- Installed all'") })
    expect(await run.code()).toBe(1)
    expect(run.output()).toContain('client    OpenTofu 1.10.0')
    expect(run.output()).toContain('$ tofu init\n')
    expect(run.output()).toContain('FAILED: tofu installed 0 providers')
    expect(await readdir(run.tempDir)).toEqual([])
    expectProcessesGone(run.output())
  })

  test('Ctrl-C while it runs ends it too, leaves nothing, and the exit code is 130', async () => {
    const pidFile = join(folder, 'tofu.pid')
    const run = await startDemo([], { tofu: tofu(`echo $$ >'${pidFile}'; exec /bin/sleep 60`) })
    await expect.poll(() => readFile(pidFile, 'utf8').catch(() => ''), { timeout: 50_000 }).toMatch(/\n$/)
    run.child.kill('SIGINT')
    expect(await run.code()).toBe(130)
    expect(await readdir(run.tempDir)).toEqual([])
    expectProcessesGone(`${run.output()} process ${await readFile(pidFile, 'utf8')}`)
  })
})

test.each(['--- 1. Start', '$ kill'])('Ctrl-C after "%s" leaves nothing, and the exit code is 130', async (text) => {
  const run = await startDemo([])
  await run.until(text)
  run.child.kill('SIGINT')
  expect(await run.code()).toBe(130)
  expect(await readdir(run.tempDir)).toEqual([])
  expectProcessesGone(run.output())
})

describe('the command line of the demo', () => {
  test.each([
    ['--help', 0, 'Usage: npm run demo'],
    ['--halp', 2, "Unknown option '--halp'"],
    ['again', 2, "Unexpected argument 'again'"],
  ])('%s: exit code %i', async (option, code, text) => {
    const run = await startDemo([option])
    expect(await run.code()).toBe(code)
    expect(run.output()).toContain(text)
  })
})
