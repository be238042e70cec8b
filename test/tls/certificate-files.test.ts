import 'reflect-metadata'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import * as x509 from '@peculiar/x509'
import { pino } from 'pino'
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { silentLog } from '../../src/log.ts'
import { openTlsIdentity, type TlsIdentity, type TlsSettings } from '../../src/tls/tls-identity.ts'
import { createTestAuthority, type TestAuthority } from '../tls-fixture.ts'

type Pair = { cert: string; key: string }
const POLL_MS = 10

let folder: string
let authority: TestAuthority
let first: Pair
let second: Pair
beforeAll(async () => {
  authority = await createTestAuthority()
  first = await authority.issue(['localhost', 'first.test'])
  second = await authority.issue(['localhost', 'second.test'])
})
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'terramirror-cert-'))
})
afterEach(() => rm(folder, { recursive: true }))

const path = (name: string) => join(folder, name)

async function writePair({ cert, key }: Pair): Promise<void> {
  await writeFile(path('tls.crt'), cert)
  await writeFile(path('tls.key'), key)
}

async function open(settings: Partial<Exclude<TlsSettings, string>> = {}, log = silentLog()): Promise<TlsIdentity> {
  const tls = { certFile: path('tls.crt'), keyFile: path('tls.key'), ...settings }
  const identity = await openTlsIdentity({ tls, stateDir: folder, listenHost: '::', log, pollIntervalMs: POLL_MS })
  if (identity === undefined) throw new Error('no identity')
  return identity
}

function logLines() {
  const lines: string[] = []
  return { log: pino({ level: 'warn' }, { write: (line: string) => lines.push(JSON.parse(line).msg) }), lines }
}

/** A server that follows the identity as the composition root does. */
async function serve(identity: TlsIdentity) {
  const server = https.createServer(identity.secureContext(), (_, response) => response.end('ok'))
  identity.onChange(() => server.setSecureContext(identity.secureContext()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const stop = () => {
    server.closeAllConnections()
    server.close()
  }
  return { port, [Symbol.dispose]: stop }
}

async function shownName(port: number, options: ConnectionOptions = {}): Promise<string> {
  const socket = await handshake(port, options)
  const names = socket.getPeerCertificate().subjectaltname ?? ''
  socket.destroy()
  return names
}

async function handshake(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port, servername: 'localhost', ca: authority.caPem, ...options })
  await once(socket, 'secureConnect')
  return socket
}

async function ask(socket: TLSSocket): Promise<string> {
  const refused = once(socket, 'close').then(() => {
    throw new Error('closed without an answer')
  })
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const [chunk] = await Promise.race([once(socket, 'data'), refused])
  return String(chunk).split('\r\n')[0] ?? ''
}

/** A client certificate that is its own authority. */
async function createClient(): Promise<Pair> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  x509.cryptoProvider.set(crypto)
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=client ${randomUUID()}`,
    keys,
    signingAlgorithm: algorithm,
    notBefore: new Date(Date.now() - 86_400_000),
    notAfter: new Date(Date.now() + 86_400_000),
  })
  const key = x509.PemConverter.encode(await crypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY')
  return { cert: certificate.toString('pem'), key }
}

test('a changed pair is used for new connections, and open ones live on', async () => {
  await writePair(first)
  await using identity = await open()
  using server = await serve(identity)
  const kept = await handshake(server.port)
  expect(await ask(kept)).toBe('HTTP/1.1 200 OK')
  expect(await shownName(server.port)).toContain('first.test')
  await writePair(second)
  await vi.waitFor(async () => expect(await shownName(server.port)).toContain('second.test'))
  expect(await ask(kept)).toBe('HTTP/1.1 200 OK')
  kept.destroy()
})

test('the swapped symbolic link of a Kubernetes secret is seen', async () => {
  for (const [name, pair] of [
    ['..1', first],
    ['..2', second],
  ] as const) {
    await mkdir(path(name))
    await writeFile(path(`${name}/tls.crt`), pair.cert)
    await writeFile(path(`${name}/tls.key`), pair.key)
  }
  await symlink('..1', path('..data'))
  await symlink('..data/tls.crt', path('tls.crt'))
  await symlink('..data/tls.key', path('tls.key'))
  await using identity = await open()
  using server = await serve(identity)
  expect(await shownName(server.port)).toContain('first.test')
  await symlink('..2', path('..data_tmp'))
  await rename(path('..data_tmp'), path('..data'))
  await vi.waitFor(async () => expect(await shownName(server.port)).toContain('second.test'))
})

test('a pair that does not fit keeps the old one and is told once, until it is whole', async () => {
  await writePair(first)
  const { log, lines } = logLines()
  await using identity = await open({}, log)
  const changed = vi.fn()
  identity.onChange(changed)
  await writeFile(path('tls.crt'), second.cert)
  await vi.waitFor(() => expect(lines).toHaveLength(1))
  await new Promise((resolve) => setTimeout(resolve, POLL_MS * 10))
  expect(lines).toEqual([expect.stringContaining('tls.key does not belong to the first certificate of')])
  expect(identity.secureContext().cert).toBe(first.cert)
  expect(changed).not.toHaveBeenCalled()
  await rm(path('tls.key'))
  await vi.waitFor(() => expect(lines).toHaveLength(2))
  expect(lines[1]).toContain('tls.key cannot be read (ENOENT)')
  await writeFile(path('tls.key'), second.key)
  await vi.waitFor(() => expect(changed).toHaveBeenCalledTimes(1))
  expect(identity.secureContext()).toMatchObject({ ...second, minVersion: 'TLSv1.2' })
})

test('with clientCaFile only clients with a certificate of that authority get in, also after a change', async () => {
  const client = await createClient()
  await writePair(first)
  await writeFile(path('clients.pem'), client.cert)
  await using identity = await open({ clientCaFile: path('clients.pem') })
  expect(identity.secureContext()).toMatchObject({ requestCert: true, rejectUnauthorized: true })
  using server = await serve(identity)
  const check = async () => {
    const good = await handshake(server.port, client)
    expect(await ask(good)).toBe('HTTP/1.1 200 OK')
    good.destroy()
    for (const options of [{}, await createClient()]) await expect(answer(server.port, options)).rejects.toThrow()
  }
  await check()
  await writePair(second)
  await vi.waitFor(async () => expect(await shownName(server.port, client)).toContain('second.test'))
  await check()

  const other = await createClient()
  await writeFile(path('clients.pem'), other.cert)
  await vi.waitFor(async () => expect(await answer(server.port, other)).toBe('HTTP/1.1 200 OK'))
  await expect(answer(server.port, client)).rejects.toThrow()
})

/** TLS 1.3 refuses a client only after the handshake, as the client sees it. */
async function answer(port: number, options: ConnectionOptions): Promise<string> {
  const socket = await handshake(port, options)
  return ask(socket).finally(() => socket.destroy())
}

test('TLS below 1.2 is refused', async () => {
  await writePair(first)
  await using identity = await open()
  using server = await serve(identity)
  await expect(handshake(server.port, { minVersion: 'TLSv1', maxVersion: 'TLSv1.1' })).rejects.toThrow()
})

test.each([
  ['absent', async () => {}, 'tls.crt cannot be read (ENOENT)'],
  ['no certificate', () => writePair({ cert: 'x', key: first.key }), 'tls.crt is not a certificate in PEM'],
  ['no key', () => writePair({ cert: first.cert, key: 'x' }), 'tls.key is not a private key in PEM'],
  ['half a key', () => writePair({ cert: first.cert, key: first.key.slice(0, 90) }), 'tls.key is not a private key'],
  ['a foreign key', () => writePair({ cert: first.cert, key: second.key }), 'does not belong to the first certificate'],
])('files that cannot be used stop the start: %s', async (_, prepare, message) => {
  await prepare()
  await expect(open()).rejects.toMatchObject({ code: 'CONFIGURATION', message: expect.stringContaining(message) })
})

test('a list of client authorities without any stops the start, for it would let nobody in', async () => {
  await writePair(first)
  await writeFile(path('clients.pem'), 'nothing')
  await expect(open({ clientCaFile: path('clients.pem') })).rejects.toThrow('is not a list of certificates in PEM')
})
