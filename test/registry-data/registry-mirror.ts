import { once } from 'node:events'
import { Agent, request } from 'node:https'
import { Worker } from 'node:worker_threads'
import { startMirror, type TestMirror } from '../e2e/mirror-fixture.ts'
import { createTestAuthority } from '../tls-fixture.ts'
import { type Site, startDataOrigin } from './data-origin.ts'

/** The hosts that documents of the data name, beside the registries. */
const DOCUMENT_HOSTS = ['github.com', 'releases.hashicorp.com', 'releases.example.com']

/** A JSON answer of the mirror. */
export interface MirrorAnswer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests look into documents whose shape is what they test
  readonly json: any
}

/** A real mirror in front of an origin of data, and a client with connections that stay open. */
export interface RegistryMirror extends AsyncDisposable {
  readonly mirror: TestMirror
  /** Asks for a path below the base URL of the network mirror, e.g. `HOST/NAMESPACE/TYPE/index.json`. */
  ask(path: string): Promise<MirrorAnswer>
}

/** How to set it up. */
export interface RegistryMirrorOptions {
  /** Hosts that the mirror is allowed to ask as registries. */
  readonly hosts: readonly string[]
  /** Configuration of origins, by host. */
  readonly origins?: Record<string, Record<string, unknown>>
}

/** Starts a mirror over a site in this thread. */
export async function startMirrorOver(site: Site, options: RegistryMirrorOptions) {
  await using opened = new AsyncDisposableStack()
  const authority = await createTestAuthority()
  const certificate = await authority.issue([...options.hosts, ...DOCUMENT_HOSTS])
  const origin = opened.use(await startDataOrigin(site, certificate))
  const registry = opened.use(await openMirror({ ...options, ...origin, caPem: authority.caPem }))
  const resources = opened.move()
  return {
    mirror: registry.mirror,
    asked: origin.asked,
    ask: (path: string) => registry.ask(path),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}

/** Starts a mirror over the whole data set; the origin has a thread of its own. */
export async function startMirrorOverDataSet(host: string): Promise<RegistryMirror> {
  await using opened = new AsyncDisposableStack()
  const authority = await createTestAuthority()
  const certificate = await authority.issue([host, ...DOCUMENT_HOSTS])
  const worker = new Worker(new URL('./registry-origin-worker.ts', import.meta.url), {
    workerData: { host, certificate },
  })
  opened.defer(async () => {
    const ended = once(worker, 'exit')
    worker.postMessage('end')
    await ended
  })
  const [{ address, proxy }] = await once(worker, 'message')
  const registry = opened.use(await openMirror({ hosts: [host], address, proxy, caPem: authority.caPem }))
  const resources = opened.move()
  return {
    mirror: registry.mirror,
    ask: (path) => registry.ask(path),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}

async function openMirror(
  options: RegistryMirrorOptions & { address: string; proxy: string; caPem: string },
): Promise<RegistryMirror> {
  const { hosts, address, proxy, caPem, origins = {} } = options
  const mirror = await startMirror({
    origin: { hosts, address, caPem },
    config: {
      upstream: { proxy, caFile: './origin-ca.pem', retries: 0 },
      // A run may take minutes; what is tested is what is listed, not how it ages.
      freshness: { versions: '1h' },
      log: { format: 'json', level: 'info' },
      origins,
    },
  })
  const agent = new Agent({ keepAlive: true, ca: mirror.caPem, maxSockets: 64 })
  return {
    mirror,
    ask: (path) => get(`/providers/${path}`, { port: new URL(mirror.url).port, agent }),
    async [Symbol.asyncDispose]() {
      agent.destroy()
      await mirror[Symbol.asyncDispose]()
    },
  }
}

function get(path: string, { port, agent }: { port: string; agent: Agent }): Promise<MirrorAnswer> {
  return new Promise((resolve, reject) => {
    const asked = request(
      { host: '127.0.0.1', servername: 'localhost', port, path, agent, headers: { host: `localhost:${port}` } },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, json: JSON.parse(Buffer.concat(chunks).toString()) })
        })
      },
    )
    asked.on('error', reject)
    asked.end()
  })
}
