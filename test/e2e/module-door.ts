import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { TestOrigin } from '../origin/origin.ts'
import type { Answer, Ask, TestMirror } from './mirror-fixture.ts'
import { HOST } from './mirror-workspace.ts'
import { registryBase } from './registry-door.ts'
import { createWorkspace, hostConfig, networkMirrorConfig, type TerraformRun, type Workspace } from './terraform-cli.ts'

/** A slow machine needs some; a mirror that is never ready is told. */
const MAX_RETURNS = 20

/** Where a module was put, and how the CLI was told: one call in a configuration. */
export interface ModuleCall {
  /** As `source` has it. */
  readonly source: string
  readonly version?: string
}

/** Base URL of a mirror's module registry, as clients are told it. */
export function moduleBase(base: string, host = HOST): string {
  return `${base}v1/modules/${host}/`
}

/** The recommended configuration: providers by the network mirror, modules by a `host` block with both services. */
export function recommendedConfig(base: string, host = HOST): string {
  return networkMirrorConfig(`${base}providers/`) + bothServicesConfig(base, host)
}

/** Everything by a `host` block. */
export function bothServicesConfig(base: string, host = HOST): string {
  return hostConfig(host, { 'providers.v1': registryBase(base, host), 'modules.v1': moduleBase(base, host) })
}

/** `acme/net/aws`, the host in front unless it is there. */
function fullModule(module: string): string {
  return module.split('/').length === 3 ? `${HOST}/${module}` : module
}

/** `versions` of a module. */
export function askModuleVersions(mirror: TestMirror, module: string, ask?: Ask): Promise<Answer> {
  return mirror.ask(`/v1/modules/${fullModule(module)}/versions`, ask)
}

/** Path of `download`. */
export function moduleDownloadPath(module: string, version: string): string {
  return `/v1/modules/${fullModule(module)}/${encodeURIComponent(version)}/download`
}

/** `download` of a module version. Comes back as long as the mirror says that it is not ready, as clients do. */
export async function askModule(mirror: TestMirror, module: string, version: string, ask?: Ask): Promise<Answer> {
  for (let left = MAX_RETURNS; ; left--) {
    const answer = await mirror.ask(moduleDownloadPath(module, version), ask)
    if (answer.status !== 503 || left === 0) return answer
    await sleep(1_000 * Number(answer.headers['retry-after']))
  }
}

/** A location of ours, taken apart and checked. */
export interface ServedLocation {
  /** Path of the archive from the root. */
  readonly path: string
  readonly subfolder: string
  readonly digest: string
}

/** Reads the location that the mirror gave. Fails if it is not one of ours, or leads to another host. */
export function locationOf(download: Answer, module: string, version: string): ServedLocation {
  expect(download.status, download.body.toString()).toBe(204)
  const text = String(download.headers['x-terraform-get'])
  const [, archive = '', subfolder = '', digest = ''] =
    /^\.\/(archives\/[0-9a-f]{64}\/module\.tar\.gz)(?:\/\/([^?]+))?\?checksum=sha256:([0-9a-f]{64})$/.exec(text) ?? []
  expect(digest, text).not.toBe('')
  const endpoint = new URL(moduleDownloadPath(module, version), 'https://mirror.example.test')
  return { path: new URL(archive, endpoint).pathname, subfolder, digest }
}

/** The files of an archive, by the system's tar: text, with `x ` in front if executable. */
export async function filesOf(archive: Buffer): Promise<Record<string, string>> {
  const folder = await mkdtemp(join(tmpdir(), 'test-module-'))
  try {
    spawnSync('tar', ['-xz', '-C', folder], { input: archive })
    const names = spawnSync('tar', ['-tz'], { input: archive, encoding: 'utf8' }).stdout.trim().split('\n')
    const files: Record<string, string> = {}
    for (const name of names) {
      const { mode } = await stat(join(folder, name))
      files[name] = ((mode & 0o111) === 0 ? '' : 'x ') + (await readFile(join(folder, name), 'utf8'))
    }
    return files
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The files of a module version, as a client gets them. */
export async function fetchModule(
  mirror: TestMirror,
  module: string,
  version: string,
): Promise<Record<string, string>> {
  const { path } = locationOf(await askModule(mirror, module, version), module, version)
  const archive = await mirror.ask(path)
  expect([archive.status, archive.headers['content-encoding']]).toEqual([200, undefined])
  return await filesOf(archive.body)
}

/** A workspace whose configuration calls modules; `output NAME` of each is shown. */
export async function createModuleWorkspace(
  mirror: TestMirror,
  calls: Readonly<Record<string, ModuleCall>>,
  cliConfig = recommendedConfig(localUrl(mirror)),
): Promise<Workspace> {
  const workspace = await createWorkspace({ providers: {}, caPem: mirror.caPem, cliConfig })
  await writeFile(join(workspace.dir, 'main.tf'), moduleCalls(calls))
  return workspace
}

/** Module hosts must hold a dot (client-contract E1); one URL for all. */
export function localUrl(mirror: TestMirror): string {
  return mirror.url.replace('localhost', '127.0.0.1')
}

/** What a run of `terraform init` left of each module, by key: the folder that its call leads to. */
export async function installedModules(workspace: Workspace): Promise<Record<string, string>> {
  const text = await readFile(join(workspace.dir, '.terraform/modules/modules.json'), 'utf8')
  const { Modules: modules }: { Modules: { Key: string; Dir: string }[] } = JSON.parse(text)
  return Object.fromEntries(
    modules.filter(({ Key }) => Key !== '').map(({ Key, Dir }) => [Key, join(workspace.dir, Dir)]),
  )
}

/** Runs `terraform init`, which must succeed. */
export async function init(workspace: Workspace, mirror: TestMirror): Promise<TerraformRun> {
  const run = await workspace.run(['init'])
  expect(run.code, `${run.output}\n${mirror.logText.split('\n').slice(-5).join('\n')}`).toBe(0)
  return run
}

/** A URL of a page of the origin, as documents of it name it without DNS. */
export function pageUrl(origin: TestOrigin, path: string, host = HOST): string {
  return `${origin.url(host)}${path.replace(/^\//, '')}`
}

/** Terraform code that calls modules. */
export function moduleCalls(calls: Readonly<Record<string, ModuleCall>>): string {
  const blocks = Object.entries(calls).map(([name, { source, version }]) => {
    const constraint = version === undefined ? '' : `  version = ${JSON.stringify(version)}\n`
    return `module ${JSON.stringify(name)} {\n  source = ${JSON.stringify(source)}\n${constraint}}\n`
  })
  return blocks.join('')
}
