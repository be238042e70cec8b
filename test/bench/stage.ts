import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Publication } from '../origin/release.ts'
import { createTestAuthority } from '../tls-fixture.ts'
import { type BenchMirror, type MirrorSettings, startBenchMirror } from './bench-mirror.ts'
import { startNginx } from './nginx.ts'
import { HOST, OriginFiles } from './origin-files.ts'
import type { Service } from './service.ts'

/** What the throttled origin gives to one client. */
export const SLOW_RATE = '50m'

/** The ports of the origin: nginx over files. */
export interface OriginPorts {
  /** https, as fast as it can. */
  readonly fast: number
  /** https, `SLOW_RATE` for each connection. */
  readonly slow: number
  /** The same two over http. */
  readonly fastPlain: number
  readonly slowPlain: number
  /** http, what the mirror serves, for a caching nginx to fetch. */
  readonly documents: number
}

/** The peer: nginx over the same files as the mirror, with the same certificate. */
export interface Peer extends AsyncDisposable {
  readonly service: Service
  readonly ports: {
    readonly files: number
    readonly filesLogged: number
    readonly filesTls: number
    /** A cache in front of the documents. */
    readonly cached: number
    /** https, a cache in front of the origin, with its lock. */
    readonly cachedOrigin: number
    readonly cachedSlowOrigin: number
    /** http, the same. */
    readonly cachedOriginPlain: number
    /** http, a cache in front of the origin over http. */
    readonly cachedPlainOrigin: number
  }
}

/** Where everything is, for all parts of the benchmark. */
export interface Stage {
  readonly folder: string
  readonly rounds: number
  readonly files: OriginFiles
  readonly origin: OriginPorts
  readonly caFile: string
  /** Starts a mirror of the origin over a data folder of its own, as `npm start` does. The caller disposes of it. */
  startMirror(settings: MirrorSettings): Promise<BenchMirror>
  /** Starts nginx as the peer. The caller disposes of it. */
  startPeer(cpu?: string): Promise<Peer>
  /** Publishes a provider at the origin, unless another part of the benchmark did before. */
  publishOnce(publication: Publication, more?: readonly string[]): Promise<void>
  /** Puts bytes, or those of a file, where the peer serves them, at a path from the root. */
  copyToPeer(path: string, content: Uint8Array | string): Promise<void>
  /** How often an archive was asked for at the origin since the last call. */
  archiveFetches(): Promise<number>
}

/** Makes certificates and folders, and starts the origin. The caller disposes of it: nothing is left then. */
export async function openStage(rounds: number): Promise<Stage & AsyncDisposable> {
  await using opened = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'terramirror-bench-'))
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  const certificate = await makeCertificate(folder)
  const files = await OriginFiles.create(folder)
  const peerRoot = join(folder, 'peer-root')
  await mkdir(peerRoot)
  const [fast = 0, slow = 0, fastPlain = 0, slowPlain = 0, documents = 0] = await freePorts(5)
  const origin = { fast, slow, fastPlain, slowPlain, documents }
  const originLog = join(folder, 'origin.log')
  opened.use(
    await startNginx({
      folder: join(folder, 'origin'),
      certificate,
      port: fast,
      http: originServers(origin, { root: files.root, peerRoot, log: originLog }),
    }),
  )
  let count = 0
  let seen = 0
  const published = new Set<string>()
  const resources = opened.move()
  return {
    folder,
    rounds,
    files,
    origin,
    caFile: certificate.caFile,
    startMirror: (settings) =>
      startBenchMirror({ folder: join(folder, `mirror-${count++}`), certificate, origin, settings }),
    startPeer: (cpu) => startPeer({ folder: join(folder, `peer-${count++}`), peerRoot, certificate, origin, cpu }),
    async publishOnce(publication, more) {
      if (published.has(publication.provider)) return
      published.add(publication.provider)
      await files.publish(publication, more)
    },
    async copyToPeer(path, content) {
      const file = join(peerRoot, path)
      await mkdir(dirname(file), { recursive: true })
      if (typeof content === 'string') await copyFile(content, file)
      else await writeFile(file, content)
    },
    async archiveFetches() {
      const all = (await readFile(originLog, 'utf8')).split('\n').filter((line) => /^GET \S+\.zip/.test(line)).length
      const fresh = all - seen
      seen = all
      return fresh
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}

/** Files of the one certificate that every server here has. */
export interface CertificateFiles {
  readonly certFile: string
  readonly keyFile: string
  readonly caFile: string
}

async function makeCertificate(folder: string): Promise<CertificateFiles> {
  const authority = await createTestAuthority()
  const { cert, key } = await authority.issue(['localhost', '127.0.0.1', HOST])
  const files = { certFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem'), caFile: join(folder, 'ca.pem') }
  await writeFile(files.certFile, cert)
  await writeFile(files.keyFile, key, { mode: 0o600 })
  await writeFile(files.caFile, authority.caPem)
  return files
}

function originServers(
  { fast, slow, fastPlain, slowPlain, documents }: OriginPorts,
  { root, peerRoot, log }: { root: string; peerRoot: string; log: string },
): string {
  return `
  log_format target '$request_method $request_uri';
  server { listen 127.0.0.1:${fast} ssl; listen 127.0.0.1:${fastPlain}; root ${root}; access_log ${log} target;
    default_type application/json; }
  server { listen 127.0.0.1:${slow} ssl; listen 127.0.0.1:${slowPlain}; root ${root}; access_log ${log} target;
    default_type application/json; location /releases/ { limit_rate ${SLOW_RATE}; output_buffers 2 512k; } }
  server { listen 127.0.0.1:${documents}; root ${peerRoot}; }`
}

async function startPeer(options: {
  folder: string
  peerRoot: string
  certificate: CertificateFiles
  origin: OriginPorts
  cpu: string | undefined
}): Promise<Peer> {
  const { folder, peerRoot, certificate, origin, cpu } = options
  const [
    files = 0,
    filesLogged = 0,
    filesTls = 0,
    cached = 0,
    cachedOrigin = 0,
    cachedSlowOrigin = 0,
    plain = 0,
    allPlain = 0,
  ] = await freePorts(8)
  const ports = {
    files,
    filesLogged,
    filesTls,
    cached,
    cachedOrigin,
    cachedSlowOrigin,
    cachedOriginPlain: plain,
    cachedPlainOrigin: allPlain,
  }
  const cache = (target: string): string => `
    location / {
      proxy_pass ${target};
      proxy_cache peer;
      proxy_cache_key $uri$is_args$args;
      proxy_cache_valid 200 1h;
      proxy_cache_lock on;
      proxy_cache_lock_timeout 600s;
      proxy_cache_lock_age 600s;
      proxy_ssl_name ${HOST};
      proxy_ssl_server_name on;
      proxy_ssl_verify on;
      proxy_ssl_trusted_certificate ${certificate.caFile};
      proxy_ssl_protocols TLSv1.3;
    }`
  const fast = `https://127.0.0.1:${origin.fast}`
  const http = `
  proxy_cache_path ${folder}/cache levels=1:2 keys_zone=peer:10m max_size=50g inactive=1h use_temp_path=off;
  server { listen 127.0.0.1:${files}; root ${peerRoot}; }
  server { listen 127.0.0.1:${filesLogged}; root ${peerRoot}; access_log ${folder}/access.log combined; }
  server { listen 127.0.0.1:${filesTls} ssl; root ${peerRoot}; }
  server { listen 127.0.0.1:${cached}; ${cache(`http://127.0.0.1:${origin.documents}`)} }
  server { listen 127.0.0.1:${cachedOrigin} ssl; ${cache(fast)} }
  server { listen 127.0.0.1:${cachedSlowOrigin} ssl; ${cache(`https://127.0.0.1:${origin.slow}`)} }
  server { listen 127.0.0.1:${plain}; ${cache(fast)} }
  server { listen 127.0.0.1:${allPlain}; ${cache(`http://127.0.0.1:${origin.fastPlain}`)} }`
  const port = files
  const service = await startNginx({ folder, certificate, http, port, ...(cpu === undefined ? {} : { cpu }) })
  return { service, ports, [Symbol.asyncDispose]: () => service[Symbol.asyncDispose]() }
}

/** Ports that nobody listens on, as far as one can know. */
async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, () => {
      const server = createServer()
      return new Promise<typeof server>((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)))
    }),
  )
  const ports = servers.map((server) => {
    const address = server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  })
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}
