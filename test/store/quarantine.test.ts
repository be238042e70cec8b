import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { pruneQuarantine } from '../../src/store/disk/quarantine.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'test-quarantine-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** One after the other, so that their order is known; `records/` as damaged records are. */
async function fill(...sizes: number[]): Promise<void> {
  await mkdir(join(folder, 'records'))
  for (const [index, size] of sizes.entries()) {
    await writeFile(join(folder, index % 2 === 0 ? String(index) : `records/${index}`), Buffer.alloc(size))
    await delay(15)
  }
}

async function left(): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
    .sort()
}

it('keeps what fits', async () => {
  await fill(10, 10)
  await pruneQuarantine(folder, { maxFiles: 2, maxBytes: 20 })
  expect(await left()).toEqual(['0', '1'])
})

it('loses the oldest files beyond a number, and beyond a size', async () => {
  await fill(10, 10, 10, 10)
  await pruneQuarantine(folder, { maxFiles: 3, maxBytes: 1_000 })
  expect(await left()).toEqual(['1', '2', '3'])
  await pruneQuarantine(folder, { maxFiles: 3, maxBytes: 20 })
  expect(await left()).toEqual(['2', '3'])
})

it('always keeps the newest file, however large, and minds no folder that is not there', async () => {
  await fill(1, 100)
  await pruneQuarantine(folder, { maxFiles: 10, maxBytes: 50 })
  expect(await left()).toEqual(['1'])
  await pruneQuarantine(join(folder, 'nowhere'))
})
