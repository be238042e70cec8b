import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BenchMirror } from './bench-mirror.ts'
import { BIG, publishBig } from './big-provider.ts'
import { download } from './load.ts'
import { Rounds, spreadOf } from './rounds.ts'
import { atMost, below, quantity, type Section, told } from './row.ts'
import type { Stage } from './stage.ts'
import { pathOf } from './tools.ts'

const ROUNDS = 3
const POLL_MS = 10
const LIMIT_MS = 60_000
const LOOP_DELAY = new URL('./loop-delay.ts', import.meta.url).href

const METHOD = `From the last byte of a download until \`VERSION.json\` has the archive's \`h1:\`, for a program of 700 MB in a zip of the size of
hashicorp/aws, beside \`unzip -p\` piped into \`openssl dgst -sha256\`. Meanwhile the longest time for which the mirror's event
loop stood still is measured inside the process (\`monitorEventLoopDelay\`), from the download to the \`h1:\`.`

/** How long the hash takes that only the mirror has to compute. */
export async function measureH1(stage: Stage): Promise<Section> {
  const zip = await publishBig(stage)
  const blocks: number[] = []
  const seconds = await Rounds.run(Math.min(stage.rounds, ROUNDS), {
    mirror: async () => {
      const { h1Seconds, blockMs } = await computeByMirror(stage)
      blocks.push(blockMs)
      return h1Seconds
    },
    tools: () => computeByTools(zip),
  })
  return {
    title: 'h1: of a large provider',
    method: METHOD,
    rows: [
      atMost('beside `unzip -p | openssl dgst -sha256`', 0.45, seconds.ratio('mirror', 'tools')),
      told('mirror', quantity(seconds.spread('mirror'), 's')),
      told('`unzip -p | openssl dgst -sha256`', quantity(seconds.spread('tools'), 's')),
      below('longest block of the event loop', 20, 'ms', spreadOf(blocks)),
    ],
  }
}

async function computeByMirror(stage: Stage): Promise<{ h1Seconds: number; blockMs: number }> {
  await using mirror = await stage.startMirror({ tls: false, env: { NODE_OPTIONS: `--import=${LOOP_DELAY}` } })
  const document = mirror.at(`${BIG.provider}/${BIG.version}.json`)
  await download(document, stage)
  await loopDelay(mirror)
  await download(mirror.at(`${BIG.provider}/${BIG.version}/linux_amd64/archive.zip`), stage)
  const startedAt = performance.now()
  for (;;) {
    const text = await (await fetch(document)).text()
    const passed = performance.now() - startedAt
    if (text.includes('"h1:')) return { h1Seconds: passed / 1_000, blockMs: await loopDelay(mirror) }
    if (passed > LIMIT_MS) throw new Error(`no h1 after ${LIMIT_MS / 1_000} s: ${text}`)
    await sleep(POLL_MS)
  }
}

/** The longest block since the last call, in ms. */
async function loopDelay({ service }: BenchMirror): Promise<number> {
  const told = service.line(/^loop delay ([\d.]+) ms$/m)
  service.child.kill('SIGUSR2')
  const [, ms] = await told
  return Number(ms)
}

async function computeByTools(zip: string): Promise<number> {
  const startedAt = performance.now()
  const unzip = spawn(pathOf('unzip'), ['-p', zip, BIG.program], { stdio: ['ignore', 'pipe', 'inherit'] })
  const openssl = spawn(pathOf('openssl'), ['dgst', '-sha256'], { stdio: [unzip.stdout, 'ignore', 'inherit'] })
  const [[unzipped], [hashed]] = await Promise.all([once(unzip, 'exit'), once(openssl, 'exit')])
  if (unzipped !== 0 || hashed !== 0) throw new Error(`unzip ended with ${unzipped}, openssl with ${hashed}`)
  return (performance.now() - startedAt) / 1_000
}
