import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { writeApplication } from '../../packaging/application.ts'
import { PROJECT } from '../../packaging/bundle.ts'
import { PROCESS_ENV, spawnMirror } from '../e2e/mirror-fixture.ts'
import { startOrigin } from '../origin/origin.ts'
import { pairsOf, readDockerfile, type Stage } from './dockerfile.ts'
import { asStranger, canIsolate, readOnly, STRANGER } from './stranger.ts'

const DOCKERFILE = join(PROJECT, 'Dockerfile')

describe('the Dockerfile', () => {
  const stages = readDockerfile(DOCKERFILE)
  const image = stages.at(-1) as Stage

  function only(keyword: string): string {
    const found = image.instructions.filter((each) => each.keyword === keyword)
    expect(found).toHaveLength(1)
    return found[0]?.text ?? ''
  }

  test('builds on Node 24 by default, and every stage on another base if one is given', () => {
    expect(new Set(stages.map(({ base }) => base))).toEqual(new Set(['node:24-trixie-slim']))
    const BASE = `node:24-trixie-slim@sha256:${'0'.repeat(64)}`
    for (const { base } of readDockerfile(DOCKERFILE, { BASE })) expect(base).toBe(BASE)
  })

  test('leaves the tools of the build behind: all that the image gets is the application and its configuration', () => {
    const copies = image.instructions.filter(({ keyword }) => keyword === 'COPY')
    expect(copies.map(({ text, flags }) => [flags.from, text])).toEqual([
      [undefined, 'packaging/files/image-config.yaml /etc/terramirror/config.yaml'],
      ['build', '/app /app'],
    ])
  })

  test('starts without a shell as a user that is not root, in a group that any user may have', () => {
    expect(JSON.parse(only('ENTRYPOINT'))).toEqual(['node', '--max-semi-space-size=2', '/app/dist/terramirror.js'])
    expect(JSON.parse(only('CMD'))).toEqual(['serve'])
    expect(only('USER')).toBe('65532:0')
    expect(only('STOPSIGNAL')).toBe('SIGTERM')
    expect(JSON.parse(only('VOLUME'))).toEqual(['/data'])
    expect(only('HEALTHCHECK')).toMatch(/^CMD \["node", "\/app\/dist\/terramirror\.js", "healthcheck"\]$/)
  })

  test('has the memory flag of npm start', () => {
    const { scripts } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8'))
    expect(scripts.start).toContain(JSON.parse(only('ENTRYPOINT')).slice(0, 2).join(' '))
  })

  test('says what it is in OCI labels, with the version and revision that it was built from', () => {
    const built = readDockerfile(DOCKERFILE, { VERSION: '1.2.3', REVISION: 'abc' }).at(-1)
    const labels = pairsOf(built?.instructions.find(({ keyword }) => keyword === 'LABEL')?.text ?? '')
    const manifest = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8'))
    expect(labels).toEqual({
      'org.opencontainers.image.title': 'Terramirror',
      'org.opencontainers.image.description': manifest.description.replace(/\.$/, ''),
      'org.opencontainers.image.licenses': manifest.license,
      'org.opencontainers.image.version': '1.2.3',
      'org.opencontainers.image.revision': 'abc',
    })
  })

  test('gets no file from a working folder but those that it copies', async () => {
    const ignored = (await readFile(join(PROJECT, '.dockerignore'), 'utf8'))
      .split('\n')
      .filter((line) => /^[^#]/.test(line))
    const [first, ...kept] = ignored
    expect(first).toBe('*')
    const copied = stages.flatMap(({ instructions }) =>
      instructions
        .filter(({ keyword, flags }) => keyword === 'COPY' && flags.from === undefined)
        .flatMap(({ text }) => text.split(' ').slice(0, -1)),
    )
    expect(new Set(kept)).toEqual(new Set(copied.map((path) => `!${path.split('/')[0]}`)))
  })

  test('brings a configuration under which other machines reach it, and its data is in the volume', async () => {
    const config = parse(await readFile(join(PROJECT, 'packaging/files/image-config.yaml'), 'utf8'))
    expect(config).toEqual({ listen: { host: '0.0.0.0' }, dataDir: '/data' })
  })
})

describe.runIf(canIsolate)('the application as a container has it', () => {
  let folder: string
  let main: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'test-image-'))
    await chmod(folder, 0o755)
    await writeApplication(join(folder, 'app'))
    main = join(folder, 'app/dist/terramirror.js')
    await copyFile(join(PROJECT, 'packaging/files/image-config.yaml'), join(folder, 'config.yaml'))
  })

  afterAll(() => rm(folder, { recursive: true, force: true }))

  /** A volume as Kubernetes and Docker mount it: of another user, open to group 0. */
  async function makeVolume(name: string, mode = 0o775): Promise<string> {
    await mkdir(join(folder, name))
    await chmod(join(folder, name), mode)
    return join(folder, name)
  }

  test('serves as a user that nobody knows, with a read-only root and one volume of another user (B77)', async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    const volume = await makeVolume('volume')
    // All is read-only but the volume: not even a place for temporary files.
    const script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro / && shift && exec "$@"'
    const isolated = ['unshare', '--mount', 'sh', '-c', script, 'sh', volume] as const
    await using mirror = await spawnMirror({
      origin,
      folder: volume,
      program: [...isolated, ...asStranger([process.execPath, main])],
    })
    expect((await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).status, mirror.logText).toBe(200)
    expect((await stat(join(volume, 'data'))).uid).toBe(STRANGER)
    const { port } = new URL(mirror.url)
    const check = [main, 'healthcheck', '--config', join(volume, 'config.yaml'), '--set', `listen.port=${port}`]
    const [command, ...args] = asStranger([process.execPath, ...check])
    const checked = spawn(command, args, { env: PROCESS_ENV })
    expect(await once(checked, 'exit')).toEqual([0, null])
  })

  test('says in one line what is wrong with a volume that it may not write (B77)', async () => {
    const volume = await makeVolume('closed', 0o755)
    const [command, ...args] = readOnly(join(folder, 'app'), asStranger([process.execPath, main]))
    const child = spawn(command, [...args, 'serve', '--set', `dataDir=${volume}/data`], {
      cwd: folder,
      env: PROCESS_ENV,
    })
    const [[code], stderr] = await Promise.all([once(child, 'exit'), text(child.stderr)])
    expect(code).toBe(1)
    expect(stderr).toMatch(new RegExp(`^terramirror: Cannot write data folder ${volume}/data as uid ${STRANGER}.*\n$`))
  })

  test.each(['"msg":"configuration"', 'terraform init'])(
    'as process 1 it stops at SIGTERM, also one after %s',
    async (mark) => {
      const volume = await makeVolume(`volume-${mark.length}`)
      const config = ['--set', `dataDir=${volume}`, '--set', 'listen.port=0', '--set', 'log.level=debug']
      const namespace = ['--pid', '--fork', '--kill-child', '--mount-proc']
      const child = spawn('unshare', [...namespace, process.execPath, main, 'serve', ...config], { env: PROCESS_ENV })
      let output = ''
      const seen = Promise.withResolvers<void>()
      for (const stream of [child.stdout, child.stderr]) {
        stream.on('data', (data) => {
          output += data
          if (output.includes(mark)) seen.resolve()
        })
      }
      await seen.promise
      const [pid] = (await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')).split(' ')
      onTestFinished(() => void child.kill('SIGKILL'))
      process.kill(Number(pid), 'SIGTERM')
      expect(await once(child, 'exit'), output).toEqual([0, null])
      expect(output).toContain('"msg":"stopped"')
    },
  )
})
