import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect } from 'node:tls'
import type { CheckContext } from './check-context.ts'
import { type Finding, findingsAbout } from './finding.ts'
import { parseCertificates } from './go-roots.ts'

/** Whether the running mirror shows the certificate that is in the file. */
export async function checkServedCertificate(context: CheckContext, signal: AbortSignal): Promise<readonly Finding[]> {
  const about = findingsAbout('served certificate')
  const { listen, stateDir } = context.config
  const { tls, host, port } = listen
  if (tls === 'off') return [about.skipped('listen.tls is off')]
  if (!context.isRunning || port === 0) return [about.skipped('the mirror does not run, or its port is not known')]
  const file = 'certFile' in tls ? tls.certFile : join(stateDir, 'tls', 'server.pem')
  const [held] = parseCertificates(await readFile(file, 'utf8').catch(() => ''))
  const address = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  const served = await readServed(address, port, signal)
  if (typeof served === 'string') {
    return [about.problem(`${host} port ${port} shows none: ${served}`, 'See the line about the listener.')]
  }
  if (held !== undefined && served.raw.equals(held.raw)) return [about.ok(`the one of ${file}`)]
  const text = `${host} port ${port} shows another certificate than ${file}: one that is valid until ${served.validTo}`
  const remedy =
    'Files are read again within seconds if key and certificate fit together; else look into the log of the mirror, or start it again.'
  return [about.problem(text, remedy)]
}

/** The certificate that a server shows, or why there is none. */
function readServed(host: string, port: number, signal: AbortSignal): Promise<X509Certificate | string> {
  const { promise, resolve } = Promise.withResolvers<X509Certificate | string>()
  // What is shown is compared, so nothing needs to be trusted.
  const socket = connect({ host, port, servername: 'localhost', rejectUnauthorized: false })
  const stop = () => socket.destroy(new Error('no answer in time'))
  signal.addEventListener('abort', stop, { once: true })
  socket.once('secureConnect', () => {
    const { raw } = socket.getPeerCertificate()
    resolve(raw === undefined ? 'no certificate came' : new X509Certificate(raw))
    socket.destroy()
  })
  socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
  return promise.finally(() => signal.removeEventListener('abort', stop))
}
