import { readFile } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import { join } from 'node:path'
import type { Config } from './config/schema.ts'

const LIMIT_MS = 3000

/**
 * Asks `/healthz` of the mirror that serves this configuration on this machine, as `HEALTHCHECK` of the image does.
 * Resolves to undefined if it answers well within three seconds, else to what is wrong.
 */
export async function findHealthProblem(config: Config): Promise<string | undefined> {
  const { host, port, tls } = config.listen
  const address = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  const target = { host: address, port, path: '/healthz', agent: false, signal: AbortSignal.timeout(LIMIT_MS) }
  try {
    const status =
      tls === 'off' ? await ask(httpRequest, target) : await ask(httpsRequest, await trustOurs(config, target))
    return status === 200 ? undefined : `${address} port ${port} answers with status ${status}`
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    // With `clientCaFile` that is the right answer, and it comes after we saw our own certificate.
    if (code === 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED') return undefined
    if (code === 'EPROTO') return `${address} port ${port} answers, but not as a TLS server does`
    return `${address} port ${port} does not answer: ${code ?? message}`
  }
}

/**
 * Options for a request to a listener of this configuration: who listens there must have our own certificate, or one of
 * our own authority; for which name does not matter. Rejects if that file cannot be read.
 */
export async function trustOurs(
  { listen: { tls }, stateDir }: Config,
  target: RequestOptions,
): Promise<RequestOptions> {
  const file = typeof tls === 'object' && 'certFile' in tls ? tls.certFile : join(stateDir, 'tls', 'ca.pem')
  const ca = await readFile(file)
  const isOurs = { ca, allowPartialTrustChain: true, checkServerIdentity: () => undefined }
  return { ...target, ...isOurs, servername: 'localhost', minVersion: 'TLSv1.3' }
}

function ask(send: typeof httpsRequest, target: RequestOptions): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const request = send(target, (response) => {
      resolve(response.statusCode)
      response.destroy()
    })
    request.on('error', reject)
    request.end()
  })
}
