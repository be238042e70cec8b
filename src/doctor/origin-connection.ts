import { X509Certificate } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { request } from 'node:http'
import type { Socket } from 'node:net'
import { checkServerIdentity, connect as connectTls, type TLSSocket } from 'node:tls'
import type { OriginConfig } from '../config/schema.ts'
import type { Hostname } from '../protocol/hostname.ts'
import { splitHostname } from '../protocol/hostname.ts'
import { errnoOf } from '../store/disk/storage-error.ts'
import { findRefusal } from '../upstream/address-guard.ts'
import { createDial, type Dial } from '../upstream/module-source/git/dial.ts'
import { createProxySelector, type Proxy as UpstreamProxy } from '../upstream/proxy.ts'
import { createTrustedRoots } from '../upstream/trusted-roots.ts'
import type { CheckContext } from './check-context.ts'
import { type Finding, type FindingsAbout, findingsAbout } from './finding.ts'

/** A connection that was tried: what was found, and what the origin's clock said, in milliseconds since 1970. */
export interface TriedConnection {
  readonly finding: Finding
  readonly isOpen: boolean
  readonly date: number | undefined
}

/** An origin that has a name of its own; patterns have none. */
export interface NamedOrigin {
  readonly hostname: Hostname
  readonly settings: OriginConfig
}

/** Name, address, proxy, TLS: one step after the other, as the mirror itself connects, so that the first that fails is named. */
export async function tryConnection(
  origin: NamedOrigin,
  context: CheckContext,
  signal: AbortSignal,
): Promise<TriedConnection> {
  const { hostname } = origin
  const about = findingsAbout(`origin ${hostname}: connection`)
  const failed = (finding: Finding): TriedConnection => ({ finding, isOpen: false, date: undefined })
  const proxy = findProxy(origin, context)
  const nameFault = proxy === undefined ? await findNameFault(origin, about) : undefined
  if (nameFault !== undefined) return failed(nameFault)
  const ca = await readAuthorities(origin, context, about)
  if ('verdict' in ca) return failed(ca)
  let socket: Socket
  try {
    socket = await createOriginDial(origin, context, ca)(new URL(`https://${hostname}/`))
  } catch (error) {
    return failed(describeDialFault(error, origin, proxy, about))
  }
  const way = proxy === undefined ? '' : ` through the proxy ${proxy.url.host}`
  const secured = await handshake(socket, { hostname, ca, signal })
  if ('fault' in secured) return failed(describeTlsFault(secured, hostname, about))
  const date = await readDate(secured.socket, hostname, signal)
  return { finding: about.ok(`reached${way}, and its certificate is trusted`), isOpen: true, date }
}

/** The proxy by which the mirror reaches an origin; undefined if it connects itself. */
export function findProxy({ hostname, settings }: NamedOrigin, { config }: CheckContext): UpstreamProxy | undefined {
  const { proxy, noProxy = '' } = config.upstream
  if (settings.address !== undefined || proxy === undefined || proxy === 'off') return undefined
  return createProxySelector({ httpsProxy: proxy, httpProxy: proxy, noProxy }).find(new URL(`https://${hostname}/`))
}

function createOriginDial({ hostname, settings }: NamedOrigin, { config }: CheckContext, ca: readonly string[]): Dial {
  const { proxy, noProxy = '', connectTimeout } = config.upstream
  const uses = proxy === undefined || proxy === 'off' ? undefined : { httpsProxy: proxy, httpProxy: proxy, noProxy }
  const colon = settings.address?.lastIndexOf(':') ?? 0
  const address = settings.address && {
    host: settings.address.slice(0, colon).replace(/^\[(.*)\]$/, '$1'),
    port: Number(settings.address.slice(colon + 1)),
  }
  return createDial({
    hostname,
    address: address || undefined,
    allowPrivateAddresses: settings.allowPrivateAddresses,
    proxies: createProxySelector(uses),
    roots: createTrustedRoots(ca, new Map()),
    connectTimeoutMs: connectTimeout,
  })
}

/** PEM texts, or what is wrong with one of the files. */
async function readAuthorities(
  { hostname, settings }: NamedOrigin,
  { config }: CheckContext,
  about: FindingsAbout,
): Promise<readonly string[] | Finding> {
  const files = [settings.caFile, config.hosts[hostname]?.caFile, config.upstream.caFile]
  const texts: string[] = []
  for (const file of files.filter((path) => path !== undefined)) {
    const text = await readFile(file, 'utf8').catch(errnoOf)
    if (text?.includes('-----BEGIN CERTIFICATE-----') === true) {
      texts.push(text)
      continue
    }
    const isCode = text !== undefined && /^E[A-Z]+$/.test(text)
    const fault = isCode ? `cannot be read (${text})` : 'holds no certificate'
    return about.problem(
      `${file} ${fault}`,
      'Mend caFile of the origin, of the host or of upstream; the mirror does not start with it.',
    )
  }
  return texts
}

async function findNameFault({ hostname, settings }: NamedOrigin, about: FindingsAbout): Promise<Finding | undefined> {
  if (settings.address !== undefined) return undefined
  const { host } = splitHostname(hostname)
  try {
    for (const { address } of await lookup(host, { all: true })) {
      const refusal = findRefusal(host, address, settings.allowPrivateAddresses)
      if (refusal === undefined) continue
      const remedy = 'If that is right, set allowPrivateAddresses or address of this origin; else mend the name server.'
      return about.problem(`the mirror refuses to connect: ${refusal.reason}`, remedy)
    }
    return undefined
  } catch (error) {
    const remedy =
      'Check the spelling in origins, and the name server of this machine (in a container: its /etc/resolv.conf); where only a proxy gets out, set upstream.proxy.'
    return about.problem(`the name ${host} cannot be looked up: ${errnoOf(error) ?? 'unknown failure'}`, remedy)
  }
}

function describeDialFault(
  error: unknown,
  { hostname, settings }: NamedOrigin,
  proxy: UpstreamProxy | undefined,
  about: FindingsAbout,
): Finding {
  const reason = errnoOf(error) ?? (error instanceof Error ? error.message : String(error))
  const status = /^Proxy response \((\d+)\)/.exec(reason)?.[1]
  if (proxy !== undefined && status === '407') {
    return about.problem(
      `the proxy ${proxy.url.host} wants other credentials (407)`,
      'Put user and password into upstream.proxy: http://user:password@host:port.',
    )
  }
  if (proxy !== undefined && status !== undefined) {
    return about.problem(
      `the proxy ${proxy.url.host} refuses a connection to ${hostname} (${status})`,
      `Have ${hostname}:443 allowed on the proxy, or name the host in upstream.noProxy.`,
    )
  }
  if (proxy !== undefined) {
    return about.problem(
      `not reached through the proxy ${proxy.url.host}: ${reason}`,
      'Check upstream.proxy (else HTTPS_PROXY of the environment) and that the proxy runs.',
    )
  }
  const at = settings.address === undefined ? hostname : `address ${settings.address}`
  const remedy =
    settings.address === undefined
      ? 'Is a firewall in the way, or a proxy needed (upstream.proxy)?'
      : `Check origins["${hostname}"].address, and that the registry runs there.`
  return about.problem(`${at} does not take a connection: ${reason}`, remedy)
}

type Secured =
  | { readonly socket: TLSSocket }
  | { readonly fault: string; readonly issuer: string | undefined; readonly reason: string }

async function handshake(
  socket: Socket,
  { hostname, ca, signal }: { hostname: Hostname; ca: readonly string[]; signal: AbortSignal },
): Promise<Secured> {
  const { host } = splitHostname(hostname)
  const secureContext = createTrustedRoots(ca, new Map()).find(`${host}:443`)
  const { promise, resolve } = Promise.withResolvers<Secured>()
  const secure = connectTls({
    ...{ socket, servername: host, rejectUnauthorized: false },
    ...(secureContext && { secureContext }),
  })
  signal.addEventListener('abort', () => secure.destroy(new Error('no TLS handshake in time')), { once: true })
  secure.once('secureConnect', () => {
    const peer = secure.getPeerCertificate()
    const identity = checkServerIdentity(host, peer)
    const code = secure.authorizationError as unknown as string | undefined
    if (!secure.authorized || identity !== undefined) {
      const issuer = new X509Certificate(peer.raw).issuer.replaceAll('\n', ', ')
      resolve({ fault: String(code ?? 'ERR_TLS_CERT_ALTNAME_INVALID'), issuer, reason: identity?.message ?? '' })
      secure.destroy()
    } else resolve({ socket: secure })
  })
  secure.once('error', (error: NodeJS.ErrnoException) => {
    resolve({ fault: error.code ?? 'error', issuer: undefined, reason: error.message })
  })
  return promise
}

function describeTlsFault(
  { fault, issuer, reason }: Exclude<Secured, { socket: TLSSocket }>,
  hostname: Hostname,
  about: FindingsAbout,
): Finding {
  if (issuer === undefined) {
    return about.problem(
      `no TLS connection: ${fault === 'error' ? reason : fault}`,
      'Does something that speaks no TLS listen there, or does a firewall cut connections?',
    )
  }
  if (fault === 'CERT_HAS_EXPIRED' || fault === 'CERT_NOT_YET_VALID') {
    return about.problem(
      `its certificate is not valid now (${fault})`,
      'Compare the clock of this machine with a good one; if it is right, the registry must renew its certificate.',
    )
  }
  if (fault === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return about.problem(
      `its certificate is for other names: ${reason}`,
      `Is ${hostname} the right host, and its address?`,
    )
  }
  const text = `its certificate was issued by ${issuer}, whom nobody here trusts (${fault})`
  const remedy = `If that is your TLS-inspecting proxy, name its authority in upstream.caFile; if it is the registry's own, in origins["${hostname}"].caFile.`
  return about.problem(text, remedy)
}

/** The clock of the other side, by the header of any answer. */
async function readDate(socket: TLSSocket, hostname: Hostname, signal: AbortSignal): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | undefined>()
  const head = request(
    {
      createConnection: () => socket,
      method: 'HEAD',
      path: '/.well-known/terraform.json',
      headers: { host: hostname },
      signal,
    },
    ({ headers }) => {
      const at = Date.parse(headers.date ?? '')
      resolve(Number.isNaN(at) ? undefined : at)
    },
  )
  head.on('error', () => resolve(undefined))
  head.end()
  return promise.finally(() => socket.destroy())
}
