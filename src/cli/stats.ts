import type { Command } from 'commander'
import prettyBytes from 'pretty-bytes'
import { Statistics } from '../admin/schema/stock.ts'
import { type AdminOptions, addAdminOptions, openAdminClient } from './api/options.ts'
import { formatAge } from './terminal/age.ts'
import { formatFacts } from './terminal/facts.ts'
import { print, printJson } from './terminal/output.ts'
import { Table } from './terminal/table.ts'

const EXAMPLES = ['terramirror stats', 'terramirror stats --json | jq .hitRatio']

/** `terramirror stats`: what the mirror has saved, how full it is, what is used most. */
export function defineStats(command: Command): void {
  addAdminOptions(command, EXAMPLES).action(async (options: AdminOptions) => {
    const client = await openAdminClient(command, options)
    const statistics = await client.ask({ path: ['stats'], schema: Statistics })
    await (options.json ? printJson(statistics) : print(formatStatistics(statistics)))
  })
}

function formatStatistics(statistics: Statistics): string {
  const { mode, startedAt, packages, modules, disk, answers, hitRatio, evictions, quarantine, top } = statistics
  const outcomes = Object.entries(answers).map(([outcome, count]) => `${count} ${outcome}`)
  const held = (kind: Statistics['packages']) =>
    `${kind.count ?? 'not counted yet'}${kind.bytes === null ? '' : `, ${prettyBytes(kind.bytes)}`}`
  const facts = formatFacts([
    ['mode', mode],
    ['started', `${startedAt} (${formatAge(startedAt)})`],
    ['packages', held(packages)],
    ['modules', held(modules)],
    ['disk', formatDisk(disk)],
    ['answers', outcomes.length === 0 ? 'none yet' : outcomes.join(', ')],
    ['hit ratio', hitRatio === null ? undefined : `${(100 * hitRatio).toFixed(1)} %`],
    ['sent to clients', prettyBytes(statistics.sentBytes)],
    ['received', `${prettyBytes(statistics.receivedBytes)} from origins`],
    ['saved', `${prettyBytes(statistics.savedBytes)} that origins did not have to send`],
    ['evicted', `${evictions.items} items, ${prettyBytes(evictions.bytes)}`],
    ['quarantine', `${quarantine.files} files, ${prettyBytes(quarantine.bytes)}`],
  ])
  const table = new Table<Statistics['top'][number]>([
    { title: 'HITS', align: 'right', cell: ({ hits }) => String(hits) },
    { title: 'LAST USED', cell: ({ lastUsedAt }) => formatAge(lastUsedAt) },
    { title: 'MOST USED', cell: ({ item }) => item },
  ])
  return top.length === 0 ? facts : `${facts}\n${table.format(top)}`
}

function formatDisk({ used, reserved, maxSize, free, minFree }: Statistics['disk']): string[] {
  const limit = maxSize === null ? 'without a limit' : `of ${prettyBytes(maxSize)}`
  const least = minFree === null ? '' : `, ${prettyBytes(minFree)} of it to be kept free`
  return [
    `${used === null ? 'not added up yet' : prettyBytes(used)} used ${limit}`,
    ...(reserved === 0 ? [] : [`${prettyBytes(reserved)} reserved for what is coming in`]),
    `${prettyBytes(free)} free on the disk${least}`,
  ]
}
