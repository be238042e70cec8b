import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fillDataFolder } from './big-data-folder.ts'
import { download } from './load.ts'
import { Rounds, type Spread } from './rounds.ts'
import { atMost, below, quantity, type Row, type Section, told } from './row.ts'
import type { Stage } from './stage.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const PROVIDER = 'bench/documents'
const SIZES = [0, 10_000, 100_000]
const STARTS = 7
const COLD_STARTS = 3

const METHOD = `From the start of the process to the line that says that it serves, ${STARTS} starts each, beside the same sources compiled by
\`tsc\` alone, run without a compile cache. "Cold": the kernel has been told to forget all files
(\`/proc/sys/vm/drop_caches\`), so even Node.js itself is read from the disk; ${COLD_STARTS} starts. TLS with a given certificate.`

/** How long a start takes. */
export async function measureStart(stage: Stage): Promise<Section> {
  const unbundled = compileUnbundled(stage)
  const model = await makeModel(stage)
  const rows: Row[] = []
  for (const packages of SIZES) {
    const dataDir = join(stage.folder, `data-${packages}`)
    if (packages > 0) fillDataFolder(dataDir, packages, { dataDir: model, provider: PROVIDER })
    const start = (main?: string) => startOnce(stage, dataDir, main)
    const what = `${packages.toLocaleString('en')} packages`
    const times = await Rounds.run(STARTS, { mirror: () => start(), unbundled: () => start(unbundled) })
    if (packages === 0) {
      rows.push(atMost(`${what}, beside no bundle and no compile cache`, 0.65, times.ratio('mirror', 'unbundled')))
      rows.push(told(`${what}, no bundle and no compile cache`, quantity(times.spread('unbundled'), 'ms')))
    }
    rows.push(told(`${what}, files in memory`, quantity(times.spread('mirror'), 'ms')))
    if (packages === SIZES.at(-1)) rows.push(await measureColdStart(what, start))
  }
  return { title: 'Start', method: METHOD, rows }
}

async function measureColdStart(what: string, start: () => Promise<number>): Promise<Row> {
  if (!dropCaches()) return told(`${what}, cold`, 'not measured: only root may have the kernel forget its files')
  const cold = await Rounds.run(COLD_STARTS, {
    mirror: () => {
      dropCaches()
      return start()
    },
  })
  const spread: Spread = cold.spread('mirror')
  return below(`${what}, cold`, 1_000, 'ms', spread)
}

async function startOnce(stage: Stage, dataDir: string, main?: string): Promise<number> {
  await using mirror = await stage.startMirror({
    tls: true,
    dataDir,
    ...(main === undefined ? {} : { main, env: { NODE_DISABLE_COMPILE_CACHE: '1' } }),
  })
  return mirror.readyMs
}

/** The sources as `tsc` gives them, in a folder from where they find their libraries. */
function compileUnbundled({ folder }: Stage): string {
  const target = join(folder, 'unbundled')
  mkdirSync(target)
  symlinkSync(join(ROOT, 'node_modules'), join(target, 'node_modules'))
  copyFileSync(join(ROOT, 'package.json'), join(target, 'package.json'))
  const out = join(target, 'dist')
  const options = ['-p', join(ROOT, 'tsconfig.build.json'), '--outDir', out, '--incremental', 'false']
  const noInfo = ['--tsBuildInfoFile', 'null', '--sourceMap', 'false']
  const tsc = join(ROOT, 'node_modules', '.bin', 'tsc')
  const { status, stdout } = spawnSync(process.execPath, [tsc, ...options, ...noInfo], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`tsc ended with ${status}: ${stdout}`)
  return join(out, 'main.js')
}

/** A data folder that holds one archive of one version. */
async function makeModel(stage: Stage): Promise<string> {
  await stage.publishOnce({ provider: PROVIDER, version: '1.0.0' })
  await using mirror = await stage.startMirror({ tls: false })
  await download(mirror.at(`${PROVIDER}/1.0.0.json`), stage)
  await download(mirror.at(`${PROVIDER}/1.0.0/linux_amd64/archive.zip`), stage)
  return mirror.dataDir
}

function dropCaches(): boolean {
  try {
    spawnSync('sync')
    writeFileSync('/proc/sys/vm/drop_caches', '3')
    return true
  } catch {
    return false
  }
}
