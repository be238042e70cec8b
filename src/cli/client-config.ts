import { type Command, Option } from 'commander'
import type { Config } from '../config/schema.ts'
import { type Client, type Door, formatClientConfiguration } from '../protocol/client-configuration.ts'
import { addConfigOptions, type ConfigOptions, loadConfigFor } from './config-options.ts'

const EXAMPLES = `
Doors:
  mirror  the network mirror protocol, for providers: the simplest
  host    host blocks: the mirror stands in for the registries themselves, so the client sees the signatures of the
          origin and records the hashes of all platforms; the blocks also steer "providers lock" and "providers mirror"
  both    providers through the network mirror, with its lock files (the current platform only); modules, "providers
          lock" and "providers mirror" through the host blocks: the set-up that we recommend

Examples:
  terramirror client-config > ~/.terraformrc
  terramirror client-config --for tofu --direct --base-url https://mirror.example.com/ > ~/.tofurc
  terramirror client-config --door both --config /etc/terramirror/config.yaml
`

interface Options extends ConfigOptions {
  readonly for: Client
  readonly door: Door
  readonly direct: boolean
  readonly baseUrl?: string
}

/** `terramirror client-config`: prints a CLI configuration for clients of this mirror, and nothing else, to stdout. */
export function addClientConfig(program: Command): void {
  const command: Command = addConfigOptions(program.command('client-config'))
    .description('print a configuration for Terraform or OpenTofu that uses this mirror')
    .addOption(new Option('--for <client>', 'who reads it').choices(['terraform', 'tofu']).default('terraform'))
    .addOption(new Option('--door <door>', 'how to reach it').choices(['mirror', 'host', 'both']).default('mirror'))
    .option('--direct', 'let clients fetch what this mirror does not serve from its origin', false)
    .option('--base-url <url>', 'where clients reach this mirror; default: publicUrl, else this machine')
    .addHelpText('after', EXAMPLES)
    .action(async (options: Options) => {
      const { for: client, door, direct } = options
      if (direct && door === 'host') {
        command.error('error: --direct belongs to the network mirror; use it with --door mirror or both', {
          exitCode: 2,
        })
      }
      const given = options.baseUrl === undefined ? undefined : readBaseUrl(options.baseUrl, door)
      if (given?.problem !== undefined) command.error(`error: --base-url: ${given.problem}`, { exitCode: 2 })
      const config = await loadConfigFor(options)
      const baseUrl = given?.baseUrl ?? configuredUrl(config)
      if (baseUrl === undefined) {
        command.error('error: nothing says where clients reach this mirror; give --base-url, or set publicUrl', {
          exitCode: 2,
        })
      }
      const origins = Object.keys(config.origins)
      process.stdout.write(formatClientConfiguration({ client, door, direct, baseUrl, origins }))
    })
}

/** What the configuration tells of the address; undefined if nothing of use. */
function configuredUrl({ publicUrl, listen }: Config): string | undefined {
  if (publicUrl !== undefined || listen.tls === 'off' || listen.port === 0) return publicUrl
  return `https://localhost:${listen.port}/`
}

type BaseUrl =
  | { readonly baseUrl: string; readonly problem?: undefined }
  | { readonly baseUrl?: undefined; readonly problem: string }

/**
 * The address as a base for others, or why clients would not take it. Not a parser of commander: its messages show the
 * value, which may hold a password.
 */
function readBaseUrl(text: string, door: Door): BaseUrl {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) {
    return { problem: 'expected an absolute URL such as https://mirror.example.com/' }
  }
  if (!/^[\w.:[\]-]+$/.test(url.host)) return { problem: 'its host is no name or address' }
  if (url.search !== '' || url.hash !== '') return { problem: 'it has a query or a fragment, which clients drop' }
  if (!url.pathname.endsWith('/')) url.pathname += '/'
  if (url.pathname.endsWith('/providers/')) {
    return { problem: 'it ends with providers/, which is added to it; give the address of the mirror itself' }
  }
  if (door !== 'host' && url.protocol === 'http:') {
    return { problem: 'clients refuse a network mirror over plain http; give an https URL, or use --door host' }
  }
  if (door !== 'mirror' && (url.username !== '' || url.password !== '')) {
    return { problem: 'clients refuse a user and password in host blocks; leave them out, or use --door mirror' }
  }
  return { baseUrl: url.href }
}
