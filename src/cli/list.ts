import { type Command, InvalidArgumentError } from 'commander'
import prettyBytes from 'pretty-bytes'
import { type HeldModule, type HeldPackage, ModulePage, PackagePage } from '../admin/schema/stock.ts'
import { type AdminOptions, addAdminOptions, openAdminClient } from './api/options.ts'
import { wrongUse } from './command-error.ts'
import { formatAge } from './terminal/age.ts'
import { printPages } from './terminal/pages.ts'
import { type Column, Table } from './terminal/table.ts'

/** The most that one page of the API has. */
const MAX_LIMIT = 500

const EXAMPLES = [
  'terramirror list                                         the first 100 packages',
  'terramirror list aws --all                               every package with "aws" in its name',
  'terramirror list --origin registry.acme.example',
  'terramirror list --modules --namespace terraform-aws-modules',
  "terramirror list --all --json | jq -r '.items[].item'    names alone",
]

interface Options extends AdminOptions {
  readonly modules: boolean
  readonly origin?: string
  readonly namespace?: string
  readonly type?: string
  readonly name?: string
  readonly limit: number
  readonly cursor?: string
  readonly all: boolean
}

const usage: readonly Column<HeldPackage | HeldModule>[] = [
  { title: 'SIZE', align: 'right', cell: ({ size }) => prettyBytes(size) },
  { title: 'CACHED', cell: ({ cachedAt }) => formatAge(cachedAt) },
  { title: 'LAST USED', cell: ({ lastUsedAt }) => formatAge(lastUsedAt) },
  { title: 'HITS', align: 'right', cell: ({ hits }) => String(hits) },
  { title: 'PINS', cell: ({ pins }) => pins.join(',') },
]

const packageColumns: readonly Column<HeldPackage>[] = [
  { title: 'PROVIDER', cell: (held) => `${held.origin}/${held.namespace}/${held.type}` },
  { title: 'VERSION', cell: ({ version }) => version },
  { title: 'PLATFORM', cell: ({ platform }) => platform },
  ...usage,
]

const moduleColumns: readonly Column<HeldModule>[] = [
  { title: 'MODULE', cell: (held) => `${held.origin}/${held.namespace}/${held.name}/${held.targetSystem}` },
  { title: 'VERSION', cell: ({ version }) => version },
  ...usage,
]

/** `terramirror list`: packages or modules that are held, as a table or as JSON. */
export function defineList(command: Command): void {
  addAdminOptions(
    command
      .argument('[text]', 'what stands anywhere in their names, e.g. aws or linux_arm64')
      .option('--modules', 'modules instead of packages of providers', false)
      .option('--origin <host>', 'only of this registry')
      .option('--namespace <name>', 'only of this namespace')
      .option('--type <type>', 'only of providers of this type; with --modules: for this target system')
      .option('--name <name>', 'with --modules: only of this name')
      .option('--limit <n>', `at most so many, up to ${MAX_LIMIT}`, parseLimit, 100)
      .option('--cursor <cursor>', 'go on where another list ended')
      .option('--all', 'all of them', false),
    EXAMPLES,
  ).action((text: string | undefined, options: Options) => list(command, text, options))
}

async function list(command: Command, text: string | undefined, options: Options): Promise<void> {
  const { modules, origin, namespace, type, name, limit, cursor, all, json } = options
  if (name !== undefined && !modules) throw wrongUse('--name is for modules; say --modules, or --type for providers')
  const client = await openAdminClient(command, options)
  const query = { q: text, origin, namespace, type, name, cursor, limit: all ? MAX_LIMIT : limit }
  if (modules) {
    const pages = client.pages({ path: ['modules'], query, schema: ModulePage })
    await printPages(pages, { json, all, table: new Table(moduleColumns), empty: 'no such module is held' })
  } else {
    const pages = client.pages({ path: ['packages'], query, schema: PackagePage })
    await printPages(pages, { json, all, table: new Table(packageColumns), empty: 'no such package is held' })
  }
}

function parseLimit(text: string): number {
  const limit = /^\d+$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= MAX_LIMIT) return limit
  throw new InvalidArgumentError(`Expected a number from 1 to ${MAX_LIMIT}.`)
}
