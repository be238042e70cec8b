import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isMirrorError } from '../errors.ts'
import { readPermittedNames } from '../tls/certificate-extensions.ts'
import { CertificateFiles } from '../tls/certificate-files.ts'
import { canonicalName, isPermitted, listConfiguredNames } from '../tls/certificate-names.ts'
import type { CheckContext } from './check-context.ts'
import { type Finding, type FindingsAbout, findingsAbout } from './finding.ts'
import { judgeChain } from './go-certificate.ts'
import { parseCertificates, readGoRoots } from './go-roots.ts'

const NEVER_MS = 2 ** 31 - 1

/** Whether Terraform and OpenTofu would accept the certificate that the configuration leads to. */
export async function checkCertificate(context: CheckContext): Promise<readonly Finding[]> {
  const about = findingsAbout('certificate')
  const { tls } = context.config.listen
  if (tls === 'off') return [judgePlain(context, about)]
  const findings = 'certFile' in tls ? await judgeFiles(tls, context, about) : await judgeAutomatic(context, about)
  return findings.length > 0
    ? findings
    : [about.ok('chain, key, names, validity and strength are as Go clients want them')]
}

function judgePlain({ baseUrl }: CheckContext, about: FindingsAbout): Finding {
  if (baseUrl !== undefined) return about.ok(`listen.tls is off: the front of ${baseUrl.href} must speak TLS`)
  return about.warning(
    'listen.tls is off, and clients refuse a network mirror over plain http',
    'Put a TLS front before the mirror and say where it is (publicUrl or --base-url), or set listen.tls to auto.',
  )
}

interface Files {
  readonly certFile: string
  readonly keyFile: string
  readonly clientCaFile?: string
}

async function judgeFiles(files: Files, context: CheckContext, about: FindingsAbout): Promise<Finding[]> {
  const { certFile } = files
  const refused = await judgeReading(files, context, about)
  const chain = parseCertificates(await readFile(certFile, 'utf8').catch(() => ''))
  if (chain.length === 0) return refused
  const { certificates: roots } = await readGoRoots(context.env)
  const demands = {
    ...{ names: clientNames(context), roots, now: context.now() },
    nameRemedy: `Have ${certFile} issued again with these names, or let clients use a name that it has.`,
    trustRemedy: 'Give that authority to every client, as docs/client-configuration.md says.',
  }
  return [...refused, ...(await judgeChain(chain, demands, about))]
}

/** What the mirror itself has against the files. */
async function judgeReading(files: Files, { log }: CheckContext, about: FindingsAbout): Promise<Finding[]> {
  try {
    const opened = await CertificateFiles.open({ ...files, log, pollIntervalMs: NEVER_MS })
    await opened[Symbol.asyncDispose]()
    return []
  } catch (error) {
    if (!isMirrorError(error)) throw error
    const remedy = 'Mend or replace the file; certFile, keyFile and clientCaFile are PEM, the key without a password.'
    return [about.problem(error.message, remedy)]
  }
}

/** Names that clients surely use. On one's own certificate, those of this machine to itself are nobody's. */
function clientNames({ config, baseUrl }: CheckContext): string[] {
  const { host } = config.listen
  const isOwn = ['0.0.0.0', '::', '127.0.0.1', '::1', 'localhost'].includes(host)
  const urls = [config.publicUrl, baseUrl?.href].filter((url) => url !== undefined).map((url) => new URL(url).hostname)
  return [...new Set([...urls, ...(isOwn || urls.length > 0 ? [] : [host])].map(canonicalName))]
}

async function judgeAutomatic(context: CheckContext, about: FindingsAbout): Promise<Finding[]> {
  const { config, baseUrl, now } = context
  const folder = join(config.stateDir, 'tls')
  const { tls, host: listenHost } = config.listen
  const more = typeof tls === 'object' && 'names' in tls ? tls.names : []
  const publicUrl = config.publicUrl === undefined ? {} : { publicUrl: config.publicUrl }
  const configured = listConfiguredNames({ listenHost, ...publicUrl, names: more })
  const asked = baseUrl === undefined ? [] : [canonicalName(baseUrl.hostname)]
  const unknown = asked.filter((name) => !configured.includes(name))
  const findings = unknown.map((name) =>
    about.problem(
      `clients use ${name}, and the certificate that the mirror makes itself will not have this name`,
      `Set publicUrl to their address, or listen.tls to { auto: true, names: [${name}] }, and start again.`,
    ),
  )
  const pem = await readFile(join(folder, 'ca.pem'), 'utf8').catch(() => undefined)
  const server = await readFile(join(folder, 'server.pem'), 'utf8').catch(() => undefined)
  if (pem === undefined) {
    return [
      ...findings,
      ...(findings.length > 0 ? [] : [about.ok(`it is made at the first start, for ${configured.join(', ')}`)]),
    ]
  }
  const authority = parseCertificates(pem)[0]
  if (authority === undefined || server === undefined) {
    const file = join(folder, authority === undefined ? 'ca.pem' : 'server.pem')
    return [
      about.problem(
        `${file} is missing or no certificate`,
        `Restore ${folder} from a backup; else delete it whole, and give every client the new authority.`,
      ),
    ]
  }
  const change = await judgeChange(authority, configured, about)
  const demands = {
    names: change.length > 0 ? [] : configured,
    roots: [authority],
    now: now(),
    nameRemedy: 'Start the mirror again: it makes a certificate with these names.',
    trustRemedy: 'Start the mirror again: it makes another certificate.',
  }
  return [...findings, ...change, ...(await judgeChain([new X509Certificate(server)], demands, about))]
}

/** A name that the authority may not sign for means another authority at the next start. */
async function judgeChange(
  authority: X509Certificate,
  configured: readonly string[],
  about: FindingsAbout,
): Promise<Finding[]> {
  const permitted = await readPermittedNames(authority)
  const refused =
    permitted === undefined ? [] : configured.filter((name) => !isPermitted(name.replace(/^\*\./, ''), permitted))
  if (refused.length === 0) return []
  return [
    about.warning(
      `the mirror's authority may not sign for ${refused.join(', ')}: the next start makes a NEW authority, which no client trusts yet`,
      'After that start, give ca.pem to every client again; or take these names out of the configuration.',
    ),
  ]
}
