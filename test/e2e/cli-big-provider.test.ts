import { createWriteStream, existsSync } from 'node:fs'
import { mkdtempDisposable, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { expect, test } from 'vitest'
import { ZipFile } from 'yazl'
import { startOrigin } from '../origin/origin.ts'
import { spawnMirror } from './mirror-fixture.ts'
import { createMirrorWorkspace, hashesIn } from './mirror-workspace.ts'
import { terraformAvailable } from './terraform-cli.ts'

const TIMEOUT_MS = 300_000
/** It takes a minute or two of both cores: `npm run test:large`. */
const HEAVY = process.env.HEAVY !== undefined
const VECTORS = new URL('../../../shared/vectors/golden/h1-vectors.json', import.meta.url)
const PROGRAM = 'terraform-provider-aws_v5.100.0_x5'
const FOLDER = process.env.BIG_PROVIDER_DIR ?? '/opt/tf-plugins/registry.terraform.io/hashicorp/aws/5.100.0/linux_amd64'

test.skipIf(!HEAVY || terraformAvailable() === undefined || !filesAvailable())(
  'the real AWS provider goes through the mirror with the h1 that the whole world has in its lock files',
  { timeout: TIMEOUT_MS },
  async () => {
    const { h1, files } = JSON.parse(await readFile(VECTORS, 'utf8')).aws_5_100_0_linux_amd64
    const names: string[] = files.map(({ name }: { name: string }) => name)
    await using folder = await mkdtempDisposable(join(tmpdir(), 'big-provider-'))
    const path = join(folder.path, 'provider.zip')
    await zip(path, names)
    await using origin = await startOrigin({ hosts: ['registry.terraform.io'] })
    const release = await origin.publish({
      provider: 'hashicorp/aws',
      version: '5.100.0',
      platforms: ['linux_amd64'],
      archive: () => ({ path }),
    })
    const zh = `zh:${release.package('linux_amd64').sha256}`
    await using mirror = await spawnMirror({ origin })
    const hashes = async () =>
      (await mirror.version('hashicorp/aws', '5.100.0')).json().archives.linux_amd64.hashes as string[]
    expect(await hashes()).toEqual([zh])

    const providers = { aws: { source: 'hashicorp/aws', version: '~> 5.0' } }
    await using terraform = await createMirrorWorkspace(mirror, { providers })
    const lock = async () => {
      const run = await terraform.run(['init'], { timeoutMs: TIMEOUT_MS })
      expect(run.code, run.output).toBe(0)
      return hashesIn(await terraform.lockFile())
    }
    expect(await lock()).toEqual([h1])
    await expect.poll(hashes, { timeout: 120_000, interval: 250 }).toEqual([zh, h1])

    // Once more from the cache, now with both hashes stated and the origin gone.
    await origin.stop()
    await terraform.reset()
    expect(await lock()).toEqual([h1])
    expect(origin.count('archive')).toBe(1)
  },
)

function filesAvailable(): boolean {
  const missing = !existsSync(VECTORS) ? '../shared/vectors' : existsSync(join(FOLDER, PROGRAM)) ? undefined : FOLDER
  if (missing === undefined) return true
  const hint = 'BIG_PROVIDER_DIR names the folder of the AWS provider 5.100.0 for linux_amd64'
  console.warn(`SKIPPED: ${missing} is not there; the real AWS provider is not tested (${hint})`)
  return false
}

/** Level 1: the test is about the content, not about the size. */
async function zip(path: string, names: readonly string[]): Promise<void> {
  const archive = new ZipFile()
  for (const name of names) {
    const mode = name === PROGRAM ? 0o100755 : 0o100644
    archive.addFile(join(FOLDER, name), name, { compressionLevel: 1, mode })
  }
  archive.end()
  await pipeline(archive.outputStream, createWriteStream(path))
}
