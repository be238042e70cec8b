/** Which client reads the configuration. The language is one; places and a few options differ. */
export type ClientName = 'terraform' | 'tofu'

/** Which ways into the mirror a configuration uses; see `docs/client-configuration.md`. */
export type Door = 'mirror' | 'host' | 'both'

/** What a client configuration is made of. */
export interface ClientConfigurationOptions {
  readonly client: ClientName
  readonly door: Door
  /** Providers of other registries come straight from these. Means nothing without the network mirror. */
  readonly direct: boolean
  /** As clients reach the mirror; ends with `/`. */
  readonly baseUrl: URL
  /** Hosts of the origins that the mirror serves, with a port where they have one; patterns (`*.corp.example`) too. */
  readonly origins: readonly string[]
}

const PLACE = {
  terraform: '~/.terraformrc (Windows: %APPDATA%\\terraform.rc)',
  tofu: '~/.tofurc (Windows: %APPDATA%\\tofu.rc)',
}

/**
 * Prints the CLI configuration that leads a client to the mirror: valid text of such a file, comments included, ending
 * with a line feed (client-contract A, D7 to D9).
 */
export function clientConfiguration(options: ClientConfigurationOptions): string {
  const { client, door } = options
  return [
    `# CLI configuration: ${PLACE[client]}, or any file that TF_CLI_CONFIG_FILE names.`,
    ...(door === 'host' ? [] : [providerInstallation(options)]),
    ...(door === 'mirror' ? [] : [hostBlocks(options)]),
  ]
    .join('\n')
    .concat('\n')
}

function providerInstallation({ client, direct, baseUrl, origins, door }: ClientConfigurationOptions): string {
  // Clients cannot ask a network mirror for an address with a port (client-contract A19).
  const [portless, ported] = partition(origins, (origin) => !origin.includes(':'))
  const [patterns, named] = partition(portless, isPattern)
  const elsewhere = door === 'both' ? 'the host blocks below serve it' : 'use a host block for it'
  return [
    ...ported.map((origin) => `# ${origin}: no network mirror can serve a registry with a port; ${elsewhere}.`),
    'provider_installation {',
    '  network_mirror {',
    `    url = ${quote(new URL('providers/', baseUrl).href)}`,
    ...(client === 'tofu'
      ? ['    # trust_all_hashes = true # OpenTofu 1.12 and newer: hashes of all platforms into the lock file']
      : []),
    '  }',
    ...(direct ? directBlock(named, patterns) : []),
    '}',
  ].join('\n')
}

/** What the mirror serves is excluded: else clients ask the origin, too, for every provider (client-contract A28). */
function directBlock(named: readonly string[], patterns: readonly string[]): string[] {
  return [
    ...patterns.map(
      (origin) => `  # ${origin}: name each of these registries below, so that only the mirror is asked.`,
    ),
    '  direct {',
    `    exclude = [${named.map((origin) => quote(`${origin}/*/*`)).join(', ')}]`,
    '  }',
  ]
}

function hostBlocks({ baseUrl, origins }: ClientConfigurationOptions): string {
  const [patterns, named] = partition(origins, isPattern)
  return [
    '# A host block takes the place of service discovery for one registry, with all its services: modules come from the',
    '# mirror, and so do providers wherever no provider_installation says otherwise, and what `providers lock` and',
    '# `providers mirror` fetch. Neither Terraform nor OpenTofu documents it; both have had it, unchanged, for years.',
    ...patterns.map((origin) => `# ${origin}: write one such block for each of these registries.`),
    ...named.map((origin) => hostBlock(origin, baseUrl)),
  ].join('\n')
}

function hostBlock(origin: string, baseUrl: URL): string {
  const service = (kind: string): string => quote(new URL(`v1/${kind}/${encodeURIComponent(origin)}/`, baseUrl).href)
  return [
    `host ${quote(origin)} {`,
    '  services = {',
    `    "modules.v1"   = ${service('modules')}`,
    `    "providers.v1" = ${service('providers')}`,
    '  }',
    '}',
  ].join('\n')
}

function isPattern(origin: string): boolean {
  return origin.startsWith('*')
}

function partition<T>(items: readonly T[], belongs: (item: T) => boolean): [T[], T[]] {
  return [items.filter(belongs), items.filter((item) => !belongs(item))]
}

/** JSON's quoting is HCL's, but for templates. */
function quote(value: string): string {
  return JSON.stringify(value).replaceAll('${', '$${').replaceAll('%{', '%%{')
}
