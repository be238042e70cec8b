import { z } from 'zod'
import { entry, listenHost, type Path, token, wholeNumber } from './value-kinds.ts'

/** Port of the admin API where none is given. */
const DEFAULT_PORT = 8444

/** Where the admin API is and what opens it, or `off`. */
export function admin(path: Path) {
  const on = z.strictObject({
    listen: entry(listen(path))
      .prefault({})
      .describe('Where the admin API is: a host and a port, or a Unix socket. With the certificate of `listen.tls`.'),
    token: token().exactOptional().meta({
      description:
        'The bearer token that every request needs. Default: `TERRAMIRROR_ADMIN_TOKEN` of the environment, else one that is made at the first start in `stateDir/admin-token`.',
      example: `\${file:./admin-token}`,
    }),
  })
  return entry(z.union([z.literal('off'), on], { error: 'expected off or { listen: …, token: TOKEN }' }))
    .prefault({})
    .describe("The operator's API, on a listener of its own. `admin: off` does without.")
}

function listen(path: Path) {
  const tcp = z.strictObject({
    host: listenHost()
      .prefault('127.0.0.1')
      .describe('Address or name to listen on. With `listen.tls: off` it must be one of this machine alone.'),
    port: wholeNumber(0, 65_535).exactOptional().meta({
      description: 'Port to listen on; `0` takes any free one. Default: `8444`, and `0` where `listen.port` is `0`.',
      example: 9444,
    }),
  })
  const unix = z.strictObject({
    socket: path.meta({
      description:
        'A Unix socket for this user alone (0600), instead of host and port. Its folder is made if it is missing, and must be writable for this user alone.',
      example: '/run/terramirror/admin.sock',
    }),
  })
  return z.union([tcp, unix], { error: 'expected { host: HOST, port: PORT } or { socket: PATH }' })
}

type Settings = z.output<ReturnType<typeof admin>>

/** Where the admin API listens: a host and a port, or a Unix socket. */
export type AdminAddress = { readonly host: string; readonly port: number } | { readonly socket: string }

/** The admin API's part of the configuration. */
export type AdminConfig = 'off' | { readonly listen: AdminAddress; readonly token?: string }

/** What the admin listener has to get along with. */
interface PublicListener {
  readonly host: string
  readonly port: number
  readonly tls: unknown
}

/** Fills in what depends on the public listener. Reports what does not go together with it. */
export function completeAdmin(
  settings: Settings,
  beside: PublicListener,
  report: (path: readonly string[], message: string) => void,
): AdminConfig {
  if (settings === 'off') return settings
  const { listen, ...rest } = settings
  if ('socket' in listen) return { listen, ...rest }
  const { host, port = beside.port === 0 ? 0 : DEFAULT_PORT } = listen
  if (beside.tls === 'off' && !isLoopback(host)) {
    const message =
      'expected 127.0.0.1, ::1 or localhost, because listen.tls is off and the token would travel in the clear'
    report(['admin', 'listen', 'host'], message)
  }
  if (port !== 0 && port === beside.port && host === beside.host) {
    report(['admin', 'listen', 'port'], 'the same as listen.port; the admin API needs a port of its own')
  }
  return { listen: { host, port }, ...rest }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host)
}
