import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { RecordStore } from '../../src/store/record-store.ts'

/** What the suite runs against: a store that is empty at first. */
export interface RecordStoreUnderTest extends AsyncDisposable {
  readonly store: RecordStore
}

/** Names that file systems and encodings get wrong. */
const HARD_NAMES = [
  '.', '..', '.hidden', 'a/b', 'a\\b', '1.0.0-RC1', '1.0.0-rc1', 'x.json', 'x', 'x.json.json', '%', '%41', 'A', 'a', ' ',
  'é', 'e\u0301', '日本', '\u{1F600}', 'con', 'a:b', 'a\nb', '~', '-rf', 'tmp%', '__proto__', 'l'.repeat(180),
  'L'.repeat(180), '.'.repeat(180), '日'.repeat(180), `${'日'.repeat(179)}x`, 'x'.repeat(179), `${'x'.repeat(175)}.json`,
] // biome-ignore format: a table

/** The promises of `RecordStore`. */
export function recordStoreSuite(name: string, create: () => Promise<RecordStoreUnderTest>): void {
  describe(`${name} keeps the contract of RecordStore`, () => {
    test('gives back any JSON document', async () => {
      await using under = await create()
      for (const document of [null, 0, '', 'text', [], {}, { a: [1, { b: null }], ü: '\u2028' }, true]) {
        await under.store.put(['k'], document)
        expect(await under.store.get(['k'])).toEqual(document)
      }
    })

    test('keeps its own copy', async () => {
      await using under = await create()
      const document = { list: [1] }
      const written = under.store.put(['k'], document)
      document.list.push(2)
      await written
      const first = await under.store.get(['k'])
      expect(first).toEqual({ list: [1] })
      expect(await under.store.get(['k'])).not.toBe(first)
    })

    test('a missing record is undefined, and deleting it is fine', async () => {
      await using under = await create()
      expect(await under.store.get(['a', 'b'])).toBeUndefined()
      await under.store.delete(['a', 'b'])
      await under.store.put(['a'], 1)
      expect(await under.store.get(['a', 'b'])).toBeUndefined()
      await under.store.delete(['a', 'b'])
      await under.store.delete(['a'])
      expect(await under.store.get(['a'])).toBeUndefined()
    })

    test('a record stands beside its children', async () => {
      await using under = await create()
      await under.store.put(['a'], 'parent')
      await under.store.put(['a', 'b'], 'child')
      await under.store.put(['a', 'b', 'c'], 'grandchild')
      expect(await under.store.get(['a'])).toBe('parent')
      expect(await under.store.get(['a', 'b'])).toBe('child')
      expect(await under.store.children([])).toEqual(['a'])
      expect(await under.store.children(['a'])).toEqual(['b'])
      await under.store.delete(['a', 'b'])
      expect(await under.store.get(['a', 'b', 'c'])).toBe('grandchild')
      expect(await under.store.children(['a'])).toEqual(['b'])
    })

    test('children are the names that lead to a record, sorted; none once the last record is deleted', async () => {
      await using under = await create()
      await under.store.put(['p', 'z'], 1)
      await under.store.put(['p', 'b', 'x', 'y'], 1)
      await under.store.put(['p', 'a'], 1)
      await under.store.put(['pp', 'q'], 1)
      expect(await under.store.children(['p'])).toEqual(['a', 'b', 'z'])
      await under.store.delete(['p', 'b', 'x', 'y'])
      expect(await under.store.children(['p'])).toEqual(['a', 'z'])
      expect(await under.store.children(['nothing'])).toEqual([])
    })

    test('hard names stay apart and come back as they were', async () => {
      await using under = await create()
      for (const [index, name] of HARD_NAMES.entries()) {
        await under.store.put(['n', name], index)
        await under.store.put(['n', name, name], index + 1000)
      }
      for (const [index, name] of HARD_NAMES.entries()) {
        expect(await under.store.get(['n', name])).toBe(index)
        expect(await under.store.get(['n', name, name])).toBe(index + 1000)
        expect(await under.store.children(['n', name])).toEqual([name])
      }
      expect(await under.store.children(['n'])).toEqual([...HARD_NAMES].sort())
    })

    test('any text is a name', async () => {
      await using under = await create()
      const names = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 180 })
      const good = names.filter((text) => text.length <= 180 && !text.includes('\0') && text.isWellFormed())
      await fc.assert(
        fc.asyncProperty(fc.uniqueArray(good, { minLength: 1, maxLength: 4 }), async (key) => {
          await under.store.put(key, key)
          expect(await under.store.get(key)).toEqual(key)
          expect(await under.store.children(key.slice(0, -1))).toContain(key.at(-1))
        }),
        { numRuns: 40 },
      )
    })

    test('what is not a name is refused', async () => {
      await using under = await create()
      for (const key of [[], [''], ['a', ''], ['a\0b'], ['x'.repeat(181)], ['\ud800']]) {
        await expect(under.store.put(key, 1)).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
        await expect(under.store.get(key)).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
      }
    })

    test('of writes to one record that overlap, the last call wins', async () => {
      await using under = await create()
      await Promise.all(Array.from({ length: 20 }, (_, i) => under.store.put(['k'], i)))
      expect(await under.store.get(['k'])).toBe(19)
      await Promise.all([under.store.put(['k'], 20), under.store.delete(['k'])])
      expect(await under.store.get(['k'])).toBeUndefined()
    })
  })
}
