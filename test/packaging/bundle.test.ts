import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { writeApplication } from '../../packaging/application.ts'
import { UNBUNDLED } from '../../packaging/bundle.ts'
import type { HclJob, HclOutcome } from '../../src/hcl/hcl-reader.ts'
import { PROCESS_ENV, spawnMirror } from '../e2e/mirror-fixture.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { createOriginKey } from '../origin/origin-key.ts'
import { createTestAuthority } from '../tls-fixture.ts'

const run = promisify(execFile)

let folder: string
let main: string
let origin: TestOrigin

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'test-bundle-'))
  await chmod(folder, 0o755)
  await writeApplication(join(folder, 'program'))
  main = join(folder, 'program/dist/terramirror.js')
  origin = await startOrigin()
})

afterAll(async () => {
  await origin[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

describe('the bundle', () => {
  test('asks for nothing but modules of Node.js, its own files and the packages beside it', async () => {
    const files = (await readdir(join(folder, 'program/dist'))).filter((name) => name.endsWith('.js'))
    const asked = new Set<string>()
    for (const name of files) {
      const code = await readFile(join(folder, 'program/dist', name), 'utf8')
      for (const [, specifier = ''] of code.matchAll(/\bfrom ?["']([^"'\s]+)["'];$/gm)) asked.add(specifier)
      for (const [, specifier = ''] of code.matchAll(
        /(?:\brequire|__require|nodeRequire|\bimport) ?\(["']([^"'\s]+)["']\)/g,
      ))
        asked.add(specifier)
      for (const [, specifier = ''] of code.matchAll(/["'](\.\/[\w-]+\.js)["'], import\.meta\.url/g))
        asked.add(specifier)
    }
    expect(asked).toContain('node:https')
    expect(asked).toContain('./package-h1-worker.js')
    const foreign = [...asked].filter((name) => !isBuiltin(name) && !files.includes(name.replace(/^\.\//, '')))
    expect(UNBUNDLED).toEqual(expect.arrayContaining(foreign))
  })

  test('verifies a rare key, fetches, serves and hashes without the project around it', async () => {
    const key = await createOriginKey({ algorithm: 'secp256k1' })
    const { sha256, body } = (await origin.publish({ provider: 'acme/rare', version: '1.0.0', key })).package(
      'linux_amd64',
    )
    await using mirror = await spawnMirror({ origin, program: [process.execPath, main] })
    const archive = await mirror.archive('acme/rare', '1.0.0', 'linux_amd64')
    expect(archive.status, mirror.logText).toBe(200)
    expect(archive.body.length).toBe(body.size)
    const hashes = async () => (await mirror.version('acme/rare', '1.0.0')).json().archives.linux_amd64.hashes
    await expect.poll(hashes).toEqual([`zh:${sha256}`, expect.stringMatching(/^h1:/)])
  })

  test('reads lock files and configurations by the WebAssembly that lies beside it', async () => {
    const worker = new Worker(join(folder, 'program/dist/hcl-worker.js'))
    try {
      const ask = async (job: HclJob) => {
        worker.postMessage(job)
        const [outcome] = (await once(worker, 'message')) as [HclOutcome]
        return outcome
      }
      const text = 'provider "registry.terraform.io/hashicorp/aws" {\n  version = "5.100.0"\n}\n'
      expect(await ask({ kind: 'lockFile', text, file: 'x' })).toMatchObject({ providers: [{ version: '5.100.0' }] })
      const files = new Map([['main.tf', 'resource "null_resource" "x" {}']])
      expect(await ask({ kind: 'configuration', files, options: {} })).toMatchObject({
        facts: { providers: [{ source: { type: 'null' } }], problems: [] },
      })
    } finally {
      await worker.terminate()
    }
    const licences = await readFile(join(folder, 'program/THIRD-PARTY-LICENSES.txt'), 'utf8')
    const sbom = await readFile(join(folder, 'program/sbom.cdx.json'), 'utf8')
    for (const name of ['web-tree-sitter', '@tree-sitter-grammars/tree-sitter-hcl']) {
      expect(licences).toContain(`\n${name} `)
      expect(sbom).toContain(`"name": "${name}"`)
    }
  })

  test('starts again without what only a first start, a request to an origin or a signature needs', async () => {
    const place = join(folder, 'lean')
    await mkdir(place)
    const start = () => spawnMirror({ origin, folder: place, program: [process.execPath, main] })
    await using first = await start()
    const { caPem } = first
    await first.kill()
    const needless = [
      'dist/x509.cjs.js',
      'dist/Reflect.js',
      'dist/dispatchers.js',
      'dist/health-check.js',
      'node_modules',
    ]
    for (const name of needless) await rename(join(folder, 'program', name), join(folder, name.replace('/', '-')))
    try {
      await using again = await start()
      expect((await again.ask('/readyz')).status).toBe(200)
      expect(again.caPem).toBe(caPem)
    } finally {
      for (const name of needless) await rename(join(folder, name.replace('/', '-')), join(folder, 'program', name))
    }
  })

  test('names the sources in the stack of a bug', async () => {
    const breaks = 'import net from "node:net"; net.Server.prototype.listen = () => { throw new TypeError("broken") }'
    const args = ['--import', `data:text/javascript,${encodeURIComponent(breaks)}`, main, '--set', 'listen.tls=off']
    const failed = run(process.execPath, [...args, '--set', `dataDir=${folder}/bug`], { env: PROCESS_ENV })
    await expect(failed).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/TypeError: broken\n(.*\n)*.*\bsrc\/listener\.ts:\d+:\d+/),
    })
  })
})

describe('compiled code is kept for the next start', () => {
  let temp: string
  const uid = process.getuid?.()

  beforeEach(async () => {
    temp = await mkdtemp(join(folder, 'tmp-'))
  })

  /** Runs the program once with this folder for temporary files. Tells what it left there. */
  async function start(env: Record<string, string> = {}): Promise<string[]> {
    const { stdout } = await run(process.execPath, [main, '--version'], { env: { TMPDIR: temp, ...env } })
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
    return readdir(join(temp, `terramirror-${uid}`)).catch(() => [])
  }

  test('in a folder that only this user may write', async () => {
    expect(await start()).toEqual([expect.stringMatching(/^v24/)])
    expect((await stat(join(temp, `terramirror-${uid}`))).mode & 0o777).toBe(0o700)
  })

  test('where NODE_COMPILE_CACHE says, if it does', async () => {
    expect(await start({ NODE_COMPILE_CACHE: join(temp, 'chosen') })).toEqual([])
    expect(await readdir(join(temp, 'chosen'))).toHaveLength(1)
  })

  test('not in a folder that others may write, who could put their code there', async () => {
    await mkdir(join(temp, `terramirror-${uid}`))
    await chmod(join(temp, `terramirror-${uid}`), 0o770)
    expect(await start()).toEqual([])
  })

  test.runIf(uid === 0)('not in a folder of another user', async () => {
    await mkdir(join(temp, `terramirror-${uid}`), { mode: 0o700 })
    await chown(join(temp, `terramirror-${uid}`), 54321, 54321)
    expect(await start()).toEqual([])
  })

  test('and where there is no place for it, all works without', async () => {
    expect(await start({ TMPDIR: join(temp, 'none', 'of', 'these'), HOME: '/nonexistent' })).toEqual([])
    await writeFile(join(temp, 'file'), '')
    expect(await start({ TMPDIR: join(temp, 'file') })).toEqual([])
  })
})

describe('healthcheck', () => {
  async function check(config: string, ...args: string[]) {
    const done = run(process.execPath, [main, 'healthcheck', '--config', config, ...args], { env: PROCESS_ENV })
    return done.then(
      () => ({ code: 0, stderr: '' }),
      ({ code, stderr }: { code: number; stderr: string }) => ({ code, stderr }),
    )
  }

  test('is 0 while the mirror answers, and 1 with one line that says why when it does not', async () => {
    const authority = await createTestAuthority()
    const { cert, key } = await authority.issue(['mirror.example.test'])
    await writeFile(join(folder, 'cert.pem'), cert)
    await writeFile(join(folder, 'key.pem'), key)
    await writeFile(join(folder, 'client-ca.pem'), authority.caPem)
    const files = { certFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') }
    for (const tls of ['auto', 'off', files, { ...files, clientCaFile: join(folder, 'client-ca.pem') }]) {
      await using mirror = await spawnMirror({
        origin,
        config: { listen: { host: '0.0.0.0', port: 0, tls } },
        program: [process.execPath, main],
      })
      const { port } = new URL(mirror.url)
      const config = join(mirror.folder, 'config.yaml')
      expect(await check(config, '--set', `listen.port=${port}`), JSON.stringify(tls)).toEqual({ code: 0, stderr: '' })
      await mirror.kill()
      expect(await check(config, '--set', `listen.port=${port}`)).toEqual({
        code: 1,
        stderr: `terramirror: 127.0.0.1 port ${port} does not answer: ECONNREFUSED\n`,
      })
    }
  })

  test('does not take another server on the port for the mirror', async () => {
    await using mirror = await spawnMirror({ origin, program: [process.execPath, main] })
    await using other = await spawnMirror({ origin, program: [process.execPath, main] })
    const { port } = new URL(other.url)
    const { code, stderr } = await check(join(mirror.folder, 'config.yaml'), '--set', `listen.port=${port}`)
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('does not answer: ') })
  })
})
