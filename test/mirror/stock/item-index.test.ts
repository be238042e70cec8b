import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ItemIndex, type ItemQuery } from '../../../src/mirror/stock/item-index.ts'
import { digestOf, itemOf } from './stock-fixture.ts'

const names = [
  'a.test/acme-x/widget 1.0.0 linux_amd64',
  'a.test/acme/gadget 1.0.0 linux_amd64',
  'a.test/acme/widget 1.0.0 darwin_arm64',
  'a.test/acme/widget 1.0.0 linux_amd64',
  'a.test/acme/widget 2.0.0 linux_amd64',
  'a.test/acme/widget-2 1.0.0 linux_amd64',
  'b.test/acme/widget 1.0.0 linux_amd64',
  'a.test/acme/vpc/aws 1.0.0',
  'a.test/acme/vpc/gcp 1.0.0',
  'a.test/other/vpc/aws 1.0.0',
]

function filled(): ItemIndex {
  const index = new ItemIndex()
  for (const name of names.toReversed()) index.set(itemOf(name))
  return index
}

function found(query: Partial<ItemQuery>): string[] {
  return filled()
    .page({ kind: 'package', limit: 100, ...query })
    .items.map(({ name }) => name)
}

describe('a page', () => {
  it('has one kind, in the order of the names', () => {
    expect(found({})).toEqual(names.slice(0, 7))
    expect(found({ kind: 'module' })).toEqual(names.slice(7))
  })

  it('has only what every part of the address is equal to', () => {
    expect(found({ origin: 'a.test' })).toEqual(names.slice(0, 6))
    expect(found({ origin: 'a.test', namespace: 'acme' })).toEqual(names.slice(1, 6))
    expect(found({ origin: 'a.test', namespace: 'acme', type: 'widget' })).toEqual(names.slice(2, 5))
    expect(found({ namespace: 'acme-x' })).toEqual(names.slice(0, 1))
    expect(found({ type: 'widget' })).toEqual([names[0], names[2], names[3], names[4], names[6]])
    expect(found({ origin: 'a.test', type: 'widget' })).toEqual([names[0], names[2], names[3], names[4]])
    expect(found({ kind: 'module', name: 'vpc', type: 'aws' })).toEqual([names[7], names[9]])
    expect(found({ origin: 'a' })).toEqual([])
  })

  it('is searched anywhere in the name, in any letter case', () => {
    expect(found({ q: 'WIDGET 1.0.0 d' })).toEqual([names[2]])
    expect(found({ q: 'widget', namespace: 'acme-x' })).toEqual([names[0]])
    expect(found({ q: 'nothing' })).toEqual([])
  })

  it('says where the next one begins, if there is more, and only then', () => {
    const index = filled()
    const first = index.page({ kind: 'package', namespace: 'acme', limit: 5 })
    expect(first.next).toBe(names[5])
    expect(index.page({ kind: 'package', namespace: 'acme', limit: 6 }).next).toBeUndefined()
    const rest = index.page({ kind: 'package', namespace: 'acme', limit: 5, after: first.next })
    expect(rest).toEqual({ items: [itemOf(names[6] ?? '')] })
  })

  it('loses and repeats nothing that stays, whatever comes and goes between the pages', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(60), { maxLength: 30 }),
        fc.array(fc.nat(60)),
        fc.integer({ min: 1, max: 7 }),
        (held, changes, limit) => {
          const name = (n: number): string => `a.test/acme/p${n % 7} 1.${n}.0 linux_amd64`
          const index = new ItemIndex()
          for (const n of held) index.set(itemOf(name(n)))
          const stays = new Set(held.map(name))
          const seen: string[] = []
          let after: string | undefined
          do {
            const page = index.page({ kind: 'package', limit, after })
            seen.push(...page.items.map((item) => item.name))
            after = page.next
            const change = name(changes.pop() ?? 0)
            if (index.get(change) === undefined) index.set(itemOf(change))
            else if (index.delete(change)) stays.delete(change)
          } while (after !== undefined)
          expect(new Set(seen).size).toBe(seen.length)
          expect(seen).toEqual(seen.toSorted())
          expect(seen).toEqual(expect.arrayContaining([...stays]))
        },
      ),
    )
  })
})

describe('the index', () => {
  it('knows every owner of a blob, until the last one is gone', () => {
    const index = new ItemIndex()
    const [a, b] = [
      itemOf('a.test/acme/a 1.0.0 linux_amd64', 'same'),
      itemOf('a.test/acme/b 1.0.0 linux_amd64', 'same'),
    ]
    const module = { ...itemOf('a.test/acme/vpc/aws 1.0.0', 'new'), earlier: [digestOf('same'), digestOf('old')] }
    for (const item of [a, b, module]) index.set(item)
    expect(index.ownersOf(digestOf('same'))).toEqual([a, b, module])
    expect(index.ownersOf(digestOf('old'))).toEqual([module])
    index.set({ ...module, earlier: [] })
    expect(index.ownersOf(digestOf('old'))).toEqual([])
    index.set({ ...a, digest: digestOf('other') })
    expect(index.ownersOf(digestOf('same'))).toEqual([b])
    expect(index.delete(b.name)).toBe(true)
    expect(index.delete(b.name)).toBe(false)
    expect(index.ownersOf(digestOf('same'))).toEqual([])
    expect(index.ownersOf(digestOf('new'))).toHaveLength(1)
  })

  it('counts items and bytes, of all origins and of one', () => {
    const index = filled()
    expect([index.count('package'), index.count('module')]).toEqual([7, 3])
    expect([index.count('package', 'a.test'), index.count('package', 'b.test'), index.count('package', 'a')]).toEqual([
      6, 1, 0,
    ])
    expect(index.bytes('module')).toBe(names.slice(7).join('').length)
    index.set({ ...itemOf(names[7] ?? ''), size: 1_000 })
    index.delete(names[8] ?? '')
    expect(index.bytes('module')).toBe(1_000 + (names[9]?.length ?? 0))
    expect(index.all().map(({ name }) => name)).toEqual([...names.slice(0, 8), names[9]])
  })
})
