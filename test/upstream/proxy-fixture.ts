import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { testAuthority } from './origin-fixture.ts'

/** A forward proxy on loopback that sends everything to one server, whatever the name, and remembers what it was asked. */
export interface TestProxy extends AsyncDisposable {
  readonly port: number
  readonly asked: string[]
  readonly authorizations: (string | undefined)[]
  /** Status for CONNECT; 200 tunnels, 0 never answers. */
  status: number
}

export async function startProxy(targetPort: number, options: { tls?: boolean } = {}): Promise<TestProxy> {
  const sockets = new Set<Socket>()
  const onRequest = (request: IncomingMessage, response: ServerResponse) => {
    note(request)
    const { pathname, search } = new URL(request.url ?? '')
    const { 'proxy-authorization': _secret, ...headers } = request.headers
    const forwarded = httpRequest({ host: '127.0.0.1', port: targetPort, path: pathname + search, headers })
    forwarded.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(response)
    })
    forwarded.end()
  }
  const server = options.tls
    ? createHttpsServer(await (await testAuthority()).issue(['localhost']), onRequest)
    : createServer(onRequest)
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
  })
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    note(request)
    socket.on('error', () => undefined)
    if (proxy.status === 0) return
    if (proxy.status !== 200) {
      socket.end(`HTTP/1.1 ${proxy.status} No\r\n\r\n`)
      return
    }
    const target = connect(targetPort, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      target.pipe(socket).pipe(target)
    })
    sockets.add(target)
    target.on('error', () => socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxy: TestProxy = {
    port: (server.address() as AddressInfo).port,
    asked: [],
    authorizations: [],
    status: 200,
    async [Symbol.asyncDispose]() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
  function note(request: IncomingMessage) {
    proxy.asked.push(`${request.method} ${request.url}`)
    proxy.authorizations.push(request.headers['proxy-authorization'])
  }
  return proxy
}
