import { execFile } from 'node:child_process'
import { mkdtemp, open, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PROJECT } from '../../packaging/bundle.ts'

/*
 * `npm run package` as a release does it, in two copies of the project. Takes minutes, and npm fetches the Node.js of
 * the other architecture: run by `npm run test:package`.
 */

const run = promisify(execFile)
const MINUTE = 60_000
/** ELF machine (e_machine) of each architecture. */
const MACHINES = { x64: 0x3e, arm64: 0xb7 } as const

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'test-packages-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** A copy of the project as git has it, built in there with this umask. Tells the folder of the packages. */
async function build(name: string, umask: string): Promise<string> {
  const copy = join(folder, name)
  const script = `
    umask ${umask} && mkdir -p "$1" && cd "$2" && git ls-files -z | xargs -0 cp --parents -t "$1" &&
    { cp -a --link node_modules "$1/" || cp -a node_modules "$1/"; } && cd "$1" && npm run --silent package`
  const env = { ...process.env, SOURCE_DATE_EPOCH: '1700000000', npm_config_loglevel: 'error' }
  await run('sh', ['-c', script, 'sh', copy, PROJECT], { env, maxBuffer: 1e8 })
  return join(copy, 'build')
}

test('two builds in different folders give equal bytes; each has the Node.js of its architecture', {
  timeout: 10 * MINUTE,
}, async () => {
  const one = await build('one', '022')
  const two = await build('somewhere/quite/else', '077')
  const names = [
    'SHA256SUMS',
    ...['arm64', 'x64'].map((arch) => expect.stringMatching(`^terramirror-.+-linux-${arch}\\.tar\\.gz$`)),
  ]
  expect(await readdir(one)).toEqual(names)
  expect(await readdir(two)).toEqual(names)
  expect(await readFile(join(two, 'SHA256SUMS'), 'utf8')).toBe(await readFile(join(one, 'SHA256SUMS'), 'utf8'))
  for (const place of [one, two]) await run('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: place })

  for (const [architecture, machine] of Object.entries(MACHINES)) {
    const archive = (await readdir(one)).find((name) => name.includes(architecture)) ?? ''
    await run('tar', ['-xzf', join(one, archive), '-C', folder])
    const root = join(folder, archive.replace('.tar.gz', ''))
    await run('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: root })
    expect(await elfMachine(join(root, 'node/bin/node'))).toBe(machine)
    expect(await readFile(join(root, 'sbom.cdx.json'), 'utf8')).toContain(`"node-linux-${architecture}"`)
  }
})

async function elfMachine(path: string): Promise<number> {
  await using file = await open(path)
  const { buffer } = await file.read(Buffer.alloc(20), 0, 20, 0)
  expect(buffer.subarray(0, 4).toString('latin1')).toBe('\x7fELF')
  return buffer.readUInt16LE(18)
}
