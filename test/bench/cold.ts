import { setTimeout as sleep } from 'node:timers/promises'
import { ARCHIVE, ARCHIVE_BYTES, publishArchive } from './archives.ts'
import type { BenchMirror } from './bench-mirror.ts'
import { download } from './load.ts'
import { HOST } from './origin-files.ts'
import { Rounds, spreadOf } from './rounds.ts'
import { atMost, quantity, type Row, type Section, times, told } from './row.ts'
import { type Peer, SLOW_RATE, type Stage } from './stage.ts'

const SLOW_ROUNDS = 3
const CROWD = 100
const CROWD_ROUNDS = 3
const FILE = `releases/${HOST}/bench/archive/1.0.0/linux_amd64/terraform-provider-archive_1.0.0_linux_amd64.zip`

const WARM_UP = { provider: 'bench/warmup', version: '1.0.0' }
/** For the `h1:` of the archive before. */
const REST_MS = 4_000

const METHOD = `An archive of ${ARCHIVE_BYTES / 1e6} MB that is not held: time to the client's last byte, everything over TLS but the crowd. The origin is nginx, as
fast as it can be or with \`limit_rate ${SLOW_RATE}\`, for which it sends pieces of 512 KB: with its usual 32 KB it rounds the pauses
between them down and gives about 57 MB/s. By default a client gets its first byte when the last one is verified, so that what the
mirror takes for itself adds to the download; the targets are for \`archives.delivery: progressive\`, which hands bytes on at
once, but for the last ones. The mirror begins with an empty data folder each time; with the fast
origin it has fetched another archive before, as one that has been running for a while. It has been asked for \`VERSION.json\`,
as clients do; nginx has \`proxy_cache\` with its lock, and verifies the origin's certificate. No process
is tied to a core. The mirror hashes, syncs and records what it keeps; nginx does not. The crowd, ${CROWD} clients of plain
HTTP that come at once, must cause one request to the origin: else the benchmark fails.`

/** How long a client waits for what is not held. */
export async function measureCold(stage: Stage): Promise<Section> {
  await publishArchive(stage)
  await stage.publishOnce({ ...WARM_UP, platforms: ['linux_amd64'], archiveBytes: ARCHIVE_BYTES })
  await using peer = await stage.startPeer()
  await stage.archiveFetches()
  const rows = [
    ...(await measureFast(stage, peer)),
    ...(await measureSlow(stage)),
    ...(await measureCrowd(stage, peer)),
  ]
  return { title: 'What is not held', method: METHOD, rows }
}

async function measureFast(stage: Stage, peer: Peer): Promise<Row[]> {
  const seconds = await Rounds.run(stage.rounds, {
    mirror: () => fetchByMirror(stage, { delivery: 'progressive' }),
    verified: () => fetchByMirror(stage, {}),
    nginx: () => fetchByNginx(stage, `https://localhost:${peer.ports.cachedOrigin}/`),
    direct: () => fetchDirectly(stage, stage.origin.fast),
    plain: () => fetchByMirror(stage, { delivery: 'progressive', tls: false, plainOrigin: true }),
    nginxPlain: () => fetchByNginx(stage, `http://localhost:${peer.ports.cachedPlainOrigin}/`),
  })
  return [
    atMost('fast origin, progressive, beside a miss of nginx', 1.1, seconds.ratio('mirror', 'nginx')),
    told('fast origin, verified, beside a miss of nginx', times(seconds.ratio('verified', 'nginx'))),
    told('the same without TLS on either side', times(seconds.ratio('plain', 'nginxPlain'))),
    told('fast origin, progressive', quantity(seconds.spread('mirror'), 's')),
    told('fast origin, verified', quantity(seconds.spread('verified'), 's')),
    told('fast origin, nginx', quantity(seconds.spread('nginx'), 's')),
    told('fast origin, straight from it', quantity(seconds.spread('direct'), 's')),
  ]
}

async function measureSlow(stage: Stage): Promise<Row[]> {
  const seconds = await Rounds.run(Math.min(stage.rounds, SLOW_ROUNDS), {
    mirror: () => fetchByMirror(stage, { slow: true, delivery: 'progressive' }),
    verified: () => fetchByMirror(stage, { slow: true }),
    direct: () => fetchDirectly(stage, stage.origin.slow),
  })
  return [
    atMost('origin of 50 MB/s, progressive, beside straight from it', 1.05, seconds.ratio('mirror', 'direct')),
    told('origin of 50 MB/s, verified, beside straight from it', times(seconds.ratio('verified', 'direct'))),
  ]
}

async function measureCrowd(stage: Stage, peer: Peer): Promise<Row[]> {
  const memory: number[] = []
  const alone: number[] = []
  const crowd = await Rounds.run(Math.min(stage.rounds, CROWD_ROUNDS), {
    mirror: async () => {
      alone.push(await fetchByMirror(stage, { tls: false }))
      return fetchByMirror(stage, { tls: false, clients: CROWD, onPeak: (MB) => memory.push(MB) })
    },
    nginx: () => fetchByNginx(stage, `http://localhost:${peer.ports.cachedOriginPlain}/`, CROWD),
  })
  return [
    atMost(`${CROWD} clients, beside nginx with its lock`, 1.5, crowd.ratio('mirror', 'nginx')),
    told(`${CROWD} clients, mirror`, quantity(crowd.spread('mirror'), 's')),
    told(`${CROWD} clients, nginx`, quantity(crowd.spread('nginx'), 's')),
    told(`1 client over plain HTTP, mirror`, quantity(spreadOf(alone), 's')),
    told(`${CROWD} clients beside 1, for ${CROWD} times the bytes`, times(ratioOf(crowd.spread('mirror'), alone))),
    told(`${CROWD} clients, most memory`, quantity(spreadOf(memory), 'MB')),
  ]
}

function ratioOf({ median }: { median: number }, alone: readonly number[]): ReturnType<typeof spreadOf> {
  return spreadOf(alone.map((seconds) => median / seconds))
}

async function fetchByMirror(
  stage: Stage,
  options: {
    slow?: boolean
    delivery?: 'progressive'
    tls?: boolean
    plainOrigin?: boolean
    clients?: number
    onPeak?: (MB: number) => void
  },
): Promise<number> {
  const { slow = false, tls = true, plainOrigin = false, clients = 1, delivery, onPeak } = options
  await using mirror = await stage.startMirror({
    tls,
    slow,
    plainOrigin,
    ...(delivery === undefined ? {} : { delivery }),
  })
  if (!slow) await warmUp(stage, mirror)
  await download(mirror.at('bench/archive/1.0.0.json'), stage)
  const { seconds } = await download(mirror.at(ARCHIVE), { ...stage, clients })
  onPeak?.(mirror.service.peakMB())
  const fetches = await stage.archiveFetches()
  if (fetches !== 1) throw new Error(`the origin was asked for the archive ${fetches} times`)
  return seconds
}

/** As a mirror is that has been running for a while: its code is compiled, and nothing is being hashed. */
async function warmUp(stage: Stage, mirror: BenchMirror): Promise<void> {
  const { provider, version } = WARM_UP
  await download(mirror.at(`${provider}/${version}.json`), stage)
  await download(mirror.at(`${provider}/${version}/linux_amd64/archive.zip`), stage)
  await sleep(REST_MS)
  await stage.archiveFetches()
}

let misses = 0

async function fetchByNginx(stage: Stage, base: string, clients = 1): Promise<number> {
  misses += 1
  const { seconds } = await download(`${base}${FILE}?miss=${misses}`, { ...stage, clients })
  await stage.archiveFetches()
  return seconds
}

async function fetchDirectly(stage: Stage, port: number): Promise<number> {
  const resolve = `${HOST}:${port}:127.0.0.1`
  const { seconds } = await download(`https://${HOST}:${port}/${FILE}`, { ...stage, resolve })
  await stage.archiveFetches()
  return seconds
}
