import { setTimeout as sleep } from 'node:timers/promises'
import { ARCHIVE, publishArchive } from './archives.ts'
import { download } from './load.ts'
import { spreadOf } from './rounds.ts'
import { below, type Row, type Section } from './row.ts'
import type { Stage } from './stage.ts'

const REST_MS = 3_000
const DOWNLOADS = 32
const ROUNDS = 3

const METHOD = `Resident memory of the process (\`VmRSS\`), with the options of \`npm start\`: ${REST_MS / 1_000} s after it was ready and idle since, and the
most (\`VmHWM\`) while ${DOWNLOADS} clients download a stored archive over TLS.`

/** How much memory a mirror takes. */
export async function measureMemory(stage: Stage): Promise<Section> {
  await publishArchive(stage)
  const idle: number[] = []
  const busy: number[] = []
  for (let round = 0; round < Math.min(stage.rounds, ROUNDS); round++) {
    await using mirror = await stage.startMirror({ tls: true })
    await sleep(REST_MS)
    idle.push(mirror.service.residentMB())
    await download(mirror.at('bench/archive/1.0.0.json'), stage)
    await download(mirror.at(ARCHIVE), stage)
    mirror.service.resetPeak()
    await download(mirror.at(ARCHIVE), { ...stage, clients: DOWNLOADS })
    busy.push(mirror.service.peakMB())
  }
  const rows: Row[] = [
    below('idle', 90, 'MB', spreadOf(idle)),
    below(`${DOWNLOADS} downloads of a stored archive`, 120, 'MB', spreadOf(busy)),
  ]
  return { title: 'Memory', method: METHOD, rows }
}
