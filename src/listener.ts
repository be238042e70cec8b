import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http'
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https'
import type { ListenOptions, Socket } from 'node:net'
import { MirrorError } from './errors.ts'
import type { TlsIdentity } from './tls/tls-identity.ts'
import { claimSocket } from './unix-socket.ts'

/** A client that takes nothing for so long is gone. */
const SOCKET_SILENCE_MS = 300_000
/** A connection on which no request comes is closed after this time. */
export const KEEP_ALIVE_MS = 65_000

/** Where to listen: a host and a port (0: any free one), or the absolute path of a Unix socket. */
export type ListenAddress = { readonly host: string; readonly port: number } | { readonly socket: string }

/** Where to listen and as whom. */
export interface ListenerOptions {
  readonly address: ListenAddress
  /** The key of the configuration that names the address, for messages. */
  readonly key: 'listen' | 'admin.listen'
  /** Undefined: plain HTTP, for a TLS front. */
  readonly identity: Pick<TlsIdentity, 'secureContext' | 'onChange'> | undefined
  readonly handle: RequestListener
  /** Takes every connection first; `handOver` gives it to the HTTP server. Default: that has it from the start. */
  readonly accept?: (socket: Socket, handOver: () => void) => void
  /** A client broke off the TLS handshake, most often because it does not trust us, or spoke plain http. */
  readonly onHandshakeFailure: (error: Error) => void
}

/** An open port. */
export interface Listener {
  /** The port that was bound, where 0 was asked for; 0 for a socket. */
  readonly port: number
  /** Accepts nothing new, gives running answers up to `graceMs`, then tears what is left. */
  close(graceMs: number): Promise<void>
}

/**
 * Opens the port or the socket. The certificate follows its identity without dropping connections.
 * @throws MirrorError `CONFIGURATION`
 */
export async function openListener(options: ListenerOptions): Promise<Listener> {
  const { address, key, identity, handle, accept, onHandshakeFailure } = options
  const http = { keepAliveTimeout: KEEP_ALIVE_MS, optimizeEmptyRequests: true }
  let server: Server | HttpsServer
  if (identity === undefined) server = createHttpServer(http, handle)
  else {
    const secure = createHttpsServer({ ...http, ...identity.secureContext() }, handle)
    identity.onChange(() => secure.setSecureContext(identity.secureContext()))
    secure.on('tlsClientError', onHandshakeFailure)
    server = secure
  }
  server.setTimeout(SOCKET_SILENCE_MS)
  if (accept !== undefined) standBefore(server, identity === undefined ? 'connection' : 'secureConnection', accept)
  const connections = new Connections(server)
  const release = await bind(server, address, key)
  const bound = server.address()
  return {
    port: typeof bound === 'object' && bound !== null ? bound.port : 0,
    async close(graceMs) {
      await release()
      await closeServer(server, connections, graceMs)
    },
  }
}

/** Resolves to what must be done before the server is closed. */
async function bind(server: Server, address: ListenAddress, key: ListenerOptions['key']): Promise<() => Promise<void>> {
  if ('socket' in address) return claimSocket(address.socket, (path) => listen(server, { path }))
  const { host, port } = address
  await listen(server, { host, port }).catch((error: NodeJS.ErrnoException) => {
    // Without a code it is no answer of the system, but a bug of ours.
    throw error.code === undefined ? error : listenError(error, { host, port, key })
  })
  return async () => undefined
}

function listen(server: Server, options: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(options, resolve)
  })
}

/** How this machine reaches a listener; ends with `/`. `unix:PATH` for a socket. */
export function urlOf(address: ListenAddress, { port, secure }: { port: number; secure: boolean }): string {
  if ('socket' in address) return `unix:${address.socket}`
  const { host } = address
  const everywhere = host === '0.0.0.0' || host === '::' || host === '127.0.0.1' || host === '::1'
  const name = everywhere ? 'localhost' : host.includes(':') ? `[${host}]` : host
  return `${secure ? 'https' : 'http'}://${name}:${port}/`
}

/** Node's HTTP server takes connections as a listener of this event; another takes its place and calls it. */
function standBefore(server: Server, event: string, accept: NonNullable<ListenerOptions['accept']>): void {
  const takers = server.listeners(event)
  server.removeAllListeners(event)
  server.on(event, (socket: Socket) => {
    accept(socket, () => {
      for (const take of takers) take.call(server, socket)
    })
  })
}

async function closeServer(server: Server, connections: Connections, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  connections.closeQuiet()
  // Connections that were busy go idle one by one; Node would keep them for the whole keep-alive time.
  const sweep = setInterval(() => server.closeIdleConnections(), 100)
  const limit = setTimeout(() => connections.closeAll(), graceMs)
  await closed
  clearInterval(sweep)
  clearTimeout(limit)
}

/**
 * The connections of a server. Node counts one that never sent a request as busy, and does not count one that never
 * ended its TLS handshake at all: either would hold up a stop for minutes.
 */
class Connections {
  /** By both ends, which the plain socket and the TLS socket above it have in common; a Unix socket has none. */
  readonly #open = new Map<string | Socket, { readonly socket: Socket; answers: number }>()

  constructor(server: Server) {
    server.on('connection', (socket: Socket) => {
      const ends = endsOf(socket)
      const connection = { socket, answers: 0 }
      this.#open.set(ends, connection)
      // Who comes back at once may have the same ends, before the end of the connection before is told.
      socket.once('close', () => this.#open.get(ends) === connection && this.#open.delete(ends))
    })
    server.on('request', ({ socket }, outgoing) => {
      const connection = this.#open.get(endsOf(socket))
      if (connection === undefined) return
      connection.answers++
      outgoing.once('close', () => {
        connection.answers--
      })
    })
  }

  /** Closes all on which no answer is on its way. */
  closeQuiet(): void {
    for (const { socket, answers } of this.#open.values()) if (answers === 0) socket.destroy()
  }

  /** Also those that no HTTP server has been given yet. */
  closeAll(): void {
    for (const { socket } of this.#open.values()) socket.destroy()
  }
}

/** One client port may lead to two of our addresses at one time. */
function endsOf(socket: Socket): string | Socket {
  const { remoteAddress, remotePort, localAddress, localPort } = socket
  return remoteAddress === undefined ? socket : `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}

function listenError(
  error: NodeJS.ErrnoException,
  { host, port, key }: { host: string; port: number; key: string },
): MirrorError {
  const without = key === 'admin.listen' ? ' (admin: off does without it)' : ''
  const reasons: Record<string, string> = {
    EADDRINUSE: `another process listens there; stop it or set ${key}.port${without}`,
    EACCES: 'this user may not listen there; use a port from 1024 up',
    EADDRNOTAVAIL: `this machine has no such address; set ${key}.host`,
  }
  const reason = reasons[error.code ?? ''] ?? error.message
  return new MirrorError('CONFIGURATION', `cannot listen on ${host} port ${port}: ${reason}`, { key }, error)
}
