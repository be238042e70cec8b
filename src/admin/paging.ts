import type { Fixed, Page, PageRequest } from './operations.ts'
import { plain } from './route.ts'

/** What a client asks for: `cursor` is what it was given as `next`, and nothing else to it. */
interface PageQuery {
  readonly cursor?: string | undefined
  readonly limit: number
}

/** Which part of a list a client asks for. A cursor that we never gave is one like any other: behind some name. */
export function pageRequest({ cursor, limit }: PageQuery): PageRequest {
  return { limit, ...(cursor === undefined ? {} : { after: Buffer.from(cursor, 'base64url').toString() }) }
}

/** The document of a part of a list that goes on behind a name. */
export function pageOf<Item>({ items, next }: Page<Fixed<Item>>): { items: Item[]; next: string | null } {
  const cursor = next === undefined ? null : Buffer.from(next).toString('base64url')
  return { items: items.map((item) => plain<Item>(item)), next: cursor }
}
