import { createHash, randomInt } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { type DataFolder, openDataFolder } from '../../src/store/disk/data-folder.ts'
import { startChild } from './child-process.ts'
import { makeTempFolder } from './temp-folder.ts'

async function assertWhole(folder: DataFolder): Promise<number> {
  let blobs = 0
  for await (const { digest, size } of folder.blobs.list()) {
    const bytes = await readFile(join(folder.dataDir, 'blobs', 'sha256', digest.slice(0, 2), digest))
    expect(bytes.length).toBe(size)
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(digest)
    blobs += 1
  }
  for (const name of await folder.records.children(['written'])) {
    const record = await folder.records.get(['written', name])
    expect(record).toMatchObject({ pad: 'x'.repeat(100_000) })
    const evidence = String(Object(record).evidence)
    expect((await folder.blobs.read(evidence))?.length).toBe(3000)
  }
  for (let i = 0; i < 5; i += 1) {
    expect([undefined, true]).toContain(Object(await folder.metadata.get(`key ${i}`)).end)
  }
  return blobs
}

test('after kill -9 at ten random moments everything visible is whole, and nothing unfinished is left', async () => {
  await using dir = await makeTempFolder()
  const errors: string[] = []
  const log = pino({ level: 'error' }, { write: (line: string) => errors.push(line) })
  const moments: number[] = []
  let leftovers = 0
  let blobs = 0
  for (let round = 0; round < 10; round += 1) {
    const child = await startChild(dir.path, 'write')
    expect(child.firstLine, `after ${moments}`).toBe('open')
    moments.push(randomInt(5, 250))
    await delay(moments.at(-1))
    await child[Symbol.asyncDispose]()
    leftovers += (await readdir(join(dir.path, 'tmp'))).length
    await using folder = await openDataFolder({ dataDir: dir.path, log })
    expect(await readdir(join(dir.path, 'tmp'))).toEqual([])
    blobs = await assertWhole(folder)
  }
  expect(errors).toEqual([])
  // Else the kills came when nothing was going on, and the test has shown nothing.
  expect(blobs).toBeGreaterThan(10)
  expect(leftovers).toBeGreaterThan(0)
  expect((await stat(join(dir.path, 'format'))).size).toBe(2)
})
