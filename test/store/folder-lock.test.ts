import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { FolderLock } from '../../src/store/disk/folder-lock.ts'
import { describeThisProcess, type LockHolder } from '../../src/store/disk/lock-holder.ts'
import { startChild } from './child-process.ts'
import { makeTempFolder } from './temp-folder.ts'

let temp: Awaited<ReturnType<typeof makeTempFolder>>
let file: string
let lines: { level: number; msg: string }[]

beforeEach(async () => {
  temp = await makeTempFolder()
  file = join(temp.path, 'lock')
  lines = []
})
afterEach(() => temp[Symbol.asyncDispose]())

interface AcquireOptions {
  readonly onLost?: () => void
  readonly heartbeatMs?: number
}

function acquire(options: AcquireOptions = {}): Promise<FolderLock> {
  const log = pino({ level: 'trace' }, { write: (line: string) => lines.push(JSON.parse(line)) })
  return FolderLock.acquire({ folder: temp.path, key: 'dataDir', log, ...options })
}

/** Writes a lock as another process would have. */
async function writeLock(holder: Partial<LockHolder>, ageMs = 0): Promise<void> {
  await writeFile(file, JSON.stringify({ ...(await describeThisProcess('theirs', temp.path)), ...holder }))
  const at = new Date(Date.now() - ageMs)
  await utimes(file, at, at)
}

async function pidThatIsGone(): Promise<number> {
  const child = spawn(process.execPath, ['-e', ''])
  await once(child, 'exit')
  return child.pid ?? 0
}

const refusal = expect.objectContaining({ code: 'CONFIGURATION', fields: { key: 'dataDir' } })

test('a second process is refused, and told who holds the folder, where, since when and in which file', async () => {
  await using child = await startChild(temp.path, 'hold')
  expect(child.firstLine).toBe('open')
  await using second = await startChild(temp.path, 'hold')
  expect(second.firstLine).toMatch(/^CONFIGURATION /)
  for (const word of [`process ${child.process.pid}`, `on ${hostname()}`, 'since 20', file]) {
    expect(second.firstLine).toContain(word)
  }
})

test('after kill -9 the next start takes over at once', async () => {
  const child = await startChild(temp.path, 'hold')
  expect(child.firstLine).toBe('open')
  await child[Symbol.asyncDispose]()
  expect(await readdir(temp.path)).toContain('lock')
  await using next = await startChild(temp.path, 'hold')
  expect(next.firstLine).toBe('open')
})

test('one process cannot open a folder twice', async () => {
  await using _lock = await acquire()
  await expect(acquire()).rejects.toEqual(refusal)
})

test('releasing removes the lock, and the next one gets it without a wait', async () => {
  for (let round = 0; round < 3; round += 1) {
    await using _lock = await acquire()
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ pid: process.pid, hostname: hostname() })
  }
  expect(await readdir(temp.path)).toEqual([])
  expect(lines).toEqual([])
})

test('a pid that was given to another process does not hold the lock', async () => {
  await writeLock({ pid: process.ppid, processStart: '1' })
  await using _lock = await acquire()
  expect(lines).toEqual([expect.objectContaining({ level: 40 })])
})

test('a lock with our own pid from before a restart does not hold (containers)', async () => {
  await writeLock({ processStart: '1' })
  await using _lock = await acquire()
})

test('a process that is gone does not hold the lock, one that runs does', async () => {
  await writeLock({ pid: await pidThatIsGone() })
  {
    await using _lock = await acquire()
  }
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
  const { processStart: _ours, ...holder } = await describeThisProcess('theirs', temp.path)
  await writeFile(file, JSON.stringify({ ...holder, pid: child.pid }))
  await expect(acquire()).rejects.toEqual(refusal)
  child.kill('SIGKILL')
})

test('a holder on another machine is respected while its heartbeat is fresh, and not after 45 seconds', async () => {
  for (const elsewhere of [{ hostname: 'other.example' }, { bootId: 'of another boot' }]) {
    await writeLock(elsewhere, 40_000)
    await expect(acquire()).rejects.toEqual(refusal)
    await writeLock(elsewhere, 50_000)
    await using _lock = await acquire()
  }
})

test('a torn lock counts as stale after a moment', async () => {
  await writeFile(file, '{"pid": 1')
  await utimes(file, new Date(0), new Date(0))
  {
    await using _lock = await acquire()
  }
  await writeFile(file, '')
  await using _lock = await acquire()
})

test.each([2, 8])('of %i that find a stale lock at the same time, one gets it', async (starters) => {
  for (let round = 0; round < 5; round += 1) {
    await writeLock({ pid: await pidThatIsGone() })
    const results = await Promise.allSettled(Array.from({ length: starters }, () => acquire()))
    const owners = results.filter((result) => result.status === 'fulfilled')
    expect(owners).toHaveLength(1)
    for (const result of results) if (result.status === 'rejected') expect(result.reason).toEqual(refusal)
    await owners[0]?.value[Symbol.asyncDispose]()
    expect(await readdir(temp.path)).toEqual([])
  }
})

test('of three processes that find a stale lock at the same time, one gets it', async () => {
  await writeLock({ pid: await pidThatIsGone() })
  const children = await Promise.all([1, 2, 3].map(() => startChild(temp.path, 'hold')))
  try {
    expect(children.filter((child) => child.firstLine === 'open')).toHaveLength(1)
  } finally {
    for (const child of children) await child[Symbol.asyncDispose]()
  }
})

test('the heartbeat keeps the file young', async () => {
  await using _lock = await acquire({ heartbeatMs: 20 })
  await utimes(file, new Date(0), new Date(0))
  await vi.waitFor(async () => expect((await stat(file)).mtimeMs).toBeGreaterThan(Date.now() - 60_000))
})

test('who loses the lock is told once, logs it, and leaves the lock of the new owner alone', async () => {
  const onLost = vi.fn()
  const lock = await acquire({ heartbeatMs: 20, onLost })
  await writeLock({ hostname: 'other.example' })
  await vi.waitFor(() => expect(onLost).toHaveBeenCalled(), 5000)
  await lock[Symbol.asyncDispose]()
  expect(onLost).toHaveBeenCalledTimes(1)
  expect(lines).toEqual([expect.objectContaining({ level: 60 })])
  expect(await readFile(file, 'utf8')).toContain('other.example')
})

test('a lock that was only removed is written again', async () => {
  const onLost = vi.fn()
  await using _lock = await acquire({ heartbeatMs: 20, onLost })
  await rm(file)
  await vi.waitFor(async () => expect(await readdir(temp.path)).toEqual(['lock']), 5000)
  await expect(acquire()).rejects.toEqual(refusal)
  expect(onLost).not.toHaveBeenCalled()
})

test('a lock that came along when the folder was copied counts until it has been silent for 45 seconds', async () => {
  await using child = await startChild(temp.path, 'hold')
  expect(child.firstLine).toBe('open')
  await using copy = await makeTempFolder()
  const lock = join(copy.path, 'lock')
  const acquireCopy = (): Promise<FolderLock> =>
    FolderLock.acquire({ folder: copy.path, key: 'dataDir', log: pino({ level: 'silent' }) })
  for (const [ageMs, taken] of [
    [5_000, false],
    [60_000, true],
  ] as const) {
    await writeFile(lock, await readFile(file))
    const at = new Date(Date.now() - ageMs)
    await utimes(lock, at, at)
    if (!taken) await expect(acquireCopy()).rejects.toThrow('is a copy')
    else await (await acquireCopy())[Symbol.asyncDispose]()
  }
  await using second = await startChild(temp.path, 'hold')
  expect(second.firstLine).toMatch(/^CONFIGURATION /)
})
