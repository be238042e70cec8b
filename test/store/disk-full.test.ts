import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { silentLog } from '../../src/log.ts'
import { openDataFolder } from '../../src/store/disk/data-folder.ts'
import { openStateFolder } from '../../src/store/disk/state-folder.ts'
import { makeTempFolder } from './temp-folder.ts'

/** A file system of 2 MB in memory, unmounted when disposed; undefined where mounting is not permitted. */
async function mountSmall(options = 'size=2m'): Promise<(AsyncDisposable & { path: string }) | undefined> {
  const folder = await makeTempFolder()
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder.path], { stdio: 'ignore' })
  } catch {
    await folder[Symbol.asyncDispose]()
    return undefined
  }
  const unmount = async (): Promise<void> => {
    execFileSync('umount', ['-l', folder.path])
    await folder[Symbol.asyncDispose]()
  }
  return { path: folder.path, [Symbol.asyncDispose]: unmount }
}

const probe = await mountSmall()
await probe?.[Symbol.asyncDispose]()
if (probe === undefined) console.warn('SKIPPED: no real full disk here: mounting a tmpfs is not permitted')

async function fill(path: string): Promise<void> {
  await writeFile(join(path, 'filler'), randomBytes(3_000_000)).catch(() => undefined)
}

test.skipIf(probe === undefined)(
  'a download that fills the disk is STORAGE_FULL, and its space is free at once',
  async () => {
    await using disk = await mountSmall()
    const dataDir = disk?.path ?? ''
    await using folder = await openDataFolder({ dataDir, log: silentLog() })
    const held = await folder.blobs.put(randomBytes(100_000))
    await using incoming = await folder.blobs.create()
    const append = async (): Promise<void> => {
      for (let i = 0; i < 100; i += 1) await incoming.append(randomBytes(64 * 1024))
    }
    await expect(append()).rejects.toMatchObject({
      code: 'STORAGE_FULL',
      message: expect.stringMatching(`^Cannot write ${dataDir}/tmp/.*: the disk is full.$`),
    })
    expect(await readdir(join(dataDir, 'tmp'))).toEqual([])
    await expect(incoming.append(Buffer.from('x'))).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
    await expect(incoming.commit()).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
    expect(await folder.blobs.read(held.digest)).toHaveLength(100_000)
    await folder.blobs.put(randomBytes(1_000_000))
    await incoming.restart()
    await incoming.append(randomBytes(1000))
    expect(await incoming.commit()).toMatchObject({ size: 1000 })
  },
)

test.skipIf(probe === undefined)(
  'on a full disk what is held is served, records stay as they were, and a restart works',
  async () => {
    await using disk = await mountSmall()
    const dataDir = disk?.path ?? ''
    {
      await using folder = await openDataFolder({ dataDir, log: silentLog() })
      const held = await folder.blobs.put(randomBytes(100_000))
      await folder.records.put(['r'], 'old')
      await folder.metadata.set('key', 'old')
      await fill(dataDir)
      await expect(folder.records.put(['r'], 'x'.repeat(100_000))).rejects.toMatchObject({ code: 'STORAGE_FULL' })
      await expect(folder.blobs.put(randomBytes(100_000))).rejects.toMatchObject({ code: 'STORAGE_FULL' })
      await folder.metadata.set('key', 'new')
      expect(await folder.metadata.get('key')).toBe('new')
      expect(await folder.records.get(['r'])).toBe('old')
      expect(await folder.blobs.read(held.digest)).toHaveLength(100_000)
      expect(await readdir(join(dataDir, 'tmp'))).toEqual([])
    }
    await using folder = await openDataFolder({ dataDir, log: silentLog() })
    expect(await folder.records.get(['r'])).toBe('old')
    expect(await folder.metadata.get('key')).toBe('old')
    await folder.records.delete(['r'])
    await rm(join(dataDir, 'filler'))
    await folder.records.put(['r'], 'new')
    expect(await folder.records.get(['r'])).toBe('new')
  },
)

test.skipIf(probe === undefined)(
  'a journal on a full disk refuses what it cannot take, and stays readable',
  async () => {
    await using disk = await mountSmall()
    const stateDir = disk?.path ?? ''
    await using state = await openStateFolder({ stateDir, log: silentLog(), hasLock: false })
    await using journal = await state.journal('j')
    await journal.append('kept')
    const pad = 'x'.repeat(300_000)
    const fillUp = async (): Promise<void> => {
      for (let n = 0; n < 20; n += 1) await journal.append({ n, pad })
    }
    await expect(fillUp()).rejects.toMatchObject({ code: 'STORAGE_FULL' })
    const held = await Array.fromAsync(journal.read())
    expect(held.length).toBeGreaterThan(3)
    expect(held[0]).toBe('kept')
    await expect(journal.replace(held)).rejects.toMatchObject({ code: 'STORAGE_FULL' })
    expect(await Array.fromAsync(journal.read())).toEqual(held)
    expect(await readdir(join(stateDir, 'tmp'))).toEqual([])
    await journal.append('small')
    {
      await using again = await openStateFolder({ stateDir, log: silentLog(), hasLock: false })
      await using same = await again.journal('j')
      expect(await Array.fromAsync(same.read())).toEqual([...held, 'small'])
    }
  },
)

test.skipIf(probe === undefined)('a disk without free inodes is STORAGE_FULL', async () => {
  await using disk = await mountSmall('size=2m,nr_inodes=12')
  const dataDir = disk?.path ?? ''
  await using folder = await openDataFolder({ dataDir, log: silentLog() })
  const fillInodes = async (): Promise<void> => {
    for (let i = 0; i < 20; i += 1) await folder.records.put([`r${i}`], i)
  }
  await expect(fillInodes()).rejects.toMatchObject({ code: 'STORAGE_FULL' })
})

test.skipIf(probe === undefined)('a read-only data folder is one line that names path, user and mode', async () => {
  await using disk = await mountSmall('ro,mode=755')
  const dataDir = disk?.path ?? ''
  await expect(openDataFolder({ dataDir, log: silentLog() })).rejects.toMatchObject({
    code: 'CONFIGURATION',
    message: expect.stringMatching(
      new RegExp(`^Cannot write data folder ${dataDir} as uid \\d+, mode 0755, .*EROFS.*$`),
    ),
  })
})
