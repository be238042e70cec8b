import { type Chaos, historyOf } from './chaos.ts'
import { advance } from './mirror-steps.ts'
import type { Question } from './question.ts'
import type { Content, Edition, TrueProvider, TrueVersion } from './truth.ts'

const MINUTE_MS = 60_000
const MAX_TRIES = 7
/** Versions of each provider that are looked at: the last ones, and some others. */
const LATEST = 3
const OTHERS = 3

/**
 * Ends all troubles, lets the clock go on until nothing old is believed any more, and fails unless every answer then
 * becomes exactly what the origin says, but for what is pinned and held.
 */
export async function settle(chaos: Chaos): Promise<void> {
  chaos.note('all troubles end; from here on the answers must become exact')
  await chaos.drain()
  await chaos.mirror.setDisk({ kind: 'none' })
  await chaos.world.troubles.clearAll()
  await chaos.world.troubles.startOrigin()
  await advance(chaos, 11 * MINUTE_MS)
  for (const provider of chaos.world.providers) {
    await settleIndex(chaos, provider)
    for (const version of chooseVersions(chaos, provider)) await settleVersion(chaos, version)
  }
}

async function settleIndex(chaos: Chaos, provider: TrueProvider): Promise<void> {
  const question: Question = { route: 'index', provider, foreign: false, version: undefined, platform: undefined }
  const all = [...provider.versions.values()]
  const listed = all.filter((version) => version.current !== undefined)
  const must = all.filter((version) => listed.includes(version) || recordedNow(chaos, version) > 0)
  const may = all.filter((version) => must.includes(version) || chaos.knowledge.wasAsked(version))
  const known = provider.known.at(-1)?.to === Number.POSITIVE_INFINITY
  await becomes(chaos, question, (status, body, outcome) => {
    if (known && outcome === 'stale') return false
    if (status === 404) return !known && must.length === 0
    if (status !== 200) return false
    const versions = Object.keys(body.versions as Record<string, unknown>)
    const rest = versions.filter((each) => !must.some(({ version }) => version === each))
    return (
      must.every(({ version }) => versions.includes(version)) &&
      rest.every((each) => may.some(({ version }) => version === each))
    )
  })
}

async function settleVersion(chaos: Chaos, version: TrueVersion): Promise<void> {
  const question: Question = {
    route: 'document',
    provider: version.provider,
    foreign: false,
    version,
    platform: undefined,
  }
  const { current } = version
  await becomes(chaos, question, (status, body, outcome) => {
    if (status === 502)
      return current === undefined || current.verdict !== 'accepted' || mayBePinnedToOther(chaos, version)
    if (status !== 200) return false
    const platforms = Object.keys(body.archives as Record<string, unknown>)
    // The judge has compared all digests and what is held; here it is about what must be there.
    if (platforms.length === 0) return current === undefined
    if (current?.verdict !== 'accepted' || mayBePinnedToOther(chaos, version)) return true
    return outcome !== 'stale' && served(current).every((platform) => platforms.includes(platform))
  })
  if (current?.verdict !== 'accepted' || mayBePinnedToOther(chaos, version)) return
  const [platform] = served(current)
  if (platform === undefined) return
  await becomes(chaos, { ...question, route: 'archive', platform }, (status) => status === 200)
}

/** Asks until the answer is right; the judge looks at every one of them. */
async function becomes(
  chaos: Chaos,
  question: Question,
  isRight: (status: number, body: Record<string, unknown>, outcome: string) => boolean,
): Promise<void> {
  const seen: string[] = []
  for (let tries = 0; tries < MAX_TRIES && chaos.violation === undefined; tries += 1) {
    const answer = await chaos.pose(question)
    if (answer === undefined) return
    const isJson = answer.headers['content-type'] === 'application/json'
    const outcome = String(answer.headers['terramirror-cache'])
    if (isRight(answer.status, isJson ? JSON.parse(answer.body.toString()) : {}, outcome)) return
    seen.push(`${answer.status} ${outcome} ${isJson ? answer.body.toString().slice(0, 600) : ''}`)
    // What is pinned is checked behind the answers: the check that this answer began needs a moment.
    await new Promise((resolve) => setTimeout(resolve, 100 * 2 ** tries))
    if (tries > 0) await advance(chaos, 6 * MINUTE_MS)
  }
  const { provider, version, platform = '' } = question
  const name = `${question.route} of ${provider.name} ${version?.version ?? ''} ${platform}`
  chaos.fail(
    `with all troubles over, ${name} does not become right; the last answer: ${seen.at(-1)}\n    ${version ? historyOf(version) : ''}`,
  )
}

/** The version is bound to other bytes than those of today, or may be. */
function mayBePinnedToOther({ knowledge }: Chaos, version: TrueVersion): boolean {
  const contents = new Set<Content>(version.editions.map(({ content }) => content))
  const pinned = knowledge.pinned(version)
  if (pinned !== undefined && !shrank(version)) return pinned !== version.current?.content
  return (contents.size > 1 || shrank(version)) && knowledge.wasAsked(version)
}

/** A release that lost a file is a changed release. */
function shrank({ editions, current }: TrueVersion): boolean {
  return editions.some(({ platforms }) => platforms.some((platform) => current?.platforms.includes(platform) !== true))
}

function served({ platforms, refusedPlatforms }: Edition): string[] {
  return platforms.filter((platform) => !refusedPlatforms.includes(platform))
}

function recordedNow({ knowledge }: Chaos, version: TrueVersion): number {
  return knowledge.recorded(version, performance.now()).size
}

function chooseVersions({ random }: Chaos, { versions }: TrueProvider): TrueVersion[] {
  const all = [...versions.values()]
  const chosen = new Set(all.slice(-LATEST))
  for (let count = 0; count < OTHERS && all.length > LATEST; count += 1) chosen.add(random.pick(all))
  return [...chosen]
}
