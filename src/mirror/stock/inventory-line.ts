import { z } from 'zod'
import { sha256 } from '../record-values.ts'
import type { HeldItem } from './held-item.ts'
import { kindOfName } from './item-name.ts'

/*
 * What the journal of the inventory says, an object a line. A snapshot begins with the number of its format; what comes
 * after it is what has changed since. A later line of a name counts.
 */

const FORMAT = 1
const DIGESTS_OF_A_LINE = 50

const heldLine = z.object({
  item: z.string(),
  digest: sha256,
  size: z.number(),
  cachedAt: z.number(),
  earlier: z.array(sha256).exactOptional(),
})

/** One line: a whole snapshot begins, this is held, this is not held, this record is about to change, these blobs are evidence. */
export type InventoryLine =
  | { readonly format: number }
  | z.input<typeof heldLine>
  | { readonly gone: string }
  | { readonly changing: string }
  | { readonly evidence: readonly string[] }

/** What a line turns out to say. */
export type InventoryFact =
  | { readonly kind: 'start' }
  | { readonly kind: 'held'; readonly item: HeldItem }
  | { readonly kind: 'gone' | 'changing'; readonly name: string }
  | { readonly kind: 'evidence'; readonly digests: z.output<typeof sha256>[] }

const line = z.union([
  heldLine.transform(({ item, ...rest }): InventoryFact => {
    return { kind: 'held', item: { name: item, kind: kindOfName(item), ...rest } }
  }),
  z.object({ gone: z.string() }).transform(({ gone }): InventoryFact => ({ kind: 'gone', name: gone })),
  z.object({ changing: z.string() }).transform(({ changing }): InventoryFact => ({ kind: 'changing', name: changing })),
  z
    .object({ evidence: z.array(sha256) })
    .transform(({ evidence }): InventoryFact => ({ kind: 'evidence', digests: evidence })),
  z.object({ format: z.literal(FORMAT) }).transform((): InventoryFact => ({ kind: 'start' })),
])

/** Reads a line; undefined if it is none of ours, or of another format. */
export function parseInventoryLine(entry: unknown): InventoryFact | undefined {
  return line.safeParse(entry).data
}

/** The line of an item that is held, or of a name that is not. */
export function lineOf(name: string, item: HeldItem | undefined): InventoryLine {
  if (item === undefined) return { gone: name }
  const { digest, size, cachedAt, earlier } = item
  return { item: name, digest, size, cachedAt, ...(earlier === undefined ? {} : { earlier: [...earlier] }) }
}

/** A whole snapshot. `changing` are the names whose records are being written at this moment. */
export function* snapshotLines(
  items: readonly HeldItem[],
  facts: { readonly evidence: readonly string[]; readonly changing: readonly string[] },
): Iterable<InventoryLine> {
  yield { format: FORMAT }
  for (const item of items) yield lineOf(item.name, item)
  for (let index = 0; index < facts.evidence.length; index += DIGESTS_OF_A_LINE) {
    yield { evidence: facts.evidence.slice(index, index + DIGESTS_OF_A_LINE) }
  }
  for (const name of facts.changing) yield { changing: name }
}
