import { connect } from 'node:net'
import { errnoOf } from '../store/disk/storage-error.ts'
import { bareHostname } from '../upstream/authority.ts'
import { createProxySelector } from '../upstream/proxy.ts'
import type { CheckContext } from './check-context.ts'
import { type Finding, findingsAbout } from './finding.ts'

/** Whether the proxy to the origins is there. What it lets through is told with each origin. */
export async function checkProxy(
  { config, isOffline }: CheckContext,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const about = findingsAbout('proxy')
  const { proxy: text } = config.upstream
  if (text === undefined || text === 'off') return [about.ok('none: origins are reached directly')]
  // The public registry stands for all hosts that are not loopback.
  const proxy = createProxySelector({ httpsProxy: text, noProxy: '' }).find(new URL('https://registry.terraform.io/'))
  if (config.mode === 'sealed') return [about.skipped('the mirror is sealed and asks no origin')]
  if (proxy === undefined || isOffline) return [about.skipped('no origin is asked (--offline)')]
  const { url } = proxy
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  const error = await tryToConnect(bareHostname(url), port, signal)
  if (error === undefined) return [about.ok(`${url.host} takes connections`)]
  const fault = `${url.host} does not take a connection: ${errnoOf(error) ?? error.message}`
  return [about.problem(fault, 'Check upstream.proxy (else HTTPS_PROXY of the environment), and that the proxy runs.')]
}

function tryToConnect(host: string, port: number, signal: AbortSignal): Promise<Error | undefined> {
  const { promise, resolve } = Promise.withResolvers<Error | undefined>()
  const socket = connect({ host, port, signal }, () => resolve(undefined))
  socket.once('error', resolve)
  return promise.finally(() => socket.destroy())
}
