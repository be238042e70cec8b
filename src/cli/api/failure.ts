import type { Problem } from '../../admin/schema/common.ts'
import { CommandError } from '../command-error.ts'
import type { Endpoint } from './endpoint.ts'

/** Where the API is below its endpoint. */
export const API_PATH = 'admin/api/v1/'

/** The connection failed or broke: it may be better in a moment. */
export class Unreachable extends CommandError {
  override readonly name = 'Unreachable'
}

/** The admin API said no. A request that is wrong in itself (400) is wrong use. */
export class Refusal extends CommandError {
  override readonly name = 'Refusal'
  readonly status: number
  readonly problem: Problem

  constructor(status: number, problem: Problem) {
    const lines = [problem.error, ...(problem.problems ?? []).filter((line) => !problem.error.includes(line))]
    const [first = '', ...more] = lines
    const reference = `${first} (${problem.code}, request ${problem.request_id})`
    super([reference, ...more].join('\n'), { exitCode: status === 400 ? 2 : 1 })
    this.status = status
    this.problem = problem
  }
}

/** What the words of a failure are made from. */
export interface FailureContext {
  readonly endpoint: Endpoint
  /** What is trusted, where the endpoint is secure. */
  readonly trusted: string
}

const NOT_LISTENING =
  'is the mirror running? It listens where admin.listen of its configuration says: --config FILE, or --server URL'

/** The words for a connection that failed: what, where, and what to do. */
export function explainFailure(error: unknown, { endpoint, trusted }: FailureContext): CommandError {
  const { code = '', message = String(error) } = error instanceof Error ? (error as NodeJS.ErrnoException) : {}
  const { name } = endpoint
  const reason = findReason(code, { endpoint, trusted })
  if (reason !== undefined) return new Unreachable(reason, { cause: error })
  if (isCertificateProblem(code)) {
    return new CommandError(explainCertificate(code, message, { endpoint, trusted }), { cause: error })
  }
  return new Unreachable(`${name} cannot be reached: ${code || message}`, { cause: error })
}

function findReason(code: string, { endpoint }: FailureContext): string | undefined {
  const { name, isSecure, target } = endpoint
  const isSocket = 'socketPath' in target
  if (code === 'ECONNREFUSED') return `nothing listens at ${name}; ${NOT_LISTENING}`
  if (code === 'ENOENT' && isSocket) return `there is no socket at ${name}; ${NOT_LISTENING}`
  if (code === 'EACCES' && isSocket) return `no permission for ${name}; run this as the user of the mirror`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `the name in ${name} cannot be looked up (${code})`
  if (code === 'ETIMEDOUT' || code === 'ABORT_ERR') return `${name} does not answer in time`
  if (isSecure && (code === 'EPROTO' || code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_HANDSHAKE'))) {
    if (code.includes('CERTIFICATE_REQUIRED')) {
      return `${name} wants a client certificate (listen.tls.clientCaFile), which commands do not have; let admin.listen be a socket`
    }
    return `${name} answers, but not as a TLS server does (${code})`
  }
  if (!isSecure && (code.startsWith('HPE_') || code === 'ECONNRESET')) {
    return `${name} does not speak plain http${isSocket ? '' : '; try https'} (${code})`
  }
  if (code === 'ECONNRESET' || code === 'EPIPE') return `${name} closed the connection (${code})`
  return undefined
}

function isCertificateProblem(code: string): boolean {
  return /CERT|SIGNATURE|ISSUER|HOSTNAME_MISMATCH|CRL/.test(code)
}

function explainCertificate(code: string, message: string, { endpoint, trusted }: FailureContext): string {
  const { name } = endpoint
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    return `the certificate of ${name} is not valid now (${code}); look at the clocks of both machines`
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const reason = /^.*?altnames?: (.*)$/s.exec(message)?.[1] ?? message
    return `the certificate of ${name} is for other names: ${reason}`
  }
  return `the certificate of ${name} is not trusted (${code}); trusted are: ${trusted}. Give --ca-file FILE; the mirror's own authority is tls/ca.pem in its stateDir`
}

/** The words for an answer that is none of the admin API's; `status` and `body` as they came. */
export function explainForeignAnswer(endpoint: Endpoint, status: number, body: unknown): CommandError {
  const { name } = endpoint
  const problem = Object(body) as { code?: unknown; base_url?: unknown }
  if (problem.code !== 'ROUTE_NOT_FOUND') {
    return new CommandError(
      `${name} is not the admin API of a mirror: it answers with status ${status} and something else than its documents`,
    )
  }
  if (typeof problem.base_url === 'string' && problem.base_url.endsWith(`/${API_PATH}`)) {
    return new CommandError(`the mirror at ${name} does not have this yet; use the command of the same version`)
  }
  return new CommandError(
    `${name} is where the mirror serves clients, not its admin API, which listens on a port or socket of its own (admin.listen; default https://localhost:8444/)`,
  )
}
