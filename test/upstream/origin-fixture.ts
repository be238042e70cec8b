import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { MirrorError } from '../../src/errors.ts'
import { silentLog } from '../../src/log.ts'
import type { Hostname } from '../../src/protocol/hostname.ts'
import type { OriginClient } from '../../src/upstream/http-client.ts'
import { createOriginClient, type OriginClientOptions } from '../../src/upstream/origin-client.ts'
import type { ArchiveStream } from '../../src/upstream/provider-upstream.ts'
import { createTestAuthority, type TestAuthority } from '../tls-fixture.ts'

export type Handler = (request: IncomingMessage, response: ServerResponse) => void

/** A server on loopback that remembers what it was asked. */
export interface TestServer extends AsyncDisposable {
  readonly port: number
  readonly requests: IncomingMessage[]
  readonly sockets: Set<Socket>
  handler: Handler
}

export const names = ['registry.test.example', 'cdn.test.example', 'other.test.example', 'localhost', '127.0.0.1']
export const origin = 'registry.test.example'

let authority: Promise<TestAuthority> | undefined
/** One authority for all tests of a file. */
export function testAuthority(): Promise<TestAuthority> {
  authority ??= createTestAuthority()
  return authority
}

export async function startServer(
  handler: Handler,
  options: { http?: boolean; certificateNames?: string[]; authority?: TestAuthority } = {},
): Promise<TestServer> {
  const issuer = options.authority ?? (await testAuthority())
  const listener: Handler = (request, response) => {
    running.requests.push(request)
    running.handler(request, response)
  }
  const server = options.http
    ? createHttpServer(listener)
    : createHttpsServer(await issuer.issue(options.certificateNames ?? names), listener)
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined)
  })
  server.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const running: TestServer = {
    port: (server.address() as AddressInfo).port,
    requests: [],
    sockets,
    handler,
    async [Symbol.asyncDispose]() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
  return running
}

export interface Observed {
  answered: { host: string; status: number | 'error' }[]
  /** Requests whose answers are not completely here. */
  inFlight: number
  received: number
  retried: string[]
}

export type TestClient = OriginClient & AsyncDisposable & { readonly observed: Observed }

/** A client of `registry.test.example`, which stands at `server`; short time limits. */
export async function startClient(
  server: TestServer | undefined,
  overrides: Partial<OriginClientOptions> = {},
): Promise<TestClient> {
  const observed: Observed = { answered: [], inFlight: 0, received: 0, retried: [] }
  const client = createOriginClient({
    hostname: origin as Hostname,
    ...(server && { address: { host: '127.0.0.1', port: server.port } }),
    allowHttp: false,
    allowPrivateAddresses: false,
    ca: [(await testAuthority()).caPem],
    hosts: new Map(),
    userAgent: 'Terramirror/test',
    terraformVersion: '1.11.4',
    instanceId: 'instance-1',
    connectTimeoutMs: 2_000,
    idleTimeoutMs: 2_000,
    minBytesPerSecond: 0,
    retries: 2,
    concurrency: 8,
    random: () => 0,
    observer: {
      sending: (_host, change) => {
        observed.inFlight += change
      },
      answered: (host, status) => observed.answered.push({ host, status }),
      received: (_host, bytes) => {
        observed.received += bytes
      },
      retried: (_host, reason) => observed.retried.push(reason),
    },
    log: silentLog(),
    ...overrides,
  })
  return {
    observed,
    fetchDocument: (request) => client.fetchDocument(request),
    openArchive: (request) => client.openArchive(request),
    close: () => client.close(),
    [Symbol.asyncDispose]: () => client.close(),
  }
}

export function documentRequest(url: string, overrides: { trusted?: boolean; maxBytes?: number; ms?: number } = {}) {
  const { trusted = false, maxBytes = 1_000_000, ms = 20_000 } = overrides
  return { url, signal: AbortSignal.timeout(ms), hops: [], maxBytes, trusted }
}

export function archiveRequest(url: string, overrides: { maxBytes?: number; ms?: number } = {}) {
  const { maxBytes = 1_000_000_000, ms = 40_000 } = overrides
  return { url, signal: AbortSignal.timeout(ms), hops: [], maxBytes }
}

/** The error of ours that a promise fails with. */
export async function failureOf(promise: Promise<unknown>): Promise<MirrorError> {
  try {
    await promise
  } catch (error) {
    if (error instanceof MirrorError) return error
    throw error
  }
  throw new Error('it did not fail')
}

/** Reads an archive to its end as a careful consumer does: `restart` voids what came before. */
export async function readArchive(stream: ArchiveStream): Promise<{ bytes: Buffer; restarts: number }> {
  let chunks: Buffer[] = []
  let restarts = 0
  for await (const piece of stream) {
    if (piece.kind === 'bytes') {
      chunks.push(piece.bytes)
    } else {
      chunks = []
      restarts += 1
    }
  }
  return { bytes: Buffer.concat(chunks), restarts }
}

/** Waits until a condition holds. */
export async function until(condition: () => boolean, ms = 10_000): Promise<void> {
  const end = Date.now() + ms
  while (!condition()) {
    if (Date.now() > end) throw new Error('the condition did not come true')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
