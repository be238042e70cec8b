import type { Command } from 'commander'
import { RefreshResult } from '../admin/schema/changes.ts'
import { type AdminOptions, addAdminOptions, openAdminClient } from './api/options.ts'
import { wrongUse } from './command-error.ts'
import { formatItem, parseItem } from './item.ts'
import { print, printJson } from './terminal/output.ts'

/** Origins may be slow, and all retries are within it. */
const LIMIT_MS = 300_000

const EXAMPLES = [
  'terramirror refresh hashicorp/aws                         the list of versions',
  'terramirror refresh hashicorp/aws 5.100.0                 its platforms, checksums and signature',
  'terramirror refresh registry.acme.example/acme/widget 1.0.0 --accept',
]

interface Options extends AdminOptions {
  readonly accept: boolean
}

/** `terramirror refresh`: asks the origin anew; the one way to replace a version that was published anew. */
export function defineRefresh(command: Command): void {
  addAdminOptions(
    command
      .argument('<item...>', 'ADDRESS [VERSION]')
      .option('--accept', 'replace a version that the origin published anew with other bytes', false),
    EXAMPLES,
  ).action((words: string[], options: Options) => refresh(command, words, options))
}

async function refresh(command: Command, words: readonly string[], options: Options): Promise<void> {
  const { accept, json } = options
  const { version, ...address } = parseItem(words)
  if ('platform' in address) throw wrongUse('a version is refreshed with all its platforms; leave the platform out')
  if (accept && version === undefined) throw wrongUse('--accept is for one version; name it')
  const body = { address: formatItem(address), ...(version === undefined ? {} : { version }), accept }
  const client = await openAdminClient(command, options)
  const result = await client.ask({
    method: 'POST',
    path: ['refresh'],
    body,
    schema: RefreshResult,
    alsoStatus: 409,
    limitMs: LIMIT_MS,
  })
  await (json ? printJson(result) : print(formatResult(result)))
  if (result.outcome === 'changed') process.exitCode = 1
}

function formatResult({ address, version, outcome, added, changes }: RefreshResult): string {
  const name = version === null ? address : `${address} ${version}`
  const more = version === null ? 'versions' : 'platforms'
  const lines = [
    {
      unchanged: `${name}: as it was`,
      grown: `${name}: ${added.length} new ${more}`,
      changed: `${name}: the origin offers other bytes than those that are held`,
      replaced: `${name}: replaced by what the origin offers now`,
    }[outcome],
    ...added.map((text) => `  new: ${text}`),
    ...changes.flatMap(({ filename, held, offered }) => [
      `  ${filename}`,
      `    ${outcome === 'replaced' ? 'was' : 'held'}:    ${held}`,
      `    ${outcome === 'replaced' ? 'is' : 'offered'}: ${offered ?? 'nothing: it is not published any more'}`,
    ]),
  ]
  if (outcome === 'changed') {
    lines.push('Nothing was replaced. Ask its authors why; if they meant it, run this again with --accept.')
  }
  return `${lines.join('\n')}\n`
}
