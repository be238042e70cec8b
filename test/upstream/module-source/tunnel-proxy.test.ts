import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MirrorError } from '../../../src/errors.ts'
import type { Dial } from '../../../src/upstream/module-source/git/dial.ts'
import { TunnelProxy, type TunnelProxyOptions } from '../../../src/upstream/module-source/git/tunnel-proxy.ts'

/** Answers each piece: `reset` by a broken connection, `end` by an end, everything else by itself. */
const server = createServer((socket) => {
  socket.on('error', () => undefined)
  socket.on('data', (bytes: Buffer) => {
    if (bytes.toString() === 'reset') socket.resetAndDestroy()
    else if (bytes.toString() === 'end') socket.end('last words')
    else socket.write(bytes)
  })
})
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
})
afterAll(() => void server.close())

const dial: Dial = async () => {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  await once(socket, 'connect')
  return socket
}

function start(options: Partial<TunnelProxyOptions> = {}): Promise<TunnelProxy> {
  return TunnelProxy.start({
    urlRules: () => undefined,
    dial,
    maxBytes: 1_000,
    idleTimeoutMs: 60_000,
    received: () => undefined,
    ...options,
  })
}

/** Opens a tunnel; gives the socket and the first answer. */
async function tunnel(proxy: TunnelProxy, login = proxy.credentials): Promise<{ socket: Socket; status: string }> {
  const socket = connect(proxy.port, '127.0.0.1')
  socket.on('error', () => undefined)
  const authorization = `Proxy-Authorization: Basic ${btoa(login)}`
  socket.write(`CONNECT git.example.test:443 HTTP/1.1\r\nHost: git.example.test\r\n${authorization}\r\n\r\n`)
  const [bytes] = await once(socket, 'data')
  return { socket, status: String(bytes).slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length) }
}

describe('TunnelProxy', () => {
  it('joins both sides, tells what came in, and hands the last words on', async () => {
    const received: [string, number][] = []
    await using proxy = await start({ received: (host, bytes) => received.push([host, bytes]) })
    const { socket, status } = await tunnel(proxy)
    expect(status).toBe('200')
    socket.write('hello')
    expect(String((await once(socket, 'data'))[0])).toBe('hello')
    socket.write('end')
    expect(String((await once(socket, 'data'))[0])).toBe('last words')
    await once(socket, 'end')
    expect(received).toEqual([
      ['git.example.test', 5],
      ['git.example.test', 10],
    ])
    socket.destroy()
  })

  it('ends the one side when the other broke, and the reverse', async () => {
    const dialled: Socket[] = []
    await using proxy = await start({
      dial: async (url) => {
        const socket = await dial(url)
        dialled.push(socket)
        return socket
      },
    })
    const broken = await tunnel(proxy)
    broken.socket.write('reset')
    await once(broken.socket, 'close', { signal: AbortSignal.timeout(5_000) })
    const left = await tunnel(proxy)
    left.socket.resetAndDestroy()
    await expect.poll(() => dialled.at(-1)?.destroyed).toBe(true)
  })

  it('lets nobody in without its password', async () => {
    await using proxy = await start({ dial: () => Promise.reject(new Error('must not be dialled')) })
    for (const login of ['terramirror:', 'terramirror:wrong', ':'])
      expect((await tunnel(proxy, login)).status).toBe('407')
    expect(proxy.failure).toBeUndefined()
  })

  it('remembers why it refused, and cuts what sends too much, or nothing', async () => {
    const place = { host: 'git.example.test', upstreamUrl: 'https://git.example.test/', reason: 'no' }
    await using strict = await start({
      urlRules: () => {
        throw new MirrorError('UPSTREAM_REFUSED', 'no', place)
      },
    })
    expect((await tunnel(strict)).status).toBe('403')
    expect(strict.failure).toMatchObject({ code: 'UPSTREAM_REFUSED' })

    await using proxy = await start({ maxBytes: 10 })
    const { socket } = await tunnel(proxy)
    socket.write('more than ten bytes')
    await once(socket, 'close')
    expect(proxy.failure).toMatchObject({ code: 'UPSTREAM_TOO_LARGE', fields: { maxBytes: 10 } })

    await using idle = await start({ idleTimeoutMs: 50 })
    await once((await tunnel(idle)).socket, 'close')
    expect(idle.failure).toMatchObject({ code: 'UPSTREAM_TIMEOUT' })
  })
})
