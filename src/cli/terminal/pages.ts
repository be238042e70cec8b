import type { Page } from '../api/client.ts'
import { note, print, printRaw } from './output.ts'
import type { Table } from './table.ts'

/** How a list is printed. */
export interface PageOptions<Item> {
  /** One JSON document, `{ "items": […], "next": … }`, instead of a table. */
  readonly json: boolean
  /** Every page, not only the first. */
  readonly all: boolean
  readonly table: Table<Item>
  /** Told on standard error where there is nothing. */
  readonly empty: string
}

/**
 * Prints a list as its pages come, so that it may be longer than memory and its reader may leave.
 * @throws CommandError as `print`, and what the pages throw
 */
export async function printPages<Item>(pages: AsyncIterable<Page<Item>>, options: PageOptions<Item>): Promise<void> {
  const { json, all, table, empty } = options
  let count = 0
  let next: string | null = null
  for await (const page of pages) {
    await (json ? printRaw(formatItems(page.items, count === 0)) : print(table.format(page.items)))
    count += page.items.length
    next = page.next
    if (!all) break
  }
  if (json) await printRaw(`${count === 0 ? START : ''}\n],"next":${JSON.stringify(next)}}\n`)
  else if (count === 0) note(empty)
  else if (next !== null) note(`these are not all; --all lists them, or --cursor '${next}' the next ones`)
}

const START = '{"items":['

function formatItems(items: readonly unknown[], isFirst: boolean): string {
  const lines = items.map((item) => `\n${JSON.stringify(item)}`)
  if (lines.length === 0) return ''
  return `${isFirst ? START : ','}${lines.join(',')}`
}
