import { lookup as lookupDns } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { checkServerIdentity, type SecureContext } from 'node:tls'
import { buildConnector } from 'undici'
import { findRefusal } from './address-guard.ts'

/** How connections to one server are made. */
export interface ConnectorOptions {
  /** The server's name or literal (IPv6 without brackets): what its certificate must be for. */
  readonly hostname: string
  readonly timeoutMs: number
  readonly allowPrivateAddresses: boolean
  /** Trusted roots; undefined for Node's own. */
  readonly secureContext: SecureContext | undefined
  /** Connect here, whatever DNS says. A literal is permitted as it is; a name may resolve to private addresses. */
  readonly address: { readonly host: string; readonly port: number } | undefined
}

// Node's 250 ms give up a far host's first address while it is still answering.
const addressAttemptMs = 500

/**
 * Makes the connector of one server. Every address is checked before a socket opens: literals first, then what DNS
 * says. The time limit covers DNS, connect and TLS handshake. Fails with `AddressRefused` or with Node's own error.
 *
 * undici asks the connector only for new sockets, so a pool keeps one policy for its whole life.
 */
export function createConnector(options: ConnectorOptions): buildConnector.connector {
  const { address, hostname } = options
  const allowPrivate = options.allowPrivateAddresses || address !== undefined
  const connect = buildConnector({
    timeout: options.timeoutMs,
    allowH2: false,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: addressAttemptMs,
    lookup: createGuardedLookup(allowPrivate),
    ...(options.secureContext && { secureContext: options.secureContext }),
    ...(address && { checkServerIdentity: (_name, certificate) => checkServerIdentity(hostname, certificate) }),
  })
  if (address !== undefined) {
    return (target, callback) => connect({ ...target, hostname: address.host, port: String(address.port) }, callback)
  }
  return (target, callback) => {
    const refused = isIP(hostname) === 0 ? undefined : findRefusal(hostname, hostname, allowPrivate)
    if (refused !== undefined) return callback(refused, null)
    // Returning the socket lets undici cancel the attempt.
    return connect(target, callback)
  }
}

function createGuardedLookup(allowPrivate: boolean): LookupFunction {
  return (hostname, lookupOptions, callback) => {
    lookupDns(hostname, { ...lookupOptions, all: true }, (error, answers) => {
      if (error !== null) return callback(error, '')
      for (const { address } of answers) {
        const refused = findRefusal(hostname, address, allowPrivate)
        if (refused !== undefined) return callback(refused, '')
      }
      if (lookupOptions.all === true) return callback(null, answers)
      return callback(null, answers[0]?.address ?? '', answers[0]?.family)
    })
  }
}
