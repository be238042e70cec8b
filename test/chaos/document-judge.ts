import {
  assertLink,
  assertNotForeign,
  isEmptyRecord,
  isRecord,
  parseObject,
  readEntry,
  Violation,
} from './answer-format.ts'
import type { Answer } from './client.ts'
import type { ContentJudge } from './content-judge.ts'
import type { FailureJudge } from './failure-judge.ts'
import type { Knowledge } from './knowledge.ts'
import type { Circumstances } from './mirror-history.ts'
import type { Question } from './question.ts'
import type { Reasons } from './reasons.ts'

/** Holds index.json and VERSION.json against the truth. */
export class DocumentJudge {
  readonly #reasons: Reasons
  readonly #knowledge: Knowledge
  readonly #contents: ContentJudge
  readonly #failures: FailureJudge

  constructor(parts: { reasons: Reasons; knowledge: Knowledge; contents: ContentJudge; failures: FailureJudge }) {
    this.#reasons = parts.reasons
    this.#knowledge = parts.knowledge
    this.#contents = parts.contents
    this.#failures = parts.failures
  }

  /** Judges an index.json, and learns which list the mirror has. @throws Violation */
  judgeIndex(question: Question, answer: Answer, met: Circumstances): void {
    const { provider } = question
    const { versions } = parseObject(answer)
    if (!isRecord(versions) || Object.values(versions).some((value) => !isEmptyRecord(value))) {
      throw new Violation('index.json is not { "versions": { VERSION: {} } }')
    }
    assertNotForeign(question)
    this.#assertOutcome(question, answer, met)
    const seen = this.#reasons.listSeen(question, answer)
    for (const version of Object.keys(versions)) {
      const truth = provider.versions.get(version)
      if (truth === undefined) throw new Violation(`the origin never listed ${version}`)
      const listed = truth.listed.some(({ from, to }) => seen.some((span) => from <= span.to && span.from <= to))
      if (!listed && !this.#knowledge.wasAsked(truth)) throw new Violation(`${version} was not listed at that time`)
      if (met.sealed && !met.disturbed && !this.#knowledge.wasAsked(truth))
        throw new Violation(`${version} is not held`)
    }
    const garbled = [answer.span, ...seen].some((span) => this.#reasons.mayBeGarbled(question, span))
    if (!met.disturbed && !met.unwritable && !garbled && answer.headers['terramirror-cache'] === 'miss') {
      this.#knowledge.noteList(provider, answer.span.from)
    }
    for (const truth of provider.versions.values()) {
      if (truth.version in versions) continue
      if (this.#knowledge.recorded(truth, answer.span.from).size > 0)
        throw new Violation(`${truth.version} is held, and left out`)
      if (met.sealed || met.disturbed || garbled) continue
      if (!truth.mayBeUnlisted(seen)) throw new Violation(`${truth.version} was listed all that time, and is left out`)
    }
  }

  /** Judges a VERSION.json, and learns what the mirror knows of the release. @throws Violation */
  judgeVersion(question: Question, answer: Answer, met: Circumstances): void {
    const { version } = question
    const { archives } = parseObject(answer)
    if (!isRecord(archives)) throw new Violation('VERSION.json is not { "archives": { … } }')
    if (Object.keys(archives).length === 0) {
      this.#failures.assertMayBeAbsent(question, answer, met)
      return
    }
    assertNotForeign(question)
    this.#assertOutcome(question, answer, met)
    const hashes = new Map(Object.entries(archives).map(([platform, entry]) => [platform, readEntry(platform, entry)]))
    if (version === undefined) throw new Violation('archives of something that is no version')
    for (const [platform, { url }] of hashes) assertLink(url, version, platform)
    const content = this.#contents.find(version, hashes, { span: answer.span, asArchive: false })
    for (const [platform, { h1 }] of hashes) {
      const truth = content.archives.get(platform)?.h1
      if (h1.length > 1 || (h1[0] !== undefined && h1[0] !== truth)) {
        throw new Violation(`${platform} has ${h1.join(', ')}, and the archive has ${truth}`)
      }
    }
    for (const [platform, { digest }] of this.#knowledge.recorded(version, answer.span.from)) {
      if (this.#knowledge.mayLackRelease(version)) continue
      if (hashes.get(platform)?.digest !== digest) throw new Violation(`${platform} is held, and not listed so`)
    }
    const complete = !met.sealed && !met.disturbed && answer.headers['terramirror-cache'] !== 'stale'
    for (const platform of complete ? this.#reasons.platformsDue(question, answer.span) : []) {
      if (!hashes.has(platform)) throw new Violation(`${platform} is published, and left out`)
    }
    const signed = version.editions.some((edition) => edition.content === content && edition.signed)
    const unsigned = version.editions.some((edition) => edition.content === content && !edition.signed)
    const fresh = answer.headers['terramirror-cache'] === 'miss' && !met.unwritable && !met.disturbed
    if (signed && !unsigned && fresh) this.#knowledge.noteSigned(version.provider, met.life)
    if (fresh) this.#knowledge.noteDocument(version, met.life)
  }

  /** Stale answers have a reason. */
  #assertOutcome(question: Question, { headers, span }: Answer, met: Circumstances): void {
    const outcome = String(headers['terramirror-cache'])
    if (!['hit', 'miss', 'coalesced', 'stale', 'negative'].includes(outcome)) throw new Violation(`outcome ${outcome}`)
    if (outcome !== 'stale' || met.disturbed || this.#reasons.mayBeStale(question, span)) return
    throw new Violation('stale without a reason')
  }
}
