import { mkdir, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { silentLog } from '../../src/log.ts'
import { openDataFolder } from '../../src/store/disk/data-folder.ts'
import { makeTempFolder } from './temp-folder.ts'

test('a damaged record that cannot even be set aside is as good as none, and can be written again', async () => {
  await using folder = await makeTempFolder()
  await using data = await openDataFolder({ dataDir: folder.path, log: silentLog() })
  await data.records.put(['a', 'b'], { whole: true })
  await truncate(join(folder.path, 'records', 'a', 'b.json'), 3)
  const quarantine = join(folder.path, 'quarantine')
  await rm(quarantine, { recursive: true })
  await writeFile(quarantine, 'in the way')
  expect(await data.records.get(['a', 'b'])).toBeUndefined()
  await rm(quarantine)
  await mkdir(quarantine)
  await data.records.put(['a', 'b'], { whole: 'again' })
  expect(await data.records.get(['a', 'b'])).toEqual({ whole: 'again' })
})
