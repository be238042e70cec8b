import type { Sha256 } from '../../protocol/package-hash.ts'
import { blobsOf, type HeldItem } from './held-item.ts'
import { type ItemKind, kindOfName } from './item-name.ts'

/** Which items are wanted. Parts of the address must be equal; `q` is looked for anywhere in the name, in any case. */
export interface ItemQuery {
  readonly kind: ItemKind
  readonly origin?: string | undefined
  readonly namespace?: string | undefined
  /** Modules only. */
  readonly name?: string | undefined
  /** A provider's type, a module's target system. */
  readonly type?: string | undefined
  readonly q?: string | undefined
  /** Only items whose names come after this one. */
  readonly after?: string | undefined
  readonly limit: number
}

/** Some items in the order of their names; `next` is the `after` of the following page, if there is one. */
export interface ItemPage {
  readonly items: HeldItem[]
  readonly next?: string
}

/**
 * Held items by name and by blob. Names are compared by their UTF-16 units, so that a page begins where the last one
 * ended, whatever came or went between them.
 */
export class ItemIndex {
  /** In the order of the names; what is found by halving needs no map, which takes more than the items. */
  readonly #sorted: Readonly<Record<ItemKind, HeldItem[]>> = { package: [], module: [] }
  readonly #owners = new Map<Sha256, HeldItem | readonly HeldItem[]>()
  readonly #bytes: Record<ItemKind, number> = { package: 0, module: 0 }

  get(name: string): HeldItem | undefined {
    const items = this.#sorted[kindOfName(name)]
    const item = items[firstFrom(items, name)]
    return item?.name === name ? item : undefined
  }

  /** Puts an item in the place of the one of its name. */
  set(item: HeldItem): void {
    const items = this.#sorted[item.kind]
    const index = firstFrom(items, item.name)
    const before = items[index]
    if (before?.name === item.name) {
      this.#drop(before)
      items[index] = item
    } else {
      items.splice(index, 0, item)
    }
    this.#bytes[item.kind] += item.size
    for (const digest of blobsOf(item)) this.#addOwner(digest, item)
  }

  /** False if there is none of this name. */
  delete(name: string): boolean {
    const items = this.#sorted[kindOfName(name)]
    const index = firstFrom(items, name)
    const item = items[index]
    if (item?.name !== name) return false
    items.splice(index, 1)
    this.#drop(item)
    return true
  }

  /** The items that keep a blob. */
  ownersOf(digest: Sha256): readonly HeldItem[] {
    const owners = this.#owners.get(digest)
    return owners === undefined ? [] : isList(owners) ? owners : [owners]
  }

  /** All of a kind, or of one origin, at this moment. */
  count(kind: ItemKind, origin?: string): number {
    const items = this.#sorted[kind]
    if (origin === undefined) return items.length
    return firstFrom(items, `${origin}0`) - firstFrom(items, `${origin}/`)
  }

  /** The sizes of all of a kind; a blob that two keep counts twice. */
  bytes(kind: ItemKind): number {
    return this.#bytes[kind]
  }

  /** All items as they are now, packages first, each kind in the order of the names. */
  all(): HeldItem[] {
    return this.#sorted.package.concat(this.#sorted.module)
  }

  page(query: ItemQuery): ItemPage {
    const { kind, after, limit } = query
    const all = this.#sorted[kind]
    const { prefix, matches } = compile(query)
    const items: HeldItem[] = []
    const start = Math.max(firstFrom(all, prefix), after === undefined ? 0 : firstFrom(all, `${after}\0`))
    for (let index = start; index < all.length; index += 1) {
      const item = all[index]
      if (!item?.name.startsWith(prefix)) break
      if (!matches(item.name)) continue
      const last = items.at(-1)
      if (items.length === limit && last !== undefined) return { items, next: last.name }
      items.push(item)
    }
    return { items }
  }

  #addOwner(digest: Sha256, item: HeldItem): void {
    const owners = this.#owners.get(digest)
    this.#owners.set(digest, owners === undefined ? item : isList(owners) ? [...owners, item] : [owners, item])
  }

  #drop(item: HeldItem): void {
    this.#bytes[item.kind] -= item.size
    for (const digest of blobsOf(item)) {
      const [owner, ...others] = this.ownersOf(digest).filter((each) => each !== item)
      if (owner === undefined) this.#owners.delete(digest)
      else this.#owners.set(digest, others.length === 0 ? owner : [owner, ...others])
    }
  }
}

/** The index of the first item whose name is not before `name`. */
function firstFrom(items: readonly HeldItem[], name: string): number {
  let low = 0
  let high = items.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((items[middle]?.name ?? '') < name) low = middle + 1
    else high = middle
  }
  return low
}

/** The parts that lead become a prefix, which is found by halving; the others are looked for in name after name. */
function compile({ kind, origin, namespace, name, type, q }: ItemQuery): {
  prefix: string
  matches: (name: string) => boolean
} {
  const wanted = kind === 'package' ? [origin, namespace, type] : [origin, namespace, name, type]
  const gap = wanted.indexOf(undefined)
  const prefix =
    gap === -1
      ? `${wanted.join('/')} `
      : wanted
          .slice(0, gap)
          .map((part) => `${part}/`)
          .join('')
  const rest = gap !== -1 && wanted.slice(gap).some((part) => part !== undefined)
  const parts = wanted.map((part) => (part === undefined ? '[^/]*' : literal(part)))
  const address = rest ? new RegExp(`^${parts.join('/')} `) : undefined
  const search = q === undefined ? undefined : new RegExp(literal(q), 'iu')
  return { prefix, matches: (text) => (address?.test(text) ?? true) && (search?.test(text) ?? true) }
}

/** A pattern that matches this text alone. */
function literal(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}

function isList(owners: HeldItem | readonly HeldItem[]): owners is readonly HeldItem[] {
  return Array.isArray(owners)
}
