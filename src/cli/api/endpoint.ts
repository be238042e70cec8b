import { isIP } from 'node:net'
import type { Config } from '../../config/schema.ts'
import { CommandError, wrongUse } from '../command-error.ts'

/** Where an admin API is. */
export interface Endpoint {
  /** For people: `https://localhost:8444/`, `unix:/run/terramirror/admin.sock`. */
  readonly name: string
  readonly isSecure: boolean
  /** A port of a machine, or a Unix socket. */
  readonly target: { readonly host: string; readonly port: number } | { readonly socketPath: string }
  /** The name that the certificate must have. */
  readonly serverName: string
  /** What stands before `admin/api/v1/`: `/`, or the path of a front. */
  readonly basePath: string
  /** It is the mirror of the configuration, or another process of this machine. */
  readonly isOurs: boolean
  /** It was found by the configuration: its certificate is one of the files that the configuration names. */
  readonly isConfigured: boolean
}

/**
 * The endpoint that `--server` names: `https://HOST:PORT/`, `http://` to this machine alone, or `unix:PATH`.
 * @throws CommandError wrong use
 */
export function parseEndpoint(text: string): Endpoint {
  if (text.startsWith('unix:')) return socketEndpoint(text.slice('unix:'.length).replace(/^\/\/(?=\/)/, ''), false)
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '') {
    throw wrongUse('--server: expected https://HOST:PORT/ or unix:PATH')
  }
  if (url.username !== '' || url.password !== '') {
    throw wrongUse('--server: it has a user or password; the token goes into a file, --token-file FILE')
  }
  const isSecure = url.protocol === 'https:'
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (!isSecure && !isLoopback(host)) {
    throw wrongUse('--server: the token would travel unprotected over plain http; give an https URL')
  }
  const basePath = url.pathname.replace(/\/?(admin\/api\/v1\/?)?$/, '/')
  const port = url.port === '' ? (isSecure ? 443 : 80) : Number(url.port)
  const name = new URL(basePath, url).href
  const isOurs = isLoopback(host)
  return { name, isSecure, target: { host, port }, serverName: host, basePath, isOurs, isConfigured: false }
}

/**
 * The endpoint of the mirror that serves this configuration on this machine.
 * @throws CommandError if the configuration does not tell
 */
export function configuredEndpoint({ admin, listen }: Pick<Config, 'admin' | 'listen'>): Endpoint {
  if (admin === 'off')
    throw new CommandError('this mirror has no admin API (admin: off); --server URL names another one')
  if ('socket' in admin.listen) return socketEndpoint(admin.listen.socket, true)
  const { host: configured, port } = admin.listen
  if (port === 0) {
    throw new CommandError('the configuration lets the admin API take any free port (0); give --server URL')
  }
  const host = configured === '0.0.0.0' ? '127.0.0.1' : configured === '::' ? '::1' : configured
  const isSecure = listen.tls !== 'off'
  const shown = isLoopback(host) ? 'localhost' : isIP(host) === 6 ? `[${host}]` : host
  return {
    name: `${isSecure ? 'https' : 'http'}://${shown}:${port}/`,
    isSecure,
    target: { host, port },
    // Every certificate that we make ourselves has it.
    serverName: 'localhost',
    basePath: '/',
    isOurs: true,
    isConfigured: true,
  }
}

function socketEndpoint(path: string, isConfigured: boolean): Endpoint {
  if (path === '') throw wrongUse('--server: expected the path of a socket behind unix:')
  const socket = { isSecure: false, target: { socketPath: path }, serverName: 'localhost', basePath: '/' }
  return { name: `unix:${path}`, ...socket, isOurs: true, isConfigured }
}

function isLoopback(host: string): boolean {
  return (
    host === 'localhost' || host.endsWith('.localhost') || host === '::1' || (isIP(host) === 4 && /^127\./.test(host))
  )
}
