import type { Command } from 'commander'
import prettyBytes from 'pretty-bytes'
import { z } from 'zod'
import { PinPage, PinSet } from '../admin/schema/changes.ts'
import type { AdminClient } from './api/client.ts'
import { type AdminOptions, addAdminOptions, openAdminClient } from './api/options.ts'
import { wrongUse } from './command-error.ts'
import { formatItem, parseItem } from './item.ts'
import { formatAge } from './terminal/age.ts'
import { formatFacts } from './terminal/facts.ts'
import { note, print, printJson } from './terminal/output.ts'
import { printPages } from './terminal/pages.ts'
import { Table } from './terminal/table.ts'
import { collect, readTextFile } from './text-files.ts'

interface SetOptions extends AdminOptions {
  readonly lockFile: readonly string[]
  readonly job: readonly string[]
}

const columns = [
  { title: 'NAME', cell: ({ name }: PinSet) => name },
  { title: 'HELD', align: 'right' as const, cell: ({ held }: PinSet) => String(held) },
  { title: 'SIZE', align: 'right' as const, cell: ({ bytes }: PinSet) => prettyBytes(bytes) },
  { title: 'UPDATED', cell: ({ updatedAt }: PinSet) => formatAge(updatedAt) },
]

/** `terramirror pin`: named sets of things that eviction and purge leave alone. */
export function definePin(command: Command): void {
  defineSet(command.command('set'))
  defineShow(command.command('show'))
  defineList(command.command('list', { isDefault: true }))
  defineDelete(command.command('delete'))
}

function defineSet(command: Command): void {
  addAdminOptions(
    command
      .description('make a set, or replace it')
      .argument('<name>', 'of the set: a-z, 0-9, dot, dash, underline')
      .argument('[item...]', "quoted: 'ADDRESS VERSION PLATFORM', 'ADDRESS VERSION' or ADDRESS")
      .option('--lock-file <file>', 'all that a lock file names; may be repeated', collect, [])
      .option('--job <id>', 'all that a job brought or found; may be repeated', collect, []),
    [
      'terramirror pin set prod --lock-file infra/.terraform.lock.hcl',
      "terramirror pin set base 'hashicorp/aws 5.100.0' hashicorp/random",
      'terramirror pin set release-7 --job JOB                   all that a job brought or found',
    ],
  ).action((name: string, items: string[], options: SetOptions) => setPins(command, { name, items, options }))
}

async function setPins(
  command: Command,
  { name, items, options }: { name: string; items: readonly string[]; options: SetOptions },
): Promise<void> {
  const { lockFile, job: jobs, json } = options
  if (items.length + lockFile.length + jobs.length === 0) throw wrongUse('name what is to be pinned')
  const lockFiles = await Promise.all(lockFile.map(readTextFile))
  const body = {
    items: items.map((item) => formatItem(parseItem([item]))),
    lockFiles,
    jobs,
  }
  const set = await putPins(await openAdminClient(command, options), name, body)
  await (json ? printJson(set) : print(`pinned as ${set.name}: ${describe(set)}\n`))
}

/** Makes or replaces a set of pins. @throws CommandError */
export function putPins(
  client: AdminClient,
  name: string,
  body: {
    readonly items?: readonly string[]
    readonly lockFiles?: readonly string[]
    readonly jobs?: readonly string[]
  },
): Promise<PinSet> {
  return client.ask({ method: 'PUT', path: ['pins', name], body, schema: PinSet })
}

function defineShow(command: Command): void {
  addAdminOptions(command.description('show what a set names').argument('<name>', 'of the set'), [
    'terramirror pin show prod',
  ]).action(async (name: string, options: AdminOptions) => {
    const client = await openAdminClient(command, options)
    const set = await client.ask({ path: ['pins', name], schema: PinSet })
    const facts = formatFacts([
      ['name', set.name],
      ['updated', `${set.updatedAt} (${formatAge(set.updatedAt)})`],
      ['holds', describe(set)],
      ['items', set.items],
    ])
    await (options.json ? printJson(set) : print(facts))
  })
}

function defineList(command: Command): void {
  addAdminOptions(command.description('list the sets'), ['terramirror pin list']).action(
    async (options: AdminOptions) => {
      const client = await openAdminClient(command, options)
      const pages = client.pages({ path: ['pins'], query: { limit: 500 }, schema: PinPage })
      const { json } = options
      await printPages(pages, { json, all: true, table: new Table(columns), empty: 'nothing is pinned' })
    },
  )
}

function defineDelete(command: Command): void {
  addAdminOptions(
    command.description('delete a set; what it held may be evicted then').argument('<name>', 'of the set'),
    ['terramirror pin delete prod'],
  ).action(async (name: string, options: AdminOptions) => {
    const client = await openAdminClient(command, options)
    await client.ask({ method: 'DELETE', path: ['pins', name], schema: z.unknown() })
    if (options.json) return printJson({ deleted: name })
    note(`${name} is no more; what it held may be evicted now`)
  })
}

function describe({ held, bytes, items }: PinSet): string {
  return `${items.length} ${items.length === 1 ? 'name' : 'names'}, ${held} held, ${prettyBytes(bytes)}`
}
