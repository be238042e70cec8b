import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ConnectionOptions, checkServerIdentity, getCACertificates, type PeerCertificate } from 'node:tls'
import type { Config } from '../../config/schema.ts'
import { CommandError } from '../command-error.ts'
import type { Endpoint } from './endpoint.ts'

/** Which certificates a command takes for its mirror's. */
export interface Trust {
  /** For `https.request`. */
  readonly options: Pick<ConnectionOptions, 'ca' | 'allowPartialTrustChain' | 'checkServerIdentity'>
  /** For messages: what is trusted. */
  readonly trusted: string
}

/**
 * What is trusted at the endpoint: the authority that the mirror of the configuration made itself, and the file of
 * `--ca-file`. For a server named by its URL without such a file, also the roots of Node.js and of the system: to read
 * them takes longer than all the rest. The mirror of the configuration may also show its very own certificate file,
 * whatever the names in it.
 * @throws CommandError if the file of `--ca-file` cannot be read or holds no certificate
 */
export async function findTrust(
  endpoint: Endpoint,
  { listen: { tls }, stateDir }: Pick<Config, 'listen' | 'stateDir'>,
  caFile: string | undefined,
): Promise<Trust> {
  const given = caFile === undefined ? [] : [await readCaFile(caFile)]
  if (!endpoint.isSecure) return { trusted: '', options: {} }
  const certFile = endpoint.isConfigured && typeof tls === 'object' && 'certFile' in tls ? tls.certFile : undefined
  const ownFile = certFile ?? join(stateDir, 'tls', 'ca.pem')
  const own = await readFile(ownFile, 'utf8').catch(() => undefined)
  const isKnown = caFile !== undefined || (endpoint.isConfigured && own !== undefined)
  const trusted = [
    ...(own === undefined ? [] : [ownFile]),
    ...(caFile === undefined ? [] : [caFile]),
    ...(isKnown ? [] : ['the public roots']),
  ].join(', ')
  const ca = [...given, ...(own === undefined ? [] : [own]), ...(isKnown ? [] : publicRoots())]
  const isPinned = certFile !== undefined && own !== undefined
  return { trusted, options: { ca, ...(isPinned ? pinTo(own) : {}) } }
}

/** The server's own certificate is right whatever its names; any other must have the right name. */
function pinTo(chain: string): Trust['options'] {
  const { raw } = new X509Certificate(chain)
  return {
    allowPartialTrustChain: true,
    checkServerIdentity: (host: string, peer: PeerCertificate) =>
      peer.raw.equals(raw) ? undefined : checkServerIdentity(host, peer),
  }
}

function publicRoots(): readonly string[] {
  return [...new Set([...getCACertificates('default'), ...getCACertificates('system')])]
}

async function readCaFile(file: string): Promise<string> {
  try {
    const text = await readFile(file, 'utf8')
    new X509Certificate(text)
    return text
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const reason = code?.startsWith('ERR_') === false ? `cannot be read (${code})` : 'holds no PEM certificate'
    throw new CommandError(`--ca-file: ${file} ${reason}`, { exitCode: 2, cause: error })
  }
}
