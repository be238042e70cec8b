import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DurableFolders } from '../../src/store/disk/durable-folders.ts'
import { MetadataFiles } from '../../src/store/disk/metadata-files.ts'
import { KeyvMetadataCache } from '../../src/store/keyv-metadata-cache.ts'
import { makeTempFolder } from './temp-folder.ts'

let folder: Awaited<ReturnType<typeof makeTempFolder>>
let lines: { level: number; msg: string; failures: number }[]

beforeEach(async () => {
  folder = await makeTempFolder()
  lines = []
})
afterEach(() => folder[Symbol.asyncDispose]())

function openCache(maxCharacters?: number): KeyvMetadataCache {
  const log = pino({ level: 'trace' }, { write: (line: string) => lines.push(JSON.parse(line)) })
  const store = new MetadataFiles(new DurableFolders(folder.path))
  return new KeyvMetadataCache({ store, log, ...(maxCharacters === undefined ? {} : { maxCharacters }) })
}

async function entryFile(): Promise<string> {
  const names = await readdir(join(folder.path, 'metadata'), { recursive: true })
  return join(folder.path, 'metadata', names.find((name) => name.endsWith('.json')) ?? 'none')
}

test('entries outlive the process, in files that can be read', async () => {
  await openCache().set('key', { versions: ['1.0.0'] })
  expect(await openCache().get('key')).toEqual({ versions: ['1.0.0'] })
  expect(JSON.parse(await readFile(await entryFile(), 'utf8'))).toEqual({
    key: 'key',
    value: { value: { versions: ['1.0.0'] } },
  })
  expect(await readdir(join(folder.path, 'tmp'))).toEqual([])
})

test('a hot entry needs no file', async () => {
  const cache = openCache()
  await cache.set('key', 1)
  await rm(join(folder.path, 'metadata'), { recursive: true })
  expect(await cache.get('key')).toBe(1)
  expect(await openCache().get('key')).toBeUndefined()
})

test.each(['', '{"key"', 'null', '{"key":"other","value":{"value":1}}', '{"key":"key"}'])(
  'a file that holds %j is a miss without noise',
  async (text) => {
    await openCache().set('key', 1)
    await writeFile(await entryFile(), text)
    const cache = openCache()
    expect(await cache.get('key')).toBeUndefined()
    expect(lines).toEqual([])
    await cache.set('key', 2)
    expect(await openCache().get('key')).toBe(2)
  },
)

test('a store that fails is a miss, one line of the log, and fresh entries stay in memory', async () => {
  await writeFile(join(folder.path, 'metadata'), 'a file in the way')
  const cache = openCache()
  for (let i = 0; i < 20; i += 1) await cache.set(`key ${i}`, i)
  expect(await cache.get('key 7')).toBe(7)
  expect(await cache.get('unknown')).toBeUndefined()
  await cache.delete('key 7')
  expect(await cache.get('key 7')).toBeUndefined()
  expect(lines).toEqual([expect.objectContaining({ level: 40 })])
})

test('an entry that cannot be read is a miss', async () => {
  await openCache().set('key', 1)
  const file = await entryFile()
  await rm(file)
  await mkdir(file)
  expect(await openCache().get('key')).toBeUndefined()
  expect(lines).toEqual([expect.objectContaining({ level: 40 })])
})

test('no caller can change what another one gets', async () => {
  const cache = openCache()
  await cache.set('key', { list: [{ a: 1 }] })
  for (const value of [await cache.get('key'), await openCache().get('key')]) {
    expect(Object.isFrozen(value)).toBe(true)
    expect(value).toEqual({ list: [{ a: 1 }] })
    expect(() => Object.assign(Object(value).list[0], { a: 2 })).toThrow(TypeError)
  }
})

test('memory is bounded, and what does not fit is still on disk', async () => {
  const cache = openCache(1000)
  for (let i = 0; i < 10; i += 1) await cache.set(`key ${i}`, 'x'.repeat(300))
  await cache.set('large', 'y'.repeat(5000))
  await rm(join(folder.path, 'metadata'), { recursive: true })
  const hot = await Promise.all(Array.from({ length: 10 }, (_, i) => cache.get(`key ${i}`)))
  expect(hot.filter((value) => value !== undefined)).toHaveLength(3)
  expect(await cache.get('large')).toBeUndefined()
})

test('a slow read does not bring back what was replaced or deleted meanwhile', async () => {
  await openCache().set('key', 'old')
  const cache = openCache()
  const read = cache.get('key')
  await cache.set('key', 'new')
  await read
  expect(await cache.get('key')).toBe('new')
  const other = openCache()
  const second = other.get('key')
  await other.delete('key')
  await second
  expect(await other.get('key')).toBeUndefined()
})

test('values that are no JSON are dropped', async () => {
  const cache = openCache()
  const circle: { self?: unknown } = {}
  circle.self = circle
  await cache.set('key', circle)
  expect(await cache.get('key')).toBeUndefined()
})
