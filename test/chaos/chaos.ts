import { Violation } from './answer-format.ts'
import type { ChaosMirror } from './chaos-mirror.ts'
import type { Answer, Ask } from './client.ts'
import type { Judge } from './judge.ts'
import type { Knowledge } from './knowledge.ts'
import { pathOf, type Question } from './question.ts'
import type { Random } from './random.ts'
import type { TrueVersion } from './truth.ts'
import type { World } from './world.ts'

/** Questions that may run beside the steps that follow. */
const MAX_PENDING = 12

/** Everything that a step works on. */
export interface ChaosParts {
  readonly random: Random
  readonly world: World
  readonly mirror: ChaosMirror
  readonly knowledge: Knowledge
  readonly judge: Judge
}

/** How a question is put. */
export interface Pose extends Ask {
  /** Do not wait: the steps that follow happen while the answer is on its way. */
  readonly beside?: boolean
  /** Instead of the path that the question has by its terms. */
  readonly path?: string
}

/** A run: the parts, the questions under way, and the first violation. */
export class Chaos {
  readonly random: Random
  readonly world: World
  readonly mirror: ChaosMirror
  readonly knowledge: Knowledge
  readonly judge: Judge
  /** What was done, a line each. */
  readonly trail: string[] = []
  /** Answers by route and status. */
  readonly answers: Record<string, number> = {}
  /** Blobs that were damaged on purpose: until they are found out, they may lie there. */
  readonly damagedDigests = new Set<string>()
  violation: string | undefined
  /** Words by which the mirror's log lines about the violation are found. */
  subject: readonly string[] | undefined
  step = 0
  readonly #pending = new Set<Promise<unknown>>()

  constructor(parts: ChaosParts) {
    this.random = parts.random
    this.world = parts.world
    this.mirror = parts.mirror
    this.knowledge = parts.knowledge
    this.judge = parts.judge
  }

  get pending(): number {
    return this.#pending.size
  }

  /** Adds to the trail. */
  note(text: string): void {
    this.trail.push(`#${this.step} ${text}`)
    if (this.trail.length > 400) this.trail.splice(0, 200)
  }

  /** Asks a question and judges the answer. Resolves with the answer, or at once if it is asked beside the steps. */
  async pose(question: Question, options: Pose = {}): Promise<Answer | undefined> {
    const { beside = false, path = pathOf(question), ...ask } = options
    const label = `${ask.method ?? 'GET'} ${path}${describe(ask)}`
    this.note(`${label}${beside ? ' (beside)' : ''}`)
    if (question.route === 'archive' && question.version !== undefined) this.knowledge.noteAsked(question.version)
    const asked = this.step
    const work = this.mirror.ask(path, ask).then((answer) => {
      this.#count(question, answer)
      try {
        this.judge.judge(question, answer, ask.method === 'HEAD')
      } catch (error) {
        if (!(error instanceof Violation)) throw error
        const history = question.version === undefined ? '' : `\n  published: ${historyOf(question.version)}`
        const at = `${(answer.span.from / 1_000).toFixed(2)}-${(answer.span.to / 1_000).toFixed(2)}`
        this.fail(
          `step ${asked}: ${label} at ${at}\n  ${error.message}\n  got ${summarise(answer)}${history}`,
          question,
        )
      }
      return answer
    })
    if (!beside) return work
    this.#besides(work)
    while (this.#pending.size > MAX_PENDING) await Promise.race(this.#pending)
    return undefined
  }

  /** Runs work beside the steps that follow; `drain` waits for it. */
  #besides(work: Promise<unknown>): void {
    const tracked: Promise<unknown> = work
      .catch((error: unknown) => this.fail(`the test itself failed: ${String(error)}`))
      .finally(() => this.#pending.delete(tracked))
    this.#pending.add(tracked)
  }

  /** Asks for a path that has one right answer whatever the world is like. */
  async expectStatus(path: string, expected: readonly number[], ask: Ask = {}): Promise<Answer> {
    this.note(`${ask.method ?? 'GET'} ${path} (expecting ${expected.join(' or ')})`)
    const answer = await this.mirror.ask(path, ask)
    const count = `fixed ${answer.status}`
    this.answers[count] = (this.answers[count] ?? 0) + 1
    if (!expected.includes(answer.status)) this.fail(`${path}: expected ${expected}, got ${summarise(answer)}`)
    return answer
  }

  /** Waits until no question is under way. */
  async drain(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending)
  }

  /** Notes a violation; the first one counts. */
  fail(text: string, about?: Question): void {
    if (this.violation !== undefined) return
    this.violation = text
    this.subject = about && [about.provider.name, about.version?.version ?? '']
  }

  #count({ route }: Question, { status, left, headers }: Answer): void {
    const outcome = headers['terramirror-cache'] ?? ''
    const key = left ? `${route} left` : `${route} ${status} ${outcome}`.trimEnd()
    this.answers[key] = (this.answers[key] ?? 0) + 1
  }
}

/** All that the origin published as a version, for people. */
export function historyOf({ editions, listed }: TrueVersion): string {
  const at = (moment: number): string => (Number.isFinite(moment) ? (moment / 1_000).toFixed(2) : 'now')
  const lines = editions.map(
    ({ content, platforms, verdict, signed, refusedPlatforms, period }) =>
      `${at(period.from)}-${at(period.to)} ${content.name} ${verdict}${signed ? ', signed' : ''}: ${platforms}` +
      (refusedPlatforms.length > 0 ? ` but ${refusedPlatforms}` : ''),
  )
  return [...lines, `listed ${listed.map(({ from, to }) => `${at(from)}-${at(to)}`)}`].join('\n    ')
}

function describe({ headers, leaveAfterBytes, leaveAfterMs, pauseMs }: Ask): string {
  const facts = { ...headers, leaveAfterBytes, leaveAfterMs, pauseMs }
  const told = Object.entries(facts).filter(([, value]) => value !== undefined)
  return told.map(([name, value]) => ` ${name}=${value}`).join('')
}

function summarise({ status, headers, body, trouble, span }: Answer): string {
  const outcome = headers['terramirror-cache'] ?? '-'
  const text = headers['content-type'] === 'application/json' ? body.toString().slice(0, 1_200) : `${body.length} bytes`
  const tookMs = Math.round(span.to - span.from)
  return `status ${status}, outcome ${outcome}, ${tookMs} ms${trouble ? `, ${trouble}` : ''}: ${text}`
}
