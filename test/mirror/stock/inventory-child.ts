/**
 * A process that is killed at a given point of a change: `inventory-child.ts FOLDER before|after save|replace|delete`. It
 * changes one of two packages, and dies right after its record was written, or right before.
 */
import { silentLog } from '../../../src/log.ts'
import { openDataFolder } from '../../../src/store/disk/data-folder.ts'
import type { RecordKey, RecordStore } from '../../../src/store/record-store.ts'
import { never, openStock } from './stock-fixture.ts'

const [dataDir = '', moment, what] = process.argv.slice(2)
const folder = await openDataFolder({ dataDir, log: silentLog() })
const journal = await folder.openJournal('inventory')
let armed = false

async function dyingAround(key: RecordKey, change: () => Promise<void>): Promise<void> {
  const dies = armed && key.includes('archives')
  if (dies && moment === 'before') process.kill(process.pid, 'SIGKILL')
  await change()
  if (dies && moment === 'after') process.kill(process.pid, 'SIGKILL')
}

const records: RecordStore = {
  get: (key) => folder.records.get(key),
  children: (prefix) => folder.records.children(prefix),
  put: (key, document) => dyingAround(key, () => folder.records.put(key, document)),
  delete: (key) => dyingAround(key, () => folder.records.delete(key)),
}
const stock = openStock({ records, journal })
await stock.save('acme/stays 1.0.0 linux_amd64')
if (what !== 'save') await stock.save('acme/changes 1.0.0 linux_amd64', 'first')
await stock.inventory.start(stock.sources, never)
armed = true
if (what === 'delete') await stock.remove('acme/changes 1.0.0 linux_amd64')
else await stock.save('acme/changes 1.0.0 linux_amd64', 'second')
