import type { TLSSocket } from 'node:tls'
import type { Context } from 'hono'
import type { HttpEnv } from './exchange.ts'

/** A name or address as certificates and clients have it, and a port. Anything else a client may have made up. */
const HOST = /^(?=.{1,255}$)(?:[a-z\d](?:[\w.-]*[a-z\d])?|\[[\da-f:.]+\])(?::\d{1,5})?$/i

/**
 * The address under which clients reach this mirror; ends with `/`. What the operator configured, else what this
 * request was sent to: its own scheme and Host. A Host that is none becomes `localhost`.
 */
export function baseUrlOf(context: Context<HttpEnv>, publicUrl: string | undefined): URL {
  if (publicUrl !== undefined) return new URL(publicUrl)
  const { headers, socket } = context.env.incoming
  const scheme = (socket as TLSSocket).encrypted ? 'https' : 'http'
  const host = headers.host ?? ''
  const asked = HOST.test(host) ? URL.parse(`${scheme}://${host}/`) : null
  return asked ?? new URL(`${scheme}://localhost:${socket.localPort}/`)
}
