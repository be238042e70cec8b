import { splitHostname } from '../protocol/hostname.ts'
import { isJsonObject, type JsonObject } from '../protocol/json.ts'
import { type ProviderAddress, parseProviderAddressText } from '../protocol/provider-address.ts'
import type { CheckContext } from './check-context.ts'
import { decode, viewMirror } from './client-view.ts'
import { type Finding, type FindingsAbout, findingsAbout } from './finding.ts'
import { findHeldPackage } from './held-package.ts'
import { askMirror, type MirrorAnswer } from './mirror-question.ts'

/** What clients get at the base URL, perhaps through a front proxy: documents, an archive, service discovery. */
export async function checkFront(context: CheckContext, signal: AbortSignal): Promise<readonly Finding[]> {
  const about = findingsAbout('base URL')
  const baseUrl = context.baseUrl ?? localUrl(context)
  if (baseUrl === undefined) {
    return [
      about.skipped(
        'nothing says where clients reach the mirror, or it does not run; give --base-url, or set publicUrl',
      ),
    ]
  }
  const { findings, isOurs } = await viewMirror(baseUrl, 'base URL', context, signal)
  if (!isOurs) return findings
  const seen = await Promise.all([judgeProviders(baseUrl, context, signal), judgeDiscovery(baseUrl, context, signal)])
  return [...findings, ...seen.flat()]
}

function localUrl({ config: { listen }, isRunning }: CheckContext): URL | undefined {
  const isLocal = ['127.0.0.1', '::1', '0.0.0.0', '::', 'localhost'].includes(listen.host)
  if (!isRunning || listen.tls === 'off' || listen.port === 0 || !isLocal || 'certFile' in listen.tls) return undefined
  return new URL(`https://localhost:${listen.port}/`)
}

async function judgeProviders(baseUrl: URL, context: CheckContext, signal: AbortSignal): Promise<readonly Finding[]> {
  const documents = findingsAbout('base URL: documents')
  const archives = findingsAbout('base URL: archives')
  const held = await findHeldPackage(context.config.dataDir, context.log)
  const address = held?.address ?? askedProvider(context)
  if (address === undefined) {
    const text = 'nothing is held yet, so no document was asked for; name a provider: --provider HOST/NAMESPACE/TYPE'
    return [documents.skipped(text), archives.skipped('no archive is held yet')]
  }
  const folder = new URL(`providers/${address.hostname}/${address.namespace}/${address.type}/`, baseUrl)
  const index = await askDocument(new URL('index.json', folder), documents, signal)
  if ('finding' in index) return [index.finding]
  const listed = isJsonObject(index.document.versions) ? Object.keys(index.document.versions) : []
  const version = held?.version ?? listed.at(-1)
  if (version === undefined)
    return [
      documents.problem(
        `${folder.href}index.json lists no versions`,
        'Something between clients and mirror alters documents: take it out.',
      ),
    ]
  const documentUrl = new URL(`${encodeURIComponent(version)}.json`, folder)
  const answer = await askDocument(documentUrl, documents, signal)
  if ('finding' in answer) return [answer.finding]
  const links = findLinks(answer.document)
  const foreign = [...links.values()].find((link) => /^[a-z][a-z\d+.-]*:|^\//i.test(link))
  if (links.size === 0 || foreign !== undefined) {
    const text =
      foreign === undefined
        ? `${documentUrl.href} names no archive`
        : `${documentUrl.href} leads to ${foreign.slice(0, 100)}, which the mirror never writes: its links are relative`
    return [documents.problem(text, 'Turn off the rewriting of bodies in the front.')]
  }
  const fine = documents.ok(
    `index.json and ${version}.json of ${address.namespace}/${address.type} come through as they are`,
  )
  const link = held === undefined ? undefined : links.get(held.platform)
  if (link === undefined) return [fine, archives.skipped('no archive is held yet')]
  return [fine, await judgeArchive(new URL(link, documentUrl), archives, signal)]
}

function askedProvider({ config, providers, isOffline }: CheckContext): ProviderAddress | undefined {
  if (isOffline || config.mode === 'sealed') return undefined
  const [first] = providers.map((text) => parseProviderAddressText(text))
  return first !== undefined && splitHostname(first.hostname).port === undefined ? first : undefined
}

function findLinks({ archives }: JsonObject): ReadonlyMap<string, string> {
  if (!isJsonObject(archives)) return new Map()
  const links = Object.entries(archives).map(
    ([platform, entry]) => [platform, isJsonObject(entry) ? entry.url : undefined] as const,
  )
  return new Map(links.flatMap(([platform, url]) => (typeof url === 'string' ? [[platform, url] as const] : [])))
}

type Asked = { readonly document: JsonObject } | { readonly finding: Finding }

/** Clients take status 200 and the media type application/json, and nothing else (client-contract A3, A4). */
async function askDocument(url: URL, about: FindingsAbout, signal: AbortSignal): Promise<Asked> {
  const answer = await askMirror(url, {}, signal)
  const { status, headers, body } = answer
  const moved = describeRedirect(url, answer, about)
  if (moved !== undefined) return { finding: moved }
  if (status !== 200) {
    return {
      finding: about.problem(
        `${url.href} is answered with status ${status}: ${errorOf(answer)}`,
        'Look for it in the log of the mirror, and of the front.',
      ),
    }
  }
  const type = headers['content-type'] ?? 'missing'
  if (!/^application\/json *(;|$)/i.test(type)) {
    const text = `${url.href} has the media type ${type}; clients take application/json alone`
    return { finding: about.problem(text, 'Have the front leave Content-Type as the mirror sends it.') }
  }
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding !== 'identity' && encoding !== 'gzip') {
    const text = `${url.href} comes compressed as ${encoding}, which clients do not ask for and cannot read`
    return { finding: about.problem(text, 'Turn that compression off in the front, for this host.') }
  }
  try {
    const document: unknown = JSON.parse(decode(headers, body))
    if (isJsonObject(document)) return { document }
  } catch {
    // Told below.
  }
  return {
    finding: about.problem(
      `${url.href} is no JSON object`,
      'Something between clients and mirror alters documents: take it out.',
    ),
  }
}

function describeRedirect(url: URL, { status, headers }: MirrorAnswer, about: FindingsAbout): Finding | undefined {
  if (status < 300 || status >= 400) return undefined
  const to = (headers.location ?? 'nowhere').replace(/[?#].*$/s, '')
  return about.problem(
    `${url.href} redirects to ${to}; the mirror redirects nobody`,
    'Take the redirection out of the front.',
  )
}

function errorOf({ headers, body }: MirrorAnswer): string {
  const [, text = ''] = /"error":"((?:[^"\\]|\\.){1,300})/.exec(decode(headers, body)) ?? []
  return text === '' ? (headers['content-type'] ?? 'no body') : text.replaceAll('\\"', '"')
}

/** What is true of archives behind a front that leaves them alone: length, ranges, no compression. */
async function judgeArchive(url: URL, about: FindingsAbout, signal: AbortSignal): Promise<Finding> {
  const remedy = 'Turn compression and rewriting off in the front for archives (.zip).'
  const head = await askMirror(url, { method: 'HEAD' }, signal)
  const whole = await askMirror(url, { headersOnly: true }, signal)
  const moved = describeRedirect(url, whole, about)
  if (moved !== undefined) return moved
  if (whole.status !== 200)
    return about.problem(
      `${url.href} is answered with status ${whole.status}`,
      'Look for it in the log of the mirror, and of the front.',
    )
  if (whole.headers['content-encoding'] !== undefined) {
    return about.problem(`archives come compressed once more (${whole.headers['content-encoding']})`, remedy)
  }
  if (whole.headers['content-length'] === undefined) {
    return about.problem(
      'archives come without Content-Length: a torn download looks complete to clients',
      'Turn off rewriting and chunking of archives in the front (in nginx: gzip and sub_filter).',
    )
  }
  if (head.status !== 200 || head.headers['content-length'] !== whole.headers['content-length']) {
    const text = `HEAD of an archive is answered with status ${head.status} and length ${head.headers['content-length'] ?? 'none'}, GET with ${whole.headers['content-length']}`
    return about.warning(text, 'Have the front pass HEAD on to the mirror.')
  }
  const part = await askMirror(url, { headers: { range: 'bytes=0-3' }, headersOnly: true }, signal)
  if (part.status !== 206) {
    return about.warning(
      `a range of an archive is answered with status ${part.status}: broken downloads begin anew`,
      'Have the front pass Range on to the mirror.',
    )
  }
  return about.ok('length, HEAD and ranges come through, and nothing is compressed')
}

/** Needed for source addresses that begin with the mirror's own host, and by no other client. */
async function judgeDiscovery(
  baseUrl: URL,
  { config }: CheckContext,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const about = findingsAbout('base URL: service discovery')
  const url = new URL('/.well-known/terraform.json', baseUrl)
  if (config.origins[config.defaultOrigin] === undefined) return [about.skipped('the default origin is not served')]
  const first = await askMirror(url, {}, signal)
  // Clients follow, and resolve against where they end.
  const final = first.status >= 300 && first.status < 400 ? (URL.parse(first.headers.location ?? '', url) ?? url) : url
  const { status, headers, body } = final === url ? first : await askMirror(final, {}, signal)
  const services = status === 200 ? readServices(decode(headers, body)) : undefined
  const base = typeof services?.['providers.v1'] === 'string' ? new URL(services['providers.v1'], final) : undefined
  if (base?.href.startsWith(baseUrl.href) && /^application\/json/i.test(headers['content-type'] ?? '')) {
    return [about.ok(`source addresses that begin with ${url.host} lead to the mirror`)]
  }
  const found = base === undefined ? `answers ${status}` : `leads to ${base.href}`
  return [
    about.warning(
      `${url.href} ${found}: source addresses that begin with ${url.host} do not lead to the mirror`,
      `Have the front redirect it to ${new URL('.well-known/terraform.json', baseUrl).href}; or leave it, if nobody writes such addresses.`,
    ),
  ]
}

function readServices(text: string): JsonObject | undefined {
  try {
    const document: unknown = JSON.parse(text)
    return isJsonObject(document) ? document : undefined
  } catch {
    return undefined
  }
}
