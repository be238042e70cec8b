import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DiskRecordStore } from '../../src/store/disk/disk-record-store.ts'
import { DurableFolders } from '../../src/store/disk/durable-folders.ts'
import { makeTempFolder } from './temp-folder.ts'

let folder: Awaited<ReturnType<typeof makeTempFolder>>
let store: DiskRecordStore
let lines: { level: number; msg: string }[]

beforeEach(async () => {
  folder = await makeTempFolder()
  lines = []
  const log = pino({ level: 'trace' }, { write: (line: string) => lines.push(JSON.parse(line)) })
  store = new DiskRecordStore(new DurableFolders(folder.path), log)
})
afterEach(() => folder[Symbol.asyncDispose]())

test('a record is a readable file whose path an operator understands', async () => {
  await store.put(['providers', 'registry.example', 'Acme', '1.0.0-RC1'], { a: 1 })
  const path = join(folder.path, 'records', 'providers', 'registry.example', '%41cme', '1.0.0-%52%431.json')
  expect(await readFile(path, 'utf8')).toBe('{\n  "a": 1\n}\n')
  expect(await readdir(join(folder.path, 'tmp'))).toEqual([])
})

test('names that differ only in case have different paths where case is ignored', async () => {
  await store.put(['Rc'], 1)
  await store.put(['rc'], 2)
  const names = (await readdir(join(folder.path, 'records'))).map((name) => name.toLowerCase())
  expect(new Set(names).size).toBe(2)
})

test('a name that ends in .json does not meet the record beside it', async () => {
  await store.put(['a.json', 'b'], 1)
  await store.put(['a'], 2)
  expect([await store.get(['a.json', 'b']), await store.get(['a'])]).toEqual([1, 2])
})

test.each(['', '{"torn": ', '\0\0\0\0'])(
  'a record that holds %j is set aside and logged, and can be written again',
  async (text) => {
    await store.put(['a', 'b'], 1)
    const path = join(folder.path, 'records', 'a', 'b.json')
    await writeFile(path, text)
    expect(await Promise.all([store.get(['a', 'b']), store.get(['a', 'b'])])).toEqual([undefined, undefined])
    expect(await readFile(join(folder.path, 'quarantine', 'records', 'a', 'b.json'), 'utf8')).toBe(text)
    expect(lines).toEqual([expect.objectContaining({ level: 50, path })])
    expect(await store.children(['a'])).toEqual([])
    await store.put(['a', 'b'], 2)
    expect(await store.get(['a', 'b'])).toBe(2)
  },
)

test('a torn record that is being repaired is not set aside', async () => {
  await store.put(['a'], 1)
  await writeFile(join(folder.path, 'records', 'a.json'), '{')
  const put = store.put(['a'], 2)
  await Promise.all([store.get(['a']), put])
  expect(await store.get(['a'])).toBe(2)
})

test('foreign files and empty folders are no children', async () => {
  await store.put(['good'], 1)
  const records = join(folder.path, 'records')
  for (const name of ['.DS_Store', '.good.json.Xy12', 'good.json~', 'UPPER.json', '%zz.json', '.json', '%41%.json']) {
    await writeFile(join(records, name), '1')
  }
  await mkdir(join(records, 'empty', 'deeper'), { recursive: true })
  expect(await store.children([])).toEqual(['good'])
})

test('a record that cannot be read is an error, not a missing one', async () => {
  await mkdir(join(folder.path, 'records', 'a.json'), { recursive: true })
  await expect(store.get(['a'])).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
})
