import { isMirrorError } from '../errors.ts'
import { OriginUpstreams } from '../origin-upstreams.ts'
import { findOriginKey } from '../policy/origin-key.ts'
import { parseHostname } from '../protocol/hostname.ts'
import { MemoryMetadataCache } from '../store/memory/memory-metadata-cache.ts'
import { OriginStates } from '../upstream/origin-states.ts'
import type { Check } from './check.ts'
import type { CheckContext } from './check-context.ts'
import { judgeClock } from './clock.ts'
import { type Finding, findingsAbout } from './finding.ts'
import { type NamedOrigin, type TriedConnection, tryConnection } from './origin-connection.ts'
import { judgeRegistry } from './registry.ts'

/** A dead origin says nothing better later. */
const CONNECT_MS = 8_000

/** The checks of all origins that have a name, and of the clock, which is compared with theirs. */
export function createOriginChecks(context: CheckContext, chooseProvider: ChooseProvider): readonly Check[] {
  const { config, isOffline } = context
  const names = Object.keys(config.origins).filter((key) => !key.startsWith('*.'))
  if (config.mode === 'sealed' || isOffline) {
    const why = isOffline ? 'no origin is asked (--offline)' : 'the mirror is sealed and asks none'
    return [
      { name: 'clock', run: async () => [await judgeClock([], context)] },
      { name: 'origins', run: async () => [findingsAbout('origins').skipped(why)] },
    ]
  }
  const origins = names.map((name): NamedOrigin => {
    const settings = config.origins[name]
    if (settings === undefined) throw new Error(`no settings of ${name}`)
    return { hostname: parseHostname(name), settings }
  })
  const tried = origins.map((origin) => ({
    origin,
    connection: Promise.withResolvers<TriedConnection>(),
  }))
  return [
    {
      name: 'clock',
      run: async () => {
        const all = await Promise.allSettled(tried.map(({ connection }) => connection.promise))
        const dates = all.flatMap((each) => (each.status === 'fulfilled' ? (each.value.date ?? []) : []))
        return [await judgeClock(dates, context)]
      },
    },
    ...tried.map(({ origin, connection }) => ({
      name: `origin ${origin.hostname}`,
      run: async (signal: AbortSignal) => {
        connect(origin, context, signal).then(connection.resolve, connection.reject)
        const { finding, isOpen } = await connection.promise
        if (!isOpen) return [finding]
        return [finding, ...(await judgeOrigin(origin, context, await chooseProvider(origin.hostname), signal))]
      },
    })),
  ]
}

/** Ends in time, whatever hangs: a look-up of a name cannot be given up. */
async function connect(origin: NamedOrigin, context: CheckContext, signal: AbortSignal): Promise<TriedConnection> {
  const about = findingsAbout(`origin ${origin.hostname}: connection`)
  const limit = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_MS)])
  const late = Promise.withResolvers<TriedConnection>()
  const finding = about.problem(
    `no connection after ${CONNECT_MS / 1000} s`,
    'Is a name server, firewall or proxy silent?',
  )
  const timer = setTimeout(() => late.resolve({ finding, isOpen: false, date: undefined }), CONNECT_MS + 500)
  return Promise.race([tryConnection(origin, context, limit), late.promise]).finally(() => clearTimeout(timer))
}

/** Names a provider (`NAMESPACE/TYPE`) of an origin to ask for, if one is known. */
export type ChooseProvider = (hostname: string) => Promise<string | undefined>

async function judgeOrigin(
  origin: NamedOrigin,
  context: CheckContext,
  provider: string | undefined,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const about = findingsAbout(`origin ${origin.hostname}`)
  await using upstreams = await openUpstreams(context)
  try {
    const question = { origin, upstream: upstreams.for(origin.hostname), provider, now: context.now() }
    // Awaited here: the upstreams are closed behind it.
    return await judgeRegistry(question, signal)
  } catch (error) {
    if (!isMirrorError(error)) throw error
    return [about.problem(error.message, 'See docs/troubleshooting.md.')]
  }
}

/** As the mirror composes them, but with a short patience, and nothing is remembered. */
function openUpstreams({ config, log, now }: CheckContext): Promise<OriginUpstreams> {
  const keys = Object.keys(config.origins)
  const clock = () => now().getTime()
  return OriginUpstreams.create({
    config: { ...config, upstream: { ...config.upstream, retries: Math.min(1, config.upstream.retries) } },
    memory: new MemoryMetadataCache(),
    workspaces: { create: () => Promise.reject(new Error('no module is fetched')) },
    observer: {
      sending: () => undefined,
      answered: () => undefined,
      received: () => undefined,
      retried: () => undefined,
    },
    states: new OriginStates({ origins: config.origins, keyOf: (host) => findOriginKey(keys, host), now: clock }),
    instanceId: 'doctor',
    userAgent: config.upstream.userAgent ?? 'Terramirror doctor',
    now: clock,
    log,
  })
}
