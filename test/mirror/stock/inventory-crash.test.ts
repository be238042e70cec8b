import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { silentLog } from '../../../src/log.ts'
import type { ItemSource } from '../../../src/mirror/stock/item-source.ts'
import { openDataFolder } from '../../../src/store/disk/data-folder.ts'
import { makeTempFolder } from '../../store/temp-folder.ts'
import { openStock, recordedItems } from './stock-fixture.ts'

const SCRIPT = fileURLToPath(new URL('inventory-child.ts', import.meta.url))
const cases = [
  { what: 'save', moment: 'before', held: 1 },
  { what: 'save', moment: 'after', held: 2 },
  { what: 'replace', moment: 'before', held: 2 },
  { what: 'replace', moment: 'after', held: 2 },
  { what: 'delete', moment: 'before', held: 2 },
  { what: 'delete', moment: 'after', held: 1 },
]

it.each(cases)(
  'is what the records say after kill -9 right $moment the record of a $what',
  async ({ what, moment, held }) => {
    await using temp = await makeTempFolder()
    const child = spawn(process.execPath, [SCRIPT, temp.path, moment, what], { stdio: 'inherit' })
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
    await using folder = await openDataFolder({ dataDir: temp.path, log: silentLog() })
    await using journal = await folder.openJournal('inventory')
    const stock = openStock({ records: folder.records, journal })
    const recorded = await recordedItems(stock.sources)
    expect(recorded).toHaveLength(held)
    // Nothing but the snapshot, its changes, and the records that they name.
    const go = Promise.withResolvers<void>()
    const heldBack = stock.sources.map(
      (source): ItemSource => ({
        kind: source.kind,
        readItem: (name) => source.readItem(name),
        async *recorded() {
          await go.promise
          yield* source.recorded()
        },
      }),
    )
    const stop = new AbortController()
    const started = stock.inventory.start(heldBack, stop.signal)
    await stock.inventory.whenComplete(AbortSignal.timeout(10_000))
    expect(stock.inventory.all()).toEqual(recorded)
    go.resolve()
    await started
    expect(stock.inventory.all()).toEqual(recorded)
  },
)
