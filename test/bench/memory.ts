import { setTimeout as sleep } from 'node:timers/promises'
import { ARCHIVE, publishArchive } from './archives.ts'
import { download } from './load.ts'
import { spreadOf } from './rounds.ts'
import { below, quantity, type Row, type Section, told } from './row.ts'
import type { Stage } from './stage.ts'

const REST_MS = 3_000
const DOWNLOADS = 32
const ROUNDS = 3

const METHOD = `Resident memory of the process (\`VmRSS\`), with the options of \`npm start\`: ${REST_MS / 1_000} s after it was ready and idle since; the
most (\`VmHWM\`) while ${DOWNLOADS} clients download over TLS what was stored before the process started; and the most since the
start of a process that fetched, verified and hashed an archive of 150 MB (for its \`h1:\` a worker thread lives for half a
minute).`

/** How much memory a mirror takes. */
export async function measureMemory(stage: Stage): Promise<Section> {
  await publishArchive(stage)
  const idle: number[] = []
  const busy: number[] = []
  const cold: number[] = []
  for (let round = 0; round < Math.min(stage.rounds, ROUNDS); round++) {
    const { dataDir, peakMB } = await fetchOnce(stage)
    cold.push(peakMB)
    await using mirror = await stage.startMirror({ tls: true, dataDir })
    await sleep(REST_MS)
    idle.push(mirror.service.residentMB())
    await download(mirror.at(ARCHIVE), { ...stage, clients: DOWNLOADS })
    busy.push(mirror.service.peakMB())
  }
  const rows: Row[] = [
    below('idle', 90, 'MB', spreadOf(idle)),
    below(`${DOWNLOADS} downloads of a stored archive`, 120, 'MB', spreadOf(busy)),
    told('fetching an archive', quantity(spreadOf(cold), 'MB')),
  ]
  return { title: 'Memory', method: METHOD, rows }
}

/** A process that has the archive fetched, and is gone then. */
async function fetchOnce(stage: Stage): Promise<{ dataDir: string; peakMB: number }> {
  await using mirror = await stage.startMirror({ tls: true })
  await download(mirror.at('bench/archive/1.0.0.json'), stage)
  await download(mirror.at(ARCHIVE), stage)
  await sleep(REST_MS)
  return { dataDir: mirror.dataDir, peakMB: mirror.service.peakMB() }
}
