import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile, cp, mkdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { PROJECT } from '../../packaging/bundle.ts'
import { type Instruction, pairsOf, type Stage } from './dockerfile.ts'

const run = promisify(execFile)
const SUITE = 'trixie'
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
/** What a proxy of this machine signs with, for npm; gone from the image when it is built. */
const MACHINE_ROOTS = '/run/machine-roots.pem'

/** An image as a folder, and how it wants to be started. */
export interface BuiltImage {
  readonly root: string
  readonly user: string
  readonly workdir: string
  readonly command: readonly string[]
  readonly healthCheck: readonly string[]
}

/**
 * Builds the stages of a Dockerfile without an engine: each in a folder that starts as Debian with Node.js in the place
 * of the base image, each `RUN` for real in a chroot. Needs root, debootstrap and the registries of Debian and npm.
 */
export async function buildImage(stages: readonly Stage[], folder: string): Promise<BuiltImage> {
  const base = await makeBase()
  const built = new Map<string | undefined, StageFolder>()
  for (const stage of stages) {
    const root = join(folder, stage.name ?? 'image')
    await mkdir(root)
    await run('tar', ['-xpf', base, '-C', root])
    const made = new StageFolder(root)
    for (const instruction of stage.instructions) await made.apply(instruction, built)
    await rm(join(root, MACHINE_ROOTS), { force: true })
    built.set(stage.name, made)
  }
  const image = built.get(undefined)
  if (image === undefined) throw new Error('the last stage has a name')
  return image.describe()
}

class StageFolder {
  readonly root: string
  readonly #env: Record<string, string> = {}
  readonly #last = new Map<string, string>()

  constructor(root: string) {
    this.root = root
  }

  async apply(instruction: Instruction, stages: ReadonlyMap<string | undefined, StageFolder>): Promise<void> {
    const { keyword, text, flags } = instruction
    this.#last.set(keyword, text)
    if (keyword === 'RUN') await this.#run(text)
    else if (keyword === 'ENV') Object.assign(this.#env, pairsOf(text))
    else if (keyword === 'WORKDIR') await mkdir(join(this.root, text), { recursive: true })
    else if (keyword === 'COPY') {
      const from = flags.from === undefined ? PROJECT : stages.get(flags.from)?.root
      if (from === undefined) throw new Error(`no stage ${flags.from}`)
      await this.#copy(from, text.split(' '))
    }
  }

  describe(): BuiltImage {
    const list = (keyword: string) => JSON.parse(this.#last.get(keyword)?.replace(/^CMD /, '') ?? '[]') as string[]
    return {
      root: this.root,
      user: this.#last.get('USER') ?? '0:0',
      workdir: this.#last.get('WORKDIR') ?? '/',
      command: [...list('ENTRYPOINT'), ...list('CMD')],
      healthCheck: list('HEALTHCHECK'),
    }
  }

  async #run(command: string): Promise<void> {
    const script = `
      mount --bind /dev "$1/dev" && mount -t proc proc "$1/proc" &&
      exec chroot "$1" /usr/bin/env -i "PATH=${PATH}" HOME=/root "NODE_EXTRA_CA_CERTS=${MACHINE_ROOTS}" "\${@:4}" \\
        /bin/sh -c 'cd "$1" && eval "$2"' sh "$2" "$3"`
    const env = Object.entries(this.#env).map(([name, value]) => `${name}=${value}`)
    const workdir = this.#last.get('WORKDIR') ?? '/'
    const args = ['--mount', '--pid', '--fork', 'bash', '-c', script, 'bash', this.root, workdir, command, ...env]
    await run('unshare', args, { maxBuffer: 1e8 })
  }

  /** A folder stands for what is in it, as in a Dockerfile. */
  async #copy(from: string, paths: readonly string[]): Promise<void> {
    const target = join(this.root, this.#last.get('WORKDIR') ?? '/', paths.at(-1) ?? '')
    const to = paths.at(-1)?.startsWith('/') ? join(this.root, paths.at(-1) ?? '') : target
    for (const path of paths.slice(0, -1)) {
      const isInto = paths.at(-1)?.endsWith('/') === true
      await cp(join(from, path), isInto ? join(to, path) : to, { recursive: true })
    }
  }
}

/** Debian with Node.js and npm, as the official image has them. Kept for the next run: it takes a minute. */
async function makeBase(): Promise<string> {
  const archive = join(tmpdir(), `terramirror-test-base-${SUITE}-${process.version}.tar`)
  if (existsSync(archive)) return archive
  const root = `${archive}.root`
  await rm(root, { recursive: true, force: true })
  await run('debootstrap', ['--variant=minbase', SUITE, root], { maxBuffer: 1e8 })
  const npm = dirname(dirname(await realpath((await run('which', ['npm'])).stdout.trim())))
  await copyFile(process.execPath, join(root, 'usr/local/bin/node'))
  await cp(npm, join(root, 'usr/local/lib/node_modules/npm'), { recursive: true, dereference: true })
  await symlink('../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/local/bin/npm'))
  await writeFile(join(root, 'etc/resolv.conf'), await readFile('/etc/resolv.conf'))
  const roots = process.env.NODE_EXTRA_CA_CERTS
  await writeFile(join(root, MACHINE_ROOTS), roots === undefined ? '' : await readFile(roots))
  await run('tar', ['-cf', `${archive}.part`, '-C', root, '.'], { maxBuffer: 1e8 })
  await run('mv', [`${archive}.part`, archive])
  await rm(root, { recursive: true, force: true })
  return archive
}
