import type { Command } from 'commander'
import prettyBytes from 'pretty-bytes'
import type { HeldModule, HeldPackage } from '../admin/schema/stock.ts'
import { type AdminOptions, addAdminOptions, openAdminClient } from './api/options.ts'
import { formatAuthentication } from './authentication-text.ts'
import { CommandError } from './command-error.ts'
import { findHeld } from './held-items.ts'
import { formatItem, parseItem } from './item.ts'
import { formatAge } from './terminal/age.ts'
import { type Fact, formatFacts } from './terminal/facts.ts'
import { print, printJson } from './terminal/output.ts'

const EXAMPLES = [
  'terramirror show hashicorp/aws 5.100.0 linux_amd64',
  'terramirror show hashicorp/aws 5.100.0                    every platform that is held',
  'terramirror show terraform-aws-modules/vpc/aws 5.1.0      what it calls, too',
  "terramirror show 'registry.terraform.io/hashicorp/aws 5.100.0 linux_amd64' --json",
]

/** `terramirror show`: all about what is held of one provider or module. */
export function defineShow(command: Command): void {
  addAdminOptions(
    command.argument('<item...>', 'ADDRESS [VERSION [PLATFORM]], in one word or several'),
    EXAMPLES,
  ).action((words: string[], options: AdminOptions) => show(command, words, options))
}

async function show(command: Command, words: readonly string[], options: AdminOptions): Promise<void> {
  const item = parseItem(words)
  const client = await openAdminClient(command, options)
  const { packages, modules } = await findHeld(client, item)
  if (packages.length + modules.length === 0) {
    throw new CommandError(`nothing is held of ${formatItem(item)}; terramirror explain tells more`)
  }
  if (options.json) return printJson({ items: [...packages, ...modules], next: null })
  const texts = [...packages.map(formatPackage), ...modules.map(formatModule)]
  await print(texts.join('\n'))
}

function formatPackage(held: HeldPackage): string {
  return formatFacts([
    ['item', held.item],
    ['file', `${held.filename}, ${prettyBytes(held.size)} (${held.size} bytes)`],
    ['sha-256', held.digest],
    ['hashes', held.hashes],
    ['authenticated', formatAuthentication(held.authentication)],
    ['from', held.archiveUrl],
    ...usageFacts(held),
  ])
}

function formatModule(held: HeldModule): string {
  const { calls } = held
  const name = ({ source, version }: { source: string; version: string | null }) =>
    version === null ? source : `${source} ${version}`
  return formatFacts([
    ['item', held.item],
    ['size', `${prettyBytes(held.size)} (${held.size} bytes)`],
    ['sha-256', held.digest],
    ['from', held.source],
    ['revision', held.revision],
    ['calls', calls === null ? 'unknown: its files could not be read' : calls.modules.map(name)],
    ['calls, not mirrored', calls?.otherSources ?? []],
    ['providers', calls?.providers.map(name) ?? []],
    ...usageFacts(held),
  ])
}

function usageFacts({ firstSeenAt, cachedAt, lastUsedAt, hits, pins }: HeldPackage | HeldModule): Fact[] {
  const moment = (time: string | null) => (time === null ? 'never' : `${time} (${formatAge(time)})`)
  return [
    ['first seen', moment(firstSeenAt)],
    ['cached', moment(cachedAt)],
    ['last used', moment(lastUsedAt)],
    ['hits', String(hits)],
    ['pins', pins],
  ]
}
