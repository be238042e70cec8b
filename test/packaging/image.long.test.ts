import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { PROJECT } from '../../packaging/bundle.ts'
import { spawnMirror } from '../e2e/mirror-fixture.ts'
import { startOrigin } from '../origin/origin.ts'
import { readDockerfile } from './dockerfile.ts'
import { type BuiltImage, buildImage } from './image-build.ts'
import { canIsolate, STRANGER } from './stranger.ts'

/*
 * The Dockerfile, built for real and started as an engine would start it. Takes minutes, root and the registries of
 * Debian and npm: run by `npm run test:image`.
 */

const run = promisify(execFile)
const MINUTE = 60_000
const canBuild = canIsolate && spawnSync('debootstrap', ['--version']).status === 0
if (!canBuild) console.warn('SKIPPED: no debootstrap, the image is not built')

describe.runIf(canBuild)('the image', () => {
  let folder: string
  let image: BuiltImage

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'test-image-'))
    await chmod(folder, 0o755)
    image = await buildImage(readDockerfile(join(PROJECT, 'Dockerfile')), folder)
  }, 15 * MINUTE)
  afterAll(() => rm(folder, { recursive: true, force: true }), MINUTE)

  /** Runs a command in the image, read-only but for one volume, with a network of its own if `alone`. */
  function inside(user: string, volume: string, at: string, command: readonly string[]): [string, ...string[]] {
    const script = `
      ip link set lo up 2>/dev/null; mkdir -p "$1$3" && mount --bind "$1" "$1" && mount --bind "$2" "$1$3" &&
      mount --bind /dev "$1/dev" && mount -t proc proc "$1/proc" && mount -o remount,bind,ro "$1" &&
      exec chroot --userspec="$4" --groups=0 "$1" env -i -C ${image.workdir} PATH=/usr/local/bin:/usr/bin:/bin "\${@:5}"`
    return ['bash', '-c', script, 'bash', image.root, volume, at, user, ...command]
  }

  async function makeVolume(name: string): Promise<string> {
    const volume = join(folder, name)
    await mkdir(volume)
    await chown(volume, 65532, 0)
    await chmod(volume, 0o775)
    return volume
  }

  test('has the application, git and public roots, and nothing of the tools that made it', async () => {
    const { root } = image
    expect((await readdir(join(root, 'app'))).sort()).toEqual([
      'CONTRIBUTING.md',
      'LICENSE',
      'README.md',
      'THIRD-PARTY-LICENSES.txt',
      'config.example.yaml',
      'deploy',
      'dist',
      'docs',
      'node_modules',
      'package.json',
      'packaging',
      'sbom.cdx.json',
    ])
    expect((await readdir(join(root, 'app/node_modules'))).sort()).toEqual(['eckey-utils', 'openpgp'])
    expect((await run('chroot', [root, 'git', '--version'])).stdout).toMatch(/^git version 2/)
    expect(await readFile(join(root, 'etc/ssl/certs/ca-certificates.crt'), 'utf8')).toContain('BEGIN CERTIFICATE')
    expect(await readdir(join(root, 'var/lib/apt/lists'))).toEqual([])
    const data = await stat(join(root, 'data'))
    expect([data.uid, data.gid, data.mode & 0o777]).toEqual([65532, 0, 0o775])
    const { stdout } = await run('chroot', ['--userspec=65532:0', root, 'id', '-un'])
    expect(stdout).toBe('terramirror\n')
  })

  test('starts as it says, with a read-only root, as process 1; its own health check finds it well; it stops at SIGTERM', async () => {
    const volume = await makeVolume('volume')
    const namespaces = ['--mount', '--net', '--pid', '--fork', '--kill-child']
    const child = spawn('unshare', [...namespaces, ...inside(image.user, volume, '/data', image.command)])
    onTestFinished(() => void child.kill('SIGKILL'))
    const output = text(child.stderr)
    let told = ''
    for await (const chunk of child.stdout) {
      told += chunk
      if (told.includes('terraform init')) break
    }
    expect(told).toContain('https://localhost:8443/providers/')
    const [pid = ''] = (await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')).split(' ')
    const check = ['chroot', `--userspec=${image.user}`, '/', 'env', '-C', image.workdir, ...image.healthCheck]
    const enter = ['--target', pid, '--mount', '--net', '--pid', '--root']
    await run('nsenter', [...enter, ...check], { env: { PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/bin' } })
    const bundle = await readFile(join(volume, 'state/tls/ca-bundle.pem'), 'utf8')
    expect(bundle.match(/BEGIN CERTIFICATE/g)?.length).toBeGreaterThan(100)
    process.kill(Number(pid), 'SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
    expect(await output).toContain('"msg":"stopped"')
  })

  test('installs a provider as a user that nobody knows, on a volume of another user', async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    const volume = await makeVolume('foreign')
    const command = image.command.filter((word) => word !== 'serve')
    const program = ['unshare', '--mount', ...inside(`${STRANGER}:0`, volume, volume, command)] as [string, ...string[]]
    await using mirror = await spawnMirror({ origin, folder: volume, program })
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status, mirror.logText).toBe(200)
    const hashes = async () => (await mirror.version('acme/widget', '1.0.0')).json().archives.linux_amd64.hashes
    await expect.poll(hashes, { timeout: MINUTE }).toEqual([expect.any(String), expect.stringMatching(/^h1:/)])
  })
})
