import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { silentLog } from '../../src/log.ts'
import { Catalogue } from '../../src/mirror/catalogue.ts'
import { ModuleCatalogue } from '../../src/mirror/module-catalogue.ts'
import { PackageHashes } from '../../src/mirror/package-hashes.ts'
import { Inventory } from '../../src/mirror/stock/inventory.ts'
import { RecordedModules, RecordedPackages } from '../../src/mirror/stock/recorded-items.ts'
import { Stock, type StockQuery } from '../../src/mirror/stock/stock.ts'
import { openDataFolder } from '../../src/store/disk/data-folder.ts'
import { PackageHasher } from '../../src/verify/h1-worker.ts'
import type { BenchMirror } from './bench-mirror.ts'
import { fillDataFolder } from './fill-data-folder.ts'
import { Rounds, spreadOf } from './rounds.ts'
import { below, quantity, type Row, type Section, told } from './row.ts'
import type { Stage } from './stage.ts'

const PACKAGES = 100_000
const STARTS = 3
const PAGES = 20
const REST_MS = 30_000
const LIMIT_MS = 300_000
const STEP_MS = 20

const METHOD = `A data folder with ${PACKAGES.toLocaleString('en')} packages in 20,000 versions. "Complete": from the start of the process until its page tells
how many packages are held, read from the snapshot of the inventory; ${STARTS} starts; once without a snapshot, when every record is
read. Memory as in the last section, ${REST_MS / 1_000} s after that, while the inventory is compared with the records. Pages are made by the
use case, in the process of the benchmark, without HTTP; another place in the list each time, so that no record was read
before; ${PAGES} pages each.`

/** How the mirror copes with many packages. */
export async function measureStock(stage: Stage): Promise<Section> {
  const dataDir = join(stage.folder, 'data-stock')
  await fillDataFolder(dataDir, PACKAGES)
  const rebuilt = await startOnce(stage, dataDir, async () => waitForSnapshot(dataDir))
  const complete: number[] = []
  const resident: number[] = []
  for (let start = 0; start < STARTS; start += 1) {
    const { completeMs } = await startOnce(stage, dataDir, async (mirror) => {
      await sleep(REST_MS)
      resident.push(mirror.service.peakMB())
    })
    complete.push(completeMs / 1_000)
  }
  const rows: Row[] = [
    below('start until the inventory is complete', 5, 's', spreadOf(complete)),
    told('the same without a snapshot', quantity(spreadOf([rebuilt.completeMs / 1_000]), 's')),
    below('memory, the most', 300, 'MB', spreadOf(resident)),
    ...(await measurePages(dataDir)),
  ]
  return { title: 'Many packages', method: METHOD, rows }
}

async function startOnce(
  stage: Stage,
  dataDir: string,
  then: (mirror: BenchMirror) => Promise<void>,
): Promise<{ completeMs: number }> {
  const startedAt = performance.now()
  await using mirror = await stage.startMirror({ tls: false, dataDir })
  await until(async () => {
    const page = await fetch(mirror.url, { headers: { accept: 'text/html' } })
    return (await page.text()).includes(`${PACKAGES.toLocaleString('en')} packages held`)
  })
  const completeMs = performance.now() - startedAt
  await then(mirror)
  return { completeMs }
}

/** It is written, in one step, after the inventory is complete. */
async function waitForSnapshot(dataDir: string): Promise<void> {
  await until(async () => existsSync(join(dataDir, 'inventory.ndjson')))
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const limit = performance.now() + LIMIT_MS
  while (!(await condition())) {
    if (performance.now() > limit) throw new Error('the inventory did not become complete')
    await sleep(STEP_MS)
  }
}

async function measurePages(dataDir: string): Promise<Row[]> {
  const log = silentLog()
  await using folder = await openDataFolder({ dataDir, log })
  await using hasher = new PackageHasher()
  const inventory = new Inventory({ log, journal: await folder.openJournal('inventory') })
  const catalogue = new Catalogue(folder.records, inventory, log)
  const modules = new ModuleCatalogue(folder.records, inventory, log)
  const hashes = new PackageHashes({ records: folder.records, blobs: folder.blobs, hasher, log })
  const usage = { of: () => ({ lastUsedAt: undefined, hits: 0 }) }
  const stock = new Stock({
    ...{ inventory, catalogue, modules, hashes, usage, pinsOf: () => [], callsOf: async () => null },
  })
  const stop = new AbortController()
  const started = inventory.start([new RecordedPackages(catalogue), new RecordedModules(modules)], stop.signal)
  await inventory.whenComplete()
  // What is measured is the page alone.
  stop.abort()
  await started
  const all = inventory.all()
  let place = 0
  const page = (query: Partial<StockQuery>) => async (): Promise<number> => {
    place = (place + 7_919) % (all.length - 500)
    const startedAt = performance.now()
    await stock.listPackages({ limit: 100, after: all[place]?.name, ...query }, AbortSignal.timeout(LIMIT_MS))
    return performance.now() - startedAt
  }
  const times = await Rounds.run(PAGES, {
    page: page({}),
    large: page({ limit: 500 }),
    type: page({ after: undefined, type: 'p1234' }),
    search: page({ after: undefined, q: 'p1999 1.9.0' }),
    nothing: page({ after: undefined, q: 'not here' }),
  })
  await inventory.close()
  return [
    below('a page of 100', 100, 'ms', times.spread('page')),
    below('a page of 500', 100, 'ms', times.spread('large')),
    below('a page of one type, whatever its namespace', 100, 'ms', times.spread('type')),
    below('a search', 100, 'ms', times.spread('search')),
    below('a search that finds nothing', 100, 'ms', times.spread('nothing')),
  ]
}
