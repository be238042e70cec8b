import type { BenchMirror } from './bench-mirror.ts'
import { loadDocument } from './load.ts'
import { Rounds } from './rounds.ts'
import { atLeast, quantity, type Row, type Section, times, told } from './row.ts'
import { SERVER_CPU, type Service } from './service.ts'
import type { Peer, Stage } from './stage.ts'

const SECONDS = 2
const PLATFORMS = [
  ...['darwin_amd64', 'darwin_arm64', 'freebsd_386', 'freebsd_amd64', 'freebsd_arm', 'freebsd_arm64', 'linux_386'],
  ...['linux_amd64', 'linux_arm', 'linux_arm64', 'openbsd_amd64', 'windows_386', 'windows_amd64'],
]
const OLD_VERSIONS = Array.from({ length: 399 }, (_, each) => `0.${Math.floor(each / 20)}.${each % 20}`)
const VERSION = 'bench/documents/1.0.0.json'
const INDEX = 'bench/documents/index.json'

const METHOD = `\`wrk -t1 -c64\` has one core and the server the other one, for ${SECONDS} s each. Of a provider with ${PLATFORMS.length} platforms and
400 versions, \`VERSION.json\` and \`index.json\` are asked for. nginx serves the very bytes that the mirror answers, from
files with \`open_file_cache\` ("static") or from its \`proxy_cache\`. "Logged": a line for each request goes to a file, on
both sides. More is better, but for processor time.`

/** Who is asked, and what it uses for that. */
interface Candidate {
  readonly url: string
  readonly service: Service
  readonly headers?: Record<string, string>
}

/** How many documents are answered in a second, beside nginx. */
export async function measureDocuments(stage: Stage): Promise<Section> {
  await stage.publishOnce({ provider: 'bench/documents', version: '1.0.0', platforms: PLATFORMS }, OLD_VERSIONS)
  await using peer = await stage.startPeer(SERVER_CPU)
  const rows = [
    ...(await measurePlain(stage, peer)),
    ...(await measureTls(stage, peer)),
    ...(await measureLogged(stage, peer)),
  ]
  return { title: 'Documents', method: METHOD, rows }
}

async function measurePlain(stage: Stage, peer: Peer): Promise<Row[]> {
  await using mirror = await stage.startMirror({ tls: false, cpu: SERVER_CPU })
  const rows: Row[] = []
  for (const [what, path] of Object.entries({ '`VERSION.json`': VERSION, '`index.json`': INDEX })) {
    const bytes = await copyDocument(stage, mirror, path)
    const { rate, cpu } = await race(stage.rounds, {
      mirror: { url: mirror.at(path), service: mirror.service },
      compressed: { url: mirror.at(path), service: mirror.service, headers: { 'Accept-Encoding': 'gzip' } },
      static: atPeer(peer, peer.ports.files, mirror.at(path)),
      cache: atPeer(peer, peer.ports.cached, mirror.at(path)),
    })
    rows.push(
      atLeast(`${what} (${bytes} bytes), beside nginx static`, 0.6, rate.ratio('mirror', 'static')),
      atLeast(`${what}, beside nginx \`proxy_cache\``, 1, rate.ratio('mirror', 'cache')),
      told(`${what}, mirror`, quantity(rate.spread('mirror'), 'requests/s')),
      told(`${what}, mirror, gzip as clients ask for it`, quantity(rate.spread('compressed'), 'requests/s')),
      told(`${what}, processor time of a request`, quantity(cpu.spread('mirror'), 'µs')),
      told(`${what}, processor time beside nginx static`, times(cpu.ratio('mirror', 'static'))),
      told(`${what}, processor time beside nginx \`proxy_cache\``, times(cpu.ratio('mirror', 'cache'))),
    )
  }
  return rows
}

async function measureTls(stage: Stage, peer: Peer): Promise<Row[]> {
  await using mirror = await stage.startMirror({ tls: true, cpu: SERVER_CPU })
  const url = mirror.at(VERSION)
  const { rate, cpu } = await race(stage.rounds, {
    mirror: { url, service: mirror.service },
    static: atPeer(peer, peer.ports.filesTls, url),
  })
  return [
    atLeast('`VERSION.json` over TLS, beside nginx static', 0.48, rate.ratio('mirror', 'static')),
    told('`VERSION.json` over TLS, processor time beside nginx static', times(cpu.ratio('mirror', 'static'))),
  ]
}

async function measureLogged(stage: Stage, peer: Peer): Promise<Row[]> {
  await using mirror = await stage.startMirror({ tls: false, cpu: SERVER_CPU, accessLog: true })
  const url = mirror.at(VERSION)
  const { rate, cpu } = await race(stage.rounds, {
    mirror: { url, service: mirror.service },
    static: atPeer(peer, peer.ports.filesLogged, url),
  })
  return [
    atLeast('`VERSION.json` logged, beside nginx static, logged', 0.7, rate.ratio('mirror', 'static')),
    told('`VERSION.json` logged, processor time beside nginx static', times(cpu.ratio('mirror', 'static'))),
  ]
}

function atPeer({ service }: Peer, port: number, mirrorUrl: string): Candidate {
  const url = new URL(mirrorUrl)
  url.port = String(port)
  return { url: url.href, service }
}

/** Requests per second of each candidate, and its processor time for a request in µs, interleaved. */
async function race<Name extends string>(
  count: number,
  candidates: Readonly<Record<Name, Candidate>>,
): Promise<{ rate: Rounds<Name>; cpu: Rounds<Name> }> {
  const cpu = new Rounds<Name>()
  const load = async (name: Name, seconds: number): Promise<{ rate: number; cpuUs: number }> => {
    const { url, service, headers } = candidates[name]
    const before = service.cpuSeconds()
    const { requests, requestsPerSecond } = await loadDocument(url, { seconds, ...(headers ? { headers } : {}) })
    return { rate: requestsPerSecond, cpuUs: (1e6 * (service.cpuSeconds() - before)) / requests }
  }
  const names = Object.keys(candidates) as Name[]
  // Until the code is compiled and the caches are full.
  for (const name of names) await load(name, 1)
  const entries = names.map((name): [Name, () => Promise<number>] => [
    name,
    async () => {
      const { rate, cpuUs } = await load(name, SECONDS)
      cpu.add(name, cpuUs)
      return rate
    },
  ])
  const rate = await Rounds.run(count, Object.fromEntries(entries) as Record<Name, () => Promise<number>>)
  return { rate, cpu }
}

/** From now on the peer serves these bytes of the mirror; gives their number. */
async function copyDocument(stage: Stage, mirror: BenchMirror, path: string): Promise<number> {
  const url = mirror.at(path)
  const answer = await fetch(url)
  if (answer.status !== 200) throw new Error(`${url}: ${answer.status} ${await answer.text()}`)
  const bytes = new Uint8Array(await answer.arrayBuffer())
  await stage.copyToPeer(new URL(url).pathname, bytes)
  return bytes.length
}
