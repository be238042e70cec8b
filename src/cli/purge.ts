import type { Command } from 'commander'
import prettyBytes from 'pretty-bytes'
import { PurgeResult } from '../admin/schema/changes.ts'
import { type AdminOptions, addAdminOptions, openAdminClient } from './api/options.ts'
import { CommandError } from './command-error.ts'
import { findHeld, type HeldItems, soleOrigin } from './held-items.ts'
import { formatItem, type Item, parseItem } from './item.ts'
import { assertCanAsk, confirm } from './terminal/confirmation.ts'
import { print, printJson } from './terminal/output.ts'

/** A purge of thousands of files takes its time. */
const LIMIT_MS = 600_000

const EXAMPLES = [
  'terramirror purge hashicorp/aws 5.99.0',
  'terramirror purge hashicorp/aws 5.99.0 windows_amd64 --yes',
  'terramirror purge terraform-aws-modules/vpc/aws 5.1.0',
  'terramirror purge registry.acme.example/acme/widget 1.0.0 --forget   the evidence too: it may then change',
]

interface Options extends AdminOptions {
  readonly forget: boolean
  readonly yes: boolean
}

/** `terramirror purge`: removes what is held of one provider or module, but for what is pinned. */
export function definePurge(command: Command): void {
  addAdminOptions(
    command
      .argument('<item...>', 'ADDRESS [VERSION [PLATFORM]], in one word or several')
      .option('--forget', 'drop the evidence too, and with it the promise that the version never changes', false)
      .option('-y, --yes', 'do not ask', false),
    EXAMPLES,
  ).action((words: string[], options: Options) => purge(command, words, options))
}

async function purge(command: Command, words: readonly string[], options: Options): Promise<void> {
  const { forget, yes, json } = options
  const item = parseItem(words)
  if (!yes) assertCanAsk()
  const client = await openAdminClient(command, options)
  const path = await choosePath(item, options, () => findHeld(client, item))
  const query = { forget: String(forget) }
  const result = await client.ask({ method: 'DELETE', path, query, schema: PurgeResult, limitMs: LIMIT_MS })
  await (json ? printJson(result) : print(formatResult(result)))
  // What was named is still there.
  if (result.pinned.length > 0) process.exitCode = 1
}

/** Where to send the request: asks whether that is meant, and which origin where none was named. */
async function choosePath(
  item: Item,
  { forget, yes }: Options,
  find: () => Promise<HeldItems>,
): Promise<readonly string[]> {
  if (yes && item.origin !== undefined) return pathOf(item, item.origin)
  const held = await find()
  const origin = item.origin ?? soleOrigin(item, held)
  const items = [...held.packages, ...held.modules]
  const size = prettyBytes(items.reduce((sum, { size }) => sum + size, 0))
  const what = `${items.length} ${items.length === 1 ? 'item' : 'items'} of ${formatItem({ ...item, origin })}`
  const also = forget ? ', and forget what vouches for them' : ''
  if (!yes && !(await confirm(`Remove ${what}, ${size}${also}?`))) throw new CommandError('nothing was removed')
  return pathOf(item, origin)
}

function pathOf(item: Item, origin: string): readonly string[] {
  const version = item.version === undefined ? [] : [item.version]
  if (item.kind === 'module') return ['modules', origin, item.namespace, item.name, item.targetSystem, ...version]
  const platform = item.platform === undefined ? [] : [item.platform]
  return ['packages', origin, item.namespace, item.type, ...version, ...platform]
}

function formatResult({ removed, pinned, bytes }: PurgeResult): string {
  const lines = [
    ...removed.map((name) => `removed  ${name}`),
    ...pinned.map((name) => `pinned   ${name}`),
    `${removed.length} removed, ${prettyBytes(bytes)} freed${pinned.length === 0 ? '' : `; ${pinned.length} kept, because they are pinned`}`,
  ]
  return `${lines.join('\n')}\n`
}
