import type { Command } from 'commander'
import { addConfigOptions, type ConfigOptions, loadConfigFor } from '../config-options.ts'
import { AdminClient } from './client.ts'
import { configuredEndpoint, parseEndpoint } from './endpoint.ts'
import { findToken, TOKEN_VARIABLE } from './token.ts'
import { findTrust } from './trust.ts'

/** What `addAdminOptions` gives a command's action. */
export interface AdminOptions extends ConfigOptions {
  readonly server?: string
  readonly token?: string
  readonly tokenFile?: string
  readonly caFile?: string
  /** For programs: JSON on standard output. */
  readonly json: boolean
}

const WHERE = `
Finding the mirror:
  Without --server, the configuration (--config, else ./config.yaml) tells where its admin API listens; without one it is
  https://localhost:8444/. The token is that of --token-file, of the variable ${TOKEN_VARIABLE}, of the
  configuration (admin.token), or of the file admin-token in stateDir, which the mirror makes. Other users of this machine
  can see the arguments of a command: do not use --token where there are some.

Exit codes:
  0 done   1 it failed, or some items did   2 wrong use   130 interrupted
`

/** Adds the options by which a command finds its mirror's admin API, the examples, and what is true of all commands. */
export function addAdminOptions(command: Command, examples: readonly string[]): Command {
  return addConfigOptions(command)
    .option('--server <url>', 'the admin API, https://HOST:PORT/ or unix:PATH; default: as the configuration says')
    .option('--token-file <file>', 'file with the token of the admin API')
    .option('--token <token>', `the token itself; better: --token-file, or ${TOKEN_VARIABLE}`)
    .option('--ca-file <file>', 'certificate authority that is trusted instead of the public ones (PEM)')
    .option('--json', 'one JSON document on standard output, for programs', false)
    .addHelpText('after', `\nExamples:\n${examples.map((line) => `  ${line}\n`).join('')}${WHERE}`)
}

/**
 * A client of the mirror that the options name. Of the configuration only what this needs is read.
 * @throws CommandError, MirrorError `CONFIGURATION`
 */
export async function openAdminClient(command: Command, options: AdminOptions): Promise<AdminClient> {
  const { server, token, tokenFile, caFile } = options
  const given = server === undefined ? undefined : parseEndpoint(server)
  const config = await loadConfigFor(options, ['admin', 'listen', 'dataDir', 'stateDir'])
  const endpoint = given ?? configuredEndpoint(config)
  const places = { ...(token === undefined ? {} : { token }), ...(tokenFile === undefined ? {} : { tokenFile }) }
  return new AdminClient({
    endpoint,
    token: await findToken({ ...places, env: process.env, config }, endpoint),
    trust: await findTrust(endpoint, config, caFile),
    version: versionOf(command),
  })
}

function versionOf(command: Command): string {
  return command.parent === null ? (command.version() ?? '') : versionOf(command.parent)
}
