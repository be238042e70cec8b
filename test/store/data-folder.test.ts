import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { silentLog } from '../../src/log.ts'
import { type DataFolder, openDataFolder } from '../../src/store/disk/data-folder.ts'
import { makeTempFolder } from './temp-folder.ts'

let temp: Awaited<ReturnType<typeof makeTempFolder>>
let dataDir: string

beforeEach(async () => {
  temp = await makeTempFolder()
  dataDir = join(temp.path, 'deep', 'data')
})
afterEach(() => temp[Symbol.asyncDispose]())

const openIt = (): Promise<DataFolder> => openDataFolder({ dataDir, log: silentLog() })

test('a new folder is made, private to user and group, and says its format', async () => {
  {
    await using folder = await openIt()
    expect(folder.dataDir).toBe(dataDir)
    expect((await readdir(dataDir)).sort()).toEqual(
      ['blobs', 'format', 'lock', 'metadata', 'quarantine', 'records', 'tmp'].sort(),
    )
    expect(await readFile(join(dataDir, 'format'), 'utf8')).toBe('1\n')
    for (const name of ['', 'tmp', 'blobs', 'records']) expect((await stat(join(dataDir, name))).mode & 0o027).toBe(0)
  }
  expect(await readdir(dataDir)).not.toContain('lock')
})

test('what was set aside is counted, and the free space of the file system is told', async () => {
  await using folder = await openIt()
  expect(await folder.measureQuarantine()).toEqual({ files: 0, bytes: 0 })
  const { digest } = await folder.blobs.put(Buffer.from('bytes'))
  await folder.blobs.setAside(digest)
  await mkdir(join(dataDir, 'quarantine', 'records', 'a'), { recursive: true })
  await writeFile(join(dataDir, 'quarantine', 'records', 'a', 'b.json'), 'four')
  expect(await folder.measureQuarantine()).toEqual({ files: 2, bytes: 9 })
  expect(await folder.freeBytes()).toBeGreaterThan(0)
})

test('a journal of the folder is a file in it, and is closed with it', async () => {
  const folder = await openIt()
  const journal = await folder.openJournal('list')
  await journal.append({ a: 1 })
  expect(await readFile(join(dataDir, 'list.ndjson'), 'utf8')).toBe('{"a":1}\n')
  await folder[Symbol.asyncDispose]()
  await expect(journal.append(2)).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
})

test('what was kept is there when the folder is opened again', async () => {
  {
    await using folder = await openIt()
    await folder.blobs.put(Buffer.from('bytes'))
    await folder.records.put(['a', 'b'], { c: 1 })
    await folder.metadata.set('key', 'value')
  }
  await using folder = await openIt()
  expect(await folder.records.get(['a', 'b'])).toEqual({ c: 1 })
  expect(await folder.metadata.get('key')).toBe('value')
  for await (const { digest } of folder.blobs.list()) {
    expect(await folder.blobs.read(digest)).toEqual(Buffer.from('bytes'))
  }
})

test.each([
  ['2\n', 'it has format 2', 'Use the newer version'],
  ['0', 'it has format 0', 'Restore it'],
  ['', 'is not a number', 'Restore it'],
  ['one', 'is not a number', 'Restore it'],
])('a format file that holds %j is refused with a clear word, and nothing is touched', async (text, found, advice) => {
  await mkdir(dataDir, { recursive: true })
  await writeFile(join(dataDir, 'format'), text)
  const refused = await openIt().catch((error: unknown) => error)
  expect(refused).toMatchObject({ code: 'CONFIGURATION', fields: { key: 'dataDir' } })
  expect(String(refused)).toContain(found)
  expect(String(refused)).toContain(advice)
  expect(await readdir(dataDir)).toEqual(['format'])
})

test('leftovers in tmp are removed: regular files only, and nothing elsewhere', async () => {
  await (await openIt())[Symbol.asyncDispose]()
  await mkdir(join(dataDir, 'tmp', 'folder'))
  await writeFile(join(dataDir, 'tmp', 'leftover'), 'x')
  await chmod(join(dataDir, 'tmp', 'leftover'), 0o444)
  await writeFile(join(dataDir, 'notes.txt'), 'of the operator')
  await using _folder = await openIt()
  expect(await readdir(join(dataDir, 'tmp'))).toEqual(['folder'])
  expect(await readdir(dataDir)).toContain('notes.txt')
})

test('a file in the place of the folder is a CONFIGURATION error of one line', async () => {
  await mkdir(join(temp.path, 'deep'))
  for (const path of ['deep/data', 'deep/file']) await writeFile(join(temp.path, path), '')
  await expect(openIt()).rejects.toMatchObject({
    code: 'CONFIGURATION',
    message: expect.stringMatching(/^.*dataDir\.$/),
  })
  const below = openDataFolder({ dataDir: join(temp.path, 'deep', 'file', 'below'), log: silentLog() })
  await expect(below).rejects.toMatchObject({ code: 'CONFIGURATION' })
})

test('closing twice is fine', async () => {
  const folder = await openIt()
  await folder[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

test('a folder that this user may not write is one line that names path, user and mode', async () => {
  await mkdir(dataDir, { recursive: true, mode: 0o755 })
  // Root may write everywhere.
  const isRoot = process.geteuid?.() === 0
  if (isRoot) {
    await chmod(temp.path, 0o755)
    process.seteuid?.(65_534)
  } else {
    await chmod(dataDir, 0o555)
  }
  const refused = await openIt().catch((error: unknown) => error)
  if (isRoot) process.seteuid?.(0)
  const mode = isRoot ? '0755' : '0555'
  const uid = isRoot ? 65_534 : process.geteuid?.()
  expect(refused).toMatchObject({ code: 'CONFIGURATION', fields: { key: 'dataDir' } })
  expect(String(refused)).toContain(`Cannot write data folder ${dataDir} as uid ${uid}, mode ${mode}, owner `)
  expect(String(refused)).not.toContain('\n')
})
