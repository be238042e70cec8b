import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestMirror } from './mirror-fixture.ts'
import { createWorkspace, networkMirrorConfig, type Workspace, type WorkspaceOptions } from './terraform-cli.ts'

/** The host that the tests with the real CLI install from. */
export const HOST = 'registry.example.test'

/** How a workspace behind a mirror differs from the plain one. */
export interface MirrorWorkspaceOptions {
  /** Default: `widget` from `acme/widget` at {@link HOST}, in any version. */
  readonly providers?: WorkspaceOptions['providers']
  /** Instead of `providers`: the version constraint of `acme/widget`. */
  readonly version?: string
  /** Default: the mirror as the only source of providers. */
  readonly cliConfig?: string
  /** Trusted beside the mirror's own certificate authority. */
  readonly caPem?: string
  readonly env?: Readonly<Record<string, string>>
  readonly runner?: WorkspaceOptions['runner']
  /** Text of a lock file to begin with. */
  readonly lockFile?: string
}

/** A workspace whose CLI reaches and trusts the mirror. The caller disposes of it. */
export async function createMirrorWorkspace(
  mirror: TestMirror,
  options: MirrorWorkspaceOptions = {},
): Promise<Workspace> {
  const { version, cliConfig = networkMirrorConfig(mirror.baseUrl), caPem = '', env = {}, lockFile } = options
  const workspace = await createWorkspace({
    providers: options.providers ?? requireWidget(version),
    cliConfig,
    caPem: `${mirror.caPem}\n${caPem}`,
    env,
    ...(options.runner === undefined ? {} : { runner: options.runner }),
  })
  if (lockFile !== undefined) await writeFile(join(workspace.dir, '.terraform.lock.hcl'), lockFile)
  return workspace
}

/** `required_providers` with `acme/widget` at {@link HOST} alone. */
export function requireWidget(version?: string): WorkspaceOptions['providers'] {
  return { widget: { source: `${HOST}/acme/widget`, ...(version === undefined ? {} : { version }) } }
}

/**
 * The requests of the network mirror protocol that the mirror has logged, oldest first, as
 * `GET acme/widget index.json`, `GET acme/widget 1.0.0.json`, `HEAD acme/widget 1.0.0 linux_amd64`.
 */
export function requestsSeen(mirror: TestMirror): string[] {
  return mirror.logLines.flatMap(({ msg, method, route, provider, version, platform }) => {
    if (msg !== 'request' || typeof provider !== 'string') return []
    const name = provider.replace(`${HOST}/`, '')
    if (String(route).endsWith('/index.json')) return [`${method} ${name} index.json`]
    if (platform === undefined) return [`${method} ${name} ${version}.json`]
    return [`${method} ${name} ${version} ${platform}`]
  })
}

/** Messages and codes of all errors that the mirror has logged, one a line. */
export function errorsLogged(mirror: TestMirror): string {
  return mirror.logLines
    .flatMap(({ err }) => (typeof err === 'object' && err !== null ? [err as Record<string, unknown>] : []))
    .map(({ code, message }) => `${code}: ${message}`)
    .join('\n')
}

/** All hashes of a lock file, as they stand there. */
export function hashesIn(lockFile: string): string[] {
  return [...lockFile.matchAll(/"((?:h1|zh):[^"]+)"/g)].map(([, hash = '']) => hash)
}
