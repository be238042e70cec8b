import { join } from 'node:path'
import type { BenchMirror } from './bench-mirror.ts'
import { download } from './load.ts'
import { HOST } from './origin-files.ts'
import { Rounds, spreadOf } from './rounds.ts'
import { atLeast, quantity, type Row, type Section, times, told } from './row.ts'
import { CLIENT_CPU, SERVER_CPU, type Service } from './service.ts'
import type { Stage } from './stage.ts'

/** The archive that is used wherever only its size matters. */
export const ARCHIVE = 'bench/archive/1.0.0/linux_amd64/archive.zip'
export const ARCHIVE_BYTES = 150_000_000

const CLIENTS = [1, 8, 32] as const
/** So that a single client is busy for long enough to be measured. */
const TURNS = { 1: 4, 8: 1, 32: 1 } as const
/** nginx needs as many as that, too; the ratio does not change with more of them. */
const ROUNDS_OF_32 = 3

const METHOD = `A stored archive of ${ARCHIVE_BYTES / 1e6} MB over TLS 1.3, downloaded by \`curl\` (\`-Z\` for several at once) on the client's core; the
server has the other one. nginx serves the same bytes with the same certificate (\`sendfile\`, which TLS turns into reads).
The client has to decrypt as much as the server encrypts, so processor time of the server for a GB says more than the
rate.`

/** How fast stored archives leave over TLS, beside nginx. */
export async function measureArchives(stage: Stage): Promise<Section> {
  await publishArchive(stage)
  await using peer = await stage.startPeer(SERVER_CPU)
  await using mirror = await stage.startMirror({ tls: true, cpu: SERVER_CPU })
  await warmUp(stage, mirror)
  const path = new URL(mirror.at(ARCHIVE)).pathname
  await stage.copyToPeer(path, archiveFile(stage, 'bench/archive'))
  const nginx = { url: `https://localhost:${peer.ports.filesTls}${path}`, service: peer.service }
  const rows: Row[] = []
  for (const clients of CLIENTS) {
    const count = clients === 32 ? Math.min(ROUNDS_OF_32, stage.rounds) : stage.rounds
    const cpu = new Rounds<'mirror' | 'nginx'>()
    const peaks: number[] = []
    const load = async (name: 'mirror' | 'nginx', url: string, service: Service): Promise<number> => {
      service.resetPeak()
      const before = service.cpuSeconds()
      const { bytes, seconds } = await download(url, { ...stage, clients, turns: TURNS[clients], cpu: CLIENT_CPU })
      cpu.add(name, (1e9 * (service.cpuSeconds() - before)) / bytes)
      if (name === 'mirror') peaks.push(service.peakMB())
      return bytes / seconds / 1e6
    }
    const rates = await Rounds.run(count, {
      mirror: () => load('mirror', mirror.at(ARCHIVE), mirror.service),
      nginx: () => load('nginx', nginx.url, nginx.service),
    })
    const who = clients === 1 ? '1 client' : `${clients} clients`
    const ratio = rates.ratio('mirror', 'nginx')
    rows.push(
      clients === 32 ? told(`${who}, beside nginx`, times(ratio)) : atLeast(`${who}, beside nginx`, 0.95, ratio),
      told(`${who}, mirror`, quantity(rates.spread('mirror'), 'MB/s')),
      told(`${who}, processor time for a GB`, quantity(cpu.spread('mirror'), 's')),
      told(`${who}, processor time for a GB beside nginx`, times(cpu.ratio('mirror', 'nginx'))),
    )
    if (clients === 32) rows.push(told(`${who}, most memory`, quantity(spreadOf(peaks), 'MB')))
  }
  return { title: 'Archives', method: METHOD, rows }
}

/** Makes the archive at the origin, once. */
export async function publishArchive(stage: Stage): Promise<void> {
  await stage.publishOnce({
    provider: 'bench/archive',
    version: '1.0.0',
    platforms: ['linux_amd64'],
    archiveBytes: ARCHIVE_BYTES,
  })
}

/** The bytes of a provider's archive for linux_amd64, as the origin has them. */
export function archiveFile({ files }: Stage, provider: string): string {
  const type = provider.split('/')[1]
  const name = `terraform-provider-${type}_1.0.0_linux_amd64.zip`
  return join(files.root, 'releases', HOST, provider, '1.0.0', 'linux_amd64', name)
}

/** Has the mirror fetch the archive, and everything it says about it. */
async function warmUp(stage: Stage, mirror: BenchMirror): Promise<void> {
  await download(mirror.at('bench/archive/1.0.0.json'), stage)
  await download(mirror.at(ARCHIVE), stage)
}
