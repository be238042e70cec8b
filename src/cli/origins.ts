import type { Command } from 'commander'
import { OriginList, type OriginState } from '../admin/schema/stock.ts'
import { type AdminOptions, addAdminOptions, openAdminClient } from './api/options.ts'
import { formatAge } from './terminal/age.ts'
import { printPages } from './terminal/pages.ts'
import { type Column, Table } from './terminal/table.ts'

const EXAMPLES = ['terramirror origins', 'terramirror origins --json']

const columns: readonly Column<OriginState>[] = [
  { title: 'ORIGIN', cell: ({ host }) => host },
  { title: 'HEALTH', cell: formatHealth },
  { title: 'LAST ANSWER', cell: ({ lastAnswerAt }) => formatAge(lastAnswerAt) },
  { title: 'SIGNATURES', cell: ({ signatures }) => signatures },
  { title: 'PACKAGES', align: 'right', cell: ({ packages }) => String(packages) },
  { title: 'MODULES', align: 'right', cell: ({ modules }) => String(modules) },
  { title: 'LAST ERROR', cell: formatError },
]

/** `terramirror origins`: how the origin registries are. */
export function defineOrigins(command: Command): void {
  addAdminOptions(command, EXAMPLES).action(async (options: AdminOptions) => {
    const { json } = options
    const client = await openAdminClient(command, options)
    const pages = client.pages({ path: ['origins'], schema: OriginList })
    await printPages(pages, { json, all: true, table: new Table(columns), empty: 'no origin is configured' })
  })
}

function formatHealth({ health, retryAt }: OriginState): string {
  const names = { unknown: 'not asked yet', well: 'well', failing: 'failing', backingOff: 'left alone' }
  return retryAt === null ? names[health] : `${names[health]}, asked again ${formatAge(retryAt)}`
}

function formatError({ lastError }: OriginState): string {
  return lastError === null ? '' : `${formatAge(lastError.at)}: ${lastError.error} (${lastError.code})`
}
