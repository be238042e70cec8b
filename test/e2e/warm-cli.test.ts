import { mkdir, mkdtempDisposable, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readWarmRequest } from '../../src/cli/warm-request.ts'
import { silentLog } from '../../src/log.ts'
import type { WarmRequest } from '../../src/mirror/warm/warm-request.ts'
import { request } from '../mirror/warm/warm-fixture.ts'
import { openWarmHost } from '../mirror/warm/warm-host.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { zipArchive } from '../origin/provider-archive.ts'
import { fileReply } from '../origin/reply.ts'
import { prepareFolder, startMirror } from './mirror-fixture.ts'
import { HOST } from './mirror-workspace.ts'
import { createModuleWorkspace, init, installedModules } from './module-door.ts'
import { CURRENT_PLATFORM, terraformAvailable } from './terraform-cli.ts'

/*
 * What was warmed is all that the real CLI needs: `terraform init` of the same configuration, without its origin.
 */

const ready = terraformAvailable() !== undefined
const OTHER = 'other.example.test'

/** The root, a local module, and calls into modules of the registry that call others in turn. */
const configuration = {
  'main.tf': `
    terraform {
      required_providers {
        widget = { source = "${HOST}/acme/widget", version = ">= 1.0" }
      }
    }
    module "near" { source = "./modules/near" }
    module "net" {
      source  = "${HOST}/acme/net/aws"
      version = "~> 1.0"
    }
    module "part" {
      source  = "${HOST}/acme/kit/aws//modules/part"
      version = ">= 1, != 2.0.0"
    }`,
  'modules/near/main.tf': `
    terraform {
      required_providers {
        widget = { source = "${HOST}/acme/widget", version = "< 3, != 2.1.0" }
        gadget = { source = "${OTHER}/acme/gadget", version = "~> 0.1" }
      }
    }
    module "far" { source = "../far" }`,
  'modules/far/main.tf.json': JSON.stringify({
    terraform: { required_providers: { screw: { source: `${HOST}/acme/screw`, version: '1.0.0-rc.1' } } },
  }),
}

const modules: readonly (readonly [module: string, version: string, files: Record<string, string>])[] = [
  ['acme/net/aws', '1.0.0', { 'main.tf': '' }],
  [
    'acme/net/aws',
    '1.2.0',
    { 'main.tf': `module "base" {\n  source = "${HOST}/acme/base/aws"\n  version = "< 2"\n}\n` },
  ],
  ['acme/net/aws', '2.0.0', { 'main.tf': '' }],
  [
    'acme/base/aws',
    '1.0.0',
    {
      'main.tf': 'module "inner" {\n  source = "./inner"\n}\n',
      'inner/main.tf': `terraform {\n  required_providers {\n    deep = { source = "${HOST}/acme/deep" }\n  }\n}\n`,
    },
  ],
  ['acme/base/aws', '2.0.0', { 'main.tf': '' }],
  [
    'acme/kit/aws',
    '1.0.0',
    {
      'main.tf': `module "unused" {\n  source = "${HOST}/acme/unused/aws"\n}\n`,
      'modules/part/main.tf': `module "other" {\n  source = "../other"\n}\n`,
      'modules/other/main.tf': `module "net" {\n  source = "${HOST}/acme/net/aws"\n  version = "2.0.0"\n}\n`,
    },
  ],
  ['acme/kit/aws', '2.0.0', { 'main.tf': '' }],
]

const providers: readonly (readonly [provider: string, ...versions: string[]])[] = [
  ['acme/widget', '1.0.0', '2.0.0', '2.1.0', '3.0.0'],
  [`${OTHER}/acme/gadget`, '0.1.0', '0.9.0', '1.0.0'],
  ['acme/screw', '1.0.0-rc.1', '0.5.0'],
  ['acme/deep', '4.5.6', '5.0.0-beta1'],
]

const expected = {
  installed: ['acme/deep/4.5.6', 'acme/screw/1.0.0-rc.1', 'acme/widget/2.0.0'].map((each) => `${HOST}/${each}`),
  items: [
    ...['acme/net/aws 1.2.0', 'acme/net/aws 2.0.0', 'acme/base/aws 1.0.0', 'acme/kit/aws 1.0.0'].map(
      (module) => `${HOST}/${module}`,
    ),
    ...['acme/widget 2.0.0', 'acme/screw 1.0.0-rc.1', 'acme/deep 4.5.6'].map(
      (provider) => `${HOST}/${provider} ${CURRENT_PLATFORM}`,
    ),
    `${OTHER}/acme/gadget 0.9.0 ${CURRENT_PLATFORM}`,
  ],
}

let origin: TestOrigin
let folder: string

beforeAll(async () => {
  if (!ready) return
  origin = await startOrigin()
  for (const [provider, ...versions] of providers) {
    for (const version of versions) await origin.publish({ provider, version, platforms: [CURRENT_PLATFORM] })
  }
  for (const [module, version, files] of modules) {
    const zip = await zipArchive(
      Object.fromEntries(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)])),
    )
    const path = `/files/${module}/${version}.zip`
    origin.page(HOST, path, fileReply(zip.body, zip.sha256))
    origin.publishModule({ module, version, location: path })
  }
  folder = await prepareFolder({ origin })
})
afterAll(async () => {
  if (!ready) return
  await origin[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

/** The configuration as files. */
async function write(dir: string): Promise<void> {
  for (const [path, text] of Object.entries(configuration)) {
    await mkdir(dirname(join(dir, path)), { recursive: true })
    await writeFile(join(dir, path), text)
  }
}

/** The request that `terramirror warm FOLDER` sends for the configuration. */
async function readFolder(): Promise<WarmRequest> {
  await using temp = await mkdtempDisposable(join(tmpdir(), 'test-warm-'))
  await write(temp.path)
  return await readWarmRequest({
    ...{ words: [temp.path], module: [], lockFile: [], fromFile: [] },
    ...{ platform: [CURRENT_PLATFORM], followModules: true, dryRun: false },
  })
}

describe.runIf(ready)('a configuration that was warmed', () => {
  test('is all that terraform init needs: it succeeds without the origin, and nothing more was brought', async () => {
    let plan: readonly string[]
    {
      await using host = await openWarmHost(folder, silentLog())
      const wish = await readFolder()
      const { items } = await host.warm.plan(wish, AbortSignal.timeout(30_000))
      plan = items.filter(({ outcome }) => outcome === 'fetch').map(({ item }) => item)
      expect(origin.count('archive')).toBe(0)
      const { id } = await host.jobs.start(host.warm.kind, wish)
      for await (const _ of host.jobs.events(id, AbortSignal.timeout(60_000)));
      const { items: brought } = await host.jobs.items(id, { limit: 100 })
      expect(brought.map(({ item, outcome }) => `${item} ${outcome}`).sort()).toEqual(
        expected.items.map((item) => `${item} done`).sort(),
      )
      // What modules call that are not here cannot be told; all else is told as it comes.
      expect(expected.items).toEqual(expect.arrayContaining([...plan]))
      expect(plan).toContain(`${HOST}/acme/widget 2.0.0 ${CURRENT_PLATFORM}`)
      const again = await host.warm.plan(wish, AbortSignal.timeout(30_000))
      expect(again.items.map(({ item, outcome }) => `${item} ${outcome}`).sort()).toEqual(
        expected.items.map((item) => `${item} held`).sort(),
      )
    }
    await origin.stop()
    await using mirror = await startMirror({ origin, folder })
    await using workspace = await createModuleWorkspace(mirror, {})
    await write(workspace.dir)
    await init(workspace, mirror)
    expect(await workspace.installed()).toEqual(
      [...expected.installed, `${OTHER}/acme/gadget/0.9.0`].map((each) => `${each}/${CURRENT_PLATFORM}`).sort(),
    )
    expect(Object.keys(await installedModules(workspace)).sort()).toEqual(
      ['near', 'near.far', 'net', 'net.base', 'net.base.inner', 'part', 'part.other', 'part.other.net'].sort(),
    )

    // The lock file that this made is all of a request that brings the same providers.
    const lockFile = await readFile(join(workspace.dir, '.terraform.lock.hcl'), 'utf8')
    await mirror[Symbol.asyncDispose]()
    await using host = await openWarmHost(folder, silentLog())
    const { id } = await host.jobs.start(
      host.warm.kind,
      request({ lockFiles: [lockFile], platforms: [CURRENT_PLATFORM] }),
    )
    for await (const _ of host.jobs.events(id, AbortSignal.timeout(60_000)));
    expect(host.jobs.get(id).outcomes).toMatchObject({ held: 4, failed: 0, notPublished: 0 })
  })
})
