import type { Behaviour } from '../origin/fault.ts'
import type { RecordedRequest, RequestKind } from '../origin/origin-request.ts'
import type { Random } from './random.ts'
import type { Period } from './timeline.ts'

/** Which requests to the origin a trouble may reach. What is not given is not looked at. */
export interface Scope {
  readonly kinds?: readonly RequestKind[]
  readonly host?: string
  /** In full, `HOST/NAMESPACE/TYPE`. */
  readonly provider?: string
  /** As the origin writes it. */
  readonly version?: string
  readonly platform?: string
}

/** What a trouble at the origin may lead to, for what is not held. */
export interface Effect {
  /** Statuses that tell of it. */
  readonly statuses: readonly number[]
  /** It reads as the origin's own word that something is not there. */
  readonly tellsAbsence?: true
  /** The list may come in with entries missing. */
  readonly garbles?: true
  /** While it lasts no request of its scope is answered honestly. */
  readonly blocks?: true
  /** It keeps the whole host from being asked. */
  readonly limits?: true
  /** How long the mirror may go by it, by its own clock; default: as long as an incomplete release is believed. */
  readonly memoryMs?: number
  /** How long requests that it struck may go on when it is over. */
  readonly slackMs?: number
}

/** A trouble at the origin, while it lasts and after. */
export interface Trouble extends Scope, Effect {
  readonly name: string
  readonly period: Period
}

/** One way for an origin to misbehave. Without effect: the mirror must cope, and nobody may notice. */
export interface Recipe {
  readonly name: string
  readonly weight: number
  readonly kinds: readonly RequestKind[]
  readonly behaviour: Behaviour
  readonly times?: number
  readonly when?: (request: RecordedRequest) => boolean
  readonly effect?: (kind: RequestKind) => Effect
}

const DOCUMENTS: readonly RequestKind[] = ['versions', 'download', 'sums', 'signature']
const ALL: readonly RequestKind[] = ['discovery', ...DOCUMENTS, 'archive']

const outage = (): Effect => ({ statuses: [502, 504], blocks: true })
const slowOutage = (): Effect => ({ statuses: [502, 504], blocks: true, slackMs: 9_000 })
const refusal = (): Effect => ({ statuses: [502] })

/** A missing file of checksums is no absence, and neither is an archive that its document names. */
function notFound(kind: RequestKind): Effect {
  return kind === 'sums' || kind === 'signature' || kind === 'archive'
    ? refusal()
    : { statuses: [502, 504], tellsAbsence: true }
}

/** Nobody asks before the pause is over, and what failed in it is believed for a while. */
function limit(pauseMs: number): () => Effect {
  return () => ({ statuses: [503], limits: true, blocks: true, memoryMs: pauseMs + 30_000 })
}

function garbled(kind: RequestKind): Effect {
  return kind === 'versions' ? { statuses: [502], garbles: true, memoryMs: 330_000 } : refusal()
}

const isOriginal = ({ url }: RecordedRequest): boolean => !url.startsWith('/at/')
const once = { times: 1 }

/** All of them. Weights are relative to each other. */
export const RECIPES: readonly Recipe[] = [
  ...[500, 502, 503, 401, 403, 410].map((status) => {
    return { name: `status ${status}`, weight: 3, kinds: ALL, behaviour: { status }, effect: outage }
  }),
  { name: 'status 404', weight: 12, kinds: ALL, behaviour: { status: 404 }, effect: notFound },
  { name: 'broken connections', weight: 6, kinds: ALL, behaviour: { drop: true }, effect: outage },
  { name: 'torn bodies', weight: 4, kinds: ALL, behaviour: { torn: 0.5 }, effect: outage },
  { name: 'torn chunked bodies', weight: 3, kinds: ALL, behaviour: { tornChunked: 0.5 }, effect: outage },
  { name: 'short bodies', weight: 4, kinds: ALL, behaviour: { shortChunked: 0.6 }, effect: refusal },
  { name: 'empty bodies', weight: 4, kinds: ALL, behaviour: { body: '' }, effect: refusal },
  {
    name: 'web pages',
    weight: 6,
    kinds: ALL,
    behaviour: { body: '<html>Welcome</html>', contentType: 'text/html' },
    effect: outage,
  },
  { name: 'redirects in a circle', weight: 3, kinds: ALL, behaviour: { redirect: ({ url }) => url }, effect: outage },
  {
    name: 'wrong bytes',
    weight: 10,
    kinds: [...DOCUMENTS, 'archive'],
    behaviour: { wrongBytes: true },
    effect: garbled,
  },
  { name: 'stalls', weight: 2, kinds: ALL, behaviour: { stall: 0.5 }, effect: slowOutage },
  { name: 'silence', weight: 1, kinds: ALL, behaviour: { hang: true }, times: 2, effect: slowOutage },
  { name: 'status 429', weight: 3, kinds: ALL, behaviour: { status: 429 }, effect: limit(5_000) },
  ...[1, 30, 120].map((seconds) => ({
    name: `status 429 for ${seconds} s`,
    weight: 1,
    kinds: ALL,
    behaviour: { status: 429, headers: { 'retry-after': String(seconds) } },
    effect: limit(seconds * 1_000),
  })),
  {
    name: 'an exhausted limit',
    weight: 1,
    kinds: ALL,
    behaviour: { status: 403, headers: { 'x-ratelimit-remaining': '0' } },
    effect: limit(5_000),
  },

  { name: 'compression', weight: 6, kinds: ALL, behaviour: { gzip: true } },
  { name: 'late answers', weight: 6, kinds: ALL, behaviour: { delayMs: 150 } },
  { name: 'slow archives', weight: 4, kinds: ['archive'], behaviour: { trickle: 400_000 } },
  { name: 'no ranges', weight: 2, kinds: ['archive'], behaviour: { ignoreRange: true } },
  {
    name: 'redirects to a copy',
    weight: 6,
    kinds: ALL,
    behaviour: { redirect: ({ host, url }) => `/at/${host}${url}` },
    when: isOriginal,
  },
  { name: 'one status 500', weight: 4, kinds: ALL, behaviour: { status: 500 }, ...once },
  { name: 'one broken connection', weight: 4, kinds: ALL, behaviour: { drop: true }, ...once },
  { name: 'one torn body', weight: 6, kinds: ALL, behaviour: { torn: 0.4 }, ...once },
  {
    name: 'one torn archive, from its start again',
    weight: 3,
    kinds: ['archive'],
    behaviour: { torn: 0.4, ignoreRange: true },
    ...once,
  },
  { name: 'one stall', weight: 1, kinds: ALL, behaviour: { stall: 0.4 }, ...once },
]

/** One of those recipes, as often as their weights say. */
export function pickRecipe(random: Random, which: (recipe: Recipe) => boolean): Recipe {
  const possible = RECIPES.filter(which)
  const weights = Object.fromEntries(possible.map(({ weight }, index) => [String(index), weight]))
  return possible[Number(random.weighted(weights))] ?? random.pick(possible)
}

/** True if requests of the scope may feel the trouble: a limit keeps its whole host from being asked. */
export function reaches(trouble: Scope & Effect, scope: Scope): boolean {
  return trouble.limits === true ? sameHost(trouble, scope) : strikes(trouble, scope)
}

/** True if the trouble may strike requests of the scope themselves. */
export function strikes(trouble: Scope, scope: Scope): boolean {
  const { kinds } = trouble
  return (
    sameHost(trouble, scope) &&
    (kinds === undefined || scope.kinds === undefined || kinds.some((kind) => scope.kinds?.includes(kind))) &&
    (['provider', 'version', 'platform'] as const).every(
      (field) => trouble[field] === undefined || scope[field] === undefined || trouble[field] === scope[field],
    )
  )
}

function sameHost({ host }: Scope, scope: Scope): boolean {
  return host === undefined || scope.host === undefined || host === scope.host
}
