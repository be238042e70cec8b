import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { ARCHIVE, publishArchive } from './archives.ts'
import { curlArguments, download, loadDocument } from './load.ts'
import { spreadOf } from './rounds.ts'
import { below, type Section, told } from './row.ts'
import { CLIENT_CPU, SERVER_CPU } from './service.ts'
import type { Stage } from './stage.ts'
import { pathOf } from './tools.ts'

const CONNECTIONS = 8
const DOWNLOADS = 8

const METHOD = `\`wrk -t1 -c${CONNECTIONS}\` asks for \`VERSION.json\` while ${DOWNLOADS} archives leave without a pause, all over TLS, the server on one core. The
clients share the other one; those of the archives give way (\`nice\`), so that what is measured is the wait for the server.`

/** How long documents wait while archives leave. */
export async function measureBeside(stage: Stage): Promise<Section> {
  await publishArchive(stage)
  await using mirror = await stage.startMirror({ tls: true, cpu: SERVER_CPU })
  const document = mirror.at('bench/archive/1.0.0.json')
  await download(document, stage)
  await download(mirror.at(ARCHIVE), stage)
  await loadDocument(document, { seconds: 1, connections: CONNECTIONS })
  const alone: number[] = []
  const beside: number[] = []
  for (let round = 0; round < stage.rounds; round++) {
    alone.push((await loadDocument(document, { seconds: 1, connections: CONNECTIONS })).p99Ms)
    const options = { ...stage, clients: DOWNLOADS, turns: 100 }
    const command = ['-n', '19', pathOf('taskset'), '-c', CLIENT_CPU, pathOf('curl')]
    const downloads = spawn('nice', [...command, ...curlArguments(mirror.at(ARCHIVE), options)], { stdio: 'ignore' })
    const ended = once(downloads, 'exit')
    beside.push((await loadDocument(document, { seconds: 2, connections: CONNECTIONS })).p99Ms)
    downloads.kill('SIGKILL')
    await ended
  }
  return {
    title: 'Documents beside archives',
    method: METHOD,
    rows: [
      below(`\`VERSION.json\`, 99 of 100, beside ${DOWNLOADS} downloads`, 10, 'ms', spreadOf(beside)),
      told('`VERSION.json`, 99 of 100, alone', `${spreadOf(alone).median.toFixed(2)} ms`),
    ],
  }
}
