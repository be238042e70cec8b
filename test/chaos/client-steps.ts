import type { Chaos } from './chaos.ts'
import { chooseFrom, choosePlatform, choosePublished, chooseQuestion } from './choices.ts'
import { type Question, scopeOf } from './question.ts'
import type { Step } from './step.ts'

const BESIDE = 0.35
const LEAVE = 0.3

/** What clients do. */
export const CLIENT_STEPS: Readonly<Record<string, Step>> = {
  index: { weight: 150, run: (chaos) => ask(chaos, 'index') },
  document: { weight: 190, run: (chaos) => ask(chaos, 'document') },
  archive: { weight: 180, run: (chaos) => ask(chaos, 'archive') },
  head: { weight: 40, run: (chaos) => ask(chaos, 'archive', { method: 'HEAD' }) },
  range: { weight: 60, run: (chaos) => ask(chaos, 'archive', { headers: { range: chooseRange(chaos) } }) },
  conditional: { weight: 20, run: askConditionally },
  'burst on one archive': { weight: 40, run: (chaos) => burst(chaos, 'archive') },
  'burst on one document': { weight: 15, run: (chaos) => burst(chaos, 'document') },
  'burst on one index': { weight: 8, run: (chaos) => burst(chaos, 'index') },
  'client that leaves': { weight: 30, run: leave },
  'slow client': { weight: 10, run: (chaos) => ask(chaos, 'archive', { pauseMs: chaos.random.int(20, 300) }) },
  install: { weight: 40, run: install },
  hostile: { weight: 25, run: askHostile },
  stranger: { weight: 20, run: askStrange },
  health: { weight: 8, run: askHealth },
}

async function ask(chaos: Chaos, route: Question['route'], how: Record<string, unknown> = {}): Promise<void> {
  await chaos.pose(chooseQuestion(chaos, route), { ...how, beside: chaos.random.chance(BESIDE) })
}

/** As a client does it: the list, one version, the archive that its document links to. */
async function install(chaos: Chaos): Promise<void> {
  const provider = choosePublished(chaos)
  await chaos.pose({ route: 'index', provider, foreign: false, version: undefined, platform: undefined })
  const question = chooseFrom(chaos, 'document', provider)
  const document = await chaos.pose(question)
  const { version } = question
  if (document?.status !== 200 || version === undefined) return
  const { archives } = JSON.parse(document.body.toString()) as { archives: Record<string, { url: string }> }
  // Which platforms there are depends on timing; which one is wanted does not.
  const platform = choosePlatform(chaos, version)
  const link = archives[platform]?.url
  if (link === undefined) return
  const path = new URL(link, `https://mirror.test/providers/${provider.name}/${version.version}.json`).pathname
  await chaos.pose({ ...question, route: 'archive', platform }, { path })
}

async function askConditionally(chaos: Chaos): Promise<void> {
  const question = chooseQuestion(chaos, 'archive')
  const { version, platform = '' } = question
  const digest = version?.editions.at(-1)?.content.archives.get(platform)?.digest ?? '0'.repeat(64)
  const header = chaos.random.pick(['if-none-match', 'if-range'])
  const range = header === 'if-range' ? { range: chooseRange(chaos) } : {}
  await chaos.pose(question, { headers: { [header]: `"${digest}"`, ...range } })
}

/** Many clients want one thing; some of them leave. In calm weather the origin is asked for an archive once at most. */
async function burst(chaos: Chaos, route: Question['route']): Promise<void> {
  const { random, world, mirror } = chaos
  const question = chooseQuestion(chaos, route)
  const from = performance.now()
  const before = world.archiveRequests(question)
  const clients = Array.from({ length: random.int(5, 20) }, () => {
    const leaves = random.chance(LEAVE) ? { leaveAfterMs: random.int(0, 120) } : {}
    return chaos.pose(question, leaves)
  })
  const answers = await Promise.all(clients)
  const span = { from, to: performance.now() }
  const met = mirror.circumstances(span)
  const alone = world.troubles.count === 0 && world.troubles.for(scopeOf(question), span).length === 0
  const good = answers.every((answer) => answer?.left || answer?.status === 200)
  const calm = alone && good && !met.disturbed && !met.unwritable && question.version?.editions.length === 1
  const count = world.archiveRequests(question) - before
  if (calm && count > 1)
    chaos.fail(`the origin was asked ${count} times for one archive: ${answers.map((each) => each?.status)}`, question)
}

async function leave(chaos: Chaos): Promise<void> {
  const { random } = chaos
  const how = random.pick([
    { leaveAfterBytes: random.int(0, 60_000) },
    { leaveAfterMs: random.int(0, 60) },
    { pauseMs: 50, leaveAfterMs: random.int(60, 200) },
  ])
  await chaos.pose(chooseQuestion(chaos, 'archive'), { ...how, beside: random.chance(BESIDE) })
}

const HOSTILE = [
  '/providers/registry.example.test/..%2f..%2fetc/passwd/index.json',
  '/providers/registry.example.test/acme/%2e%2e/index.json',
  '/providers/registry.example.test/acme/wid%00get/index.json',
  '/providers/registry.example.test/acme/wid%5cget/1.0.0.json',
  '/providers/127.0.0.1/acme/widget/index.json',
  '/providers/registry.example.test/acme/widget/1.0.0%00.json',
  '/providers/registry.example.test/acme/widget/../widget/index.json',
  `/providers/registry.example.test/${'a'.repeat(200)}/widget/index.json`,
  `/providers/registry.example.test/acme/widget/${'1'.repeat(3_000)}.json`,
  '/providers/registry.example.test/acme/widget/1.0.0/linux_amd64%00/x.zip',
  '/providers/user:pass@registry.example.test/acme/widget/index.json',
] as const

async function askHostile(chaos: Chaos): Promise<void> {
  await chaos.expectStatus(chaos.random.pick(HOSTILE), [400])
}

/** Well-meant, and outside of what is served: path, method, right statuses. */
const STRANGE: readonly [path: string, method: string, status: number][] = [
  ['/providers/registry.example.test/acme/widget/latest.json', 'GET', 200],
  ['/providers/registry.example.test/-/aws/index.json', 'GET', 404],
  ['/providers/registry.example.test/acme/wid--get/index.json', 'GET', 404],
  ['/providers/registry.example.test/acme/widget/1.0.0/LINUX_amd64/x.zip', 'GET', 404],
  ['/providers/registry.example.test/acme/widget/v1/linux_amd64/x.zip', 'GET', 404],
  ['/v1/providers/acme/widget/versions', 'GET', 404],
  ['/registry.example.test/acme/widget/index.json', 'GET', 404],
  ['/nothing', 'GET', 404],
  ['/providers/registry.example.test/acme/widget/index.json', 'POST', 405],
  ['/providers/registry.example.test/acme/widget/1.0.0.json', 'DELETE', 405],
]

async function askStrange(chaos: Chaos): Promise<void> {
  const [path, method, status] = chaos.random.pick(STRANGE)
  const answer = await chaos.expectStatus(path, [status], { method })
  if (status === 200 && answer.body.toString() !== '{"archives":{}}') chaos.fail(`${path} is not an empty document`)
}

async function askHealth(chaos: Chaos): Promise<void> {
  await chaos.expectStatus(chaos.random.pick(['/healthz', '/readyz', '/metrics', '/']), [200])
}

function chooseRange({ random }: Chaos): string {
  const start = random.int(0, 400)
  return random.pick([
    `bytes=${start}-`,
    `bytes=${start}-${start + random.int(0, 500)}`,
    `bytes=-${random.int(1, 400)}`,
    'bytes=0-0',
    'bytes=0-10,20-30',
    'bytes=99999999-',
    'lines=1-2',
  ])
}
