import { spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { glob, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { stripVTControlCharacters } from 'node:util'

/** The platform that the CLI installs for on this machine, in Go's names, e.g. `linux_amd64`. */
export const CURRENT_PLATFORM = `${goName(process.platform)}_${goName(process.arch)}`

/** What `terraform init` shall install and how it shall reach it. */
export interface WorkspaceOptions {
  /** Local name to requirement, as `required_providers` has it. `version` is a constraint; without it any. */
  readonly providers: Readonly<Record<string, { readonly source: string; readonly version?: string }>>
  /** Text of the CLI configuration: see `networkMirrorConfig`, `hostConfig`, `credentialsConfig`; they can be joined. */
  readonly cliConfig: string
  /** Certificate authorities that the CLI trusts, PEM; it trusts no other. */
  readonly caPem?: string
  /** Further variables. Nothing else of the outer environment is passed on but `PATH`. */
  readonly env?: Readonly<Record<string, string>>
  /** A program and its first arguments that run the CLI, whose path and arguments are appended; default none. */
  readonly runner?: readonly string[]
}

/** How a run of the CLI ended. */
export interface TerraformRun {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  /** Both, the boxes and line breaks that the CLI puts around its diagnostics taken out, so that sentences match. */
  readonly output: string
}

/** A folder of its own with a configuration that needs providers; gone when disposed of. */
export interface Workspace extends AsyncDisposable {
  readonly dir: string
  /**
   * Runs `terraform ARGS…` here, without colours. A run that fails is a result, not an error.
   * @throws Error if it has not ended after `timeoutMs` (default 120 000); the error holds its output
   */
  run(args: readonly string[], options?: { readonly timeoutMs?: number }): Promise<TerraformRun>
  /** Text of `.terraform.lock.hcl`; empty if there is none. */
  lockFile(): Promise<string>
  /** What is installed, sorted, e.g. `registry.example.test/acme/widget/1.0.0/linux_amd64`. */
  installed(): Promise<string[]>
  /** Back to before `init`: removes `.terraform`, and the lock file too unless it is to be kept. */
  reset(options?: { readonly keepLock?: boolean }): Promise<void>
}

/** Path of the `terraform` program, or undefined with a loud line if it is not on the PATH. */
export function terraformAvailable(): string | undefined {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder, 'terraform')
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // Not in this folder.
    }
  }
  console.warn('SKIPPED: terraform is not on the PATH; nothing is tested against the real client')
  return undefined
}

/** Makes a workspace below the system's temporary folder. */
export async function createWorkspace(options: WorkspaceOptions): Promise<Workspace> {
  const root = await mkdtemp(join(tmpdir(), 'terraform-workspace-'))
  const dir = join(root, 'configuration')
  await mkdir(dir)
  await mkdir(join(root, 'home'))
  await writeFile(join(dir, 'main.tf'), formatRequiredProviders(options.providers))
  await writeFile(join(root, 'cli.tfrc'), options.cliConfig)
  await writeFile(join(root, 'ca.pem'), options.caPem ?? '')
  const env = { ...cleanEnvironment(root), ...options.env }
  const lockPath = join(dir, '.terraform.lock.hcl')

  return {
    dir,
    run: (args, { timeoutMs = 120_000 } = {}) =>
      runTerraform([...(options.runner ?? []), 'terraform', ...args], { cwd: dir, env, timeoutMs }),
    lockFile: () => readFile(lockPath, 'utf8').catch(emptyIfAbsent),
    async installed() {
      const cwd = join(dir, '.terraform/providers')
      const found: string[] = []
      for await (const path of glob('*/*/*/*/*', { cwd })) found.push(path)
      return found.sort()
    },
    async reset({ keepLock = false } = {}) {
      await rm(join(dir, '.terraform'), { recursive: true, force: true })
      if (!keepLock) await rm(lockPath, { force: true })
    },
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  }
}

/** Options of {@link networkMirrorConfig}. Patterns as the CLI takes them, e.g. `registry.example.test/acme/widget`. */
export interface NetworkMirrorOptions {
  readonly include?: readonly string[]
  readonly exclude?: readonly string[]
  /** Adds a `direct` block: all that the mirror has not is sought at the origin. */
  readonly direct?: boolean
}

/** A `provider_installation` block with one network mirror. `url` must end in `/` (client-contract A2). */
export function networkMirrorConfig(url: string, options: NetworkMirrorOptions = {}): string {
  const lines = [
    `    url = ${quote(url)}`,
    ...(options.include ? [`    include = ${quoteList(options.include)}`] : []),
    ...(options.exclude ? [`    exclude = ${quoteList(options.exclude)}`] : []),
  ]
  const direct = options.direct ? '  direct {}\n' : ''
  return `provider_installation {\n  network_mirror {\n${lines.join('\n')}\n  }\n${direct}}\n`
}

/** A `host` block: `services` instead of service discovery at `host` (client-contract D7). URLs must end in `/`. */
export function hostConfig(host: string, services: Readonly<Record<string, string>>): string {
  const lines = Object.entries(services).map(([name, url]) => `    ${quote(name)} = ${quote(url)}`)
  return `host ${quote(host)} {\n  services = {\n${lines.join('\n')}\n  }\n}\n`
}

/** A `credentials` block. The label carries the port where it is not 443: `localhost:8443` (client-contract A20). */
export function credentialsConfig(host: string, token: string): string {
  return `credentials ${quote(host)} {\n  token = ${quote(token)}\n}\n`
}

async function runTerraform(
  command: readonly string[],
  options: { cwd: string; env: Record<string, string>; timeoutMs: number },
): Promise<TerraformRun> {
  const [program = '', ...args] = command
  const child = spawn(program, args, { cwd: options.cwd, env: options.env, stdio: ['ignore', 'pipe', 'pipe'] })
  // A run that a signal ended has no code; -1 stands for it.
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve(code ?? -1))
  })
  const ranInTime = new AbortController()
  const limit = sleep(options.timeoutMs, true, { signal: ranInTime.signal }).then(
    () => child.kill('SIGKILL'),
    () => false,
  )
  const [code, stdout, stderr] = await Promise.all([ended, plainText(child.stdout), plainText(child.stderr)])
  ranInTime.abort()
  const output = (stdout + stderr).replaceAll(/\n│ (?=\S)/g, ' ')
  if (await limit) {
    throw new Error(`${command.join(' ')} did not end within ${options.timeoutMs} ms:\n${output}`)
  }
  return { code, stdout, stderr, output }
}

async function plainText(stream: Readable): Promise<string> {
  return stripVTControlCharacters(await text(stream))
}

/** From nothing: no TF_ variable, proxy or certificate folder of the outer environment reaches the client. */
function cleanEnvironment(root: string): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    HOME: join(root, 'home'),
    TMPDIR: root,
    TF_CLI_CONFIG_FILE: join(root, 'cli.tfrc'),
    TF_IN_AUTOMATION: '1',
    CHECKPOINT_DISABLE: '1',
    SSL_CERT_FILE: join(root, 'ca.pem'),
    // Go reads the folders of the system beside SSL_CERT_FILE; an empty folder keeps the client's trust to our file.
    SSL_CERT_DIR: join(root, 'home'),
  }
}

function formatRequiredProviders(providers: WorkspaceOptions['providers']): string {
  const entries = Object.entries(providers).map(([name, { source, version }]) => {
    const constraint = version === undefined ? '' : `      version = ${quote(version)}\n`
    return `    ${name} = {\n      source = ${quote(source)}\n${constraint}    }\n`
  })
  return `terraform {\n  required_providers {\n${entries.join('')}  }\n}\n`
}

function emptyIfAbsent(error: NodeJS.ErrnoException): string {
  if (error.code === 'ENOENT') return ''
  throw error
}

/** JSON's quoting is HCL's, but for templates. */
function quote(value: string): string {
  return JSON.stringify(value).replaceAll('${', '$${').replaceAll('%{', '%%{')
}

function quoteList(values: readonly string[]): string {
  return `[${values.map(quote).join(', ')}]`
}

function goName(name: string): string {
  const names: Record<string, string> = { x64: 'amd64', ia32: '386', win32: 'windows' }
  return names[name] ?? name
}
