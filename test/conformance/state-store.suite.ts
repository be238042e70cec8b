import { describe, expect, test } from 'vitest'
import type { StateStore } from '../../src/store/state-store.ts'

/** What the suite runs against: a store that is empty at first. */
export interface StateStoreUnderTest extends AsyncDisposable {
  readonly store: StateStore
}

/** The promises of `StateStore` and of its `Journal`; its records have a suite of their own. */
export function stateStoreSuite(name: string, create: () => Promise<StateStoreUnderTest>): void {
  const read = async (store: StateStore, journal: string): Promise<unknown[]> => {
    await using opened = await store.journal(journal)
    return Array.fromAsync(opened.read())
  }

  describe(`${name} keeps the contract of StateStore`, () => {
    test('gives back any JSON entries, in the order of the calls, also when opened anew', async () => {
      await using under = await create()
      const entries = [
        null,
        0,
        '',
        'line\nfeed',
        [],
        {},
        { a: [1, { b: null }], ü: '\u2028' },
        true,
        'x'.repeat(700_000),
        9,
      ]
      {
        await using journal = await under.store.journal('j')
        await Promise.all(entries.map((entry) => journal.append(entry)))
        expect(await Array.fromAsync(journal.read())).toEqual(entries)
      }
      expect(await read(under.store, 'j')).toEqual(entries)
    })

    test('an entry that is only written is there for the next reader', async () => {
      await using under = await create()
      await using journal = await under.store.journal('j')
      await journal.append(1, 'written')
      await journal.append(2)
      expect(await read(under.store, 'j')).toEqual([1, 2])
    })

    test('keeps its own copy of an entry', async () => {
      await using under = await create()
      const entry = { list: [1] }
      await using journal = await under.store.journal('j')
      const appended = journal.append(entry)
      entry.list.push(2)
      await appended
      expect(await read(under.store, 'j')).toEqual([{ list: [1] }])
    })

    test('what is no JSON value is refused, and harms nothing', async () => {
      await using under = await create()
      await using journal = await under.store.journal('j')
      await expect(async () => journal.append(undefined)).rejects.toThrow(TypeError)
      await journal.append(1)
      expect(await read(under.store, 'j')).toEqual([1])
    })

    test('two users of one journal add to the same entries', async () => {
      await using under = await create()
      await using one = await under.store.journal('j')
      {
        await using two = await under.store.journal('j')
        await Promise.all([one.append(1), two.append(2), one.append(3)])
      }
      await one.append(4)
      expect(await Array.fromAsync(one.read())).toEqual([1, 2, 3, 4])
    })

    test('replace takes the place of what came before it, and of nothing that came after', async () => {
      await using under = await create()
      await using journal = await under.store.journal('j')
      const before = journal.append('before')
      const replaced = journal.replace(['new', 'newer'])
      const after = journal.append('after')
      await Promise.all([before, replaced, after])
      expect(await Array.fromAsync(journal.read())).toEqual(['new', 'newer', 'after'])
      await journal.replace([])
      expect(await Array.fromAsync(journal.read())).toEqual([])
    })

    test('a reader sees what was there when it began, whatever comes meanwhile', async () => {
      await using under = await create()
      await using journal = await under.store.journal('j')
      await journal.replace(Array.from({ length: 5_000 }, (_, index) => ({ index, pad: 'x'.repeat(100) })))
      let count = 0
      for await (const entry of journal.read()) {
        if (count === 0) {
          await journal.append('later')
          await journal.replace(['other'])
        }
        expect(entry).toMatchObject({ index: count })
        count += 1
      }
      expect(count).toBe(5_000)
    })

    test('a closed journal takes nothing more', async () => {
      await using under = await create()
      const journal = await under.store.journal('j')
      const last = journal.append('last')
      await journal[Symbol.asyncDispose]()
      await last
      await expect(async () => journal.append('too late')).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
      await expect(journal.replace([])).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
      await journal[Symbol.asyncDispose]()
      expect(await read(under.store, 'j')).toEqual(['last'])
    })

    test('lists the journals that have entries, and forgets a deleted one', async () => {
      await using under = await create()
      for (const name of ['b.1', 'a', 'empty']) {
        await using journal = await under.store.journal(name)
        if (name !== 'empty') await journal.append(name)
      }
      expect(await under.store.journals()).toEqual(['a', 'b.1'])
      await under.store.deleteJournal('a')
      await under.store.deleteJournal('a')
      expect(await under.store.journals()).toEqual(['b.1'])
      expect(await read(under.store, 'a')).toEqual([])
    })

    test('a name that could lead elsewhere is refused', async () => {
      await using under = await create()
      for (const bad of ['', '.', '../x', 'a/b', 'A', '.hidden', 'a\0', 'a'.repeat(101)]) {
        await expect(under.store.journal(bad)).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
        await expect(under.store.deleteJournal(bad)).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
      }
    })
  })
}
