import { parseObject, Violation } from './answer-format.ts'
import type { Answer } from './client.ts'
import type { Knowledge } from './knowledge.ts'
import type { Circumstances } from './mirror-history.ts'
import type { Question } from './question.ts'
import type { Reasons } from './reasons.ts'
import type { Span } from './timeline.ts'

/** Judges refusals: each needs a reason, and absence is told on the word of the origin only. */
export class FailureJudge {
  readonly #reasons: Reasons
  readonly #knowledge: Knowledge

  constructor(reasons: Reasons, knowledge: Knowledge) {
    this.#reasons = reasons
    this.#knowledge = knowledge
  }

  /** Judges any status that says no; an answer to HEAD has no body to judge. @throws Violation */
  judge(question: Question, answer: Answer, met: Circumstances & { head: boolean }): void {
    if (!met.head) this.#judgeBody(answer)
    this.#judgeStatus(question, answer, met)
  }

  /** @throws Violation if "not there" cannot be the word of the origin */
  assertMayBeAbsent(question: Question, { span }: Answer, met: Circumstances): void {
    if (question.foreign || (question.route !== 'index' && question.version === undefined)) return
    this.#assertNotHeld(question, span)
    if (met.sealed || met.disturbed || this.#reasons.mayBeAbsent(question, span)) return
    throw new Violation('told as absent, and the origin never said so')
  }

  #judgeBody(answer: Answer): void {
    const { status, headers } = answer
    const { error, code, request_id: requestId, upstream_url: upstreamUrl = '' } = parseObject(answer)
    if (
      typeof error !== 'string' ||
      error === '' ||
      typeof code !== 'string' ||
      requestId !== headers['x-request-id']
    ) {
      throw new Violation(`the body of a ${status} does not say what is wrong`)
    }
    if (code === 'UNEXPECTED') throw new Violation('an unexpected error')
    if (/[?#@]/.test(String(upstreamUrl))) throw new Violation(`upstream_url is ${upstreamUrl}`)
  }

  #judgeStatus(question: Question, answer: Answer, met: Circumstances): void {
    const { status, headers, span } = answer
    if (status === 503 && !/^[123]$/.test(headers['retry-after'] ?? '')) {
      throw new Violation(`Retry-After is ${headers['retry-after']}`)
    }
    if (status === 404 && question.route !== 'document') {
      if (question.route === 'index') this.#knowledge.loseList(question.provider)
      this.assertMayBeAbsent(question, answer, met)
      return
    }
    if (met.unreadable && status === 500) return
    if (met.disturbed && status === 503) return
    if (question.foreign) throw new Violation(`a host that is not served got ${status}`)
    if (met.sealed && !met.disturbed) throw new Violation(`a sealed mirror answered ${status}`)
    this.#assertNotHeld(question, span)
    if (question.route === 'index' && !this.#reasons.mayLackList(question, span)) {
      throw new Violation('a list is held, and could be served stale')
    }
    if (!this.#reasons.failures(question, span, met).has(status)) throw new Violation(`${status} without a reason`)
  }

  /** What a client has once received is not refused any more. */
  #assertNotHeld({ route, provider, version, platform }: Question, { from }: Span): void {
    const held = [...provider.versions.values()].filter((each) => this.#knowledge.recorded(each, from).size > 0)
    if (route === 'index' && held.length > 0) throw new Violation(`${held[0]?.version} is held`)
    if (version === undefined) return
    const documented = held.includes(version) && !this.#knowledge.mayLackRelease(version)
    if (route === 'document' && documented) throw new Violation('the release is held')
    if (platform !== undefined && this.#knowledge.held(version, platform, from)) {
      throw new Violation('the archive is held')
    }
  }
}
