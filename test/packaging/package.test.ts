import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findBuildTime, writeArchive } from '../../packaging/archive.ts'
import { PROJECT } from '../../packaging/bundle.ts'
import type { Architecture } from '../../packaging/node-runtime.ts'
import { writePackage } from '../../packaging/package.ts'
import { spawnMirror } from '../e2e/mirror-fixture.ts'
import { startOrigin } from '../origin/origin.ts'
import { readOnly } from './stranger.ts'

const run = promisify(execFile)
const TIME = 1_700_000_000

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'test-package-'))
  await chmod(folder, 0o755)
})
afterAll(() => rm(folder, { recursive: true, force: true }))

describe('the archive', () => {
  async function pack(parent: string, order: readonly string[], mode: number): Promise<Buffer> {
    await mkdir(join(folder, parent, 'top/inner'), { recursive: true })
    for (const name of order) {
      const file = join(folder, parent, 'top', name)
      await writeFile(file, `text of ${name}\n`.repeat(5000))
      await chmod(file, name === 'run' ? mode | 0o100 : mode)
      await utimes(file, Math.random() * 1e9, Math.random() * 1e9)
    }
    const file = join(folder, `${parent}.tar.gz`)
    await writeArchive(file, { parent: join(folder, parent), name: 'top', time: TIME })
    return readFile(file)
  }

  test('of equal files has equal bytes, whoever made them, when, where and in which order', async () => {
    const one = await pack('one', ['b', 'a', 'run', 'inner/c'], 0o600)
    const two = await pack('another', ['inner/c', 'run', 'a', 'b'], 0o664)
    expect(two.equals(one)).toBe(true)
    expect([...one.subarray(0, 10)]).toEqual([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
    expect(gunzipSync(one).length).toBeGreaterThan(200_000)
    const { stdout } = await run('tar', ['-tvf', join(folder, 'one.tar.gz'), '--full-time', '--utc'])
    expect(stdout.match(/^\S+ \S+/gm)).toEqual([
      'drwxr-xr-x 0/0',
      '-rw-r--r-- 0/0',
      '-rw-r--r-- 0/0',
      'drwxr-xr-x 0/0',
      '-rw-r--r-- 0/0',
      '-rwxr-xr-x 0/0',
    ])
    expect(stdout.match(/2023-11-14 22:13:20/g)).toHaveLength(6)
  })

  test('that tar cannot make is an error with its words', async () => {
    const file = join(folder, 'none.tar.gz')
    await expect(writeArchive(file, { parent: folder, name: 'nothing-here', time: TIME })).rejects.toThrow(
      /nothing-here/,
    )
  })

  test('takes its time from SOURCE_DATE_EPOCH, else from the last commit', async () => {
    expect(await findBuildTime({ SOURCE_DATE_EPOCH: '12345' })).toBe(12345)
    await expect(findBuildTime({ SOURCE_DATE_EPOCH: 'today' })).rejects.toThrow('SOURCE_DATE_EPOCH')
    const { stdout } = await run('git', ['log', '-1', '--format=%ct'], { cwd: PROJECT })
    expect(await findBuildTime({})).toBe(Number(stdout))
  })
})

describe(`the package for linux-${process.arch}`, () => {
  let root: string

  beforeAll(async () => {
    const architecture = process.arch as Architecture
    const file = await writePackage({ architecture, folder: join(folder, 'out'), time: TIME, level: 1 })
    expect(basename(file)).toMatch(/^terramirror-\d+\.\d+\.\d+-linux-(x64|arm64)\.tar\.gz$/)
    await run('tar', ['-xzf', file, '-C', folder])
    root = join(folder, basename(file, '.tar.gz'))
  })

  test('has a sum for every file, and they agree', async () => {
    await run('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: root })
    const entries = await readdir(root, { recursive: true, withFileTypes: true })
    const files = entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(relative(root, entry.parentPath), entry.name))
    const listed = (await readFile(join(root, 'SHA256SUMS'), 'utf8')).match(/(?<=^\w{64} {2}).+$/gm)
    expect(listed?.toSorted()).toEqual(files.filter((name) => name !== 'SHA256SUMS').sort())
  })

  test('holds the licence of everything in it, and a list of that without time or place', async () => {
    const sbom = await readFile(join(root, 'sbom.cdx.json'), 'utf8')
    const { components, serialNumber, metadata, dependencies } = JSON.parse(sbom)
    expect({ serialNumber, time: metadata.timestamp }).toEqual({})
    const names = components.map(({ name }: { name: string }) => name) as string[]
    expect(names).toEqual(expect.arrayContaining(['zod', 'yaml', 'undici', 'openpgp', `node-linux-${process.arch}`]))
    expect(names).not.toContain('vitest')
    const refs = new Set([metadata.component, ...components].map((each: Record<string, string>) => each['bom-ref']))
    expect(dependencies.map(({ ref }: { ref: string }) => ref)).toEqual([...refs])
    for (const { dependsOn } of dependencies) for (const ref of dependsOn) expect(refs).toContain(ref)
    const licences = await readFile(join(root, 'lib/THIRD-PARTY-LICENSES.txt'), 'utf8')
    for (const { name, version } of components) {
      if (!name.startsWith('node-linux-')) expect(licences).toContain(`\n${name} ${version} (`)
    }
    expect(licences).toContain('GNU LESSER GENERAL PUBLIC LICENSE')
    expect(await readFile(join(root, 'node/LICENSE'), 'utf8')).toContain('Node.js is licensed')
  })

  test('tells nothing of the machine that it was made on', async () => {
    const places = [PROJECT.replace(/\/$/, ''), folder, 'terramirror-package-']
    const found = spawnSync('grep', ['-rIlF', ...places.flatMap((place) => ['-e', place]), root], { encoding: 'utf8' })
    expect({ found: found.stdout, status: found.status }).toEqual({ found: '', status: 1 })
  })

  test('serves from a read-only tree in an empty environment, through a link, and stops at SIGTERM', async () => {
    await using origin = await startOrigin()
    const { sha256 } = (await origin.publish({ provider: 'acme/widget', version: '1.0.0' })).package('linux_amd64')
    await mkdir(join(folder, 'links'))
    await symlink(join(root, 'terramirror'), join(folder, 'links/absolute'))
    await symlink('absolute', join(folder, 'links/relative'))
    const link = join(folder, 'links/relative')
    await using mirror = await spawnMirror({ origin, program: readOnly(root, ['env', '-i', link]) })
    expect((await mirror.ask('/healthz')).json()).toEqual({ status: 'ok' })
    const archive = await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    expect(archive.status, mirror.logText).toBe(200)
    const hashes = async () => (await mirror.version('acme/widget', '1.0.0')).json().archives.linux_amd64.hashes
    await expect.poll(hashes).toEqual([`zh:${sha256}`, expect.stringMatching(/^h1:/)])
    const exited = once(mirror.child, 'exit')
    mirror.child.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
  })

  const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0
  if (!hasSystemd) console.warn('SKIPPED: systemd-analyze is not there, the unit is not checked')
  test.runIf(hasSystemd)('brings a unit that systemd understands and finds hardened', async () => {
    const text = await readFile(join(root, 'systemd/terramirror.service'), 'utf8')
    const unit = join(folder, 'terramirror.service')
    await writeFile(unit, text.replaceAll('/opt/terramirror/', `${root}/`))
    const { stderr } = await run('systemd-analyze', ['verify', '--man=no', unit])
    expect(stderr).toBe('')
    const { stdout } = await run('systemd-analyze', ['security', '--offline=true', unit])
    const [, exposure] = /Overall exposure level for \S+: ([\d.]+)/.exec(stdout) ?? []
    expect(Number(exposure)).toBeLessThan(1.5)
  })
})
