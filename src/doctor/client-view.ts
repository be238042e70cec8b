import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { errnoOf } from '../store/disk/storage-error.ts'
import type { CheckContext } from './check-context.ts'
import { type Finding, type FindingsAbout, findingsAbout } from './finding.ts'
import { judgeChain } from './go-certificate.ts'
import { parseCertificates, readGoRoots } from './go-roots.ts'
import { askMirror, type MirrorAnswer } from './mirror-question.ts'

/** Where a mirror answers, and what was found on the way there. */
export interface View {
  readonly findings: readonly Finding[]
  /** It is a mirror of ours that answers: more can be asked of it. */
  readonly isOurs: boolean
}

/** Whether a mirror answers at a base URL, and whether clients of this machine would trust what it shows. */
export async function viewMirror(
  baseUrl: URL,
  name: string,
  context: CheckContext,
  signal: AbortSignal,
): Promise<View> {
  const about = findingsAbout(name)
  if (baseUrl.protocol === 'http:') {
    const text = `${baseUrl.href} is plain http, which clients refuse for a network mirror`
    return {
      findings: [about.problem(text, 'Use the https address: that of the TLS front, or with listen.tls: auto.')],
      isOurs: false,
    }
  }
  let answer: MirrorAnswer
  try {
    answer = await askMirror(new URL('healthz', baseUrl), {}, signal)
  } catch (error) {
    return { findings: [describeSilence(error, baseUrl, about)], isOurs: false }
  }
  const trust = await judgeTrust(baseUrl, answer, context, findingsAbout(`${name}: certificate`))
  const stranger = describeStranger(answer, baseUrl, about)
  if (stranger !== undefined) return { findings: [...trust, stranger], isOurs: false }
  return { findings: [...trust, about.ok(`the mirror answers at ${baseUrl.href}`)], isOurs: true }
}

function describeSilence(error: unknown, { href, hostname, port }: URL, about: FindingsAbout): Finding {
  const code = errnoOf(error) ?? (error instanceof Error ? error.message : String(error))
  if (code === 'EPROTO' || /wrong version number|packet length/.test(String(error))) {
    return about.problem(
      `${href}: plain http is spoken there, and clients speak https`,
      'Set listen.tls to auto, or let clients use the address of the TLS front.',
    )
  }
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return about.problem(
      `the name ${hostname} cannot be looked up (${code})`,
      'Enter it into the name server that clients use, or mend publicUrl or --base-url.',
    )
  }
  if (code === 'ECONNREFUSED') {
    return about.problem(
      `nothing listens at ${hostname} port ${port || 443}`,
      'Start the mirror or its front; if clients are other machines, set listen.host to 0.0.0.0.',
    )
  }
  return about.problem(`${href} does not answer: ${code}`, 'Is a firewall or load balancer in between? See its log.')
}

async function judgeTrust(
  baseUrl: URL,
  { chain }: MirrorAnswer,
  { config, env, now }: CheckContext,
  about: FindingsAbout,
): Promise<readonly Finding[]> {
  const { certificates, problem } = await readGoRoots(env)
  const authority = parseCertificates(await readFile(join(config.stateDir, 'tls', 'ca.pem'), 'utf8').catch(() => ''))
  // Behind another mirror's certificate, ours would be the wrong thing to trust.
  const own = authority.filter((each) => chain.some((shown) => shown.checkIssued(each)))
  const name = baseUrl.hostname.replace(/^\[(.*)\]$/, '$1')
  const bundle = join(config.stateDir, 'tls', 'ca-bundle.pem')
  const trustRemedy = `Have clients trust it as docs/client-configuration.md says; for this shell${own.length > 0 ? `: export SSL_CERT_FILE=${bundle}` : ', SSL_CERT_FILE names a file with it and the public roots'}.`
  const demands = {
    ...{ names: [name], roots: certificates, now: now(), trustRemedy },
    nameRemedy: `Set publicUrl or listen.tls: { auto: true, names: [${name}] }; with a certificate of your own, have it issued with this name.`,
  }
  const findings = await judgeChain([...chain, ...own], demands, about)
  if (problem !== undefined) findings.push(about.problem(problem, 'Name a PEM file, or unset the variable.'))
  return findings.length > 0 ? findings : [about.ok('clients on this machine accept it')]
}

function describeStranger(
  { status, headers, body }: MirrorAnswer,
  { href, pathname }: URL,
  about: FindingsAbout,
): Finding | undefined {
  if (status >= 300 && status < 400) {
    return about.problem(
      `${href} redirects to ${redacted(headers.location)}`,
      'Let clients use that address itself, or take the redirection out of the front.',
    )
  }
  const text = decode(headers, body)
  if (status === 200 && text.includes('"status":"ok"')) return undefined
  if (headers['x-request-id'] !== undefined && text.includes('"ROUTE_NOT_FOUND"')) {
    return about.problem(
      `the mirror gets ${pathname} as part of each path, and answers 404`,
      `Have the front cut ${pathname} off before it passes a request on.`,
    )
  }
  if (status === 401 || status === 403) {
    return about.problem(
      `${href} answers ${status}: a front before the mirror wants credentials, or forbids`,
      'See docs/client-configuration.md about credentials: archives are asked for without a token.',
    )
  }
  const kind = headers['content-type'] ?? 'no media type'
  return about.problem(
    `${href}healthz is answered with status ${status} (${kind}), not by this mirror`,
    'Check the base URL and its path; does the front lead to the mirror?',
  )
}

/** Undoes gzip, as clients do. */
export function decode(headers: MirrorAnswer['headers'], body: Buffer): string {
  try {
    return (headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString('utf8')
  } catch {
    return ''
  }
}

function redacted(location: string | undefined): string {
  return (location ?? 'nowhere').replace(/[?#].*$/s, '').replace(/\/\/[^/@]*@/, '//')
}
