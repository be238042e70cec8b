import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import type { Client, Installation, InstallOptions } from './client.ts'
import { OwnedProcess, unlessAborted } from './owned-process.ts'

/** No run of the CLI takes longer here, in milliseconds. */
const LIMIT_MS = 60_000

/** How the CLI reaches the mirror. */
export interface CliOptions {
  /** Path of `terraform` or `tofu`. */
  readonly program: string
  /** Without a trace of the user's own settings. */
  readonly env: NodeJS.ProcessEnv
  readonly cliConfigFile: string
  readonly caBundleFile: string
  readonly signal: AbortSignal
  /** A path as the shown commands write it. */
  readonly shorten: (path: string) => string
}

/** The real `terraform` or `tofu`. @throws Error if it does not run */
export async function createCliClient(options: CliOptions): Promise<Client> {
  const { program, signal, shorten } = options
  const command = program.slice(program.lastIndexOf('/') + 1)
  const env = { ...options.env, TF_CLI_CONFIG_FILE: options.cliConfigFile, SSL_CERT_FILE: options.caBundleFile }
  const run = (args: readonly string[], cwd: string) =>
    runProgram(program, args, { cwd, env: { ...env, TF_DATA_DIR: join(cwd, '.terraform') }, signal })
  const version = await run(['version', '-json'], '/')
  if (version.code !== 0) throw new Error(`${program} does not run:\n${version.lines.join('\n')}`)
  const { terraform_version: number } = JSON.parse(version.lines.join('')) as { terraform_version: string }
  const words = ({ upgrade }: InstallOptions): string[] => ['init', ...(upgrade ? ['-upgrade'] : [])]

  return {
    program: command,
    name: `${command === 'tofu' ? 'OpenTofu' : 'Terraform'} ${number}`,
    setUp: `export TF_CLI_CONFIG_FILE=${shorten(options.cliConfigFile)} SSL_CERT_FILE=${shorten(options.caBundleFile)}`,
    command: (install) => `${command} ${words(install).join(' ')}`,
    async install(folder, install): Promise<Installation> {
      const { code, lines } = await run(words(install), folder)
      return { ok: code === 0, transcript: lines.filter(isAboutProviders) }
    },
  }
}

async function runProgram(
  program: string,
  args: readonly string[],
  { cwd, env, signal }: { cwd: string; env: NodeJS.ProcessEnv; signal: AbortSignal },
): Promise<{ code: number | string; lines: string[] }> {
  await using child = new OwnedProcess(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const lines: string[] = []
  for (const stream of [child.child.stdout, child.child.stderr]) {
    child.readLines(stream, (line) => lines.push(stripVTControlCharacters(line).trimEnd()))
  }
  const code = await unlessAborted(child.ended, AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)]))
  return { code, lines }
}

/** Leaves out what `init` says of lock files, backends and the next steps. */
function isAboutProviders(line: string): boolean {
  return /^- |^│ (Error: |.*\b(error|installing|bad response|returned from)\b)|^│ .*:\d+: /i.test(line)
}
