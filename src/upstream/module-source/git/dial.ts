import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { authorityOf, bareHostname, parseAuthority } from '../../authority.ts'
import type { ProxySelector, Proxy as UpstreamProxy } from '../../proxy.ts'
import type { TrustedRoots } from '../../trusted-roots.ts'

/** Opens a plain TCP connection to the host and port of a URL. Fails with `AddressRefused` or with Node's own error. */
export type Dial = (url: URL) => Promise<Socket>

/** How an origin's connections are made; as `DispatcherOptions`. */
export interface DialOptions {
  readonly hostname: string
  readonly address: { readonly host: string; readonly port: number } | undefined
  readonly allowPrivateAddresses: boolean
  readonly proxies: ProxySelector
  readonly roots: TrustedRoots
  readonly connectTimeoutMs: number
}

const HEAD_END = '\r\n\r\n'
const MAX_HEAD = 16_384

/** Dials under the guard of an origin, or through its proxy; the origin's own host at its configured address. */
export function createDial(options: DialOptions): Dial {
  return async (url) => {
    const address = authorityOf(url) === parseAuthority(options.hostname) ? options.address : undefined
    const proxy = address === undefined ? options.proxies.find(url) : undefined
    return proxy === undefined ? await dialGuarded(url, address, options) : await dialThrough(proxy, url, options)
  }
}

async function dialGuarded(url: URL, address: DialOptions['address'], options: DialOptions): Promise<Socket> {
  // Loaded at the first use: undici is a third of what a start would have to load.
  const { createConnector } = await import('../../connector.ts')
  const { allowPrivateAddresses, connectTimeoutMs: timeoutMs } = options
  const hostname = bareHostname(url)
  const connect = createConnector({ hostname, timeoutMs, allowPrivateAddresses, secureContext: undefined, address })
  const port = url.port || '443'
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  // Without TLS: that is between the program and its server.
  connect({ hostname, host: url.host, port, protocol: 'http:' }, (error, socket) =>
    error === null ? resolve(socket as Socket) : reject(error),
  )
  return await promise
}

async function dialThrough(proxy: UpstreamProxy, url: URL, { roots, connectTimeoutMs }: DialOptions): Promise<Socket> {
  const secure = proxy.url.protocol === 'https:'
  const [host, port] = [bareHostname(proxy.url), Number(proxy.url.port || (secure ? 443 : 80))]
  const secureContext = roots.find(proxy.authority)
  const socket = secure
    ? connectTls({ host, port, servername: host, ...(secureContext && { secureContext }) })
    : connectTcp({ host, port })
  const authority = authorityOf(url)
  const login = proxy.authorization === undefined ? '' : `Proxy-Authorization: ${proxy.authorization}\r\n`
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${login}\r\n`)
  const timer = setTimeout(() => socket.destroy(timeoutError(connectTimeoutMs)), connectTimeoutMs)
  try {
    const { head, rest } = await readHead(socket)
    const status = /^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1] ?? '000'
    if (status !== '200') throw new Error(`Proxy response (${status}) when CONNECT was sent`)
    socket.unshift(rest)
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/** The head of an answer, and what came behind it. The socket is paused then. */
async function readHead(socket: Socket): Promise<{ head: string; rest: Buffer }> {
  let bytes = Buffer.alloc(0)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const onData = (more: Buffer): void => {
    bytes = Buffer.concat([bytes, more])
    if (bytes.includes(HEAD_END) || bytes.length > MAX_HEAD) resolve()
  }
  socket.on('data', onData)
  socket.once('error', reject)
  socket.once('close', () => reject(new Error('the proxy closed the connection')))
  await promise
  socket.off('data', onData)
  socket.pause()
  const end = bytes.indexOf(HEAD_END)
  if (end < 0) throw new Error('the proxy does not answer as a proxy')
  return { head: bytes.subarray(0, end).toString('latin1'), rest: bytes.subarray(end + HEAD_END.length) }
}

function timeoutError(ms: number): Error {
  return Object.assign(new Error(`no connection within ${ms} ms`), { code: 'ETIMEDOUT' })
}
