import { expect, test, vi } from 'vitest'
import { DurableFolders } from '../../src/store/disk/durable-folders.ts'
import { GrowingFile } from '../../src/store/disk/growing-file.ts'
import { TempFile } from '../../src/store/disk/temp-file.ts'
import { makeTempFolder } from './temp-folder.ts'

const MIB = 1024 * 1024

/** The disk tells an error of late writing once, to whoever syncs next: it must not be lost with an early sync. */
test.each(['sync', 'write'] as const)(
  'an error of the disk at an early %s is told, and nothing is published',
  async (step) => {
    await using folder = await makeTempFolder()
    await using file = await GrowingFile.open(new DurableFolders(folder.path))
    using spy = vi.spyOn(TempFile.prototype, step).mockRejectedValueOnce(new Error('EIO'))
    const fill = async (): Promise<void> => {
      for (let block = 0; block < 18; block++) await file.append(Buffer.alloc(MIB, block))
      await file.publish(`${folder.path}/blobs/whole`, 0o444)
    }
    await expect(fill()).rejects.toThrow('EIO')
    expect(spy).toHaveBeenCalled()
    await expect(file.publish(`${folder.path}/blobs/whole`, 0o444)).rejects.toThrow()
  },
)

test('a large file is brought to the disk while it grows, one sync at a time', async () => {
  await using folder = await makeTempFolder()
  await using first = await GrowingFile.open(new DurableFolders(folder.path))
  await using second = await GrowingFile.open(new DurableFolders(folder.path))
  let running = 0
  let most = 0
  let syncs = 0
  using _ = vi.spyOn(TempFile.prototype, 'sync').mockImplementation(async () => {
    most = Math.max(most, ++running)
    syncs++
    await new Promise((resolve) => setTimeout(resolve, 1))
    running--
  })
  for (let block = 0; block < 40; block++) {
    await Promise.all([first, second].map((file) => file.append(Buffer.alloc(MIB))))
  }
  for (const file of [first, second]) await file.publish(`${folder.path}/blobs/${file === first}`, 0o444)
  expect(most).toBe(1)
  expect(syncs).toBeGreaterThan(1)
})
