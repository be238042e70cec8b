import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'

/** What a host answers. The media type is `application/json` unless a header says otherwise. */
export interface Reply {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
}

/**
 * The answer to a URL such as `https://registry.opentofu.org/v1/providers/…`, as the client spelled it; undefined is
 * a 404.
 */
export type Site = (url: string) => Reply | undefined | Promise<Reply | undefined>

/** A running origin. */
export interface DataOrigin extends AsyncDisposable {
  /** `127.0.0.1:PORT`: every host of the site by HTTPS, told apart by the Host header. */
  readonly address: string
  /** URL of a proxy that leads every CONNECT to the same hosts: for those that only documents name. */
  readonly proxy: string
  /** How often each URL was asked for. */
  readonly asked: ReadonlyMap<string, number>
}

/**
 * Starts a real HTTPS server on loopback that serves documents of many hosts, and nothing but documents. It is lean
 * where `test/origin` is faithful: tens of thousands of answers go through it.
 */
export async function startDataOrigin(
  site: Site,
  certificate: { readonly cert: string; readonly key: string },
): Promise<DataOrigin> {
  const asked = new Map<string, number>()
  const sockets = new Set<Duplex>()
  const track = (socket: Duplex): void => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.once('close', () => sockets.delete(socket))
  }
  const server = createServer(certificate, (request, response) => void answer(request, response, { site, asked }))
  server.keepAliveTimeout = 60_000
  server.on('secureConnection', track)
  const door = createHttpServer()
  door.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    track(socket)
    socket.write('HTTP/1.1 200 OK\r\n\r\n')
    server.emit('connection', socket)
  })
  const port = await listen(server)
  const proxyPort = await listen(door)
  return {
    address: `127.0.0.1:${port}`,
    proxy: `http://127.0.0.1:${proxyPort}`,
    asked,
    async [Symbol.asyncDispose]() {
      const closed = [server, door].map((each) => once(each.close(), 'close'))
      for (const socket of sockets) socket.destroy()
      await Promise.all(closed)
    },
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { site, asked }: { site: Site; asked: Map<string, number> },
): Promise<void> {
  request.resume()
  const url = `https://${request.headers.host}${request.url}`
  asked.set(url, (asked.get(url) ?? 0) + 1)
  const { status, headers, body } = (await site(url)) ?? { status: 404, body: '{"errors":["Not Found"]}' }
  response.writeHead(status ?? 200, {
    'content-type': 'application/json',
    ...headers,
    ...(status === 204 ? {} : { 'content-length': Buffer.byteLength(body) }),
  })
  response.end(status === 204 ? undefined : body)
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
