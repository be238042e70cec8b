import { chmod, copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { getCACertificates } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { MirrorError } from '../../../errors.ts'
import type { Environment } from './git-command.ts'
import type { TunnelProxy } from './tunnel-proxy.ts'

/** Credentials for git, by `host[:port]` as the configuration has them. */
export interface GitCredentials {
  /** Goes as the password of a made-up user, as GitHub, GitLab and others take it. */
  readonly token?: string
  /** `user:password`. */
  readonly basic?: string
  readonly sshKeyFile?: string
  readonly knownHostsFile?: string
  /** PEM. */
  readonly ca?: string
}

/** What the environment of one fetch is made of. */
export interface GitEnvironmentParts {
  /** A folder of this fetch, removed after it. */
  readonly folder: string
  readonly proxy: TunnelProxy
  readonly credentials: ReadonlyMap<string, GitCredentials>
  /** PEM texts, added to the public roots. */
  readonly ca: readonly string[]
  readonly userAgent: string
  /** For tests: repositories on this machine. */
  readonly allowFile: boolean
}

/** GitHub's name for a token's user; the other hosts take any. */
const TOKEN_USER = 'x-access-token'
/**
 * Faults of old histories that harm nobody: who wrote what and when, in a form that git has long refused to make. Clients
 * that clone by themselves do not look. Everything else that fsck finds refuses the repository.
 */
const HARMLESS_FAULTS = [
  'missingTaggerEntry',
  'zeroPaddedFilemode',
  'zeroPaddedDate',
  'badTimezone',
  'badDate',
  'badDateOverflow',
  'badEmail',
  'badName',
  'badTagName',
  'missingEmail',
  'missingNameBeforeEmail',
  'missingSpaceBeforeDate',
  'missingSpaceBeforeEmail',
  'multipleAuthors',
]

/**
 * Makes the whole environment of `git` for one fetch: nothing of ours is inherited, no configuration of the system or
 * of a user is read, no hook, filter, helper or prompt can run, only https and ssh are spoken, and all connections go
 * through our proxy. Secrets are in files of the folder (mode 0600) and in the environment, never in arguments.
 */
export async function makeGitEnvironment(parts: GitEnvironmentParts): Promise<Environment> {
  const { folder, proxy } = parts
  const files = {
    ca: join(folder, 'ca.pem'),
    credentials: join(folder, 'credentials'),
    ssh: join(folder, 'ssh_config'),
  }
  const hostCas = [...parts.credentials.values()].flatMap(({ ca }) => ca ?? [])
  await writeFile(files.ca, [...getCACertificates('default'), ...parts.ca, ...hostCas].join('\n'), { mode: 0o600 })
  await writeFile(files.credentials, credentialLines(parts.credentials), { mode: 0o600 })
  await writeFile(files.ssh, await sshConfig(parts), { mode: 0o600 })
  const settings = gitSettings({ ...parts, files })
  return {
    PATH: process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin',
    HOME: folder,
    XDG_CONFIG_HOME: folder,
    TMPDIR: folder,
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: 'false',
    SSH_ASKPASS: 'false',
    GIT_ALLOW_PROTOCOL: parts.allowFile ? 'https:ssh:file' : 'https:ssh',
    GIT_PROTOCOL_FROM_USER: '0',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_NO_LAZY_FETCH: '1',
    GIT_SSH_COMMAND: `ssh -F ${quote(files.ssh)}`,
    GIT_SSH_VARIANT: 'ssh',
    TERRAMIRROR_TUNNEL: `${proxy.credentials}@127.0.0.1:${proxy.port}`,
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(
      settings.flatMap(([key, value], index) => [
        [`GIT_CONFIG_KEY_${index}`, key],
        [`GIT_CONFIG_VALUE_${index}`, value],
      ]),
    ),
  }
}

function gitSettings(
  parts: GitEnvironmentParts & { files: { ca: string; credentials: string } },
): (readonly [key: string, value: string])[] {
  const { proxy, files, userAgent } = parts
  return [
    ['core.hooksPath', '/dev/null'],
    ['core.fsmonitor', 'false'],
    ['core.attributesFile', '/dev/null'],
    ['http.proxy', `http://${proxy.credentials}@127.0.0.1:${proxy.port}`],
    ['http.proxyAuthMethod', 'basic'],
    ['http.sslVerify', 'true'],
    // Of the first request only: then alternates of a repository are not followed either.
    ['http.followRedirects', 'initial'],
    ['http.sslCAInfo', files.ca],
    // Some hosts tell git by the beginning, and give all others a page for people.
    ['http.userAgent', `git/2.0 (${userAgent})`],
    ['http.lowSpeedLimit', '1000'],
    ['http.lowSpeedTime', '60'],
    ['credential.helper', ''],
    ['credential.helper', `store --file=${quote(files.credentials)}`],
    ['credential.useHttpPath', 'false'],
    ['protocol.version', '2'],
    ['fetch.fsckObjects', 'true'],
    ...HARMLESS_FAULTS.map((fault) => [`fetch.fsck.${fault}`, 'ignore'] as const),
    ['fetch.recurseSubmodules', 'false'],
    ['submodule.recurse', 'false'],
    // Never one file for each object: a pack of millions would use up the inodes of the disk.
    ['fetch.unpackLimit', '1'],
    ['transfer.bundleURI', 'false'],
    ['pack.threads', '1'],
    // Larger files are not held in memory as a whole.
    ['core.bigFileThreshold', '16m'],
    ['gc.auto', '0'],
    ['maintenance.auto', 'false'],
    ['safe.directory', '*'],
  ]
}

function credentialLines(credentials: ReadonlyMap<string, GitCredentials>): string {
  return [...credentials]
    .map(([host, { token, basic }]) => {
      const [user, ...rest] = basic?.split(':') ?? [TOKEN_USER, token ?? '']
      const password = rest.join(':')
      const login = [user ?? '', password].map(encodeURIComponent).join(':')
      return password === '' ? '' : `https://${login}@${host}\n`
    })
    .join('')
}

/** The name by which credentials for ssh at a server are configured: its port is left out if it is that of ssh. */
export function sshHost({ hostname, port }: URL): string {
  return port === '' || port === '22' ? hostname : `${hostname}:${port}`
}

/** Keys and known hosts for each configured host; a host without them is not reached by ssh at all. */
async function sshConfig({ folder, credentials }: GitEnvironmentParts): Promise<string> {
  const connect = fileURLToPath(
    new URL(import.meta.url.endsWith('.ts') ? './ssh-connect.ts' : './ssh-connect.js', import.meta.url),
  )
  const lines: string[] = []
  let count = 0
  for (const [host, { sshKeyFile, knownHostsFile }] of credentials) {
    if (sshKeyFile === undefined || knownHostsFile === undefined) continue
    // ssh refuses keys that others can read, and mounted secrets often are such.
    const key = join(folder, `key-${count++}`)
    await copyKey(host, sshKeyFile, key)
    const [, name = host, port = '22'] = /^(.*?)(?::(\d+))?$/.exec(host) ?? []
    lines.push(`Match originalhost ${name.replace(/^\[|\]$/g, '')} exec "test %p = ${port}"`)
    lines.push(`  IdentityFile "${percent(key)}"`, `  UserKnownHostsFile "${percent(knownHostsFile)}"`)
  }
  return [
    ...lines,
    'Host *',
    '  BatchMode yes',
    '  StrictHostKeyChecking yes',
    '  UpdateHostKeys no',
    '  UserKnownHostsFile /dev/null',
    '  GlobalKnownHostsFile /dev/null',
    '  IdentitiesOnly yes',
    '  IdentityAgent none',
    '  ForwardAgent no',
    '  ForwardX11 no',
    '  ClearAllForwardings yes',
    '  PermitLocalCommand no',
    '  ControlMaster no',
    '  PreferredAuthentications publickey',
    '  ServerAliveInterval 15',
    '  ServerAliveCountMax 4',
    `  ProxyCommand ${percent(quote(process.execPath))} ${percent(quote(connect))} %h %p`,
    '',
  ].join('\n')
}

async function copyKey(host: string, from: string, to: string): Promise<void> {
  try {
    await copyFile(from, to)
    await chmod(to, 0o600)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
    const key = `hosts.${host}.sshKeyFile`
    throw new MirrorError('CONFIGURATION', `${key}: ${from} cannot be read${code}`, { key }, error)
  }
}

/** A percent sign that ssh shall take for one. */
function percent(text: string): string {
  return text.replaceAll('%', '%%')
}

/** For the shell that git and ssh run their commands with. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
