import { displayHostname, type Hostname, splitHostname } from './hostname.ts'

/** Both read the same language; the names of their files and a few options differ. */
export type Client = 'terraform' | 'tofu'

/**
 * How a client reaches the mirror: by the network mirror protocol, by `host` blocks (the mirror stands in for the
 * registries themselves), or providers by the first and all else by the second.
 */
export type Door = 'mirror' | 'host' | 'both'

/** What a client configuration is made for. */
export interface ClientConfigurationOptions {
  readonly client: Client
  readonly door: Door
  /** Providers that the mirror does not serve come straight from their origins. */
  readonly direct: boolean
  /** As clients reach the mirror; ends with `/`. https, but for `host` blocks alone. */
  readonly baseUrl: string
  /** Hosts that the mirror serves, in the spelling of `parseHostname`, and patterns such as `*.corp.example`. */
  readonly origins: readonly string[]
}

/** For people: where a client looks for its configuration. */
export interface ClientFacts {
  readonly name: string
  /** The program. */
  readonly command: string
  /** In the user's home. */
  readonly file: string
  /** On Windows. */
  readonly windowsFile: string
}

/** OpenTofu reads Terraform's files too, where its own are missing. */
export const CLIENTS: Readonly<Record<Client, ClientFacts>> = {
  terraform: {
    name: 'Terraform',
    command: 'terraform',
    file: '~/.terraformrc',
    windowsFile: '%APPDATA%\\terraform.rc',
  },
  tofu: { name: 'OpenTofu', command: 'tofu', file: '~/.tofurc', windowsFile: '%APPDATA%\\tofu.rc' },
}

const OPENTOFU_REGISTRY = 'registry.opentofu.org'

/** Base URL of the network mirror protocol. The slash at its end matters (client-contract A2). */
export function networkMirrorUrl(baseUrl: string): string {
  return `${baseUrl}providers/`
}

/**
 * The text of a CLI configuration, ready to be saved as it is. It ends with a line break. Every form is one with which
 * the real client runs.
 */
export function formatClientConfiguration(options: ClientConfigurationOptions): string {
  const origins = sortOrigins(options.origins)
  const blocks = [
    ...(options.door === 'host' ? [] : [formatProviderInstallation(options, origins)]),
    ...(options.door === 'mirror' ? [] : formatHostBlocks(options, origins)),
  ]
  return blocks.map((lines) => `${lines.join('\n')}\n`).join('\n')
}

/** Lines for a POSIX shell that save a configuration in the current folder and point the client to it. */
export function formatShellSetup(configuration: string): string[] {
  return [
    "cat > terramirror.tfrc <<'END'",
    ...configuration.trimEnd().split('\n'),
    'END',
    'export TF_CLI_CONFIG_FILE="$PWD/terramirror.tfrc"',
  ]
}

interface Origins {
  /** Can be asked of a network mirror. */
  readonly plain: readonly Hostname[]
  /** Clients cannot build the URL to ask a network mirror for these (client-contract A19). */
  readonly withPort: readonly Hostname[]
  /** `*.domain`: no client takes such a pattern. */
  readonly patterns: readonly string[]
}

function sortOrigins(origins: readonly string[]): Origins {
  const hosts = origins.filter((origin) => !origin.startsWith('*.')) as Hostname[]
  return {
    plain: hosts.filter((host) => splitHostname(host).port === undefined),
    withPort: hosts.filter((host) => splitHostname(host).port !== undefined),
    patterns: origins.filter((origin) => origin.startsWith('*.')),
  }
}

function formatProviderInstallation(options: ClientConfigurationOptions, origins: Origins): string[] {
  const { client, door, direct, baseUrl } = options
  const { plain, withPort, patterns } = origins
  // By a host block, what is asked "directly" is asked of the mirror; without it, only the origin itself is left.
  const aroundMirror = withPort.length > 0 && (direct || door === 'both')
  const lines = ['provider_installation {', '  network_mirror {', `    url = ${quote(networkMirrorUrl(baseUrl))}`]
  if (aroundMirror) lines.push(`    exclude = ${formatList(withPort)}`)
  if (client === 'tofu' && plain.includes(OPENTOFU_REGISTRY as Hostname)) {
    lines.push(
      `    # From OpenTofu 1.12 on, and for ${OPENTOFU_REGISTRY}: hashes of all platforms come into the lock file.`,
      '    trust_all_hashes = true',
    )
  }
  lines.push('  }')
  if (direct) lines.push(...formatDirect(plain, patterns))
  else if (aroundMirror) {
    lines.push('  # Asked of the mirror too, by the host blocks below.')
    lines.push('  direct {', `    include = ${formatList(withPort)}`, '  }')
  }
  lines.push('}')
  return [...(withPort.length > 0 ? explainPorts(withPort, door) : []), ...lines]
}

/** Without `exclude`, clients ask the origin of every provider, also of one that the mirror holds (client-contract A28). */
function formatDirect(plain: readonly Hostname[], patterns: readonly string[]): string[] {
  const lines = patterns.map(
    (pattern) =>
      `    # The mirror serves ${displayPattern(pattern)} too, which cannot be written here: exclude each host of it that you use.`,
  )
  // An empty list would exclude nothing, as no list does.
  const exclude = plain.length === 0 ? [] : [`    exclude = ${formatList(plain)}`]
  return ['  direct {', ...lines, ...exclude, '  }']
}

function explainPorts(withPort: readonly Hostname[], door: Door): string[] {
  const hosts = withPort.map(displayHostname).join(', ')
  return [
    `# ${hosts}: a host with a port cannot be asked of a network mirror${door === 'both' ? '.' : '; it needs a host block.'}`,
  ]
}

function formatHostBlocks({ client, baseUrl }: ClientConfigurationOptions, origins: Origins): string[][] {
  const { command } = CLIENTS[client]
  const { plain, withPort, patterns } = origins
  const comments = [
    '# Host blocks are in no documentation of Terraform or OpenTofu, yet have worked unchanged since 2017.',
    '# Each replaces service discovery for its host wholly, so it names both services. It also steers',
    `# "${command} providers lock" and "${command} providers mirror".`,
    '# Modules of these registries come from the mirror, as archives that the client checks.',
    ...patterns.map(
      (pattern) =>
        `# The mirror serves ${displayPattern(pattern)} too, which cannot be written here: add a block for each host of it that you use.`,
    ),
  ]
  const blocks = [...plain, ...withPort].map((host) => [
    `host ${quote(displayHostname(host))} {`,
    '  services = {',
    `    "providers.v1" = ${quote(`${baseUrl}v1/providers/${host}/`)}`,
    `    "modules.v1"   = ${quote(`${baseUrl}v1/modules/${host}/`)}`,
    '  }',
    '}',
  ])
  return [comments, ...blocks]
}

/** Clients refuse punycode in a configuration (client-contract D6). */
function formatList(hosts: readonly Hostname[]): string {
  return `[${hosts.map((host) => quote(`${displayHostname(host)}/*/*`)).join(', ')}]`
}

function displayPattern(pattern: string): string {
  return `*.${displayHostname(pattern.slice(2) as Hostname)}`
}

/** Neither URLs nor hosts hold quotes, backslashes or line breaks once they are parsed. */
function quote(text: string): string {
  return `"${text}"`
}
