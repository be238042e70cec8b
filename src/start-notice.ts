import { join } from 'node:path'
import { ADMIN_TOKEN_FILE } from './admin-token.ts'
import type { Config } from './config/schema.ts'
import { formatClientConfiguration, formatShellSetup, networkMirrorUrl } from './protocol/client-configuration.ts'

/** What the notice tells of a server. */
export interface StartedServer {
  /** Ends with `/`. */
  readonly url: string
  readonly caBundleFile: string | undefined
  readonly caFile: string | undefined
  /** Where operators reach it; undefined if they cannot. */
  readonly adminUrl: string | undefined
}

/** What `serve` prints once it serves: a client configuration that works as pasted into a shell on this machine. */
export function startNotice(config: Config, server: StartedServer): string {
  const origins = Object.keys(config.origins)
  const lines = [
    `Terramirror serves ${origins.join(', ')}${config.mode === 'sealed' ? ' (sealed: only what is held)' : ''}`,
    `at ${networkMirrorUrl(server.url)}`,
    '',
  ]
  if (config.listen.tls === 'off' && config.publicUrl === undefined) {
    lines.push(
      'TLS is off: put a TLS front before this port, set publicUrl to its address, and clients can use it.',
      'Terraform and OpenTofu refuse a network mirror over plain http.',
      ...operatorLines(config, server),
      '',
    )
    return lines.join('\n')
  }
  lines.push(
    'To use it, paste this into a shell (OpenTofu reads the same file and variables):',
    '',
    ...formatShellSetup(
      formatClientConfiguration({
        client: 'terraform',
        door: 'mirror',
        direct: false,
        baseUrl: server.url,
        origins,
      }),
    ),
  )
  if (server.caBundleFile !== undefined) lines.push(`export SSL_CERT_FILE=${quote(server.caBundleFile)}`)
  lines.push('terraform init', '')
  lines.push(`For other machines, modules, CI and OpenTofu there is a page at ${server.url}`)
  if (server.caFile !== undefined) lines.push(`(other machines must trust ${server.caFile}, which it also hands out).`)
  lines.push(...operatorLines(config, server), '')
  return lines.join('\n')
}

function operatorLines({ admin, stateDir }: Config, { adminUrl }: StartedServer): string[] {
  if (admin === 'off' || adminUrl === undefined) return []
  const token = admin.token === undefined ? `in ${join(stateDir, ADMIN_TOKEN_FILE)}` : 'the one that you gave'
  return [`For operators there is an admin API at ${adminUrl}; its token is ${token}.`]
}

function quote(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`
}
