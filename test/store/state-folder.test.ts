import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, chmod, mkdir, open, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { silentLog } from '../../src/log.ts'
import { openStateFolder } from '../../src/store/disk/state-folder.ts'
import type { StateStore } from '../../src/store/state-store.ts'
import { makeTempFolder } from './temp-folder.ts'

let temp: Awaited<ReturnType<typeof makeTempFolder>>
let stateDir: string

beforeEach(async () => {
  temp = await makeTempFolder()
  stateDir = join(temp.path, 'deep', 'state')
})
afterEach(() => temp[Symbol.asyncDispose]())

const openIt = (log = silentLog()): Promise<StateStore & AsyncDisposable> => openStateFolder({ stateDir, log })
const file = (name: string): string => join(stateDir, 'journals', `${name}.ndjson`)
const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777

test('folders and files are for their user alone, also where a copy came with other rights', async () => {
  await mkdir(join(stateDir, 'records'), { recursive: true, mode: 0o755 })
  await chmod(join(stateDir, 'records'), 0o755)
  {
    await using state = await openIt()
    await state.records.put(['a', 'b'], 1)
    await using journal = await state.journal('j')
    await journal.append(1)
  }
  for (const folder of ['tmp', 'records', 'records/a', 'journals']) {
    expect(await modeOf(join(stateDir, folder)), folder).toBe(0o700)
  }
  for (const path of ['records/a/b.json', 'journals/j.ndjson']) expect(await modeOf(join(stateDir, path))).toBe(0o600)
  {
    await using state = await openIt()
    await using journal = await state.journal('j')
    await journal.replace([2])
  }
  expect(await modeOf(file('j'))).toBe(0o600)
})

test('a new state folder is private; what else lies in one is left alone', async () => {
  await (await openIt())[Symbol.asyncDispose]()
  expect(await modeOf(stateDir)).toBe(0o700)
  await mkdir(join(stateDir, 'tls'), { mode: 0o711 })
  await writeFile(join(stateDir, 'tls', 'ca.pem'), 'pem', { mode: 0o644 })
  await writeFile(join(stateDir, 'tmp', 'unfinished'), 'x')
  await using _again = await openIt()
  expect(await readdir(join(stateDir, 'tmp'))).toEqual([])
  expect(await modeOf(join(stateDir, 'tls'))).toBe(0o711)
  expect(await modeOf(join(stateDir, 'tls', 'ca.pem'))).toBe(0o644)
})

test('one process uses a state folder, wherever the data folder is; the next one may when it is released', async () => {
  {
    await using _state = await openIt()
    await expect(openIt()).rejects.toMatchObject({ code: 'CONFIGURATION', fields: { key: 'stateDir' } })
    await expect(openIt()).rejects.toThrow(/One process at a time writes a state folder.*choose another stateDir/)
  }
  await (await openIt())[Symbol.asyncDispose]()
})

test('a line that a crash has torn is dropped, and the next entry begins a new line', async () => {
  await using state = await openIt()
  {
    await using journal = await state.journal('j')
    await journal.append({ whole: 1 })
  }
  await appendFile(file('j'), `{"torn":"${'x'.repeat(100)}`)
  await using journal = await state.journal('j')
  expect(await Array.fromAsync(journal.read())).toEqual([{ whole: 1 }])
  await journal.append({ whole: 2 })
  expect(await readFile(file('j'), 'utf8')).toBe('{"whole":1}\n{"whole":2}\n')
})

test('a damaged line is skipped and told once; the others are read', async () => {
  const lines: string[] = []
  await using state = await openIt(pino({ level: 'warn' }, { write: (line: string) => lines.push(line) }))
  await mkdir(join(stateDir, 'journals'), { recursive: true })
  await writeFile(file('j'), `1\n\0\0\0\0\n{"a"\n"\xff\n2\n`)
  await using journal = await state.journal('j')
  expect(await Array.fromAsync(journal.read())).toEqual([1, 2])
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ level: 50, lines: 3, path: file('j') }])
})

test('entries that come together share one sync, and come whole', async () => {
  await using state = await openIt()
  await using journal = await state.journal('j')
  await journal.append('first')
  const probe = await open(file('j'), 'r')
  const prototype = Object.getPrototypeOf(probe)
  await probe.close()
  const original = prototype.datasync
  let syncs = 0
  prototype.datasync = function (this: unknown) {
    syncs += 1
    return original.call(this)
  }
  try {
    await Promise.all(Array.from({ length: 1_000 }, (_, index) => journal.append(index)))
    expect(syncs).toBe(1)
    await journal.append('written', 'written')
    expect(syncs).toBe(1)
  } finally {
    prototype.datasync = original
  }
  expect(await Array.fromAsync(journal.read())).toHaveLength(1_002)
})

test('a journal that is open cannot be deleted: its users would write into nothing', async () => {
  await using state = await openIt()
  await using journal = await state.journal('j')
  await journal.append(1)
  await expect(state.deleteJournal('j')).rejects.toThrow('open')
  expect(await Array.fromAsync(journal.read())).toEqual([1])
})

test('a state folder that cannot be written is one line that says where and what to do', async () => {
  await writeFile(join(temp.path, 'deep'), 'a file where a folder should be')
  await expect(openIt()).rejects.toMatchObject({
    code: 'CONFIGURATION',
    fields: { key: 'stateDir' },
    message: expect.stringMatching(`^Cannot write state folder ${stateDir} as uid \\d+: ENOTDIR. .*another stateDir.$`),
  })
})

test('after kill -9 every entry whose append had resolved is there, in order, and nothing half', async () => {
  const script = fileURLToPath(new URL('journal-child.ts', import.meta.url))
  let before = 0
  for (const killAfter of [1, 20, 57, 200]) {
    const child = spawn(process.execPath, [script, stateDir], { stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = once(child, 'exit')
    let last = -1
    for await (const line of createInterface({ input: child.stdout })) {
      last = Number(line)
      if (last >= before + killAfter) child.kill('SIGKILL')
    }
    await ended
    await using state = await openIt()
    await using journal = await state.journal('j')
    const found = (await Array.fromAsync(journal.read())) as { n: number }[]
    expect(found.map(({ n }) => n)).toEqual(Array.from({ length: found.length }, (_, n) => n))
    expect(found.length).toBeGreaterThan(last)
    before = found.length
  }
})
