import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { CountedWorkspaces } from '../../../src/mirror/space/counted-workspaces.ts'
import { SpaceLedger } from '../../../src/mirror/space/space-ledger.ts'
import { DiskWorkspaces } from '../../../src/store/disk/workspaces.ts'
import { makeTempFolder } from '../../store/temp-folder.ts'
import { failureOf } from '../parts-fixture.ts'

const MB = 1_048_576

function openLedger(maxSize: number): SpaceLedger {
  const ledger = new SpaceLedger({
    limits: { maxSize, minFree: undefined },
    diskFree: async () => 0,
    shutdown: new AbortController().signal,
    onFailure: (error) => expect.fail(String(error)),
  })
  ledger.setUsed(0, { isWhole: true })
  return ledger
}

it('a folder counts as large as it is, whatever is in it, and no more when it is gone', async () => {
  await using folder = await makeTempFolder()
  const ledger = openLedger(100 * MB)
  const workspaces = new CountedWorkspaces(new DiskWorkspaces(folder.path), ledger)
  const workspace = await workspaces.create()
  await workspace.run(() => mkdir(join(workspace.path, 'objects')))
  await writeFile(join(workspace.path, 'spool'), Buffer.alloc(3 * MB, 1))
  await writeFile(join(workspace.path, 'objects', 'pack'), Buffer.alloc(2 * MB, 1))
  await expect.poll(() => ledger.reserved, { timeout: 10_000 }).toBe(5 * MB)
  await workspace[Symbol.asyncDispose]()
  expect(ledger.reserved).toBe(0)
  expect(await readdir(folder.path)).toEqual([])
})

it('no folder is made where there is no space, and nothing stays reserved', async () => {
  await using folder = await makeTempFolder()
  const ledger = openLedger(MB)
  ledger.setUsed(2 * MB, { isWhole: true })
  const workspaces = new CountedWorkspaces(new DiskWorkspaces(folder.path), ledger)
  expect(await failureOf(workspaces.create())).toMatchObject({ code: 'STORAGE_FULL' })
  expect([ledger.reserved, await readdir(folder.path)]).toEqual([0, []])
})
