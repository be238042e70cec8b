import { describe, expect, test } from 'vitest'
import type { MetadataCache } from '../../src/store/metadata-cache.ts'

/** What the suite runs against: a cache that is empty at first. */
export interface MetadataCacheUnderTest extends AsyncDisposable {
  readonly cache: MetadataCache
}

/** The promises of `MetadataCache`. */
export function metadataCacheSuite(name: string, create: () => Promise<MetadataCacheUnderTest>): void {
  describe(`${name} keeps the contract of MetadataCache`, () => {
    test('gives back JSON values of any kind, under any key', async () => {
      await using under = await create()
      const values = [null, 0, '', 'text', [], {}, { a: [1, { b: null }] }, false]
      for (const key of ['k', '../../x', 'K', 'a\0b', 'l'.repeat(5000)]) {
        for (const value of values) {
          await under.cache.set(key, value)
          expect(await under.cache.get(key)).toEqual(value)
        }
      }
    })

    test('a missing key is undefined, and deleting it is fine', async () => {
      await using under = await create()
      expect(await under.cache.get('k')).toBeUndefined()
      await under.cache.delete('k')
      await under.cache.set('k', 1)
      await under.cache.delete('k')
      expect(await under.cache.get('k')).toBeUndefined()
    })

    test('later changes to what was set do not show', async () => {
      await using under = await create()
      const value = { list: [1] }
      await under.cache.set('k', value)
      value.list.push(2)
      expect(await under.cache.get('k')).toEqual({ list: [1] })
    })

    test('a value that is no JSON is a miss, not an error', async () => {
      await using under = await create()
      await under.cache.set('k', 1)
      await under.cache.set('k', undefined)
      expect(await under.cache.get('k')).toBeUndefined()
    })

    test('of sets that overlap, the last call wins', async () => {
      await using under = await create()
      await Promise.all(Array.from({ length: 20 }, (_, i) => under.cache.set('k', i)))
      expect(await under.cache.get('k')).toBe(19)
    })
  })
}
