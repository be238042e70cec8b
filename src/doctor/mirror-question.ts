import { X509Certificate } from 'node:crypto'
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls'

const MAX_BYTES = 8_000_000
/** A client waits ten seconds for a document (client-contract A9). */
const LIMIT_MS = 10_000

/** What is sent beside what every client sends. */
export interface Question {
  readonly method?: 'GET' | 'HEAD'
  readonly headers?: Readonly<Record<string, string>>
  /** The body is not wanted: the connection is closed behind the headers. */
  readonly headersOnly?: true
}

/** An answer as a client gets it. */
export interface MirrorAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** As it came, not decoded. */
  readonly body: Buffer
  /** What the server showed, its own first; empty over plain http. */
  readonly chain: readonly X509Certificate[]
}

/** Asks as Terraform does: gzip, no cookies, no redirects followed. Trusts anybody: the chain is for the caller to judge. */
export function askMirror(url: URL, question: Question, signal: AbortSignal): Promise<MirrorAnswer> {
  const { method = 'GET', headers = {}, headersOnly } = question
  const { promise, resolve, reject } = Promise.withResolvers<MirrorAnswer>()
  const options = {
    ...{ method, agent: false, signal: AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)]) },
    headers: { 'user-agent': 'Terraform/1.11.4', 'accept-encoding': 'gzip', ...headers },
  }
  const send =
    url.protocol === 'http:' ? httpRequest(url, options) : httpsRequest(url, { ...options, rejectUnauthorized: false })
  send.once('error', reject)
  send.once('response', (response) => {
    const chain = url.protocol === 'http:' ? [] : readChain(response.socket as TLSSocket)
    const chunks: Buffer[] = []
    let length = 0
    const end = () => {
      const { statusCode: status = 0, headers: received } = response
      resolve({ status, headers: received, body: Buffer.concat(chunks), chain })
      send.destroy()
    }
    response.once('error', reject)
    if (headersOnly) return end()
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      length += chunk.length
      if (length > MAX_BYTES) send.destroy(new Error(`the answer is larger than ${MAX_BYTES} bytes`))
    })
    response.once('end', end)
  })
  send.end()
  return promise
}

function readChain(socket: TLSSocket): X509Certificate[] {
  const chain: X509Certificate[] = []
  let current: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true)
  while (current?.raw !== undefined && chain.length < 10) {
    const certificate = new X509Certificate(current.raw)
    if (chain.some(({ fingerprint256 }) => fingerprint256 === certificate.fingerprint256)) break
    chain.push(certificate)
    current = current.issuerCertificate
  }
  return chain
}
